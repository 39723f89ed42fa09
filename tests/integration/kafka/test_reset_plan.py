"""A plan of `cklog replay`, carried out on a live broker through an ordinary admin client, and undone again.

The broker is noida-db, a small program that speaks Kafka's protocol: started on loopback, stopped in all cases.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cklog.lines.exports import replay_formats
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Answer
from tests.conftest import SAMPLES
from tests.program import cklog
from tests.reading.offset_files import Offsets, group_tool_reads

RECORDS = 1100
GROUP = "join"
_WAIT_S = 30


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _why_not_up(process: subprocess.Popen[bytes], port: int) -> str:
    """Wait until the broker listens; why it does not, if so."""
    ends = time.monotonic() + _WAIT_S
    while time.monotonic() < ends:
        if process.poll() is not None:
            return f"noida-db ended with {process.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return ""
        time.sleep(0.1)
    return f"noida-db did not listen within {_WAIT_S} s"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a broker of its own."""
    missing = [name for name in ("noida_db", "kafka") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"a live broker needs the packages noida-db and kafka-python; missing: {', '.join(missing)}")
    port, data = _port(), str(tmp_path_factory.mktemp("broker"))
    command = [sys.executable, "-m", "noida_db.cli", "start", "--only", "kafka", "--kafka-port", str(port)]
    with (Path(data) / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--data-dir", data], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        reason = _why_not_up(process, port)
        if reason:
            pytest.skip(reason)
        yield f"127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def admin(broker: str) -> Iterator[Any]:
    """An admin client of a broker that holds the sample's topics and a group that has read on past its line."""
    kafka, new = importlib.import_module("kafka"), importlib.import_module("kafka.admin").NewTopic
    client = kafka.KafkaAdminClient(bootstrap_servers=broker)
    client.create_topics([new("orders", 1, 1), new("payments", 1, 1)])
    producer = kafka.KafkaProducer(bootstrap_servers=broker)
    for number in range(RECORDS):
        for topic in ("orders", "payments"):
            producer.send(topic, value=b"%d" % number, partition=0)
    producer.flush()
    producer.close()
    commit(client, {("orders", 0): 1090, ("payments", 0): 1080})
    yield client
    client.close()


def commit(client: Any, plan: Offsets) -> None:
    kafka = importlib.import_module("kafka.structs")
    offsets = {kafka.TopicPartition(*at): kafka.OffsetAndMetadata(n, "", -1) for at, n in plan.items()}
    client.alter_group_offsets(GROUP, offsets)


def committed(client: Any) -> Offsets:
    return {(tp.topic, tp.partition): found.offset for tp, found in client.list_group_offsets(GROUP)[GROUP].items()}


def test_the_plan_is_what_the_group_reads_next_and_can_be_undone(broker: str, admin: Any) -> None:
    kafka = importlib.import_module("kafka")
    before = committed(admin)
    plan = group_tool_reads(cklog("replay", SAMPLES / "uncoordinated-join", "--format", "kafka-csv").out)
    assert plan == {("orders", 0): 1043, ("payments", 0): 1044}
    commit(admin, plan)
    assert committed(admin) == plan
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker, group_id=GROUP, enable_auto_commit=False)
    for topic, partition in plan:
        consumer.assign([kafka.TopicPartition(topic, partition)])
        assert int(next(consumer).value) == plan[topic, partition], "the offset is the next record to read"
    consumer.close()

    rows = [{"group": GROUP, "topic": t, "partition": p, "offset": n} for (t, p), n in before.items()]
    line = RecoveryLine(True, "uncoordinated", (), (), (), (), (), (), False, details={"committed_offsets": rows})
    undo = replay_formats(rollback=True)["kafka-csv"](Answer("replay", "ok", 0, (), (), line))
    commit(admin, group_tool_reads(undo))
    assert committed(admin) == before == {("orders", 0): 1090, ("payments", 0): 1080}


def test_the_log_holds_what_get_offsets_names(broker: str, admin: Any) -> None:
    kafka = importlib.import_module("kafka")
    told = cklog("replay", SAMPLES / "uncoordinated-join", "--format", "kafka-get-offsets").out
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker)
    for line in told.splitlines():
        topic, partition, offset = line.split(":")
        at = kafka.TopicPartition(topic, int(partition))
        assert consumer.beginning_offsets([at])[at] <= int(offset) <= consumer.end_offsets([at])[at] == RECORDS
    consumer.close()

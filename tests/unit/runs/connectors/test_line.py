"""Lines of connectors: what a restart does, what is gone, what comes once more, and what the offset API is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders.connect import Topic, change, entry, java_map, key
from tests.builders.kafka import ABORT, COMMIT, Row
from tests.conftest import SAMPLES
from tests.program import cklog

S = {"server": "shop"}
TOPIC = SAMPLES / "connect-offsets" / "topic"


def binlog(pos: int, number: int = 3, **more: Any) -> dict[str, Any]:
    return {"file": f"b.{number:06}", "pos": pos, **more}


def answer(*args: str | Path) -> tuple[dict[str, Any], int]:
    ended = cklog("recovery-line", *args, "--json")
    return json.loads(ended.out), ended.code


def ids(found: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in found["findings"]}


def row(found: dict[str, Any], connector: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = found["result"]["details"]["connectors"]
    return next(one for one in rows if one["connector"] == connector)


def test_what_an_exactly_once_worker_aborted_does_not_count_and_what_is_open_waits(tmp_path: Path) -> None:
    log = Topic().add(entry("a", S, binlog(1)), producer=5).ended(5, COMMIT)
    log.add(entry("a", S, binlog(2)), producer=5).ended(5, ABORT).add(entry("a", S, binlog(3)), producer=5)
    log.write(tmp_path / "connect-offsets-0")
    found, _ = answer(tmp_path)
    assert row(found, "a")["resumes"] == "b.000003:1"
    assert "pending-offset" in ids(found)


def test_records_behind_a_bad_batch_are_cut_by_the_broker_and_do_not_count(tmp_path: Path) -> None:
    """A restarting broker cuts its log there: nothing newer is promised than what it keeps."""
    log = Topic().add(entry("a", S, binlog(1)))
    at = len(log.data)
    log.add(entry("a", S, binlog(2))).add(entry("a", S, binlog(3)))
    data = bytearray(log.data)
    data[at + 70] ^= 1
    log.data = bytes(data)
    log.write(tmp_path / "kafka" / "connect-offsets-0")
    (tmp_path / "kafka" / "recovery-point-offset-checkpoint").write_text("0\n1\nconnect-offsets 0 0\n")
    found, code = answer(tmp_path)
    assert (row(found, "a")["resumes"], found["result"]["action"], code) == ("b.000003:1", "restart-older", 3)
    assert {"corrupt-batch", "restart-cuts-log"} <= ids(found)


def test_a_position_that_the_source_has_no_more_is_no_restart(tmp_path: Path) -> None:
    shutil.copytree(TOPIC, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "connect-offsets-2")  # a connector there is taking a snapshot
    held, code = answer(tmp_path / "run", "--source-from", "orders-mysql=mysql-bin.000123:4711")
    assert (held["result"]["action"], row(held, "orders-mysql")["held"], code) == ("restart", True, 0)
    gone, code = answer(tmp_path / "run", "--source-from", "orders-mysql=mysql-bin.000123:4712")
    assert (gone["result"]["action"], row(gone, "orders-mysql")["held"], code) == ("repair-first", False, 3)
    assert "position-gone" in ids(gone)
    unknown, code = answer(tmp_path / "run", "--source-from", "orders-mysql=other-bin.000001:4")
    assert (unknown["result"]["action"], code) == ("undetermined", 5)


def test_the_body_for_the_offset_api_and_how_it_is_undone() -> None:
    stored = {"ts_sec": 1_700_000_000, "file": "mysql-bin.000123", "pos": 4711, "server_id": 1}
    asked = ("replay", TOPIC, "--operator", "orders-mysql", "--format", "connect-json")
    partition = {"server": "shop"}
    assert json.loads(cklog(*asked).out) == {"offsets": [{"partition": partition, "offset": stored}]}
    gone = (*asked, "--source-from", "orders-mysql=mysql-bin.000124:4")
    assert json.loads(cklog(*gone).out) == {"offsets": [{"partition": partition, "offset": None}]}
    assert json.loads(cklog(*gone, "--rollback").out) == {"offsets": [{"partition": partition, "offset": stored}]}
    several = cklog("replay", TOPIC, "--format", "connect-json")
    assert (several.code, "--operator" in several.err) == (2, True)
    assert cklog("replay", SAMPLES / "kafka-broker", "--format", "connect-json").code == 2


def orders(*places: int, **more: Any) -> Topic:
    log = Topic()
    for number, pos in enumerate(places):
        log.add(change({"name": "shop", **binlog(pos), **more}, number))
    return log


def test_what_lies_behind_the_position_comes_once_more(tmp_path: Path) -> None:
    Topic().add(entry("a", S, binlog(500))).write(tmp_path / "connect-offsets-0")
    orders(100, 400, 600, 700).write(tmp_path / "shop.x-0")
    orders(300, 800).write(tmp_path / "shop.y-1")
    found, _ = answer(tmp_path)
    assert (row(found, "a")["again"], row(found, "a")["newest_taken"]) == (3, "b.000003:800")
    assert {taken["log"]: taken["again"] for taken in row(found, "a")["taken"]} == {"shop.x-0": 2, "shop.y-1": 1}
    assert found["result"]["runs"][0]["doubled"] == 3
    assert found["result"]["runs"][0]["chosen"] == "b.000003:500"
    told = found["result"]["details"]["headline"]
    assert told == "1 of 1 partition of 1 connector resumes, 3 records in topics are produced again."


def test_an_earlier_crash_left_records_twice_and_the_farther_ones_count_too(tmp_path: Path) -> None:
    """5 6 7, a crash, 5 6: of what follows 5 the topic has 6, 7 and 6 again."""
    Topic().add(entry("a", S, binlog(51))).write(tmp_path / "connect-offsets-0")
    orders(50, 60, 70, 50, 60).write(tmp_path / "shop.x-0")
    found, _ = answer(tmp_path)
    assert (row(found, "a")["again"], row(found, "a")["newest_taken"]) == (3, "b.000003:70")


def test_records_that_say_nothing_leave_it_unknown(tmp_path: Path) -> None:
    Topic().add(entry("a", S, binlog(500))).write(tmp_path / "connect-offsets-0")
    orders(600).add(Row(b'{"id":9}'), Row(b"avro")).write(tmp_path / "shop.x-0")
    found, _ = answer(tmp_path, "--taken", "a=shop.x")
    assert row(found, "a")["again"] == 1
    Topic().add(change({"name": "nobody"}, 9)).write(tmp_path / "shop.z-0")
    found, _ = answer(tmp_path, "--taken", "a=shop.z")
    assert (row(found, "a")["again"], "taken-unknown" in ids(found)) == (None, True)
    assert "once more" not in found["result"]["details"]["headline"]


@pytest.mark.parametrize("cut", [True, False])
def test_damage_of_a_data_topic_is_told(tmp_path: Path, cut: bool) -> None:
    """Even where no record is left that says whose it is; what was torn off a log's end had not been acknowledged."""
    folder = shutil.copytree(SAMPLES / "connect-offsets" / "topic", tmp_path / "topic")
    log = folder / "shop.shop.orders-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    log.write_bytes(data[:-9] if cut else data[:61] + bytes(len(data) - 61))
    found, _ = answer(folder)
    assert ids(found) & ({"torn-tail"} if cut else {"corrupt-batch", "bad-batch", "corrupt-file"})


def test_taken_may_be_a_file_of_json_lines(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "connect.offsets").write_bytes(java_map([(key("a", S), b'{"file":"b.000003","pos":5}')]))
    (tmp_path / "last.jsonl").write_text('{"source": {"file": "b.000003", "pos": 4}}\n{"file": "b.000003", "pos": 9}\n')
    found, _ = answer(tmp_path / "run", "--taken", f"a={tmp_path / 'last.jsonl'}")
    assert row(found, "a")["again"] == 1
    ended = cklog("recovery-line", tmp_path / "run", "--taken", f"a={tmp_path / 'none'}")
    assert (ended.code, "no such file" in ended.err) == (66, True)


def test_a_snapshot_that_was_not_finished_is_taken_again(tmp_path: Path) -> None:
    Topic().add(entry("a", S, binlog(5, snapshot=True))).write(tmp_path / "connect-offsets-0")
    found, code = answer(tmp_path)
    assert (found["result"]["action"], found["verdict"], code) == ("start-over", "unrecoverable", 4)
    assert "unfinished-snapshot" in ids(found)
    assert (found["result"]["runs"][0]["chosen"], found["result"]["runs"][0]["chosen_time"]) == (None, None)


def test_a_cut_file_is_no_restart(tmp_path: Path) -> None:
    (tmp_path / "connect.offsets").write_bytes(java_map([(key("a", S), b"{}")])[:-20])
    found, code = answer(tmp_path)
    assert (found["result"]["action"], code, "cut-offsets-file" in ids(found)) == ("start-over", 4, True)
    (tmp_path / "connect.offsets").write_bytes(b"\xac\xed\x00\x05sr\x00\x01X")
    found, code = answer(tmp_path)
    assert (found["result"]["action"], code) == ("undetermined", 5)


def test_stores_of_which_nothing_can_be_read_are_no_answer(tmp_path: Path) -> None:
    """Nobody knows where their connectors stand: no restart is promised, and none that begins anew."""
    (tmp_path / "connect-offsets.jsonl").write_bytes(b"\0" * 200 + b"\n")
    found, code = answer(tmp_path)
    assert (code, found["result"]["action"], found["verdict"]) == (5, "undetermined", "indeterminate")
    assert "anew" not in json.dumps(found)


def test_offsets_that_other_brokers_have_are_missed(tmp_path: Path) -> None:
    Topic().add(entry("a", S, binlog(5))).write(tmp_path / "connect-offsets-2")
    (missed,) = [f for f in answer(tmp_path)[0]["findings"] if f["id"] == "missing-offsets-partition"]
    assert "partitions 0, 1 are not here" in missed["message"]


def test_a_partition_of_offsets_without_a_record_is_named(tmp_path: Path) -> None:
    Topic().add(entry("a", S, binlog(5))).write(tmp_path / "connect-offsets-0")
    for partition, data in ((1, b""), (2, bytes(99))):
        folder = tmp_path / f"connect-offsets-{partition}"
        folder.mkdir()
        (folder / "00000000000000000000.log").write_bytes(data)
    told = [f for f in answer(tmp_path)[0]["findings"] if f["id"] == "empty-offsets-partition"]
    assert [(f["severity"], f["where"][0]["path"]) for f in told] == [
        ("error", "connect-offsets-2"),
        ("info", "connect-offsets-1"),
    ]


def test_two_stores_with_a_connector_of_one_name_are_told_apart(tmp_path: Path) -> None:
    Topic().add(entry("a", S, binlog(5))).write(tmp_path / "connect-offsets-0")
    (tmp_path / "connect.offsets").write_bytes(java_map([(key("a", S), b'{"file":"b.000003","pos":9}')]))
    found, _ = answer(tmp_path)
    assert [run["run"] for run in found["result"]["runs"]] == ["connect-offsets:a", "connect.offsets:a"]


@pytest.mark.parametrize(
    ("number", "code", "holds"),
    [(4, 0, [True, True]), (2, 3, [None, False]), (9, 5, [None, True])],
)
def test_a_line_is_proved_by_the_records_that_are_there(
    number: int, code: int, holds: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "line.json").write_text(json.dumps({"orders-mysql/0": number}))
    ended = cklog("verify", TOPIC, "--line", tmp_path / "line.json", "--maximal", "--json")
    assert ended.code == code
    assert [check["holds"] for check in json.loads(ended.out)["result"]["checks"]] == holds


def test_the_answer_itself_is_proved(tmp_path: Path) -> None:
    (tmp_path / "line.json").write_text(cklog("recovery-line", TOPIC, "--json").out)
    assert cklog("verify", TOPIC, "--line", tmp_path / "line.json", "--maximal").code == 0


@pytest.mark.parametrize("sample", ["kafka-broker", "domino-cycle"])
def test_options_about_connectors_are_refused_elsewhere(sample: str) -> None:
    ended = cklog("recovery-line", SAMPLES / sample, "--source-from", "a=b")
    assert (ended.code, "connectors" in ended.err) == (2, True)


def test_names_that_are_not_there(tmp_path: Path) -> None:
    assert cklog("recovery-line", TOPIC, "--source-from", "nobody=b.000001:4").code == 66
    assert cklog("recovery-line", TOPIC, "--source-from", "nonsense").code == 2
    assert cklog("recovery-line", TOPIC, "--kafka", tmp_path).code == 66
    assert cklog("recovery-line", TOPIC, "--kafka", SAMPLES / "kafka-broker").code == 2, "none copies from Kafka"
    assert cklog("recovery-line", TOPIC, "--failed", "orders-mysql").code == 2


def test_a_runbook_stops_sets_and_resumes_and_each_step_can_be_undone() -> None:
    ended = cklog("runbook", TOPIC, "--source-from", "orders-mysql=mysql-bin.000124:4", "--json")
    steps = [s for s in json.loads(ended.out)["result"]["steps"] if s["run"] == "orders-mysql"]
    commands = "\n".join(step["command"] or "" for step in steps)
    order = [commands.index(word) for word in ("/stop", '/offsets" >', "--request PATCH", "/resume")]
    assert order == sorted(order)
    assert all(step["undo_command"] for step in steps if step["dangerous"])
    plain = cklog("runbook", TOPIC, "--json")
    assert "PATCH" not in plain.out  # nothing is to be changed


def test_a_workers_file_may_be_named_itself() -> None:
    ended = cklog("recovery-line", SAMPLES / "connect-offsets" / "standalone" / "connect.offsets", "--json")
    runs = json.loads(ended.out)["result"]["runs"]
    assert ({run["run"] for run in runs}, ended.code) == ({"audit-postgres", "local-file-source"}, 0)

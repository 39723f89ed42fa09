"""What is asked of a store for an answer: one listing, no HEAD, each small file once, of large ones what is needed."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.policies.check_records import Targets
from cklog.simulate.cec.tuples import Workload
from cklog.simulate.cec.write import write
from tests.conftest import SAMPLES
from tests.integration.stores.server import BUCKET, ObjectStore
from tests.program import cklog

ROOTS = {
    "uncoordinated-join": 1,
    "uncoordinated-join-parquet": 1,
    "flink-orders": 1,
    "spark-wordcount": 1,
    "spark-state-rocksdb": 1,
    "kafka-broker": 1,
    "kafka-streams-state": 1,
    "patent-store": 1,
}


@pytest.mark.quarter
@pytest.mark.parametrize("sample", ROOTS)
def test_a_root_is_listed_once_and_no_file_is_asked_for_twice(store: ObjectStore, sample: str) -> None:
    uri = store.upload(SAMPLES / sample, f"requests/{sample}")
    files = sum(path.is_file() for path in (SAMPLES / sample).rglob("*"))
    store.asked.clear()
    assert cklog("recovery-line", uri, *store.words).code in (0, 3, 5)
    assert (store.count("LIST"), store.count("HEAD")) == (ROOTS[sample], 0)
    assert 0 < store.count("GET") <= files
    assert set(Counter(one.key for one in store.asked if one.what == "GET").values()) == {1}


@pytest.mark.slow
def test_a_thousand_snapshots_of_flink_cost_a_request_each(store: ObjectStore) -> None:
    """Beside the listing, which tells of 1,000 files in a request."""
    sample = next(SAMPLES.joinpath("flink-orders").rglob("_metadata"))
    job, data = sample.parent.parent.name, sample.read_bytes()

    def put(number: int) -> None:
        key = f"thousand/{job}/chk-{number}/_metadata"
        store.client.put_object(Bucket=BUCKET, Key=key, Body=data)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(put, range(1, 1001)))
    store.asked.clear()
    ended = cklog("inspect", f"s3://{BUCKET}/thousand", "--json", *store.words)
    assert ended.code in (0, 3, 5)
    assert store.count("HEAD") == 0
    assert store.count("LIST") <= 2
    read = Counter(one.key for one in store.asked if one.what == "GET")
    assert len([key for key in read if key.endswith("_metadata")]) == 1000
    assert max(read.values()) == 1
    assert store.count("GET") == 1000


def test_an_extent_costs_at_most_twice_its_bytes(store: ObjectStore, tmp_path: Path) -> None:
    """Of a queue of 1.7 MB, from its end."""
    workload = Workload(keys=1000, rate=10000.0, tuples=60_000, start_ms=1_767_225_600_000)
    write(tmp_path / "run", workload, Targets(q_windows=4, interval_ms=1, cost_us=50))
    lines = (tmp_path / "run/outputs/agg1/part-00000.jsonl").read_bytes().splitlines(keepends=True)
    uri = store.upload(tmp_path / "run", "extent")
    store.asked.clear()
    ended = cklog("extent", uri, "--operator", "agg1", "--json", *store.words)
    assert ended.out == cklog("extent", tmp_path / "run", "--operator", "agg1", "--json").out
    records = json.loads(ended.out)["result"]["records"]
    extent = sum(map(len, lines[-records:]))
    assert extent < sum(map(len, lines)) / 3, "else there would be nothing to leave out"
    assert 0 < store.bytes_of("outputs/agg1/") <= 2 * extent


def test_of_parquet_only_the_columns_that_are_needed_are_read(store: ObjectStore, tmp_path: Path) -> None:
    """A column that no question is about takes nearly all of the file."""
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    n = 20_000
    noise = np.random.default_rng(1).bytes(n * 100)
    table = {
        "operator": ["a"] * n,
        "subtask": np.zeros(n, np.int64),
        "checkpoint": np.arange(1, n + 1),
        "mine": pa.array(noise[i : i + 100] for i in range(0, n * 100, 100)),
    }
    pq.write_table(pa.table(table), folder / "checkpoints" / "a.parquet")
    size = (folder / "checkpoints" / "a.parquet").stat().st_size
    uri = store.upload(folder, "columns")
    store.asked.clear()
    assert cklog("recovery-line", uri, *store.words).out == cklog("recovery-line", folder).out
    assert 0 < store.bytes_of(".parquet") < size / 5


@pytest.mark.quarter
@pytest.mark.parametrize("command", ["recovery-line", "scan"])
@pytest.mark.parametrize(("given", "most"), [(["--io-threads", "2"], 2), ([], 16)])
def test_requests_are_made_at_the_same_time_up_to_io_threads(
    store: ObjectStore, tmp_path: Path, command: str, given: list[str], most: int
) -> None:
    (tmp_path / "run/checkpoints").mkdir(parents=True)
    for number in range(60):
        record = {"operator": "a", "subtask": number, "checkpoint": 1}
        (tmp_path / f"run/checkpoints/a-{number}.jsonl").write_text(json.dumps(record) + "\n")
    uri = store.upload(tmp_path / "run", f"parallel-{command}-{most}")
    store.most_at_once = 0
    store.pause = 0.05
    try:
        assert cklog(command, uri, *store.words, *given).code == 0
    finally:
        store.pause = 0.0
    assert max(2, most // 2) <= store.most_at_once <= max(most, 2)

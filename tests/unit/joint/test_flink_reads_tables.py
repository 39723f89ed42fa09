"""`recovery-line --with`: a query writes a table of Iceberg, and a job of Flink reads it as a stream.

The state of Flink's source is written from its format, as the connector needs a jar that is not here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders import flink as fb
from tests.builders.sinks.flink_source import iceberg_enumerator
from tests.unit.joint.asking import ask, drop, points
from tests.unit.joint.tables import Iceberg, chain

JOB = "00112233445566778899aabbccddeeff"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return chain(tmp_path)


@pytest.fixture
def iceberg(jobs: Path) -> Iceberg:
    """The table has a snapshot for each of five batches; checkpoint n of the reader has read up to number n - 1."""
    made = Iceberg(jobs)
    shutil.rmtree(jobs / "enrich")
    for n, snapshot in enumerate([None, *made.ids]):
        checkpoint(jobs, n, iceberg_enumerator(snapshot))
    return made


def checkpoint(jobs: Path, number: int, enumerator: bytes, version: int = 2) -> None:
    coordinator = fb.coordinator(version, enumerator)
    source = fb.operator(6, coordinator=coordinator, name="Source: orders", uid="orders", parallelism=1)
    kind = fb.properties((), "Checkpoint", "FORWARD_BACKWARD")
    folder = jobs / "enrich" / JOB / f"chk-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_metadata").write_bytes(fb.metadata(6, [source], checkpoint=number, properties=kind).data)


def both(jobs: Path, *words: str) -> tuple[int, dict[str, Any]]:
    ended, answer = ask(jobs / "clean", *words, "--with", jobs / "enrich")
    return ended.code, answer


def test_where_a_table_is_read_on_is_told(jobs: Path, iceberg: Iceberg) -> None:
    ended, answer = ask(jobs / "enrich")
    (source,) = answer["result"]["sources"]
    assert source["source"] == "iceberg-table"
    assert source["offset"] == f'{{"snapshot_id": {iceberg.ids[4]}}}'
    assert (source["operator"], source["subtask"]) == ("orders", -1)
    assert ended.code == 0
    assert not [f for f in answer["findings"] if f["id"] == "unread-state"]


def test_a_table_is_a_link_and_nobody_moves(jobs: Path, iceberg: Iceberg) -> None:
    code, answer = both(jobs)
    (link,) = answer["result"]["details"]["joint_links"]
    assert (link["from"], link["to"], link["what"], link["fits"]) == ("clean", "enrich", "batch", True)
    assert (link["read_to"], link["stays_to"], link["lost"]) == (5, 5, 0)
    assert points(answer) == {"clean": "batch 4", "enrich": "chk-5"}
    assert code == 0


def test_who_read_what_its_writer_writes_anew_goes_back_with_it(jobs: Path, iceberg: Iceberg) -> None:
    _, answer = both(jobs, "--at", "query/0=2")
    assert points(answer) == {"clean": "batch 2", "enrich": "chk-3"}
    assert answer["result"]["details"]["joint_links"][0]["read_to"] == 3


def test_who_read_a_snapshot_that_was_taken_back_goes_back(jobs: Path, iceberg: Iceberg) -> None:
    for log in ("offsets", "commits", "sources/0"):
        drop(jobs / "clean/ck" / log, 3, 4)
    iceberg.table.manage_snapshots().rollback_to_snapshot(iceberg.ids[2]).commit()
    _, answer = both(jobs)
    assert points(answer) == {"clean": "batch 2", "enrich": "chk-3"}


def test_who_has_looked_at_nothing_yet_restarts_there(jobs: Path, iceberg: Iceberg) -> None:
    for n in range(1, 6):
        shutil.rmtree(jobs / "enrich" / JOB / f"chk-{n}")
    code, answer = both(jobs)
    assert points(answer)["enrich"] == "chk-0"
    assert answer["result"]["details"]["joint_links"] == []
    assert code == 5  # nothing tells which table it will read


def test_a_checkpoint_that_does_not_say_how_far_forces_nothing(jobs: Path, iceberg: Iceberg) -> None:
    checkpoint(jobs, 4, b"an enumerator of another source")
    code, answer = both(jobs)
    (link,) = answer["result"]["details"]["joint_links"]
    assert link["fits"] is None
    assert answer["verdict"] == "indeterminate"
    assert code == 5

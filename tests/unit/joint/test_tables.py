"""`recovery-line --with`: a query writes a table, and another reads it as a stream.

The logs of both queries are Spark's; the offsets of the reader and the table's log are written from their formats, as
the connectors need jars that are not here.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.joint.asking import ask, drop, points
from tests.unit.joint.tables import Iceberg, chain, delta, read_until


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return chain(tmp_path)


def both(jobs: Path, *words: str) -> tuple[int, dict[str, Any]]:
    ended, answer = ask(jobs / "clean", *words, "--with", jobs / "enrich")
    return ended.code, answer


def test_a_table_is_a_link_and_nobody_moves(jobs: Path) -> None:
    code, answer = both(jobs)
    (link,) = answer["result"]["details"]["joint_links"]
    assert (link["from"], link["to"], link["what"], link["fits"]) == ("clean", "enrich", "batch", True)
    assert (link["read_to"], link["stays_to"], link["lost"]) == (5, 5, 0)
    assert points(answer) == {"clean": "batch 4", "enrich": "batch 4"}
    assert code == 0


def test_who_read_versions_that_a_table_does_not_have_may_be_anywhere(jobs: Path) -> None:
    """The writer's checkpoint is from a backup, and so is the whole folder of its table."""
    for log in ("offsets", "commits", "sources/0"):
        drop(jobs / "clean/ck" / log, 3, 4)
    for version in (4, 5):
        (jobs / f"clean/table/_delta_log/{version:020}.json").unlink()
    _, answer = both(jobs)
    details = answer["result"]["details"]
    assert details["joint_links"][0]["fits"] is None  # versions 4 and 5 are read, and the table has none
    assert answer["verdict"] == "indeterminate"


def test_no_line_fits_where_a_table_drops_what_its_writer_has_still_to_write(jobs: Path) -> None:
    """The writer's checkpoint is from a backup, and the table remembers the batches after it."""
    for log in ("offsets", "commits", "sources/0"):
        drop(jobs / "clean/ck" / log, 3, 4)
    code, answer = both(jobs)
    assert code == 4
    assert {f["id"] for f in answer["findings"]} == {"no-joint-line", "silent-loss"}
    (writer, reader) = answer["result"]["runs"]
    assert "new checkpoint folder" in writer["note"]  # what its own line says
    assert reader["command"] is None


@pytest.mark.parametrize(
    ("last", "read"),
    [
        (delta(6), 5),
        (delta(5, 0), 5),
        (delta(5), 4),
        (delta(5, 3, initial=True), 5),
        (delta(5, -1, initial=True), 0),
    ],
)
def test_a_version_of_which_a_part_was_read_counts_as_read(jobs: Path, last: dict[str, Any], read: int) -> None:
    read_until(jobs / "enrich", lambda n: last)
    links = both(jobs)[1]["result"]["details"]["joint_links"]
    assert [link["read_to"] for link in links] == ([read] if read else [])


def test_the_same_of_another_table_is_no_link(jobs: Path) -> None:
    read_until(jobs / "enrich", lambda n: delta(n + 2) | {"reservoirId": "another"})
    code, answer = both(jobs)
    assert code == 5
    assert {f["id"] for f in answer["findings"]} >= {"joint-undetermined"}


def test_a_delta_table_that_was_taken_back_tells_no_reader_where_it_is(jobs: Path) -> None:
    log = jobs / "clean/table/_delta_log"
    restore = {
        "commitInfo": {"timestamp": 1795463000000, "operation": "RESTORE", "operationParameters": {"version": 3}}
    }
    (log / f"{6:020}.json").write_text(json.dumps(restore) + "\n")
    code, answer = both(jobs)
    assert code == 5
    assert "was taken back" in json.dumps(answer["findings"])


@pytest.fixture
def iceberg(jobs: Path) -> Iceberg:
    return Iceberg(jobs)


def test_snapshots_are_a_link(jobs: Path, iceberg: Iceberg) -> None:
    code, answer = both(jobs)
    (link,) = answer["result"]["details"]["joint_links"]
    assert (link["read_to"], link["stays_to"], link["lost"], code) == (5, 5, 0, 0)


def test_who_read_what_its_writer_writes_anew_goes_back_with_it(jobs: Path, iceberg: Iceberg) -> None:
    _, answer = both(jobs, "--at", "query/0=2")
    assert points(answer) == {"clean": "batch 2", "enrich": "batch 2"}
    (link,) = answer["result"]["details"]["joint_links"]
    assert (link["read_to"], link["cut_at"]) == (3, 3)
    assert {run["action"] for run in answer["result"]["runs"]} == {"repair-first"}


def test_who_read_a_snapshot_that_was_taken_back_goes_back(jobs: Path, iceberg: Iceberg) -> None:
    """The writer is at batch 2, as is its table; the reader has read two snapshots that the table had then."""
    for log in ("offsets", "commits", "sources/0"):
        drop(jobs / "clean/ck" / log, 3, 4)
    iceberg.table.manage_snapshots().rollback_to_snapshot(iceberg.ids[2]).commit()
    code, answer = both(jobs)
    assert points(answer) == {"clean": "batch 2", "enrich": "batch 2"}
    assert code in (0, 3)
    assert [run["action"] for run in answer["result"]["runs"]] == ["restart", "repair-first"]


def test_snapshots_of_others_and_those_without_rows_of_the_writer_are_no_batches(jobs: Path, iceberg: Iceberg) -> None:
    iceberg.append(9, query="another")
    iceberg.ids = [*iceberg.ids[:4], iceberg.table.current_snapshot().snapshot_id]
    read_until(jobs / "enrich", iceberg.offset)
    assert both(jobs)[1]["result"]["details"]["joint_links"][0]["read_to"] == 5


def test_a_reader_before_what_has_expired_has_lost_it(jobs: Path, iceberg: Iceberg) -> None:
    later = datetime.now() + timedelta(days=1)
    iceberg.table.maintenance.expire_snapshots().older_than(later).commit()
    assert both(jobs)[0] == 0
    drop(jobs / "enrich/ck/commits", 2, 3, 4)
    drop(jobs / "enrich/ck/offsets", 2, 3, 4)
    _, answer = both(jobs)
    assert "joint-undetermined" in {f["id"] for f in answer["findings"]}  # of its snapshots nothing is left

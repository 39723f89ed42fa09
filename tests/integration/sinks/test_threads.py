"""What users found out after a restart: each of their threads has a sample, and in the sample the table is so.

That the table is as its README says is read here by the projects' own libraries, or from the format's own files. What
cklog says beforehand is held against what the users found out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cklog import open as opened
from tests.builders.sinks.iceberg_folder import FolderCatalog, last_epoch, rows_of
from tests.builders.sinks.queries import PER_BATCH
from tests.conftest import SAMPLES
from tests.program import cklog

TABLES = SAMPLES / "tables"
THREADS = {
    "apache/iceberg#10892": "flink-older-checkpoint",
    "apache/iceberg#4137": "flink-summary-expired",
    "#5846": "flink-summary-expired",
    "#6066": "flink-summary-expired",
    "#3647": "flink-summary-expired",
    "apache/amoro#930": "flink-summary-expired",
    "#16009": "flink-response-lost",
    "#10765": "flink-response-lost",
    "started without state": "flink-ids-start-over",
    "apache/paimon#2326": "flink-paimon-expired",
    "delta-io/delta#1141": "spark-delta-foreach-batch",
    "delta-io/delta#1813": "spark-delta-restored",
    "new query id": "spark-delta-new-query",
    "apache/paimon#9666": "spark-paimon-twice",
    "_hudi_streaming_sink_checkpoint": "spark-hudi",
    "another writer appended": "spark-iceberg-expired",
    "branch": "spark-iceberg-branch",
}
"""By what their README names them."""


@dataclass(frozen=True)
class Took:
    """What a table has, batch by batch, and what its sink finds when it asks for this query."""

    batches: list[int]
    remembers: int | None


def query_of(name: str) -> str:
    """The id of the query that the sample's checkpoint is of."""
    found: str = json.loads((TABLES / name / "ck/metadata").read_text())["id"]
    return found


def batches_of(values: list[int]) -> list[int]:
    """Which batches of numbered records are there; of each, all records, and once."""
    mine = sorted(value for value in values if value < 1_000_000)
    found = sorted({value // PER_BATCH for value in mine})
    assert mine == [batch * PER_BATCH + record for batch in found for record in range(PER_BATCH)]
    return found


def delta(name: str) -> Took:
    """A Delta table, by deltalake."""
    from deltalake import DeltaTable

    table = DeltaTable(str(TABLES / name / "table"))
    rows = table.to_pyarrow_table()["value"].to_pylist()
    return Took(batches_of(rows), table.transaction_version(query_of(name)))


def iceberg(name: str, branch: str = "main") -> Took:
    """An Iceberg table of Spark, by pyiceberg."""
    catalog = FolderCatalog(TABLES / name / "table", f"file:///srv/cklog-sample/tables/{name}/table")
    table = catalog.load_table("table")
    return Took(batches_of(rows_of(table, "value", branch)), last_epoch(table, query_of(name)))


def committed(name: str) -> list[str | None]:
    """Of an Iceberg table of Flink, what each snapshot says of its checkpoint."""
    catalog = FolderCatalog(TABLES / name / "table", f"file:///srv/cklog-sample/tables/{name}/table")
    summaries = [snapshot.summary.additional_properties for snapshot in catalog.load_table("table").snapshots()]
    return [said.get("flink.max-committed-checkpoint-id") for said in summaries]


def newest(folder: Path) -> int:
    """The greatest number that a file or folder is named by; -1 if there is none."""
    numbers = (path.name.rpartition("-")[2] for path in folder.glob("*"))
    return max((int(number) for number in numbers if number.isdigit()), default=-1)


@pytest.mark.parametrize("thread", THREADS)
def test_a_thread_has_a_sample_that_names_it(thread: str) -> None:
    said = (TABLES / THREADS[thread] / "README.md").read_text()
    assert thread in said
    assert "cklog is to say beforehand" in said


def test_every_sample_is_of_a_thread() -> None:
    assert {path.name for path in TABLES.iterdir() if path.is_dir()} == set(THREADS.values())


def test_together_they_are_small() -> None:
    assert sum(path.stat().st_size for path in TABLES.rglob("*") if path.is_file()) < 600_000


@pytest.mark.parametrize(
    ("name", "took", "planned", "done"),
    [
        ("spark-delta-restored", Took([0, 1, 2], 4), 2, 2),
        ("spark-delta-new-query", Took([0, 1, 2, 3], None), 0, -1),
        ("spark-delta-foreach-batch", Took([0, 1, 2, 3], None), 3, 2),
        ("spark-iceberg-expired", Took([0, 1, 2, 3], None), 3, 2),
        ("spark-iceberg-branch", Took([0, 1, 2, 3], 3), 3, 2),
    ],
)
def test_the_tables_of_spark_remember_one_thing_and_have_another(
    name: str, took: Took, planned: int, done: int
) -> None:
    assert (delta if "delta" in name else iceberg)(name) == took
    assert newest(TABLES / name / "ck/offsets") == planned
    assert newest(TABLES / name / "ck/commits") == done


def test_a_branch_has_rows_of_its_own_and_what_main_remembers() -> None:
    assert iceberg("spark-iceberg-branch", "audit") == Took([0, 1], 3)


@pytest.mark.parametrize(
    ("name", "numbers", "checkpoint"),
    [
        ("flink-older-checkpoint", ["6", "7", "8"], 6),
        ("flink-summary-expired", [None], 9),
        ("flink-response-lost", ["8", "9"], 9),
        ("flink-ids-start-over", ["8", "12"], 3),
    ],
)
def test_the_tables_of_flink_and_its_checkpoints_differ(name: str, numbers: list[str | None], checkpoint: int) -> None:
    assert committed(name) == numbers
    whole = {path.parent for path in (TABLES / name / "checkpoints").glob("*/*/_metadata")}
    assert max(int(path.name.removeprefix("chk-")) for path in whole) == checkpoint


def test_only_where_the_response_was_lost_the_pending_manifest_is_left() -> None:
    left = {path.parts[-4] for path in TABLES.glob("flink-*/table/metadata/*-00000-0-*.avro")}
    assert left == {"flink-response-lost"}


def test_no_commit_of_paimon_tells_its_batch() -> None:
    snapshots = [json.loads(path.read_text()) for path in TABLES.glob("spark-paimon-twice/table/snapshot/snapshot-*")]
    assert [snapshot["commitIdentifier"] for snapshot in snapshots] == [2**63 - 1] * 4
    assert len({snapshot["commitUser"] for snapshot in snapshots}) == 4
    assert max(snapshot["totalRecordCount"] for snapshot in snapshots) == 4 * PER_BATCH
    assert newest(TABLES / "spark-paimon-twice/ck/commits") == 2


def test_the_commit_user_of_the_checkpoint_has_no_snapshot_left() -> None:
    snapshots = [json.loads(path.read_text()) for path in TABLES.glob("flink-paimon-expired/table/snapshot/snapshot-*")]
    state = next(TABLES.glob("flink-paimon-expired/checkpoints/*/chk-4/_metadata")).read_bytes()
    assert sorted(snapshot["commitIdentifier"] for snapshot in snapshots) == [6, 7]
    assert all(snapshot["commitUser"].encode() not in state for snapshot in snapshots)


def test_hudi_says_the_batch() -> None:
    pytest.importorskip("hudi")
    from hudi import HudiTableBuilder

    table = HudiTableBuilder.from_base_uri(str(TABLES / "spark-hudi/table")).build()
    assert len(table.get_timeline().get_completed_commits()) == 4
    commits = sorted((TABLES / "spark-hudi/table/.hoodie").glob("*.commit"))
    said = json.loads(commits[-1].read_text())["extraMetadata"]["_hudi_streaming_sink_checkpoint"]
    assert json.loads(said) == {"default_single_writer": "3"}


def answer(name: str, branch: str = "") -> dict[str, Any]:
    """What cklog says of a sample's line and table."""
    place = "ck" if name.startswith("spark") else "checkpoints"
    sink = f"orders={TABLES / name / 'table'}{branch}"
    moved = f"file:///srv/cklog-sample/tables={TABLES}"
    ended = cklog("recovery-line", TABLES / name / place, "--sink", sink, "--map", moved, "--json")
    assert ended.code in (0, 3, 5), ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


@pytest.mark.parametrize(
    ("name", "agrees", "fate", "numbers"),
    [
        ("flink-older-checkpoint", False, "skipped-wrongly", (7, 8)),
        ("flink-ids-start-over", False, "skipped-wrongly", range(4, 13)),
        ("flink-response-lost", False, "twice", (9,)),
        ("flink-paimon-expired", None, "written", (4,)),
        ("spark-delta-restored", False, "skipped-wrongly", (3, 4)),
        ("spark-delta-new-query", None, "twice", (0, 1, 2, 3)),
        ("spark-delta-foreach-batch", None, "twice", (3,)),
        ("spark-iceberg-expired", None, "twice", (3,)),
        ("spark-paimon-twice", None, "twice", (3,)),
        ("spark-iceberg-branch", True, "skipped", (3,)),
        ("spark-hudi", True, "skipped", (3,)),
    ],
)
def test_cklog_says_beforehand_what_users_found_out(
    name: str, agrees: bool | None, fate: str, numbers: Iterable[int]
) -> None:
    found = answer(name)
    (sink,) = found["result"]["details"]["sinks"]
    spans = [(one["from"], one["to"]) for one in sink["outcomes"] if one["fate"] == fate]
    assert all(any(start <= n and (end is None or n < end) for start, end in spans) for n in numbers)
    assert sink["agrees"] is agrees
    assert (found["result"]["action"] == "restart") == (agrees is True)


def test_a_restore_that_fails_is_told_by_its_file() -> None:
    found = answer("flink-summary-expired")
    assert {"pending-files-gone", "sink-expired"} <= {finding["id"] for finding in found["findings"]}
    assert found["result"]["action"] != "restart"


def test_the_rollback_that_makes_line_and_table_agree_is_the_snapshot_of_the_checkpoint() -> None:
    catalog = FolderCatalog(
        TABLES / "flink-older-checkpoint/table", "file:///srv/cklog-sample/tables/flink-older-checkpoint/table"
    )
    of_six = next(
        snapshot.snapshot_id
        for snapshot in catalog.load_table("table").snapshots()
        if snapshot.summary.additional_properties["flink.max-committed-checkpoint-id"] == "6"
    )
    (back,) = answer("flink-older-checkpoint")["result"]["details"]["sink_line"]["rollbacks"]
    assert (back["to"]["commit"], back["to"]["line"], back["to"]["undoes"]) == (str(of_six), 6, [[7, 9]])


def test_a_manifest_names_the_tables(tmp_path: Path) -> None:
    """As `--sink` does, for whoever asks from this folder; what is typed goes first."""
    shutil.copytree(TABLES / "spark-delta-restored", tmp_path / "run")
    ck, table = tmp_path / "run/ck", tmp_path / "run/table"
    asked = cklog("recovery-line", ck, "--sink", f"t={table}", "--json")
    alone = cklog("recovery-line", ck, "--json")
    assert (alone.code, asked.code) == (0, 3)
    for said in ({"t": "../table"}, {"t": str(table)}):
        (ck / "job.json").write_text(json.dumps({"sinks": said}))
        told = json.loads(cklog("recovery-line", ck, "--json").out)["result"]
        typed = json.loads(asked.out)["result"]
        assert [row["agrees"] for row in told["details"]["sinks"]] == [False]
        assert (told["action"], told["details"]["sink_line"]) == (typed["action"], typed["details"]["sink_line"])
    (ck / "job.json").write_text('{"sinks": 3}')
    assert cklog("recovery-line", ck).code == 65


def test_programs_name_tables_as_the_command_line_does() -> None:
    sample = TABLES / "spark-delta-restored"
    typed = json.loads(cklog("recovery-line", sample / "ck", "--sink", f"t={sample / 'table'}", "--json").out)
    with opened(sample / "ck") as run:
        tables = {"t": str(sample / "table")}
        assert run.recovery_line(sinks=tables).to_dict()["result"] == typed["result"]
        assert run.replay(sinks=tables).exit_code == 3
        assert run.impact(sinks=tables).verdict == "findings"
        assert run.verify({"query/0": 2}, sinks=tables).result.summary.startswith("Refuted")
        assert f"--sink t={sample / 'table'}" in run.report(sinks=tables).to_markdown()
        assert "repair-first" in run.runbook(sinks=tables).to_dict()["result"]["action"]


def test_a_branch_is_a_table_of_its_own() -> None:
    """It lacks batch 2, which nobody writes again, and gets no batch 3: main has that, and is what the sink asks."""
    (row,) = answer("spark-iceberg-branch", "?branch=audit")["result"]["details"]["sinks"]
    assert (row["branch"], row["taken_to"], row["remembers"], row["agrees"]) == ("audit", 1, 3, False)
    fates = {one["fate"]: (one["from"], one["to"]) for one in row["outcomes"]}
    assert (fates["missing"], fates["skipped-wrongly"]) == ((2, 3), (3, 4))


def test_a_branch_that_is_not_there_is_no_table() -> None:
    folder = TABLES / "spark-iceberg-branch"
    ended = cklog("recovery-line", folder / "ck", "--sink", f"t={folder / 'table'}?branch=none")
    assert (ended.code, ended.out) == (66, "")
    assert "no branch 'none'\nhint: there are audit, main" in ended.err

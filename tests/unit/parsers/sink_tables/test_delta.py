"""Tables of Delta, written by deltalake, whose own answers are the second opinion."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.errors import CorruptInput, NotFound, Unreadable, UsageError
from cklog.inputs.sink_tables import SinkTable, Stamp, Writer
from cklog.parsers.sink_tables.opening import read_table
from tests.builders.lakes.sink_tables import delta_commit, without_data

deltalake = pytest.importorskip("deltalake")

QUERY = Writer("query", "batch")


def log(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020}.json"


def ids(table: SinkTable) -> set[str]:
    return {finding.id for finding in table.findings}


def undone(table: SinkTable) -> set[str]:
    return {commit.id for commit in table.commits if commit.undone}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four batches of a query."""
    folder = tmp_path / "t"
    for batch in range(4):
        delta_commit(folder, "query", batch)
    return folder


def add_actions(folder: Path, *actions: dict[str, Any]) -> None:
    """Commit actions as an engine does that this machine has not got."""
    version = max(int(path.stem) for path in (folder / "_delta_log").glob("*.json")) + 1
    log(folder, version).write_text("\n".join(map(json.dumps, actions)))


def test_batches_are_remembered(table: Path) -> None:
    """Each commit has its stamp, its rows and its time; the library remembers the same batch."""
    found = read_table(str(table))
    assert [commit.stamps for commit in found.commits] == [(Stamp(QUERY, batch),) for batch in range(4)]
    assert [commit.rows for commit in found.commits] == [2] * 4
    assert [commit.time for commit in found.commits] == [
        row["timestamp"] for row in reversed(deltalake.DeltaTable(str(table)).history())
    ]
    assert found.remembers == {QUERY: deltalake.DeltaTable(str(table)).transaction_version("query")}
    assert (found.head, found.expired, found.indeterminate, found.findings) == ("3", False, False, ())


def test_only_metadata_is_read(table: Path) -> None:
    """The answer is the same when every data file is gone."""
    whole = read_table(str(table))
    without_data(table, "_delta_log")
    assert [path.name for path in table.iterdir()] == ["_delta_log"]
    assert read_table(str(table)) == whole


def test_restore_takes_rows_and_no_numbers(table: Path) -> None:
    """What came after the restored version is undone, its batches are remembered; restored again, it is back."""
    deltalake.DeltaTable(str(table)).restore(1)
    found = read_table(str(table))
    assert undone(found) == {"2", "3"}
    assert (found.commits[-1].operation, found.commits[-1].restores) == ("restore", "1")
    assert found.remembers == {QUERY: 3}
    assert deltalake.DeltaTable(str(table)).transaction_version("query") == 3
    deltalake.DeltaTable(str(table)).restore(3)
    assert undone(read_table(str(table))) == {"4"}


def rows_of(folder: Path, version: int) -> set[int]:
    """Which numbers a version of a table holds, as the library reads it."""
    found: set[int] = set(deltalake.DeltaTable(str(folder), version=version).to_pyarrow_table()["a"].to_pylist())
    return found


@pytest.mark.parametrize("seed", range(5))
def test_undone_is_what_is_not_there(tmp_path: Path, seed: int) -> None:
    """Commits of a row each, restores to any version, compaction between: undone are those whose rows are gone."""
    chance = random.Random(seed)
    folder = tmp_path / "t"
    wrote = {}
    for version in range(14):
        library = deltalake.DeltaTable(str(folder)) if version else None
        if library is not None and version > 1 and chance.random() < 0.35:
            library.restore(chance.randrange(version - 1), ignore_missing_files=True)
            if library.version() < version:  # to where it is already: nothing was committed
                deltalake.write_deltalake(str(folder), pa.table({"a": [version]}), mode="append")
                wrote[version] = version
        else:
            deltalake.write_deltalake(str(folder), pa.table({"a": [version]}), mode="append")
            wrote[version] = version
    found = read_table(str(folder))
    there = rows_of(folder, int(found.head or 0))
    assert {int(commit.id) for commit in found.commits if not commit.undone and int(commit.id) in wrote} == there


def by_time(folder: Path, version: int) -> None:
    """Make a RESTORE one that was asked for by a time without a zone, as Spark writes it down."""
    lines = [json.loads(line) for line in log(folder, version).read_text().splitlines()]
    (info,) = [line["commitInfo"] for line in lines if "commitInfo" in line]
    info["operationParameters"] = {"version": None, "timestamp": "2026-01-01 00:00:00.0"}
    log(folder, version).write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize("to", [0, 1, 2, 4])
def test_restore_to_a_time(table: Path, to: int) -> None:
    """Nobody knows the zone of the time; the files that the commit removes and adds tell the version."""
    deltalake.DeltaTable(str(table)).optimize.compact()
    delta_commit(table, "query", 4)
    deltalake.DeltaTable(str(table)).restore(to)
    told = read_table(str(table))
    by_time(table, 6)
    found = read_table(str(table))
    assert [(c.id, c.undone, c.restores) for c in found.commits] == [(c.id, c.undone, c.restores) for c in told.commits]
    assert found.commits[-1].restores == str(to)
    assert not found.indeterminate


def test_a_restore_that_nobody_can_tell(table: Path) -> None:
    """With the commits gone on which it rests, what a RESTORE undid is not known."""
    deltalake.DeltaTable(str(table)).restore(1)
    by_time(table, 4)
    lines = log(table, 4).read_text().splitlines()
    log(table, 4).write_text("\n".join(line for line in lines if "remove" not in line))
    assert not read_table(str(table)).indeterminate  # it removed nothing: so it restored what was there
    log(table, 4).write_text("\n".join(line.replace("part-", "lost-") for line in lines))
    found = read_table(str(table))
    assert found.indeterminate
    assert "unknown-restore" in ids(found)


def test_a_checkpoint_remembers_for_the_log(table: Path) -> None:
    """With the log cleaned up, transactions are those of the checkpoint, and older commits are gone."""
    deltalake.DeltaTable(str(table)).create_checkpoint()
    delta_commit(table, "other", 9)
    for version in range(4):
        log(table, version).unlink()
    found = read_table(str(table))
    assert found.remembers == {QUERY: 3, Writer("other", "batch"): 9}
    assert [commit.id for commit in found.commits] == ["4"]
    assert (found.expired, found.expired_before, found.indeterminate) == (True, found.commits[0].time, False)
    assert deltalake.DeltaTable(str(table)).transaction_version("query") == 3
    log(table, 4).unlink()
    alone = read_table(str(table))
    assert (alone.head, alone.commits, alone.remembers) == ("3", (), {QUERY: 3})


def test_a_checkpoint_ahead_of_the_log(table: Path) -> None:
    """The checkpoint is the head where its commit is gone, and older commits are in it all the same."""
    deltalake.DeltaTable(str(table)).create_checkpoint()
    log(table, 3).unlink()
    found = read_table(str(table))
    assert (found.head, undone(found), found.remembers) == ("3", set(), {QUERY: 3})


def checkpoint_of(folder: Path) -> Path:
    return next((folder / "_delta_log").glob("*.checkpoint.parquet"))


@pytest.mark.parametrize("form", ["parts", "json", "uuid"])
def test_other_forms_of_checkpoints(table: Path, form: str) -> None:
    """A checkpoint in parts, and those of version 2, whose list of files is not looked for."""
    deltalake.DeltaTable(str(table)).create_checkpoint()
    path = checkpoint_of(table)
    actions = pq.read_table(path)
    path.unlink()
    stem = f"{3:020}.checkpoint"
    if form == "parts":
        for part in (1, 2):
            rows = actions.slice(0, 3) if part == 1 else actions.slice(3)
            pq.write_table(rows, path.with_name(f"{stem}.{part:010}.{2:010}.parquet"))
    elif form == "uuid":
        pq.write_table(actions, path.with_name(f"{stem}.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"))
    else:
        sidecar = {"path": "x.parquet", "sizeInBytes": 1}
        lines = [{"metaData": {"id": "t"}}, {"txn": {"appId": "query", "version": 3}}, {"sidecar": sidecar}]
        name = f"{stem}.80a083e8-7026-4e79-81be-64bd76c43a11.json"
        path.with_name(name).write_text("\n".join(map(json.dumps, lines)))
    for version in range(4):
        log(table, version).unlink()
    assert read_table(str(table)).remembers == {QUERY: 3}
    if form == "parts":
        path.with_name(f"{stem}.{1:010}.{2:010}.parquet").unlink()
        with pytest.raises(NotFound):  # cut short: engines pass over it
            read_table(str(table))


@pytest.mark.parametrize("left", ["", "[]\n7\n", '{"txn": {"appId": "query", "version": 3}}\n', "no rows"])
def test_a_checkpoint_of_which_too_little_is_left(table: Path, left: str) -> None:
    """A checkpoint says once what table it is of; what lacks that can be read, and has forgotten more than that."""
    deltalake.DeltaTable(str(table)).create_checkpoint()
    path = checkpoint_of(table)
    if left == "no rows":
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    else:
        path.unlink()
        path.with_name(f"{3:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json").write_text(left)
    found = read_table(str(table))
    assert (found.remembers, found.indeterminate) == ({QUERY: 3}, True)
    assert "corrupt-file" in ids(found)
    for version in range(4):
        log(table, version).unlink()
    with pytest.raises(CorruptInput):
        read_table(str(table))


def test_a_torn_checkpoint(table: Path) -> None:
    """The log stands in for a torn checkpoint where it goes back far enough; where it does not, nothing is certain."""
    deltalake.DeltaTable(str(table)).create_checkpoint()
    checkpoint_of(table).write_bytes(checkpoint_of(table).read_bytes()[:300])
    found = read_table(str(table))
    assert found.remembers == {QUERY: 3}
    assert "corrupt-file" in ids(found)
    log(table, 0).unlink()
    assert read_table(str(table)).indeterminate


def test_forgotten_transactions(table: Path) -> None:
    """A table that forgets takes a batch again: older transactions, and those without a time; the library agrees."""
    now = int(time.time() * 1000)
    delta_commit(table, "recent", 5, now)
    delta_commit(table, "old", 6, now - 3 * 86_400_000)
    library = deltalake.DeltaTable(str(table))
    library.alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 2 days"})
    found = read_table(str(table))
    assert found.remembers == {Writer("recent", "batch"): 5}
    assert {finding.id for finding in found.findings} == {"forgotten-transaction"}
    again = deltalake.DeltaTable(str(table))
    assert (again.transaction_version("recent"), again.transaction_version("old")) == (5, None)


def test_operations(table: Path) -> None:
    """Compaction adds no rows; an overwrite, a deletion, and Flink's own sink, which counts checkpoints."""
    library = deltalake.DeltaTable(str(table))
    library.optimize.compact()
    delta_commit(table, mode="overwrite")
    deltalake.DeltaTable(str(table)).delete("a = 1")
    info = {
        "operation": "STREAMING UPDATE",
        "engineInfo": "flink-engine/1.16 flink-delta-connector/3.0",
        "timestamp": 9,
    }
    add_actions(table, {"commitInfo": info}, {"txn": {"appId": "sink", "version": 12}})
    found = read_table(str(table))
    assert [(c.operation, c.rows) for c in found.commits[4:]] == [
        ("rewrite", 0),
        ("overwrite", 2),
        ("delete", 0),
        ("append", 0),
    ]
    assert found.remembers[Writer("sink", "checkpoint")] == 12


def test_what_is_missing(table: Path) -> None:
    """A version that is missing behind the checkpoint stops every engine; one that is staged only a catalog knows."""
    delta_commit(table, "query", 4)
    log(table, 2).unlink()
    gap = read_table(str(table))
    assert gap.indeterminate
    assert "missing-table-version" in ids(gap)
    with pytest.raises(Exception, match=r"[Vv]ersion|contig|gap|[Ll]og"):
        deltalake.DeltaTable(str(table))


def test_a_staged_commit(table: Path) -> None:
    """A commit that was proposed to a catalog may count or not."""
    staged = table / "_delta_log" / "_staged_commits"
    staged.mkdir()
    shutil.copy(log(table, 3), staged / f"{4:020}.80a083e8-7026-4e79-81be-64bd76c43a11.json")
    found = read_table(str(table))
    assert found.indeterminate
    assert "ambiguous-table" in ids(found)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b'{"txn": {"appId": "query"}}', "no version"),
        (b'{"txn":{"appId":"query","version":4}}\n{"add":', "no whole JSON"),
        (b"[" * 100_000, "nests too deep|no whole JSON"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_damaged_commits(table: Path, data: bytes, why: str) -> None:
    """Nothing of a damaged commit is used: the answer is no newer than the commit before, and open."""
    log(table, 4).write_bytes(data)
    found = read_table(str(table))
    assert found.indeterminate
    assert (found.head, found.remembers) == ("4", {QUERY: 3})
    assert [f.id for f in found.findings] == ["corrupt-file"]
    assert re.search(why, found.findings[0].message)


def test_what_is_no_table(tmp_path: Path, table: Path) -> None:
    """A branch that Delta has not, an empty log, a log that is elsewhere, and numbers that overflow."""
    with pytest.raises(UsageError, match="no branches"):
        read_table(str(table), branch="b")
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    with pytest.raises(NotFound):
        read_table(str(tmp_path / "empty"))
    (tmp_path / "linked").mkdir()
    os.symlink(table / "_delta_log", tmp_path / "linked" / "_delta_log")
    with pytest.raises(Unreadable, match="link"):
        read_table(str(tmp_path / "linked"))
    (table / "metadata").mkdir()
    with pytest.raises(UsageError, match="delta and of iceberg"):
        read_table(str(table))
    assert read_table(str(table), format="delta").head == "3"
    log(table, 99_999_999_999_999_999_999).write_text("{}")
    assert read_table(str(table), format="delta").indeterminate


def test_a_link_in_the_log(table: Path, tmp_path: Path) -> None:
    """A commit that is a link out of the table is not read, and the answer is open."""
    shutil.copy(log(table, 3), tmp_path / "elsewhere.json")
    log(table, 3).unlink()
    os.symlink(tmp_path / "elsewhere.json", log(table, 3))
    found = read_table(str(table))
    assert found.indeterminate
    assert found.head == "2"
    assert "unfollowed-link" in ids(found)

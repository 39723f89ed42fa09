"""Tables of Iceberg, written by pyiceberg, and what the sinks of streams would find in them."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from cklog.budgets import Budgets, budgets, use
from cklog.errors import CorruptInput, NotFound, OverBudget, Unreadable, UsageError
from cklog.inputs.sink_tables import SinkTable, Stamp, Writer
from cklog.parsers.sink_tables.opening import read_table
from tests.builders.lakes.sink_tables import CONNECT, ROWS, append, flink, iceberg_table, place, spark, without_data

pytest.importorskip("pyiceberg")

JOB = Writer("job", "checkpoint", "op")


def shown(table: SinkTable) -> list[tuple[str, str, bool]]:
    return [(commit.id, commit.operation, commit.undone) for commit in table.commits]


def ids(table: SinkTable) -> set[str]:
    return {finding.id for finding in table.findings}


def newest_file(table: Any) -> Path:
    return Path(table.metadata_location.removeprefix("file://"))


def test_the_stamps_of_each_sink(tmp_path: Path) -> None:
    """Flink's, Spark's and Kafka Connect's are read of the commits, and every commit says its rows."""
    table = iceberg_table(tmp_path)
    for stamp in (flink("job", 4, "op"), spark("query", 7), {CONNECT: '{"0": 5, "11": 8}'}, {}):
        append(table, stamp)
    found = read_table(str(place(table)))
    assert [commit.stamps for commit in found.commits] == [
        (Stamp(JOB, 4),),
        (Stamp(Writer("query", "batch"), 7),),
        (Stamp(Writer("cg-control-orders", "offsets"), None, {"control-iceberg-0": 5, "control-iceberg-11": 8}),),
        (),
    ]
    assert [commit.rows for commit in found.commits] == [2, 2, 2, 2]
    assert found.remembers == {JOB: 4, Writer("query", "batch"): 7}
    assert (found.format, found.branch, found.expired, found.indeterminate) == ("iceberg", "main", False, False)


def test_only_metadata_is_read(tmp_path: Path) -> None:
    """The answer is the same without data files, manifests and lists of manifests."""
    table = iceberg_table(tmp_path)
    append(table, flink("job", 1, "op"))
    whole = read_table(str(place(table)))
    without_data(place(table), "metadata")
    assert not [path for path in place(table).rglob("*") if path.suffix in (".parquet", ".avro")]
    assert read_table(str(place(table))) == whole


def test_a_rollback_undoes_and_a_branch_does_not(tmp_path: Path) -> None:
    """What was once the head and is no ancestor any more was undone; what only a branch has is not in the table."""
    table = iceberg_table(tmp_path)
    a, b = append(table, flink("job", 1, "op")), append(table, flink("job", 2, "op"))
    table.manage_snapshots().create_tag(a, "first").create_branch(b, "audit").commit()
    c = append(table, flink("job", 3, "op"))
    d = append(table, spark("query", 0), branch="audit")
    table.manage_snapshots().rollback_to_snapshot(b).commit()
    e = append(table, spark("query", 1))
    main, audit = read_table(str(place(table))), read_table(str(place(table)), branch="audit")
    rows = [(str(id), "append", id == c) for id in (a, b, c, e)]
    assert shown(main) == rows
    assert shown(audit) == [(str(id), "append", False) for id in (a, b, d)]
    assert main.remembers == {JOB: 2, Writer("query", "batch"): 1}
    assert audit.remembers == {JOB: 2, Writer("query", "batch"): 1}  # Spark's sink asks the main branch
    assert main.branches == {"main": str(e), "audit": str(d), "first": str(a)}
    assert (main.head, audit.head) == (str(e), str(d))
    with pytest.raises(UsageError, match="tag"):
        read_table(str(place(table)), branch="first")
    with pytest.raises(NotFound, match="no branch 'other'"):
        read_table(str(place(table)), branch="other")


def asked(table: Any, job: str, operator: str) -> int | None:
    """What Flink's sink finds on a restart, by its definition: from the head through the parents."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        summary = snapshot.summary.additional_properties
        if summary.get("flink.job-id") == job and summary.get("flink.operator-id", operator) == operator:
            return int(summary["flink.max-committed-checkpoint-id"])
        snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
    return None


@pytest.mark.parametrize("seed", range(6))
def test_what_flinks_sink_finds(tmp_path: Path, seed: int) -> None:
    """Jobs with several operators, some unnamed, numbers that fall, and rollbacks: as the sink itself would walk."""
    chance = random.Random(seed)
    table = iceberg_table(tmp_path)
    made = [append(table, {})]
    for _ in range(10):
        made.append(append(table, flink(chance.choice("AB"), chance.randrange(9), chance.choice(["", "x", "y"]))))
        if chance.random() < 0.2:
            table.manage_snapshots().set_current_snapshot(snapshot_id=chance.choice(made)).commit()
    found = read_table(str(place(table)))
    for writer, number in found.remembers.items():
        operator = writer.operator or "an operator that nobody names"
        assert number == asked(table, writer.id, operator)
    for job in "AB":
        for operator in "xy":
            told = found.remembers.get(Writer(job, "checkpoint", operator))
            told = found.remembers.get(Writer(job, "checkpoint")) if told is None else told
            assert told == asked(table, job, operator)


def test_expired_snapshots(tmp_path: Path) -> None:
    """The number is gone with the snapshot, and the table says that older ones are gone, with or without a parent."""
    table = iceberg_table(tmp_path)
    first, second, third = (append(table, flink(job, 5, "op")) for job in ("old", "old", "new"))
    before = read_table(str(place(table)))
    table.maintenance.expire_snapshots().by_ids([first, second]).commit()
    after = read_table(str(place(table)))
    assert (before.expired, before.expired_before, len(before.remembers)) == (False, None, 2)
    assert (after.expired, after.expired_before) == (True, after.commits[0].time)
    assert after.remembers == {Writer("new", "checkpoint", "op"): 5}
    data = json.loads(newest_file(table).read_text())
    data["snapshots"][0]["parent-snapshot-id"] = second  # as Java's library leaves it
    newest_file(table).write_text(json.dumps(data))
    assert read_table(str(place(table))).expired
    assert third == int(after.commits[0].id)


def test_operations_and_versions(tmp_path: Path) -> None:
    """An overwrite is two snapshots; compaction is a rewrite that adds no rows; version 1 has no numbers of its own."""
    table = iceberg_table(tmp_path, version=1)
    append(table, {})
    table.overwrite(ROWS)
    append(table, {})
    data = json.loads(newest_file(table).read_text())
    data["snapshots"][-1]["summary"]["operation"] = "replace"
    newest_file(table).write_text(json.dumps(data))
    found = read_table(str(place(table)))
    assert [(c.operation, c.rows) for c in found.commits][1:] == [("delete", None), ("append", 2), ("rewrite", 0)]
    assert not found.expired


def test_the_newest_file_by_number(tmp_path: Path) -> None:
    """A hint that is behind is said and not followed; an older file that is named is read, and said to be older."""
    table = iceberg_table(tmp_path)
    append(table, flink("job", 1, "op"))
    older = newest_file(table)
    append(table, flink("job", 2, "op"))
    assert ids(read_table(str(place(table)))) == {"read-without-catalog"}
    (place(table) / "metadata" / "version-hint.text").write_text("1")
    found = read_table(str(place(table)))
    assert found.remembers == {JOB: 2}
    assert "stale-hint" in ids(found)
    named = read_table(str(older))
    assert named.remembers == {JOB: 1}
    assert ids(named) == {"older-metadata"}


def test_two_files_of_one_number(tmp_path: Path) -> None:
    """Which of them is the table only the catalog knows."""
    table = iceberg_table(tmp_path)
    append(table, flink("job", 1, "op"))
    name = newest_file(table).name
    newest_file(table).with_name(name[:6] + "ffffffff" + name[14:]).write_bytes(newest_file(table).read_bytes())
    found = read_table(str(place(table)))
    assert found.indeterminate
    assert "ambiguous-table" in ids(found)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_torn_metadata(tmp_path: Path, cut: int) -> None:
    """An older file stands in for a torn one, and nothing that follows from it is certain; alone it is no table."""
    table = iceberg_table(tmp_path)
    append(table, flink("job", 1, "op"))
    append(table, flink("job", 2, "op"))
    newest_file(table).write_bytes(newest_file(table).read_bytes()[:cut])
    found = read_table(str(place(table)))
    assert found.remembers == {JOB: 1}
    assert found.indeterminate
    assert {"corrupt-file", "older-metadata"} <= ids(found)
    with pytest.raises(CorruptInput, match=newest_file(table).name):
        read_table(str(newest_file(table)))


def test_compressed_metadata(tmp_path: Path) -> None:
    """A compressed file is read, a torn one is damage, and one that becomes too much is over the budget."""
    table = iceberg_table(tmp_path)
    append(table, flink("job", 1, "op"))
    data = newest_file(table).read_bytes()
    packed = newest_file(table).with_name(newest_file(table).name.replace(".metadata", ".gz.metadata"))
    newest_file(table).unlink()
    packed.write_bytes(gzip.compress(data))
    assert read_table(str(place(table))).remembers == {JOB: 1}
    packed.write_bytes(gzip.compress(data)[:-20])
    assert "corrupt-file" in ids(read_table(str(place(table))))
    packed.write_bytes(gzip.compress(b" " * (200 << 20)))
    with pytest.raises(OverBudget, match=packed.name):
        read_table(str(place(table)))


def rewritten(table: Any, change: Any) -> SinkTable:
    data = json.loads(newest_file(table).read_text())
    change(data)
    newest_file(table).write_text(json.dumps(data))
    return read_table(str(newest_file(table)))


def test_hostile_snapshots(tmp_path: Path) -> None:
    """Circles, heads that are not there, and numbers that are none leave the answer open and end it in bounded time."""
    table = iceberg_table(tmp_path)
    a, b = append(table, flink("job", 1, "op")), append(table, flink("job", 2, "op"))
    data = json.loads(newest_file(table).read_text())
    circle = rewritten(table, lambda data: data["snapshots"][0].update({"parent-snapshot-id": b}))
    assert circle.indeterminate
    assert {commit.id for commit in circle.commits} == {str(a), str(b)}
    bad = rewritten(table, lambda d: d["snapshots"][1]["summary"].update({"flink.max-committed-checkpoint-id": "x"}))
    assert bad.indeterminate
    assert "damaged-value" in ids(bad)
    with pytest.raises(CorruptInput, match="pyiceberg does not understand it"):
        rewritten(table, lambda d: d["snapshots"][1]["summary"].update(flink("\ud800", 3)))
    data["snapshots"] = data["snapshots"][:1]
    newest_file(table).write_text(json.dumps(data))
    assert read_table(str(newest_file(table))).indeterminate


def test_budgets(tmp_path: Path) -> None:
    """A file of too many values is not parsed by anybody."""
    table = iceberg_table(tmp_path)
    newest_file(table).write_text("[" + "1," * 400_000 + "1]")
    before = budgets()
    use(Budgets(64 << 20))
    try:
        with pytest.raises(OverBudget, match="number of values"):
            read_table(str(place(table)))
    finally:
        use(before)


def test_what_may_not_be_read(tmp_path: Path) -> None:
    """A folder that is a link out of the table is not followed; a table that is gone, and a folder that is none."""
    table = iceberg_table(tmp_path / "real")
    (tmp_path / "linked").mkdir()
    os.symlink(place(table) / "metadata", tmp_path / "linked" / "metadata")
    with pytest.raises(Unreadable, match="link"):
        read_table(str(tmp_path / "linked"))
    with pytest.raises(NotFound, match="no such table"):
        read_table(str(tmp_path / "none"))
    with pytest.raises(NotFound, match="no table that cklog knows"):
        read_table(str(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_refused_metadata(tmp_path: Path) -> None:
    """A newest file that may not be read is no damage, and no older one stands in for it."""
    table = iceberg_table(tmp_path)
    append(table, {})
    newest_file(table).chmod(0)
    with pytest.raises(Unreadable):
        read_table(str(place(table)))


def test_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is found by its name in a catalog that the library's own configuration names."""
    table = iceberg_table(tmp_path)
    append(table, flink("job", 1, "op"))
    for key, value in (
        ("URI", f"sqlite:///{tmp_path}/catalog.db"),
        ("TYPE", "sql"),
        ("WAREHOUSE", f"file://{tmp_path}"),
    ):
        monkeypatch.setenv(f"PYICEBERG_CATALOG__C__{key}", value)
    config = pytest.importorskip("pyiceberg.utils.config")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", config.Config())
    found = read_table("catalog:c.d.t")
    assert found.remembers == {JOB: 1}
    assert not found.findings
    assert read_table("d.t", catalog="c") == found
    with pytest.raises(NotFound, match="no such table"):
        read_table("catalog:c.d.other")
    with pytest.raises(Unreadable, match="cannot be asked"):
        read_table("catalog:nobody.d.t")
    with pytest.raises(UsageError, match="expected catalog:NAME"):
        read_table("catalog:c")


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has not got it is told what to install, in a line."""
    monkeypatch.setitem(sys.modules, "pyiceberg.table.metadata", None)
    (tmp_path / "metadata").mkdir()
    with pytest.raises(UsageError, match=r"pip install 'cklog\[iceberg\]'"):
        read_table(str(tmp_path))

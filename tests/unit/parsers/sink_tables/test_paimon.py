"""Tables of Paimon, written by pypaimon in an environment of its own (tests/builders/lakes/paimon_tables.py)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cklog.errors import CorruptInput, NotFound
from cklog.inputs.sink_tables import SinkTable, Stamp, Writer
from cklog.parsers.sink_tables.opening import read_table

HERE = Path(__file__).parent / "paimon"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A copy of what the library wrote: a stream, a tag, a branch, and a batch between."""
    shutil.copytree(HERE / "stream", tmp_path / "t")
    return tmp_path / "t"


def snapshot(folder: Path, number: int) -> Path:
    return folder / "snapshot" / f"snapshot-{number}"


def ids(table: SinkTable) -> set[str]:
    return {finding.id for finding in table.findings}


def user_of(path: Path) -> Writer:
    return Writer(json.loads(path.read_text())["commitUser"], "identifier")


def test_a_stream_and_a_batch(table: Path) -> None:
    """The stream's identifiers count, a batch has none; nothing but metadata is there to be read."""
    stream, batch = user_of(snapshot(table, 1)), user_of(snapshot(table, 4))
    found = read_table(str(table))
    assert [commit.stamps for commit in found.commits] == [
        (Stamp(stream, 1),),
        (Stamp(stream, 2),),
        (Stamp(stream, 3),),
        (Stamp(batch, None),),
        (Stamp(stream, 4),),
    ]
    assert [(c.operation, c.rows) for c in found.commits] == [("append", 2)] * 3 + [("overwrite", None), ("append", 2)]
    assert found.remembers == {stream: 4}
    assert (found.head, found.branches) == ("5", {"main": "5", "audit": "2", "before": "2"})
    assert (found.expired, found.findings, found.indeterminate) == (False, (), False)


def test_branches_and_rollbacks(table: Path) -> None:
    """A branch has its own snapshots; after a rollback nothing tells of what was undone, and numbers come again."""
    audit = read_table(str(table), branch="audit")
    assert (audit.head, audit.remembers) == ("2", {user_of(snapshot(table, 1)): 2})
    with pytest.raises(NotFound, match="no branch 'other'"):
        read_table(str(table), branch="other")
    back = read_table(str(HERE / "rolled-back"))
    assert [commit.stamps[0].number for commit in back.commits] == [1, 2, 3, 4]
    assert back.head == "4"


def test_expired_and_hints(table: Path) -> None:
    """The oldest that is left says since when; hints are not believed; a user whose snapshots are gone is unknown."""
    for number in range(1, 4):
        snapshot(table, number).unlink()
    (table / "snapshot" / "LATEST").write_text("9")
    (table / "snapshot" / "EARLIEST").write_text("1")
    found = read_table(str(table))
    assert (found.expired, found.expired_before) == (True, found.commits[0].time)
    assert found.head == "5"
    assert [finding.id for finding in found.findings] == ["stale-hint"]
    assert found.findings[0].where[0].path.endswith("LATEST")
    snapshot(table, 5).unlink()
    assert read_table(str(table)).remembers == {}


def test_whoever_is_a_stream_and_a_batch(table: Path) -> None:
    """The newest snapshot of a user counts, whatever it is: behind a batch nothing of the stream's is taken."""
    data = json.loads(snapshot(table, 5).read_text())
    data["commitIdentifier"] = (1 << 63) - 1
    snapshot(table, 5).write_text(json.dumps(data))
    found = read_table(str(table))
    assert found.commits[-1].stamps[0].number is None
    assert found.remembers == {user_of(snapshot(table, 1)): (1 << 63) - 1}


@pytest.mark.parametrize("data", [b"", b"{", b'{"id": 7}', b"[1]"])
def test_damaged_snapshots(table: Path, data: bytes) -> None:
    """A torn snapshot is there and says nothing: the answer is no newer than the one before, and open."""
    snapshot(table, 5).write_bytes(data)
    found = read_table(str(table))
    assert found.indeterminate
    assert (found.head, found.remembers) == ("5", {user_of(snapshot(table, 1)): 3})
    assert ids(found) == {"corrupt-file"}


def test_missing_snapshots(table: Path) -> None:
    """A hole leaves open what was taken; a table without snapshots is empty."""
    snapshot(table, 3).unlink()
    assert ids(read_table(str(table))) == {"missing-table-version"}
    for number in (1, 2, 4, 5):
        snapshot(table, number).unlink()
    empty = read_table(str(table))
    assert (empty.head, empty.commits, empty.remembers) == (None, (), {})


def test_names_that_are_no_text(table: Path) -> None:
    """Half a surrogate pair, and a line end in a user's name: told as they can be written."""
    data = json.loads(snapshot(table, 5).read_text())
    snapshot(table, 5).write_text(json.dumps({**data, "commitUser": "a\ud800\nb", "commitIdentifier": 1 << 70}))
    assert read_table(str(table)).commits[-1].stamps == ()
    snapshot(table, 5).write_text(json.dumps({**data, "commitUser": "a\ud800\nb"}))
    (stamp,) = read_table(str(table)).commits[-1].stamps
    assert stamp.writer.id.encode() == b"a\\ud800\nb"
    with pytest.raises((NotFound, CorruptInput)):
        read_table(str(table / "snapshot"))

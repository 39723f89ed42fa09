"""Tables of Hudi, by the format; what the library reads of them is the second opinion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cklog.errors import NotFound, UsageError
from cklog.inputs.sink_tables import SinkTable, Stamp, Writer
from cklog.parsers.sink_tables.opening import read_table
from tests.builders.lakes.avro import container
from tests.builders.lakes.hudi_tables import COMMIT, HudiTable, sink

QUERY = Writer("query", "batch")
DAY = "20260101"


def at(minute: int) -> str:
    return f"{DAY}{minute:04}00000"


def ids(table: SinkTable) -> set[str]:
    return {finding.id for finding in table.findings}


@pytest.fixture(params=[6, 8])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    """Four batches of a query, in a table of each version."""
    made = HudiTable(tmp_path / "t", request.param)
    for batch in range(4):
        made.commit(at(batch), sink(query=batch))
    return made


def test_batches_are_remembered(table: HudiTable) -> None:
    """Each commit has its stamp, its rows and its time, and the newest batch of the sink counts."""
    table.commit(at(5), sink(other=9))
    table.commit(at(6), {"schema": "{}"})
    found = read_table(str(table.folder))
    assert [commit.stamps for commit in found.commits[:4]] == [(Stamp(QUERY, batch),) for batch in range(4)]
    assert [commit.rows for commit in found.commits] == [2] * 6
    assert found.remembers == {QUERY: 3, Writer("other", "batch"): 9}
    assert (found.head, found.expired, found.findings, found.indeterminate) == (at(6), False, (), False)
    first = 1_767_225_600_000
    assert found.commits[0].time == first + (1000 if table.version >= 8 else 0)


def test_the_library_reads_the_same(table: HudiTable) -> None:
    """Completed commits, and the metadata in them, as the format's own library has them."""
    hudi = pytest.importorskip("hudi")
    table.begin(at(9))
    timeline = hudi.HudiTable(str(table.folder)).get_timeline()
    instants = timeline.get_completed_commits()
    assert [i.timestamp for i in instants] == [commit.id for commit in read_table(str(table.folder)).commits]
    extra = json.loads(timeline.get_instant_metadata_in_json(instants[-1]))["extraMetadata"]
    assert extra == sink(query=3)


def test_what_is_not_done(table: HudiTable) -> None:
    """An instant that was begun is no commit: no reader sees it, and its batch is not remembered."""
    table.begin(at(9))
    found = read_table(str(table.folder))
    assert (found.head, found.remembers) == (at(3), {QUERY: 3})
    assert ids(found) == {"pending-instants"}
    assert not found.indeterminate


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_restore_takes_numbers_too(table: HudiTable, codec: str) -> None:
    """What was restored away left the timeline with its batches; its instants are undone, and the query comes again."""
    table.take_back(at(10), "restore", [at(3), at(2)], codec)
    table.commit(at(11), sink(query=2))
    found = read_table(str(table.folder))
    assert {commit.id for commit in found.commits if commit.undone} == {at(2), at(3)}
    (restore,) = [commit for commit in found.commits if commit.operation == "restore"]
    assert (restore.id, restore.restores) == (at(10), at(1))
    assert found.remembers == {QUERY: 2}
    assert found.head == at(11)


def test_a_rollback(table: HudiTable) -> None:
    """The instant that was rolled back is undone, and the rollback itself is no commit."""
    table.take_back(at(10), "rollback", [at(3)])
    found = read_table(str(table.folder))
    assert [(c.id, c.undone) for c in found.commits] == [(at(n), n == 3) for n in range(4)]
    assert (found.head, found.remembers) == (at(2), {QUERY: 2})


def test_operations_and_archives(table: HudiTable) -> None:
    """Compaction and clustering are rewrites; archived instants have left the timeline, and that is said."""
    table.commit(at(4), {}, "CLUSTER", "replacecommit")
    table.commit(at(5), {}, "INSERT_OVERWRITE", "replacecommit")
    table.commit(at(6), {}, "COMPACT")
    table.commit(at(7), {}, "BULK_INSERT", "deltacommit")
    archive = ".hoodie/timeline/history" if table.version >= 8 else ".hoodie/archived"
    (table.folder / archive).mkdir()
    (table.folder / archive / "_version_").touch()
    assert not read_table(str(table.folder)).expired
    (table.folder / archive / ("a.parquet" if table.version >= 8 else ".commits_.archive.1_1-0-1")).touch()
    found = read_table(str(table.folder))
    assert [(c.operation, c.rows) for c in found.commits[4:]] == [
        ("rewrite", 0),
        ("overwrite", 2),
        ("rewrite", 0),
        ("append", 2),
    ]
    assert (found.expired, found.expired_before) == (True, found.commits[0].time)


def test_offsets_of_the_streamer(table: HudiTable) -> None:
    """Hudi's own streamer keeps the offsets of Kafka that the table has taken."""
    table.commit(at(5), {"deltastreamer.checkpoint.key": "orders.eu,0:12,11:7"})
    stamp = Stamp(Writer("deltastreamer", "offsets"), None, {"orders.eu-0": 12, "orders.eu-11": 7})
    assert read_table(str(table.folder)).commits[-1].stamps == (stamp,)


def test_local_times_are_not_guessed(tmp_path: Path) -> None:
    """Instants in the zone of whoever wrote them have no time here."""
    table = HudiTable(tmp_path / "t", 6, zone="LOCAL")
    table.commit(at(1), sink(query=1))
    assert read_table(str(table.folder)).commits[0].time is None


@pytest.mark.parametrize("data", [b"", b"{", b"Obj\x01", b"Obj\x01\x02\x16avro.schema\x02{"])
def test_damaged_commits(table: HudiTable, data: bytes) -> None:
    """A torn commit is there and says nothing: the answer is no newer than the one before, and open."""
    table.place(at(3)).write_bytes(data)
    found = read_table(str(table.folder))
    assert found.indeterminate
    assert (found.head, found.remembers) == (at(3), {QUERY: 2})
    assert ids(found) == {"corrupt-file"}


def test_a_damaged_rollback(table: HudiTable) -> None:
    """Of a torn rollback nobody knows what it took back."""
    table.take_back(at(10), "rollback", [at(3)])
    whole = table.place(at(10), "rollback").read_bytes()
    for cut in (0, 3, 40, len(whole) - 1):
        table.place(at(10), "rollback").write_bytes(whole[:cut])
        assert read_table(str(table.folder)).indeterminate


@pytest.mark.parametrize("data", [b"[]", b"null", b'"x"', container(COMMIT, []), container(COMMIT, [{}, {}])])
def test_commits_that_hold_no_metadata(table: HudiTable, data: bytes) -> None:
    """What can be decoded and is no commit's metadata tells nothing of its batch: that is said, and open."""
    table.place(at(3)).write_bytes(data)
    found = read_table(str(table.folder))
    assert (found.indeterminate, found.remembers, ids(found)) == (True, {QUERY: 2}, {"corrupt-file"})


@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_a_way_back_that_does_not_say_whither(table: HudiTable, action: str) -> None:
    """One bit of a name, and nobody knows what was taken back."""
    table.take_back(at(10), action, [at(3)])
    place = table.place(at(10), action)
    data = place.read_bytes().replace(b'Rollback", "type": {', b'Rollbacj", "type": {')
    place.write_bytes(data.replace(b'ToRollback"', b'ToRollbacj"'))
    found = read_table(str(table.folder))
    assert (found.indeterminate, ids(found)) == (True, {"corrupt-file"})


def test_bad_batches(table: HudiTable) -> None:
    """A batch that is no number leaves open what the sink finds."""
    table.commit(at(5), {"_hudi_streaming_sink_checkpoint": '{"query": "x"}'})
    found = read_table(str(table.folder))
    assert found.indeterminate
    assert ids(found) == {"damaged-value"}


def test_what_is_no_table(tmp_path: Path, table: HudiTable) -> None:
    """No branches; a folder without properties is no table."""
    with pytest.raises(UsageError, match="no branches"):
        read_table(str(table.folder), branch="b")
    (tmp_path / "other" / ".hoodie").mkdir(parents=True)
    with pytest.raises(NotFound):
        read_table(str(tmp_path / "other"))

"""What tables say of a restart: the rules of the engines, and what users found out afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cklog.inputs.sink_tables import Operation, Pending, SinkTable, Stamp, TableCommit, TableFormat, Writer
from cklog.sink_tables.findings import fit_findings
from cklog.sink_tables.fitting import NamedTable, fits, line_that_fits, rollbacks_for
from cklog.sink_tables.held import Account
from cklog.sink_tables.judge import judge
from cklog.sink_tables.model import Outcome, Restart, SinkFit

FLINK = Writer("a" * 32, "checkpoint", "op")
SPARK = Writer("query-1", "batch")


def table(format: TableFormat, writer: Writer, *numbers: int | None, **more: object) -> SinkTable:
    """A table with a commit for each number; None is a commit of somebody else."""
    commits = tuple(
        TableCommit(str(n), n * 1000, "append", 1, () if number is None else (Stamp(writer, number),))
        for n, number in enumerate(numbers, 1)
    )
    known = [number for number in numbers if number is not None]
    remembers = {writer: known[-1]} if known else {}
    found = SinkTable("s3://lake/t", format, "main", commits, commits[-1].id if commits else None, {}, remembers)
    return replace(found, **more)  # type: ignore[arg-type]


def flink(line: int, *pending: int, missing: tuple[str, ...] | None = ()) -> Restart:
    waiting = tuple(Pending("op", FLINK, n, ("m.avro",), missing) for n in pending)
    return Restart(line, "checkpoint", frozenset({FLINK.id}), FLINK.id, line, waiting)


def spark(line: int, same: int | None = None, **more: object) -> Restart:
    found = Restart(line, "batch", frozenset({SPARK.id}), SPARK.id, line if same is None else same)
    return replace(found, **more)  # type: ignore[arg-type]


def fit(found: SinkTable, restart: Restart) -> SinkFit:
    (one,) = judge(Account(found), restart, "t")
    return one


def ids(found: SinkFit, unit: str = "checkpoint") -> dict[str, str]:
    return {finding.id: finding.severity for finding in fit_findings(found, unit)}


def test_the_batch_in_flight_that_the_table_has_is_dropped_rightly() -> None:
    found = fit(table("delta", SPARK, 0, 1, 2), spark(1, same=2))
    assert found.of("skipped") == (Outcome("skipped", 2, 3),)
    assert (found.agrees, found.guarantee, found.taken_to) == (True, "exactly-once", 2)
    assert ids(found) == {}


def test_pending_commits_that_nobody_read_leave_it_open() -> None:
    found = fit(table("iceberg", FLINK, 3), replace(flink(4), pending=None))
    assert ("pending-not-read" in found.why, found.agrees) == (True, None)
    assert fit(table("iceberg", FLINK, 4), replace(flink(4), pending=None)).agrees is True  # it has all that pends
    assert fit(table("delta", SPARK, 0), replace(spark(0), pending=None)).agrees is True


@pytest.mark.parametrize(
    ("time", "operation", "strength"),
    [(5000, "append", "may"), (4999, "append", "unknown"), (5000, "rewrite", "unknown"), (None, "append", "unknown")],
)
def test_without_stamps_the_time_of_a_commit_tells_whether_a_batch_may_be_there(
    time: int | None, operation: Operation, strength: str
) -> None:
    """The batch in flight was planned at 5000."""
    commits = (TableCommit("1", time, operation, 1),)
    found = fit(table("delta", SPARK, commits=commits, head="1"), spark(1, same=2, since=5000))
    assert found.of("twice") == (Outcome("twice", 2, 3, strength),)  # type: ignore[arg-type]


def test_an_older_checkpoint_loses_or_doubles_in_iceberg() -> None:
    """apache/iceberg#10892: the replay's checkpoints up to the table's are passed over."""
    found = fit(table("iceberg", FLINK, 4, 5, 6), flink(4, 4))
    assert found.of("skipped-wrongly") == (Outcome("skipped-wrongly", 5, 7, "may"),)
    assert found.agrees is False
    assert ids(found) == {"silent-loss": "error", "taken-twice": "error"}
    ((_, back),) = rollbacks_for([NamedTable("cat.db.t", table("iceberg", FLINK, 4, 5, 6))], flink(4, 4)) or []
    assert (back.commit, back.undoes) == ("1", ((5, 7),))
    assert back.statements["spark-sql"] == "CALL cat.system.rollback_to_snapshot('db.t', 1)"


def test_an_expired_summary_makes_the_restore_commit_files_that_are_gone() -> None:
    """apache/iceberg#4137, #5846: after compaction and expiry nobody knows the greatest checkpoint."""
    forgotten = table("iceberg", FLINK, None, expired=True)
    found = fit(forgotten, flink(6, 6, missing=("m.avro",)))
    assert [one.fate for one in found.pending] == ["fails"]
    assert found.agrees is False
    assert ids(found)["sink-expired"] == "error"
    assert ids(found)["pending-files-gone"] == "error"


def test_another_job_id_commits_the_same_checkpoint_twice() -> None:
    """apache/iceberg#16009: a commit succeeded, its checkpoint failed, and the job came back under another id."""
    other = Writer("b" * 32, "checkpoint", "op")
    found = fit(table("iceberg", FLINK, 4, 5), replace(flink(4, 4), asks=other.id, pending=()))
    assert found.of("twice") == (Outcome("twice", 5, 6),)


def test_a_later_attempt_of_which_no_file_is_here_may_have_written_already() -> None:
    later = Writer("b" * 32, "checkpoint", FLINK.operator)
    known = table("iceberg", FLINK, 4)
    after = replace(known.commits[0], id="2", stamps=(Stamp(later, 6),))
    found = fit(replace(known, commits=(*known.commits, after), remembers={FLINK: 4, later: 6}), flink(4, 4))
    assert (found.agrees, found.why) == (None, ("other-attempt",))
    assert ids(found) == {"unknown-writer": "warning"}


def test_a_table_that_others_filled_before_is_no_riddle() -> None:
    assert fit(table("iceberg", FLINK, None, None), flink(1, 1)).agrees is True


def test_a_restored_delta_table_drops_what_is_to_be_written_again() -> None:
    """delta-io/delta#1813: RESTORE takes rows back, and not the transactions."""
    whole = table("delta", SPARK, 0, 1, 2, 3)
    commits = tuple(replace(c, undone=c.id in "34") for c in whole.commits)
    restored = replace(whole, commits=(*commits, TableCommit("5", 5000, "restore", 0, (), "2")), head="5")
    found = fit(restored, spark(1))
    assert found.of("skipped-wrongly") == (Outcome("skipped-wrongly", 2, 4),)
    assert line_that_fits([NamedTable("t", restored)], [spark(n) for n in (3, 2, 1, 0)]) is None
    ((_, forward),) = rollbacks_for([NamedTable("t", restored)], spark(3)) or []
    assert forward.commit == "4"


def test_a_new_checkpoint_folder_is_another_query_to_the_table() -> None:
    found = fit(table("delta", SPARK, 0, 1), replace(spark(-1), writers=frozenset({"query-2"}), asks="query-2"))
    assert (found.agrees, found.why) == (None, ("other-writer",))
    assert found.of("twice") == (Outcome("twice", 0, None, "unknown"),)
    assert ids(found, "batch") == {"unknown-writer": "warning"}


def test_paimon_takes_a_batch_of_spark_again() -> None:
    """apache/paimon#9666: every commit of Spark has the same identifier."""
    batch = Writer("user", "identifier")
    found = fit(table("paimon", batch, (1 << 63) - 1), spark(1, same=2, since=500))
    assert found.of("twice") == (Outcome("twice", 2, 3, "may"),)
    assert found.agrees is None
    assert ids(found, "batch")["taken-twice"] == "warning"


def test_paimon_takes_everything_after_an_older_checkpoint() -> None:
    user = Writer("user", "identifier")
    waiting = (Pending("op", user, 4),)
    found = fit(table("paimon", user, 4, 5, 6), Restart(4, "checkpoint", frozenset({"job"}), "job", 4, waiting))
    assert found.of("twice") == (Outcome("twice", 5, 7),)
    assert [one.fate for one in found.pending] == ["skipped"]


def test_a_job_without_state_is_dropped_or_doubled() -> None:
    """apache/iceberg#18123: checkpoint ids begin again below what the table remembers."""
    stateless = Restart(0, "checkpoint", frozenset({FLINK.id}), "", 0, without_state=True)
    found = fit(table("iceberg", FLINK, 1, 2, 3), stateless)
    assert found.of("skipped-wrongly") == (Outcome("skipped-wrongly", 1, 4, "may"),)
    assert found.agrees is False


def test_what_nobody_looked_for_is_not_ok() -> None:
    found = fit(table("iceberg", FLINK, 4, 5), replace(flink(6), pending=None))
    assert (found.agrees, found.guarantee, found.at_best) == (None, "at-most-once", "exactly-once")


def test_numbers_without_bounds_cost_nothing() -> None:
    """A table of somebody else's making may name any number."""
    huge = table("delta", SPARK, 0, (1 << 63) - 2)
    found = fit(huge, spark(1, same=2))
    assert found.agrees is False
    assert len(found.outcomes) < 10


@pytest.mark.parametrize("name", ["db.t'); DROP TABLE x; --", "a`b", "x\ny"])
def test_a_name_that_could_be_misread_gives_no_statement(name: str) -> None:
    ((_, back),) = rollbacks_for([NamedTable(name, table("iceberg", FLINK, 4, 5, 6))], flink(4, 4)) or []
    assert back.statements == {}


@pytest.mark.parametrize("line", [5, 8])
def test_a_table_without_its_newest_metadata_agrees_and_contradicts_with_nothing(line: int) -> None:
    """What is missing may have taken the next checkpoint, or may have taken the last one back."""
    found = table("iceberg", FLINK, *range(1, 9))
    (told,) = judge(Account(found), flink(line))
    (damaged,) = judge(Account(replace(found, indeterminate=True)), flink(line))
    assert (told.agrees, damaged.agrees, damaged.guarantee) == (line == 8, None, "none")


def test_where_a_checkpoint_could_not_be_read_nothing_is_sure() -> None:
    """A start without state is what would be left, if nobody can read it."""
    start = replace(flink(0), asks="", without_state=True)
    (told,) = judge(Account(table("iceberg", FLINK, 1, 2)), start)
    (unread,) = judge(Account(table("iceberg", FLINK, 1, 2)), replace(start, unknown=True))
    assert (told.agrees, unread.agrees) == (False, None)
    assert {one.strength for one in unread.outcomes} == {"unknown"}
    assert [finding.id for finding in fit_findings(unread, "checkpoint") if finding.severity == "error"] == []


@pytest.mark.parametrize("format", ["delta", "iceberg", "hudi"])
def test_numbers_of_an_older_checkpoint_under_the_same_id_are_not_this_ones(format: TableFormat) -> None:
    """What was committed before batch 0 was planned is another query's, by whatever numbers it went."""
    old, named = table(format, SPARK, 498, 499, 500), {"writers": frozenset({"own"}), "asks": SPARK.id}
    found = fit(old, spark(3, same=4, began=(0, 10_000), **named))
    lost = [(o.fate, o.from_, o.to, o.strength) for o in found.outcomes if o.fate in ("missing", "skipped-wrongly")]
    assert lost == [("missing", 0, 4, "sure"), ("skipped-wrongly", 4, 5, "sure"), ("skipped-wrongly", 5, 501, "sure")]
    assert (found.agrees, found.taken_to, found.of("skipped")) == (False, None, ())
    for copied in (spark(3, same=4, began=(0, 500), **named), spark(3, same=4, began=(0, 10_000))):
        assert fit(old, copied).of("skipped") == (Outcome("skipped", 4, 5),), "an older copy of this checkpoint"


def test_what_an_older_checkpoint_kept_from_the_table_stays_missing() -> None:
    restart = spark(501, began=(0, 2500), writers=frozenset({"own"}), asks=SPARK.id)
    found = fit(table("delta", SPARK, 499, 500, 501), restart)
    assert (found.of("missing"), found.taken_to) == ((Outcome("missing", 0, 501),), 501)


def test_a_number_that_nobody_knows_is_no_range() -> None:
    found = fit(replace(table("hudi", FLINK, None), remembers={}), flink(7))
    [told] = found.of("twice")
    assert told.from_ == told.to
    [finding] = [one for one in fit_findings(found, "checkpoint") if one.id == "unknown-writer"]
    assert "foreachBatch" not in finding.message


def test_a_pending_commit_whose_files_nobody_looked_for_may_fail() -> None:
    """Only one that the restore would commit: what the table remembers is passed over, with files or without."""
    found = fit(table("iceberg", FLINK, 4), flink(5, 5, missing=None))
    assert found.outcomes[0] == Outcome("fails", 5, 6, "unknown")
    assert (found.agrees, found.why, found.pending[0].fate) == (None, ("pending-unseen",), None)
    taken = fit(table("iceberg", FLINK, 4, 5), flink(5, 5, missing=None))
    assert (taken.agrees, taken.why, taken.pending[0].fate) == (True, (), "skipped")


def test_a_pending_commit_without_a_number_leaves_it_open() -> None:
    unnumbered = replace(flink(5), pending=(Pending("op", FLINK, None, ("m.avro",), ()),))
    found = fit(table("iceberg", FLINK, 4, 5), unnumbered)
    assert (found.agrees, found.why, found.pending[0].fate) == (None, ("pending-not-numbered",), None)


def test_a_pending_commit_that_the_table_has_and_does_not_remember_comes_twice() -> None:
    forgotten = replace(table("iceberg", FLINK, 4, 5), remembers={FLINK: 4})
    found = fit(forgotten, flink(5, 5))
    assert [one.fate for one in found.pending] == ["twice"]
    assert Outcome("twice", 5, 6) in found.outcomes
    assert found.agrees is False


def test_what_is_offered_under_a_new_id_may_come_twice() -> None:
    """The table knows the id before, and is asked for the one of the job that restores it."""
    offered = Pending("op", FLINK, 5, ("m.avro",), (), renamed=True)
    found = fit(table("iceberg", FLINK, 4, 5), replace(flink(5), pending=(offered,)))
    assert found.outcomes[0] == Outcome("twice", 5, 6, "may")
    assert found.agrees is False
    known = fit(table("iceberg", FLINK, 4, 5), replace(flink(5), pending=(replace(offered, renamed=False),)))
    assert (known.outcomes[0], known.agrees) == (Outcome("skipped", 5, 6), True)


def test_an_id_that_only_the_state_keeps_is_that_of_the_only_writer() -> None:
    one, other = Writer("user", "identifier"), Writer("other", "identifier")
    restart = Restart(4, "checkpoint", frozenset({"job"}), "job", 4)
    assert fit(table("paimon", one, 3, 4), restart).agrees is True
    two = table("paimon", one, 3, 4, remembers={one: 4, other: 2})
    assert fit(two, restart).why == ("other-writer",), "either may be the job"
    assert fit(table("iceberg", Writer("b" * 32, "checkpoint", "op"), 3, 4), restart).why == ("other-writer",)


def test_rows_of_a_commit_that_has_expired_may_be_there() -> None:
    """The table remembers batch 4 and has no commit of it: its rows may have stayed, or been taken back."""
    whole = table("delta", SPARK, 0, 1, 2, remembers={SPARK: 4})
    losses = [one for one in fit(whole, spark(2, same=3)).outcomes if one.fate == "skipped-wrongly"]
    assert {one.strength for one in losses} == {"sure"}
    expired = fit(replace(whole, expired=True), spark(2, same=3))
    assert {one.strength for one in expired.outcomes if one.fate == "skipped-wrongly"} == {"unknown"}
    assert (fit(whole, spark(2, same=3)).agrees, expired.agrees) == (False, None)


def pending(sink: str, path: str) -> Pending:
    return Pending(sink, FLINK, 5, (path,), ())


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (pending("a", "s3://lake/b/m.avro"), (1, 0)),  # by the name that --sink gave
        (pending("op", "s3://lake/b/m.avro"), (0, 1)),  # by its place
        (pending("op", "s3://lake/bb/m.avro"), (1, 1)),  # of nobody knows which: of all
    ],
)
def test_each_table_is_offered_what_is_pending_for_it(one: Pending, counts: tuple[int, int]) -> None:
    tables = [NamedTable(name, table("iceberg", FLINK, 4, uri=f"s3://lake/{name}")) for name in "ab"]
    found = fits(tables, replace(flink(5), pending=(one,)))
    assert [len(fit.pending) for fit in found] == [*counts]
    assert [len(fit.pending) for fit in fits(tables[:1], replace(flink(5), pending=(one,)))] == [1]


def test_only_the_table_that_disagrees_goes_back() -> None:
    behind, ahead = (
        NamedTable(name, table("iceberg", FLINK, *range(1, top + 1), uri=f"s3://lake/{name}"))
        for name, top in (("behind", 4), ("ahead", 6))
    )
    [(one, back)] = rollbacks_for([behind, ahead], flink(4, 4)) or []
    assert (one.name, back.commit, back.undoes) == ("ahead", "4", ((5, 7),))

"""Which numbers of a job the rows of a table are of, where several attempts wrote and some were taken back."""

from __future__ import annotations

from collections.abc import Sequence

from cklog.inputs.sink_tables import SinkTable, Stamp, TableCommit, Writer
from cklog.sink_tables.held import Account, Held

FIRST, SECOND = Writer("a" * 32, "checkpoint"), Writer("b" * 32, "checkpoint")


def account(*commits: tuple[Writer, int | None] | tuple[Writer, int | None, bool]) -> Account:
    """A table of commits: who, up to which number, and whether it was taken back."""
    made = [
        TableCommit(str(k), k, "append", 1, (Stamp(one[0], one[1]),), undone=len(one) > 2)
        for k, one in enumerate(commits)
    ]
    return Account(SinkTable("t", "iceberg", "main", tuple(made), None, {}, {}))


def held(*commits: tuple[Writer, int | None] | tuple[Writer, int | None, bool]) -> Held:
    return account(*commits).held(frozenset({FIRST, SECOND}))


def spans(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return list(found)


def test_a_commit_has_all_numbers_since_the_one_before() -> None:
    assert spans(held((FIRST, 2), (FIRST, 5)).there) == [(1, 6)]


def test_an_attempt_that_goes_on_behind_all_others_has_what_came_between() -> None:
    assert spans(held((FIRST, 3), (SECOND, 6)).there) == [(1, 7)]


def test_an_attempt_that_began_again_goes_on_from_what_is_still_there() -> None:
    """Checkpoints 4 to 9 of the first attempt were taken back; the second one wrote 4 to 6 with its first commit."""
    found = held((FIRST, 3), (FIRST, 9, True), (SECOND, 6))
    assert (spans(found.there), found.undone) == ([(1, 7)], ((4, 10),))


def test_a_writer_whose_commits_have_no_numbers_has_none() -> None:
    assert account((FIRST, None)).tops == {FIRST: -1}
    assert spans(held((FIRST, None)).there) == []

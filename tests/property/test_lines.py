"""The recovery line, rollback propagation, Z-cycles and proofs against brute force from the definitions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.arrays.types import Ints, Small
from cklog.history.history import History, history_of
from cklog.lines.fixpoint import NoConsistentLine, recovery_line
from cklog.lines.proof import ChannelMarks, Marks, newer_line, refute
from cklog.lines.propagation import rollback_propagation
from cklog.lines.rollback import RollbackStep, domino_depth, forcing_chain, rollback_steps
from cklog.zigzag.intervals import useless
from tests.examples import examples
from tests.oracles import lines as oracle
from tests.oracles.lines import Run, runs

GRAPHS = settings(deadline=None, max_examples=examples(300))
EVERYTHING = 2**63 - 1


@st.composite
def watermark_tables(draw: st.DrawFn) -> History:
    """Rising watermarks that no execution made: initial states that disagree, self-channels that lie."""
    names = draw(st.sampled_from([["a/0", "b/0"], ["a/0", "b/0", "c/0"]]))
    stored = {name: list(range(1, draw(st.integers(0, 3)) + 1)) for name in names}
    survivors = frozenset(draw(st.sets(st.sampled_from(names))))
    rows = {name: len(stored[name]) + 1 + (name in survivors) for name in names}
    pairs = draw(st.sets(st.sampled_from(list(product(names, names))), min_size=1, max_size=6))

    def rising(subtask: str) -> list[int]:
        values = st.lists(st.integers(0, 5), min_size=rows[subtask], max_size=rows[subtask])
        return sorted(draw(values))

    sent = {f"{a}->{b}": rising(a) for a, b in pairs}
    received = {f"{a}->{b}": rising(b) for a, b in pairs}
    return history_of(stored, sent, received, survivors)


def rows_of(history: History, at: Ints, values: Ints | Small) -> list[list[int]]:
    return [values[i:j].tolist() for i, j in pairwise(at.tolist())]


def marks_of(history: History) -> Marks:
    """The input of `cklog.lines.proof`, which knows no numpy."""
    sent = rows_of(history, history.sent_at, history.sent)
    received = rows_of(history, history.received_at, history.received)
    ends = [
        (str(history.subtasks[i]), str(history.subtasks[j]))
        for i, j in zip(history.src.tolist(), history.dst.tolist(), strict=True)
    ]
    return {c: ChannelMarks(*ends[k], sent[k], received[k]) for k, c in enumerate(history.channels)}


def by_name(history: History, line: Ints) -> dict[str, int]:
    return {str(s): int(x) for s, x in zip(history.subtasks, line, strict=True)}


def running(history: History, line: dict[str, int]) -> set[str]:
    newest = by_name(history, history.newest)
    alive = {str(s) for s, lives in zip(history.subtasks, history.survivor, strict=True) if lives}
    return {s for s in alive if line[s] == newest[s]}


def consistent(history: History, line: tuple[int, ...], tops: list[int]) -> bool:
    """By watermarks, one channel at a time; nothing that a subtask at its top (-1: none) sent is undone."""
    sent = rows_of(history, history.sent_at, history.sent)
    received = rows_of(history, history.received_at, history.received)
    for k, (i, j) in enumerate(zip(history.src.tolist(), history.dst.tolist(), strict=True)):
        has = EVERYTHING if line[i] == tops[i] else sent[k][line[i]]
        if received[k][min(line[j], len(received[k]) - 1)] > has:
            return False
    return True


def latest_by_enumeration(history: History, start: Ints) -> list[int] | None:
    """The maximum of all consistent combinations at or below `start`; None if there is none."""
    tops = [n if lives else -1 for n, lives in zip(history.newest.tolist(), history.survivor, strict=True)]
    every = [x for x in product(*(range(t + 1) for t in start.tolist())) if consistent(history, x, tops)]
    if not every:
        return None
    latest = [max(x[i] for x in every) for i in range(len(start))]
    assert tuple(latest) in every
    return latest


def line_or_none(search: object, *arguments: object, **options: object) -> list[int] | int:
    """The line, or the channel that leaves none."""
    assert callable(search)
    try:
        return [int(x) for x in search(*arguments, **options)]
    except NoConsistentLine as none:
        return none.channel


@GRAPHS
@given(runs())
def test_the_fixpoint_is_the_latest_of_all_consistent_lines(run: Run) -> None:
    execution, failed, history = run
    assert by_name(history, recovery_line(history)) == oracle.latest_line(execution, failed)


@GRAPHS
@given(runs())
def test_the_line_has_no_orphan_message(run: Run) -> None:
    execution, _, history = run
    assert not oracle.orphans(execution, by_name(history, recovery_line(history)))


@GRAPHS
@given(runs(), st.integers(0, 3))
def test_rollback_propagation_and_breadth_first_search_find_the_same_line(run: Run, rounds: int) -> None:
    _, _, history = run
    line = recovery_line(history).tolist()
    assert rollback_propagation(history).tolist() == line
    assert recovery_line(history, round_limit=rounds).tolist() == line


@GRAPHS
@given(watermark_tables(), st.data())
def test_any_watermarks_from_any_start_agree_with_enumeration(history: History, data: st.DataObject) -> None:
    start = np.array([data.draw(st.integers(0, n)) for n in history.newest.tolist()], np.int64)
    found = line_or_none(recovery_line, history, start)
    assert found == line_or_none(recovery_line, history, start, round_limit=0)
    assert found == line_or_none(rollback_propagation, history, start)
    expected = latest_by_enumeration(history, start)
    assert found == expected if expected is not None else isinstance(found, int)


@GRAPHS
@given(oracle.executions())
def test_useless_is_in_no_consistent_combination_and_on_a_zigzag_cycle(execution: oracle.Execution) -> None:
    history = oracle.history(execution, failed=())
    expected = oracle.useless_by_enumeration(execution)
    assert oracle.useless_by_zigzag(execution) == expected
    assert useless_names(history) == expected


def useless_names(history: History) -> set[tuple[str, int]]:
    owner = np.repeat(np.arange(len(history.subtasks)), np.diff(history.first))
    rows = np.flatnonzero(useless(history)).tolist()
    return {(str(history.subtasks[owner[r]]), int(r - history.first[owner[r]])) for r in rows}


@GRAPHS
@given(runs())
def test_after_a_failure_useless_misses_only_what_is_rolled_past_anyway(run: Run) -> None:
    execution, failed, history = run
    found, line = useless_names(history), by_name(history, recovery_line(history))
    assert found == oracle.useless_by_zigzag(oracle.without_lost_receipts(execution, failed))
    assert all(x > line[s] for s, x in oracle.useless_by_enumeration(execution) - found)


@GRAPHS
@given(watermark_tables())
def test_useless_of_any_rising_watermarks_agrees_with_enumeration(history: History) -> None:
    tops = [n + (not lives) for n, lives in zip(history.newest.tolist(), history.survivor, strict=True)]
    every = [x for x in product(*(range(t + 1) for t in tops)) if consistent(history, x, tops)]
    used = {(i, x) for line in every for i, x in enumerate(line)}
    rows = [(i, x) for i, n in enumerate(history.newest.tolist()) for x in range(n + 1)]
    stored = [not (lives and x == history.newest[i]) for i, x in rows for lives in [history.survivor[i]]]
    expected = [keeps and row not in used for keeps, row in zip(stored, rows, strict=True)]
    assert useless(history).tolist() == expected


@GRAPHS
@given(runs())
def test_a_line_is_proven_latest_exactly_if_it_is(run: Run) -> None:
    execution, failed, history = run
    marks, newest = marks_of(history), by_name(history, history.newest)
    alive = running(history, newest)
    latest = oracle.latest_line(execution, failed)
    for line in oracle.lines(execution, failed):
        lost = oracle.orphans(execution, line)
        told = refute(marks, line, running(history, line))
        assert {c for c, _ in lost} == {c for c, _, _ in told}
        assert lost <= {(c, seq) for c, a, b in told for seq in range(a, b)}
        if not lost:
            newer = newer_line(marks, line, newest, alive)
            assert (newer is None) == (line == latest)
            assert newer is None or is_newer(execution, newer, line)


def is_newer(execution: oracle.Execution, newer: dict[str, int], line: dict[str, int]) -> bool:
    above = all(newer[s] >= line[s] for s in line) and newer != line
    return above and not oracle.orphans(execution, newer)


@GRAPHS
@given(runs())
def test_each_step_is_forced_by_real_orphans_and_the_steps_lead_to_the_line(run: Run) -> None:
    execution, _, history = run
    steps = rollback_steps(history)
    now = history.newest.copy()
    for number in range(1, domino_depth(steps) + 1):
        this_round = [step for step in steps if step.round == number]
        lost = oracle.orphans(execution, by_name(history, now))
        for step in this_round:
            channel = history.channels[step.channel]
            assert now[step.subtask] == step.from_ > step.to
            assert history.dst[step.channel] == step.subtask
            assert history.src[step.channel] == step.sender
            assert (channel, step.orphans_to - 1) in lost
            assert min(seq for c, seq in lost if c == channel) >= step.orphans_from
            lower = by_name(history, now) | {str(history.subtasks[step.subtask]): step.to}
            assert all(c != channel for c, _ in oracle.orphans(execution, lower))
        for step in this_round:
            now[step.subtask] = step.to
    assert now.tolist() == recovery_line(history).tolist()


@GRAPHS
@given(runs())
def test_every_rollback_has_a_chain_from_a_failed_subtask_to_it(run: Run) -> None:
    _, failed, history = run
    steps = rollback_steps(history)
    line = recovery_line(history)
    for i in np.flatnonzero(line < history.newest).tolist():
        chain = forcing_chain(steps, i)
        assert str(history.subtasks[chain[0].sender]) in failed
        assert (chain[-1].subtask, chain[-1].to) == (i, line[i])
        assert [step.round for step in chain] == list(range(1, len(chain) + 1))
        assert all(b.sender == a.subtask for a, b in pairwise(chain))
    for i in np.flatnonzero(line == history.newest).tolist():
        assert forcing_chain(steps, i) == []


@GRAPHS
@given(runs())
def test_only_the_order_of_watermarks_counts_up_to_the_largest_number(run: Run) -> None:
    _, _, history = run
    largest = np.iinfo(np.int64).max
    huge = replace(history, sent=lift(history.sent, largest), received=lift(history.received, largest))
    line = recovery_line(history).tolist()
    assert recovery_line(huge).tolist() == line
    assert recovery_line(huge, round_limit=0).tolist() == line
    assert rollback_propagation(huge).tolist() == line
    assert useless(huge).tolist() == useless(history).tolist()


def lift(values: Ints | Small, largest: int) -> Ints:
    """0 stays 0; 99 becomes the largest number, and the others are just below it, in order."""
    lifted: Ints = np.where(values == 0, 0, largest - (99 - values.astype(np.int64)))
    return lifted


# --- CheckMate, Figure 5: ring 1 → 2 → 3 → 1


def figure_5() -> History:
    """Figure 5 as the local orders of its operators.

    op1: C1 s(m1) r(m3) C2 s(m4) r(m6) C3
    op2: C1 r(m1) s(m2) C2 r(m4) s(m5) C3
    op3: C1 r(m2) s(m3) r(m5) C2 s(m6)

    Row 0 is C1. Messages m1, m4 are 0, 1 of 1→2; m2, m5 of 2→3; m3, m6 of 3→1.
    """
    return history_of(
        {"op1/0": [2, 3], "op2/0": [2, 3], "op3/0": [2]},
        {"op1/0->op2/0": [0, 1, 2], "op2/0->op3/0": [0, 1, 2], "op3/0->op1/0": [0, 1]},
        {"op1/0->op2/0": [0, 1, 2], "op2/0->op3/0": [0, 2], "op3/0->op1/0": [0, 1, 2]},
    )


def test_figure_5_is_a_domino_of_five_steps_to_the_initial_states() -> None:
    history = figure_5()
    one_two, two_three, three_one = range(3)
    assert rollback_steps(history) == [
        RollbackStep(0, 2, 1, three_one, sender=2, orphans_from=1, orphans_to=2, round=1),  # m6
        RollbackStep(1, 2, 1, one_two, sender=0, orphans_from=1, orphans_to=2, round=2),  # m4
        RollbackStep(2, 1, 0, two_three, sender=1, orphans_from=1, orphans_to=2, round=3),  # m5
        RollbackStep(0, 1, 0, three_one, sender=2, orphans_from=0, orphans_to=1, round=4),  # m3
        RollbackStep(1, 1, 0, one_two, sender=0, orphans_from=0, orphans_to=1, round=5),  # m1
    ]
    assert forcing_chain(rollback_steps(history), 1) == rollback_steps(history)
    assert domino_depth(rollback_steps(history)) == 5
    for line in (
        recovery_line(history),
        recovery_line(history, round_limit=0),
        rollback_propagation(history),
    ):
        assert line.tolist() == [0, 0, 0]


def test_figure_5_has_three_useless_checkpoints() -> None:
    assert useless_names(figure_5()) == {("op1/0", 1), ("op2/0", 1), ("op3/0", 1)}  # C12, C22, C32

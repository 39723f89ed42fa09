"""Zigzag paths, lines through given checkpoints, sets of bad checkpoints: against Netzer and Xu's definitions."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cklog.history.history import History
from cklog.lines.checkpoint_sets import checkpoint_sets
from cklog.lines.fixpoint import earliest_with, recovery_line
from cklog.lines.search import forbidding
from cklog.protocols.failures_over_time import failures_over_time
from cklog.protocols.index_audit import index_audit
from cklog.zigzag.intervals import useless
from cklog.zigzag.paths import Hop, Zigzags
from tests.examples import examples
from tests.oracles import lines as oracle

GRAPHS = settings(deadline=None, max_examples=examples(300))

Run = tuple[oracle.Execution, History]


@st.composite
def wrecks(draw: st.DrawFn, most_events: int = 40) -> Run:
    """An execution in which everything failed, without what no checkpoint knows of; and its history."""
    execution = draw(oracle.executions(most_events))
    left = oracle.without_lost_receipts(execution, execution.subtasks)
    return left, oracle.history(left, left.subtasks)


def checkpoints(execution: oracle.Execution) -> list[tuple[str, int]]:
    return [(s, x) for s in execution.subtasks for x in range(execution.checkpoints(s) + 1)]


def shortest(execution: oracle.Execution, start: tuple[str, int], end: tuple[str, int]) -> int | None:
    """Messages on a shortest zigzag path between two checkpoints, message by message; None if there is none."""
    received = oracle.messages(execution)
    queue = deque((m, 1) for m in received if m.sender == start[0] and m.send >= start[1])
    seen = {m for m, _ in queue}
    while queue:
        last, length = queue.popleft()
        if last.receiver == end[0] and last.receive < end[1]:
            return length
        following = {m for m in received if m.sender == last.receiver and m.send >= last.receive} - seen
        seen |= following
        queue.extend((m, length + 1) for m in sorted(following))
    return None


def is_path(execution: oracle.Execution, history: History, hops: list[Hop]) -> bool:
    """Whether every hop is a real message, and each is sent where the one before it was received, or later."""
    real = {(m.channel, m.seq, m.send, m.receive) for m in oracle.messages(execution)}
    links = all(history.dst[a.channel] == history.src[b.channel] and b.send >= a.receive for a, b in pairwise(hops))
    return links and all((history.channels[h.channel], h.seq, h.send, h.receive) in real for h in hops)


def hold_witnesses(execution: oracle.Execution, history: History) -> None:
    """Every useless checkpoint, and no other, has a cycle: of real messages, linked, and none is shorter."""
    search, mask = Zigzags(history), useless(history)
    for s, x in checkpoints(execution):
        i = [str(name) for name in history.subtasks].index(s)
        hops = search.cycle(i, x)
        assert (None if hops is None else len(hops)) == shortest(execution, (s, x), (s, x))
        assert (hops is not None) == mask[history.first[i] + x]
        if hops is not None:
            assert is_path(execution, history, hops)
            first, last = hops[0], hops[-1]
            assert (history.src[first.channel], history.dst[last.channel]) == (i, i)
            assert last.receive < x <= first.send


@GRAPHS
@given(wrecks())
def test_every_witness_is_a_real_zigzag_cycle_and_there_is_no_shorter_one(run: Run) -> None:
    hold_witnesses(*run)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(5_000))
@given(wrecks(most_events=90))
def test_the_same_on_thousands_of_executions(run: Run) -> None:
    hold_witnesses(*run)


@GRAPHS
@given(wrecks(), st.data())
def test_paths_between_checkpoints_are_the_shortest(run: Run, data: st.DataObject) -> None:
    execution, history = run
    names = [str(name) for name in history.subtasks]
    start, end = (data.draw(st.sampled_from(checkpoints(execution))) for _ in range(2))
    assume(start[0] != end[0] or start == end)
    hops = Zigzags(history).path((names.index(start[0]), start[1]), (names.index(end[0]), end[1]))
    assert (None if hops is None else len(hops)) == shortest(execution, start, end)
    assert hops is None or is_path(execution, history, hops)
    starts = np.zeros(len(history.label), np.bool_)
    starts[history.first[names.index(start[0])] + start[1]] = True
    back = Zigzags(history).path_from_any(starts, (names.index(end[0]), end[1]))
    assert (None if back is None else len(back)) == (None if hops is None else len(hops))
    assert back is None or is_path(execution, history, back)


@GRAPHS
@given(oracle.executions(), st.data())
def test_the_earliest_and_the_latest_line_through_given_checkpoints(
    execution: oracle.Execution, data: st.DataObject
) -> None:
    failed = data.draw(oracle.failures(execution))
    left = oracle.without_lost_receipts(execution, failed)
    history = oracle.history(left, failed)
    names = [str(name) for name in history.subtasks]
    some = data.draw(st.sets(st.sampled_from(execution.subtasks), min_size=1))
    asked = {s: data.draw(st.integers(0, execution.checkpoints(s))) for s in sorted(some)}
    chosen = {names.index(s): x for s, x in asked.items()}
    lines = [line for line in oracle.consistent_lines(left, failed) if all(line[s] == x for s, x in asked.items())]
    earliest = earliest_with(history, chosen)
    start = history.newest.copy()
    start[list(chosen)] = list(chosen.values())
    latest = recovery_line(history, start)
    possible = all(earliest[i] == x for i, x in chosen.items()) and bool((earliest <= history.newest).all())
    assert possible == bool(lines) == all(latest[i] == x for i, x in chosen.items())
    if lines:
        assert {s: int(earliest[i]) for i, s in enumerate(names)} == {s: min(x[s] for x in lines) for s in names}
        assert {s: int(latest[i]) for i, s in enumerate(names)} == {s: max(x[s] for x in lines) for s in names}
    everyone = oracle.history(left, ())  # zigzag paths decide if all current states may complete the line
    allowed = any(all(line[s] == x for s, x in asked.items()) for line in oracle.consistent_lines(left, ()))
    assert (forbidding(everyone, chosen) is None) == allowed


@GRAPHS
@given(wrecks())
def test_the_four_sets_are_what_they_are_called(run: Run) -> None:
    execution, history = run
    line = recovery_line(history)
    sets = checkpoint_sets(history, line, useless(history))
    names = [str(name) for name in history.subtasks]
    rows = {(s, x): int(history.first[names.index(s)]) + x for s, x in checkpoints(execution)}

    def members(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> set[tuple[str, int]]:
        return {key for key, row in rows.items() if mask[row]}

    stored_lines = oracle.consistent_lines(execution, execution.subtasks)
    latest = oracle.latest_line(execution, execution.subtasks)
    assert members(sets.useless) == oracle.useless_by_zigzag(execution)
    assert members(sets.rolled_past) == {(s, x) for s, x in rows if x > latest[s]}
    assert members(sets.unusable) == {(s, x) for s, x in rows if not any(c[s] == x for c in stored_lines)}
    needed = set()
    for s in execution.subtasks:
        alone = oracle.latest_line(oracle.without_lost_receipts(execution, {s}), {s})
        needed |= {(j, y) for j, y in alone.items() if y <= execution.checkpoints(j)}
    assert members(sets.obsolete) == set(rows) - needed
    assert not (sets.useless & ~sets.obsolete).any()


@GRAPHS
@given(oracle.executions(most_events=24), oracle.executions(), st.data())
def test_no_future_failure_needs_an_obsolete_checkpoint(
    execution: oracle.Execution, future: oracle.Execution, data: st.DataObject
) -> None:
    history = oracle.history(execution, ())
    sets = checkpoint_sets(history, recovery_line(history), useless(history))
    names = [str(name) for name in history.subtasks]
    later = oracle.continued(execution, future)
    failed = data.draw(oracle.failures(later))
    line = oracle.latest_line(oracle.without_lost_receipts(later, failed), failed)
    for s, x in line.items():
        if x <= execution.checkpoints(s):
            assert not sets.obsolete[history.first[names.index(s)] + x]


@GRAPHS
@given(oracle.executions())
def test_the_line_at_every_moment_is_that_of_the_history_cut_there(execution: oracle.Execution) -> None:
    left = oracle.without_lost_receipts(execution, execution.subtasks)
    taken = [(e.subtask, e.seq, n) for n, e in enumerate(left.events) if e.kind == "ckpt"]
    history = oracle.history(left, left.subtasks)
    names = [str(name) for name in history.subtasks]
    time = np.full(len(history.label), -1)
    for s, x, n in taken:
        time[history.first[names.index(s)] + x] = oracle.EPOCH + 10 * n
    found = failures_over_time(replace(history, time=time))
    assert [m.time for m in found.moments] == [oracle.EPOCH + 10 * n for *_, n in taken]
    for moment, (*_, n) in zip(found.moments, taken, strict=True):
        cut = oracle.Execution(left.subtasks, left.channels, left.events[: n + 1])
        line = oracle.latest_line(oracle.without_lost_receipts(cut, cut.subtasks), cut.subtasks)
        newest = {s: cut.checkpoints(s) for s in cut.subtasks}
        fallen = {s: newest[s] - line[s] for s in cut.subtasks}
        assert moment.stored == sum(newest.values())
        assert moment.rolled_past == sum(fallen.values())
        assert moment.subtasks_back == sum(x > 0 for x in fallen.values())
        assert moment.distance == max(fallen.values())
        assert moment.at_initial == sum(line[s] == 0 < newest[s] for s in cut.subtasks)


@GRAPHS
@given(wrecks(), st.data())
def test_the_audit_finds_every_index_that_does_not_rise(run: Run, data: st.DataObject) -> None:
    execution, history = run
    rows = len(history.label)
    index = np.array(data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows)))
    if data.draw(st.booleans()):  # mostly rising, as a protocol would
        index = index + 2 * history.label
    names = [str(name) for name in history.subtasks]
    at = {(s, x): int(history.first[names.index(s)]) + x for s, x in checkpoints(execution)}
    broken = {
        end
        for start, end in product(at, at)
        if index[at[start]] >= index[at[end]]
        and ((start[0] == end[0] and start[1] < end[1]) or shortest(execution, start, end) is not None)
    }
    audit = index_audit(history, index, most=100)
    assert audit.broken == len(broken)
    assert {breach.end for breach in audit.breaches} == {at[end] for end in broken}
    for breach in audit.breaches:
        assert index[breach.start] >= index[breach.end]
        assert is_path(execution, history, list(breach.hops))
    by_messages = all(
        index[at[m.sender, m.send]] <= index[at[m.receiver, m.receive]] for m in oracle.messages(execution)
    ) and all(index[at[s, x - 1]] < index[at[s, x]] for s, x in at if x)
    if by_messages:
        assert audit.rule == "messages"
    if audit.rule == "messages":
        assert not broken

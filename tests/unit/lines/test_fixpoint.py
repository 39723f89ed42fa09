"""Small histories with a known line, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cklog.history.history import History, history_of
from cklog.lines.fixpoint import NoConsistentLine, recovery_line
from cklog.lines.propagation import rollback_propagation
from cklog.lines.rollback import domino_depth, forcing_chain, rollback_steps
from cklog.zigzag.intervals import useless


def every_line(history: History) -> list[list[int]]:
    """The line's labels by rounds, by breadth-first search and by rollback propagation."""
    lines = (recovery_line(history), recovery_line(history, round_limit=0), rollback_propagation(history))
    return [history.label_of(line).tolist() for line in lines]


def test_a_sender_without_checkpoints_takes_its_receiver_to_the_initial_state() -> None:
    """`a` never checkpoints but sent 5 messages; b@10 received 5."""
    history = history_of({"a/0": [], "b/0": [10]}, {"a/0->b/0": [0]}, {"a/0->b/0": [0, 5]})
    assert every_line(history) == [[0, 0]] * 3


def test_operators_on_one_worker_roll_back_separately() -> None:
    """a@5 sent 2, b@10 received 7."""
    history = history_of({"a/0": [5], "b/0": [10]}, {"a/0->b/0": [0, 2]}, {"a/0->b/0": [0, 7]})
    assert every_line(history) == [[5, 0]] * 3


def test_equal_watermarks_are_no_orphan() -> None:
    """s@4 sent 10; a@5 received 10, sent 2; a@9 received 12, sent 4; b@6, b@10 received 1, 2."""
    history = history_of(
        {"s/0": [4], "a/0": [5, 9], "b/0": [6, 10]},
        {"s/0->a/0": [0, 10], "a/0->b/0": [0, 2, 4]},
        {"s/0->a/0": [0, 10, 12], "a/0->b/0": [0, 1, 2]},
    )
    assert [str(s) for s in history.subtasks] == ["a/0", "b/0", "s/0"]
    assert every_line(history) == [[5, 10, 4]] * 3


def test_a_survivor_keeps_running_and_what_it_sent_stays_sent() -> None:
    history = history_of(
        {"a/0": [1], "b/0": [1]},
        {"a/0->b/0": [0, 2, 4]},
        {"a/0->b/0": [0, 9]},  # more than a's current watermark says: its log, not the line, is behind
        survivors=frozenset({"a/0"}),
    )
    assert every_line(history) == [[-1, 1]] * 3


def test_a_survivor_that_received_orphans_falls_to_a_stored_checkpoint() -> None:
    history = history_of(
        {"a/0": [1], "b/0": [1]},
        {"a/0->b/0": [0, 2]},
        {"a/0->b/0": [0, 2, 3]},
        survivors=frozenset({"b/0"}),
    )
    assert every_line(history) == [[1, 1]] * 3


def test_an_older_start_gives_an_older_line() -> None:
    history = history_of({"a/0": [1, 2], "b/0": [1, 2]}, {"a/0->b/0": [0, 1, 2]}, {"a/0->b/0": [0, 1, 2]})
    start = np.array([1, 2])
    assert recovery_line(history, start).tolist() == [1, 1]
    assert rollback_propagation(history, start).tolist() == [1, 1]
    assert start.tolist() == [1, 2], "the caller's array is left alone"


def test_a_restored_job_starts_at_equal_watermarks_above_zero() -> None:
    history = history_of({"a/0": [1], "b/0": [1]}, {"a/0->b/0": [50, 60]}, {"a/0->b/0": [50, 61]})
    assert every_line(history) == [[1, 0]] * 3
    assert not useless(history).any()


def test_initial_states_that_contradict_each_other_leave_no_line() -> None:
    history = history_of(
        {"a/0": [1], "b/0": [1], "c/0": [1]},
        {"a/0->b/0": [0, 2], "b/0->c/0": [0, 1]},
        {"a/0->b/0": [3, 3], "b/0->c/0": [0, 0]},
    )
    for search in (recovery_line, rollback_propagation, lambda h: recovery_line(h, round_limit=0)):
        with pytest.raises(NoConsistentLine) as refused:
            search(history)
        assert history.channels[refused.value.channel] == "a/0->b/0"
    assert useless(history).tolist() == [True, True, False, False, False, False]


def test_of_several_contradictions_every_search_names_the_first() -> None:
    """b's loss takes a from its current to its initial state; only then is a's own channel one of them."""
    history = history_of(
        {"a/0": [], "b/0": []},
        {"a/0->a/0": [0, 0], "b/0->a/0": [0, 0]},
        {"a/0->a/0": [1, 1], "b/0->a/0": [1, 1]},
        survivors=frozenset({"a/0", "b/0"}),
    )
    start = np.array([1, 0])
    for limit in (0, 64):
        with pytest.raises(NoConsistentLine) as refused:
            recovery_line(history, start, round_limit=limit)
        assert refused.value.channel == 0
    with pytest.raises(NoConsistentLine) as refused:
        rollback_propagation(history, start)
    assert refused.value.channel == 0


def test_nothing_at_all_has_an_empty_line() -> None:
    history = history_of({}, {}, {})
    assert recovery_line(history).tolist() == []
    assert rollback_propagation(history).tolist() == []
    assert useless(history).tolist() == []
    assert rollback_steps(history) == []


@pytest.mark.parametrize("round_limit", [0, 64])
def test_without_channels_everybody_keeps_the_newest(round_limit: int) -> None:
    history = history_of({"a/0": [1, 2], "b/0": []}, {}, {})
    assert recovery_line(history, round_limit=round_limit).tolist() == [2, 0]


def test_the_strictest_channel_explains_a_rollback_and_the_first_of_equals() -> None:
    marks = {"a/0->c/0": [0, 1], "a/0->c/0#1": [0, 0], "b/0->c/0": [0, 0]}
    history = history_of({"a/0": [1], "b/0": [1], "c/0": [1, 2]}, marks, {c: [0, 1, 2] for c in marks})
    (step,) = rollback_steps(history)
    assert history.channels[step.channel] == "a/0->c/0#1"
    assert (step.from_, step.to, step.orphans_from, step.orphans_to) == (2, 0, 0, 2)
    assert forcing_chain([step], 2) == [step]
    assert forcing_chain([step], 0) == []
    assert domino_depth([step]) == 1

"""A part of a history: a subtask still runs in it exactly if its current state is in it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cklog.history.history import history_of
from cklog.zigzag.message_edges import cut_history


@pytest.mark.parametrize("survivors", [(), ("a/0",), ("b/0",), ("a/0", "b/0")])
def test_a_current_state_that_is_cut_off_leaves_no_survivor(survivors: tuple[str, ...]) -> None:
    """Each subtask has its initial state, two checkpoints, and if it survived its current state: cut everywhere."""
    last = [2 + (name in survivors) for name in ("a/0", "b/0")]
    sent, received = list(range(last[0] + 1)), list(range(last[1] + 1))
    history = history_of(
        {"a/0": [1, 2], "b/0": [1, 2]}, {"a/0->b/0": sent}, {"a/0->b/0": received}, survivors=frozenset(survivors)
    )
    for high in product(*(range(n + 1) for n in last)):
        part, channels = cut_history(history, np.zeros(2, np.int64), np.array(high, np.int64))
        assert part.survivor.tolist() == [
            name in survivors and high[i] == last[i] for i, name in enumerate(("a/0", "b/0"))
        ]
        assert channels.tolist() == [0]

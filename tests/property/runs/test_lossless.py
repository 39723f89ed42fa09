"""The newest line without loss against all lines there are."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.arrays.types import Ints
from cklog.lines.fixpoint import NoConsistentLine, recovery_line
from cklog.runs.records.lossless import lossless_line
from tests.examples import examples
from tests.oracles.lines import Run, runs


@settings(deadline=None, max_examples=examples(200))
@given(runs(), st.data())
def test_it_is_the_greatest_consistent_line_of_which_the_logs_have_all(run: Run, data: st.DataObject) -> None:
    _, _, history = run
    try:
        newest = recovery_line(history)
    except NoConsistentLine:
        return
    lost = [data.draw(st.sets(st.integers(0, 6), max_size=3)) for _ in history.channels]

    def missing(line: Ints) -> Ints:
        pairs = zip(history.received_of(line).tolist(), history.sent_of(line).tolist(), lost, strict=True)
        return np.array([min((n for n in gone if low <= n < high), default=-1) for low, high, gone in pairs], np.int64)

    every = (np.array(line, np.int64) for line in product(*(range(n + 1) for n in history.newest.tolist())))
    consistent = [line for line in every if (history.received_of(line) <= history.sent_of(line)).all()]
    whole = [line for line in consistent if (missing(line) < 0).all()]
    found, lowered = lossless_line(history, newest, missing)
    assert (found is None) == (not whole)
    if found is not None:
        assert any(np.array_equal(found, line) for line in whole)
        assert all((line <= found).all() for line in whole)
        start = history.newest.copy()
        start[list(lowered)] = found[list(lowered)]
        assert np.array_equal(recovery_line(history, start), found), "--at of these alone leads to it"

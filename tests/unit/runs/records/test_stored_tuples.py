"""Messages that checkpoints of a line hold, whatever several of them hold twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cklog.history import tokens
from cklog.runs.records import plan

NOTHING = SimpleNamespace(findings=[], inputs=[])
SPANS = st.sets(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 9), st.just(1)), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SPANS)
def test_each_message_is_held_once_in_order(
    monkeypatch: pytest.MonkeyPatch, spans: set[tuple[str, int, int, int]]
) -> None:
    monkeypatch.setattr(tokens, "read_tokens", lambda *_: NOTHING)
    monkeypatch.setattr(plan, "_rounds", lambda *_: {})
    monkeypatch.setattr(plan, "_spans", lambda *_: spans)
    none = cast(Any, None)
    held, _, _ = plan.stored_tuples(none, none, none, {}, None)
    for name in "ab":
        ranges = held.get(name, [])
        numbers = [n for one in ranges for n in range(one.start, one.end)]
        assert numbers == sorted({n for channel, low, high, _ in spans if channel == name for n in range(low, high)})
        assert all(one.rows == one.end - one.start for one in ranges)

"""What a checkpoint lets its sources send again: the smallest number that any of its records names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cklog.impact.checkpoint import _first_to_send
from cklog.impact.dataflow import Dataflow

FLOW = cast(Dataflow, SimpleNamespace(periods={"src": None}))


def record(operator: str, **more: Any) -> dict[str, Any]:
    return {"operator": operator, "sources": None, "received": None, "sent": None} | more


def test_the_smallest_number_counts_whoever_names_it() -> None:
    own = record("src", sources=[("events-0", 7), ("events-1", 5)])
    reader = record("map", sources=[("src-0", 4)])
    sent = record("src", sent=[("src/0->map/0", 3), ("src/0->map/1", 6)])
    received = record("map", received=[("src/0->map/0", 2), ("map/0->sink/0", 1)])
    assert _first_to_send([own], FLOW) == {"src": 5}
    assert _first_to_send([own, reader], FLOW) == {"src": 4}
    assert _first_to_send([own, reader, sent], FLOW) == {"src": 3}
    assert _first_to_send([own, reader, sent, received], FLOW) == {"src": 2}
    assert _first_to_send([record("map", sources=[("other-0", 1)])], FLOW) == {}

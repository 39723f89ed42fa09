"""Guarantees of delivery, from what is known of input, state and output."""

from __future__ import annotations

import json

import pytest

from cklog.impact.sinks.guarantees import guarantee_of
from cklog.impact.sinks.model import GuaranteeEvidence
from tests.conftest import SAMPLES
from tests.program import cklog


@pytest.mark.parametrize(
    ("input", "state", "output", "proven", "best"),
    [
        (True, True, True, "exactly-once", "exactly-once"),
        (True, True, False, "at-least-once", "at-least-once"),
        (True, True, None, "at-least-once", "exactly-once"),
        (None, True, True, "at-most-once", "exactly-once"),
        (False, True, True, "at-most-once", "at-most-once"),
        (True, False, True, "at-most-once", "at-most-once"),
        (None, None, None, "none", "exactly-once"),
        (False, True, False, "none", "none"),
        (False, True, None, "none", "at-most-once"),
    ],
)
def test_classes(input: bool | None, state: bool | None, output: bool | None, proven: str, best: str) -> None:
    pieces = [
        GuaranteeEvidence("input", input, "x"),
        GuaranteeEvidence("state", state, "x"),
        GuaranteeEvidence("output", output, "x"),
    ]
    found = guarantee_of("s", "", pieces)
    assert (found.guarantee, found.at_best) == (proven, best)
    assert (found.next is None) == (proven == "exactly-once")
    assert all(piece.holds is not True for piece in found.missing)
    assert bool(found.missing) == (found.next is not None)


def test_only_guarantees() -> None:
    ended = cklog("impact", SAMPLES / "uncoordinated-join", "--guarantee", "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["schema"]) == (0, "cklog.impact-guarantee/1")
    assert [(row["sink"], row["at_best"]) for row in found["result"]["guarantees"]] == [("sink", "exactly-once")]

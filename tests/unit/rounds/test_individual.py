"""Individual checkpoints of token rounds: what is said of each is what its own record says."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from cklog.rounds.token_rounds import TokenRounds
from tests.reading.rounds import asked

SAMPLES = [Path("sample_logs/token-rounds"), Path("sample_logs/token-rounds-ap")]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_what_is_stored_is_told_as_it_was_recorded(sample: Path) -> None:
    lines = [
        line for path in sorted((sample / "checkpoints").glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
    recorded = {(r["operator"], r.get("subtask") or 0, r["checkpoint"]): r for r in map(json.loads, lines)}
    _, found, _ = asked(sample)
    stored = [row for row in found["individual"] if row["state"] == "stored"]
    assert stored
    for row in stored:
        record = recorded[row["operator"], row["subtask"], row["checkpoint"]]
        assert (row["time"], row["bytes"]) == (record.get("time"), record.get("bytes"))
    others = [(row["checkpoint"], row["time"], row["bytes"]) for row in found["individual"] if row["state"] != "stored"]
    assert others == [(None, None, None)] * len(others)


@pytest.mark.parametrize("shown", list(product((None, "MS-src", "MS-src+ap"), repeat=3)))
def test_a_round_is_of_its_own_variant_else_of_the_newest_that_shows_one(shown: tuple[str | None, ...]) -> None:
    of = object.__new__(TokenRounds)
    vars(of)["variants"] = shown
    told = [variant for variant in shown if variant is not None]
    for place in range(-1, 3):
        own = shown[place] if place >= 0 else None
        assert of.variant_of(place) == (own or (told[-1] if told else None))

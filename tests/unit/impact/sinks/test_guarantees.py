"""Guarantees of delivery, from what is known of input, state and output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

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


RANKS = ["none", "at-most-once", "at-least-once", "exactly-once"]


@pytest.mark.parametrize("sample", ["token-rounds-ap", "uncoordinated-join", "q3-coordinated"])
def test_no_loss_of_records_makes_a_guarantee_stronger(sample: str, tmp_path: Path) -> None:
    """Records are cut off one after the other: what none tells of any more may have come all the same."""

    def ranks(folder: Path) -> dict[str, int]:
        answer = json.loads(cklog("impact", folder, "--json").out)
        return {row["sink"]: RANKS.index(row["guarantee"]) for row in answer["result"]["guarantees"]}

    whole = ranks(SAMPLES / sample)
    assert whole
    for path in sorted((SAMPLES / sample / "checkpoints").glob("*.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        for kept in range(1, len(lines), 1 + len(lines) // 8):
            folder = tmp_path / f"{path.stem}-{kept}"
            shutil.copytree(SAMPLES / sample, folder)
            (folder / "checkpoints" / path.name).write_bytes(b"".join(lines[:kept]) + lines[kept][:-9])
            assert all(rank <= whole.get(sink, 3) for sink, rank in ranks(folder).items()), (path.name, kept)


def test_a_system_log_of_which_nothing_can_be_read_is_told(tmp_path: Path) -> None:
    """Zeros and no newline: nothing of it says when the system crashed, so the answer is about sinks."""
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "odysseus-gap", folder)
    log = folder / "system" / "part-00000.jsonl"
    log.write_bytes(bytes(log.stat().st_size))
    answer = json.loads(cklog("impact", folder, "--json").out)
    assert ("corrupt-file", "system/part-00000.jsonl") in {(f["id"], f["subject"]) for f in answer["findings"]}

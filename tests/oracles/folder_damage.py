"""Every file of a folder damaged in every way, and what must hold of the answers then."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from cklog.errors import CklogError
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.run import open_run
from tests.conftest import SAMPLES

DOCUMENTED = {0, 2, 3, 4, 5, 65, 66}


def ask(folder: Path) -> Answer[Any]:
    with open_run(str(folder)) as run:
        return run.recovery_line(Question(explain=True))


def checkpoints(answer: Answer[Any]) -> dict[str, int]:
    return {f"{e.operator}/{e.subtask}": e.checkpoint or 0 for e in answer.result.line}


def damaged(data: bytes, rng: random.Random) -> dict[str, bytes | None]:
    """The file emptied, cut at a random byte, with a random bit flipped, and gone."""
    at = rng.randrange(len(data))
    flipped = bytes([data[at] ^ 1 << rng.randrange(8)])
    return {"empty": b"", "cut": data[:at], "flip": data[:at] + flipped + data[at + 1 :], "dropped": None}


def files(sample: str) -> list[Path]:
    return sorted(p for p in (SAMPLES / sample).rglob("*") if p.is_file() and p.stat().st_size)


def injure(sample: str, tmp_path: Path, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    whole = ask(SAMPLES / sample)
    for path in files(sample):
        for _ in range(rounds):
            for how, data in damaged(path.read_bytes(), rng).items():
                copy = tmp_path / "copy"
                shutil.copytree(SAMPLES / sample, copy)
                target = copy / path.relative_to(SAMPLES / sample)
                target.unlink() if data is None else target.write_bytes(data)
                hold(whole, copy, f"{path.name} {how}", silent_allowed=how == "dropped")
                shutil.rmtree(copy)


def hold(whole: Answer[Any], copy: Path, what: str, silent_allowed: bool) -> None:
    try:
        found = ask(copy)
    except CklogError as error:
        ended = error.exit_code
    else:
        ended = found.exit_code
    assert ended in DOCUMENTED, what
    if ended in (65, 66):
        return
    best = checkpoints(whole)
    assert all(number <= best.get(name, 0) for name, number in checkpoints(found).items()), what
    changed = found.result != whole.result
    assert found.findings or not changed or silent_allowed, what

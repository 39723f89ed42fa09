"""Damage of which it is told that it does not touch the line does not: the line is that of the undamaged folder.

That some damage is told so is shown by `tests/integration/test_actions.py`. Records are appended as checkpoints are
taken (docs/run-folder.md).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.errors import CorruptInput
from cklog.model.lines import RecoveryLine
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.run import open_run
from tests.builders.executions import manifest
from tests.examples import examples
from tests.oracles.lines import Execution, checkpoint_records, executions


def written(folder: Path, execution: Execution, layout: str, rng: Any) -> list[tuple[str, int]]:
    """Write checkpoint records in some layout; the file and line of each."""
    manifest(folder, execution)
    (folder / "checkpoints").mkdir()
    files: dict[str, list[dict[str, Any]]] = {}
    for record in checkpoint_records(execution, []):
        name = record["operator"] if layout == "by operator" else str(rng.randrange(2)) if layout == "torn" else "all"
        files.setdefault(name, []).append(record)
    for name, mine in files.items():
        (folder / "checkpoints" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in mine))
    return [(name, i) for name, mine in files.items() for i in range(len(mine))]


def answer(folder: Path) -> Answer[RecoveryLine]:
    with open_run(str(folder)) as run:
        return run.recovery_line(Question())


@settings(max_examples=examples(300), deadline=None)
@given(executions(30), st.sampled_from(["by operator", "all", "torn"]), st.randoms(use_true_random=False))
def test_a_bad_record_that_is_a_warning_is_on_no_later_line(execution: Execution, layout: str, rng: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = written(folder, execution, layout, rng)
        if len(places) < 2:
            return
        whole = answer(folder).result
        file, number = rng.choice(places)
        path = folder / "checkpoints" / f"{file}.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        lines[number] = "#" + lines[number][1:]
        path.write_text("".join(lines))
        try:
            found = answer(folder)
        except CorruptInput:  # nothing is left to read
            return
    [bad] = [f for f in found.findings if f.id == "bad-record"]
    if bad.severity == "warning":
        assert found.result.line == whole.line
        assert found.result.action == whole.action

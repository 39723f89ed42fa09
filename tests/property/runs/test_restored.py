"""What a restart from any line did to messages, against the definitions: each message, one by one."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.model.audits import Restored, RestoredAudit
from cklog.model.names import parse_channel
from cklog.model.question import Question
from cklog.run import Options, open_run
from cklog.simulate.dataflow.queries import NEXMARK
from cklog.simulate.dataflow.run import write as simulate
from tests.builders.dataflow_runs import setting
from tests.builders.executions import manifest, write
from tests.examples import examples
from tests.oracles.lines import (
    Execution,
    checkpoint_records,
    executions,
    in_flight,
    latest_line,
    message_records,
    orphans,
)


def audited(folder: Path, line: dict[str, int]) -> tuple[RestoredAudit, int]:
    with open_run(str(folder), Options()) as run:
        answer = run.audit(Restored(line), Question())
    return answer.result, answer.exit_code


@settings(max_examples=examples(150), deadline=None)
@given(executions(fifo=True), st.randoms(use_true_random=False), st.booleans())
def test_what_a_restart_did_to_messages_is_what_the_definitions_say(
    execution: Execution, rng: random.Random, logged: bool
) -> None:
    line = {s: rng.randint(0, execution.checkpoints(s)) for s in execution.subtasks}
    records = checkpoint_records(execution, [])
    logs = [row for row in message_records(execution) if rng.random() < 0.8] if logged else []
    if not records or (logged and not logs):
        return
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        write(Path(name), {"checkpoints": records, **({"channels": logs} if logged else {})}, rng)
        found, code = audited(Path(name), line)
    doubled = {(s.channel, n) for s in found.spans if s.fate == "doubled" for n in range(s.start, s.end)}
    assert doubled == orphans(execution, line)
    checks = {check.check: check.holds for check in found.checks}
    assert checks["consistent"] == (not doubled)
    best = latest_line(execution, execution.subtasks)
    ages = {entry.subject: entry.age for entry in found.line}
    for subtask, number in line.items():
        expected = "right" if number == best[subtask] else "newer" if number > best[subtask] else "older"
        assert ages[subtask] == expected
    assert (code == 0) == (not doubled and "older" not in ages.values() and checks.get("replayable") is True)
    if doubled:
        return
    missing = in_flight(execution, line)
    if not logged:
        assert sum(s.messages for s in found.spans) == len(missing)
        assert {s.fate for s in found.spans} <= {"may-be-lost"}
        return
    gone = missing - {(row["channel"], row["seq"]) for row in logs}
    lost = {(s.channel, n) for s in found.spans if s.fate == "lost" for n in range(s.start, s.end)}
    assert lost == gone
    assert sum(s.messages for s in found.spans if s.fate == "lost") == len(gone)


def by_coordinator(records: list[dict[str, Any]], inside_workers: bool) -> dict[str, int]:
    """The line by rollback, one checkpoint at a time; as CheckMate's coordinator finds it unless `inside_workers`.

    The published coordinator adds edges between workers only: of subtasks of one worker it takes whatever is newest.
    """
    stored: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda r: r["checkpoint"]):
        stored.setdefault(f"{record['operator']}/{record['subtask']}", []).append(record)
    tops = {name: len(mine) for name, mine in stored.items()}
    moved = True
    while moved:
        moved = False
        for name, top in list(tops.items()):
            for channel, taken in (stored[name][top - 1].get("received", {}) if top else {}).items():
                ends = parse_channel(channel)
                assert ends is not None
                if ends.sender.subtask == ends.receiver.subtask and not inside_workers:
                    continue
                below = tops[str(ends.sender)]
                if taken > (stored[str(ends.sender)][below - 1].get("sent", {}).get(channel, 0) if below else 0):
                    tops[name] -= 1
                    moved = True
                    break
    return tops


def test_what_checkmates_coordinator_restores_is_told_to_be_inconsistent(tmp_path: Path) -> None:
    """The worked example: its lines keep orphan messages inside workers, which only the exact count sees."""
    wrong = 0
    for seed in range(1, 5):
        folder = tmp_path / str(seed)
        simulate(folder, setting(NEXMARK["q8"], "unc", workers=3, rate=60.0, seed=seed))
        files = (folder / "checkpoints").glob("*.jsonl")
        records = [json.loads(line) for path in files for line in path.read_text().splitlines()]
        restored, right = (by_coordinator(records, inside_workers=inside) for inside in (False, True))
        found, code = audited(folder, restored)
        assert {entry.subject: entry.right for entry in found.line} == right
        doubled = [span for span in found.spans if span.fate == "doubled"]
        assert (code != 0) == bool(doubled) == (restored != right)
        for span in doubled:
            ends = parse_channel(span.channel)
            assert ends is not None
            assert ends.sender.subtask == ends.receiver.subtask
        wrong += bool(doubled)
        assert audited(folder, right)[1] == 0
    assert wrong

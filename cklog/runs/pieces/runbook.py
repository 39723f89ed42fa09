"""Steps of a runbook for a store by key: the pieces of each subtask are listed, and read in their order."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.runbook.frame import looking, repairing, starting
from cklog.runbook.model import EVERY, Step
from cklog.runbook.shell import Again, commands, job


def piece_steps(line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
    """Return what comes after the copy: what one subtask reads; behind the last of them the job is started."""
    at = line.runs.index(run)
    entry = line.line[at]
    here = [_pieces(run, entry.checkpoint, at, again)] if entry.checkpoint is not None else []
    restored = [repairing(run, again)] if run.action == "repair-first" else [*here, _restore(run, entry.checkpoint)]
    if run is not line.runs[-1]:
        return restored
    return [*restored, *(replace(step, run=EVERY) for step in (starting(), _look(len(line.runs))))]


def _pieces(run: RunAction, checkpoint: int, at: int, again: Again) -> Step:
    file = f'"$SAVE/pieces-{at}.json"'
    chosen = f"--operator={shlex.quote(run.run)} --checkpoint={checkpoint}"
    return Step(
        title="List the pieces to read, in order",
        why="a checkpoint is a base and the deltas on it, of every store by itself",
        worked="there is a list, and each store in it can be restored",
        command=commands(
            f'cklog chain "$RUN"{again.reading} {chosen} --fail-on=never --quiet --format=json --output={file}'
        ),
        check=f"test -s {file}",
        undo="remove it",
        undo_command=f"rm -- {file}",
        stop_if="a store of it has no whole chain",
    )


def _restore(run: RunAction, checkpoint: int | None) -> Step:
    older = f", older than {run.newest}, the newest stored" if run.action == "restart-older" else ""
    return Step(
        title=f"Restore {'the initial state' if checkpoint is None else run.chosen}{older}",
        why="the base is read first, then each delta on what was read before it",
        worked="it has its state",
        command=commands(job("restore", run.run, "initial" if checkpoint is None else checkpoint, "")),
        undo="restore nothing: reading changes no piece",
        stop_if="a piece cannot be read: ask again, with what it says",
        dangerous=True,
    )


def _look(runs: int) -> Step:
    together = (
        "nothing here tells which versions of different subtasks go together" if runs > 1 else "it is one subtask"
    )
    return looking(
        "Look at what was restored",
        f"{together}; what came in after the checkpoints is in no file here",
        "the system takes the versions for ones of one moment, and its input goes on from there",
    )

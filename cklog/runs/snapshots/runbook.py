"""Steps of a runbook for Flink: the offsets are looked at, and one job is restored from one checkpoint."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.runbook.frame import checking_sources, looking, repairing
from cklog.runbook.model import Step
from cklog.runbook.shell import Again, commands, job

_CLAIM = "-claimMode CLAIM"


def snapshot_steps(line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
    """Return what comes after the copy."""
    if run.action == "repair-first":
        return [repairing(run, again)]
    mine = [source for source in line.sources if source.job in ("", run.run)]
    sources = [checking_sources(again, mine)] if mine else []
    return [*sources, _restore(line, run), _look(run)]


def _restore(line: RecoveryLine, run: RunAction) -> Step:
    if run.command is None:
        return Step(
            title="Start the job without a checkpoint",
            why="no checkpoint can be restored: all state is lost, unless another copy of the files is found",
            worked="the job runs",
            command='flink run "$@"',
            check=job("running"),
            undo="stop the new job",
            undo_command=job("stop"),
            stop_if="there may be another copy of what the findings name",
            dangerous=True,
        )
    words = shlex.split(run.command)
    relative = "://" not in words[3] and not words[3].startswith(("/", "file:"))
    command = run.command.replace(shlex.quote(words[3]), '"$CHECKPOINT"', 1) if relative else run.command
    claimed = _CLAIM in run.command
    before = _before(line, run)
    return Step(
        title=f"Restore {run.chosen}",
        why="; ".join(filter(None, [run.note, "the job's own options, jar and arguments follow"])),
        worked="the job runs; a restore whose files are gone is accepted, and fails when the tasks start",
        command=commands(f'{command} "$@"'),
        check=job("running"),
        undo=(
            f"stop the new job; {'put the copy back, for the new job owns the files; ' if claimed else ''}"
            f"then restore {before or 'nothing: there is no older checkpoint'}"
        ),
        undo_command=commands(
            job("stop"), *(['mv -- "$RUN" "$SAVE/after"', 'cp -RPp -- "$SAVE/run" "$RUN"'] if claimed else [])
        ),
        stop_if="tasks fail and start again: FileNotFoundException, or a serializer that does not fit",
        dangerous=True,
    )


def _before(line: RecoveryLine, run: RunAction) -> str:
    """The newest checkpoint of the job before the one that is chosen."""
    folder = "" if run.path == "." else f"{run.path}/"
    names = [
        str(row["snapshot"])
        for row in line.details.get("snapshots", [])
        if row["verdict"] == "restorable" and str(row["snapshot"]).startswith(folder)
    ]
    chosen = f"{folder}{run.chosen}"
    older = names[: names.index(chosen)] if chosen in names else []
    return older[-1] if older else ""


def _look(run: RunAction) -> Step:
    return looking(
        "Wait for the first checkpoint of the new job",
        "only then can it come back by itself; one that was restored without CLAIM writes all of its state anew",
        "cklog recovery-line of its new folder has a checkpoint after the one that was restored",
    )

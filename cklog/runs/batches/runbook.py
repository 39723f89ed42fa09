"""Steps of a runbook for Spark: what is in the way is removed from a copy, which then takes the checkpoint's place."""

from __future__ import annotations

from collections.abc import Sequence

from cklog.model.actions import Action, RunAction
from cklog.model.lines import RecoveryLine
from cklog.runbook.frame import asking_again, looking, repairing
from cklog.runbook.model import Step
from cklog.runbook.shell import Again, commands, job


def batch_steps(line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
    """Return what comes after the copy."""
    if run.command is None and (run.action == "repair-first" or line.details.get("restart_fails")):
        return [repairing(run, again)]
    wanted: Action = "start-over" if run.chosen is None else "restart"
    removed = [_remove(run.command, again, wanted), _exchange()] if run.command else []
    return [*removed, _start(bool(removed)), _look(line, run)]


def _remove(command: str, again: Again, wanted: Action) -> Step:
    """Return the step after which the action is `wanted`."""
    ask, check = asking_again(again, [wanted], where="$SAVE/new")
    return Step(
        title="Remove from a second copy what is in the way",
        why="the batch after the line is planned with what a restart cannot read; the first copy stays as it is",
        worked=f"of the second copy the action is {wanted}",
        command=commands('cp -RPp -- "$SAVE/run" "$SAVE/new"', f'(cd -- "$SAVE/new" && {command})', ask),
        check=check,
        undo="remove the second copy",
        undo_command='rm -r -- "$SAVE/new"',
        stop_if="a file to remove is not there, or the copy still cannot be restarted from",
    )


def _exchange() -> Step:
    return Step(
        title="Put the second copy in the place of the folder",
        why="the query and its sink know the folder by its name",
        worked="the folder is the second copy; the old one is $SAVE/before",
        command='mv -- "$RUN" "$SAVE/before"\nmv -- "$SAVE/new" "$RUN"',
        check='test -d "$RUN"\ntest -d "$SAVE/before"',
        undo="put the old one back",
        undo_command='mv -- "$RUN" "$SAVE/new"\nmv -- "$SAVE/before" "$RUN"',
        stop_if="either of them is missing",
        dangerous=True,
    )


def _start(exchanged: bool) -> Step:
    back = ['mv -- "$RUN" "$SAVE/after"', f'cp -RPp -- "$SAVE/{"before" if exchanged else "run"}" "$RUN"']
    return Step(
        title="Start the query's own program",
        why="with the same checkpointLocation it goes on by itself",
        worked="the query runs",
        command='spark-submit "$@"',
        check=job("running"),
        undo="stop it, and put the folder back as it was",
        undo_command=commands(job("stop"), *back),
        stop_if="the query ends with an error: it may be started again, but not from files that it cannot read",
        dangerous=True,
    )


def _look(line: RecoveryLine, run: RunAction) -> Step:
    planned = line.details.get("planned")
    batch = f"batch {planned}" if planned is not None else "the next batch"
    undone = line.rolled_back
    if undone or run.action == "start-over":
        since = f"batch {min(one.checkpoint for one in undone)}" if undone else "the beginning"
        told = f"results since {since} may be in the sink twice"
    else:
        told = "it may be in the sink twice" if run.doubled is None else "it is in the sink once"
    return looking("Look at the first batches", f"{batch} runs first; {told}", "commits/ has a new batch")

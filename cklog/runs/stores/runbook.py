"""Steps of a runbook for Kafka Streams: task folders that would go wrong are deleted, the rest restores itself."""

from __future__ import annotations

from collections.abc import Sequence

from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.model.wording import many
from cklog.runbook.frame import asking_again, looking, repairing, starting
from cklog.runbook.model import Step
from cklog.runbook.shell import Again, below_run, commands


def store_steps(line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
    """Return what comes after the copy."""
    if run.action == "repair-first" and run.command is None:
        return [repairing(run, again)]
    deleted = [_delete(run.command, again)] if run.command else []
    return [*deleted, starting("Start the instance again", _why(run)), _look(run)]


def _delete(command: str, again: Again) -> Step:
    ask, check = asking_again(again, ["restart", "start-over"])
    return Step(
        title="Delete the folders of tasks that would go wrong",
        why="their stores hold what their changelogs do not have; without a folder the changelog alone counts",
        worked="no task is left that would go wrong",
        command=commands(below_run(command), ask),
        check=check,
        undo="put the copy back",
        undo_command='mv -- "$RUN" "$SAVE/after"\ncp -RPp -- "$SAVE/run" "$RUN"',
        stop_if="a folder is not there, or findings are left",
        dangerous=True,
    )


def _why(run: RunAction) -> str:
    more = " at least" if run.reads_more else ""
    return f"it restores its stores by itself: {many(run.read_again, 'record', grouped=True)}{more} are applied again"


def _look(run: RunAction) -> Step:
    return looking(
        "Watch the restoration",
        "tasks work only after their stores are restored, and report to their state listener",
        "the instance's state is RUNNING, and every task's folder has a .checkpoint with the ends of its changelogs",
    )

"""Steps of a runbook for Kafka Streams: task folders that would go wrong are deleted, the rest restores itself."""

from __future__ import annotations

from collections.abc import Sequence

from cklog.inputs.stores import StoreRestore
from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.model.wording import first_few, many
from cklog.runbook.frame import asking_again, looking, repairing, starting
from cklog.runbook.model import Step
from cklog.runbook.shell import Again, below_run, commands


def store_steps(line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
    """Return what comes after the copy."""
    if run.action == "repair-first" and run.command is None:
        return [repairing(run, again)]
    whole = _from_beginning(line, run)
    lost = [_giving_up(line, run, whole, "--kafka" in again.whole)] if whole else []
    deleted = [_delete(run.command, again)] if run.command else []
    return [*lost, *deleted, starting("Start the instance again", _why(run)), _look(run)]


def _from_beginning(line: RecoveryLine, run: RunAction) -> list[StoreRestore]:
    """Return the stores that are restored from the beginning of changelogs that begin late, or were not looked at."""
    tasks = {f"{entry.operator}/{entry.subtask}" for entry in line.line if entry.job == run.run}
    stores = [StoreRestore(**row) for row in line.details["stores"]]
    return [one for one in stores if one.task in tasks and one.start == "beginning" and one.restore_from != 0]


def _giving_up(line: RecoveryLine, run: RunAction, whole: Sequence[StoreRestore], logged: bool) -> Step:
    """Return the step before stores are restored as a whole from changelogs that may lack some of their records."""
    names = first_few([f"{one.store or one.changelog} of {one.task} from {_from(one, logged)}" for one in whole], 3)
    topics = [f"{s.source} from offset {s.offset}" for s in line.sources if s.job == run.run]
    reads = f"reads {first_few(topics, 3)} on" if topics else "reads its topics on from its group's committed offsets"
    return Step(
        title="Decide about state that the changelogs may not have",
        why=f"what these stores have on disk is replaced. They are restored again: {names}. The application then "
        f"{reads}. What the changelogs lack is in the copy alone",
        worked="there is another copy: then ask again; or what they lack is given up: LOST=yes",
        check='test "${LOST-}" = yes',
        stop_if="nobody has decided that this state is given up",
    )


def _from(restore: StoreRestore, logged: bool) -> str:
    if restore.restore_from is None:
        return f"{restore.changelog}, which was not {'found' if logged else 'looked at (--kafka FOLDER)'}"
    late = ", where it begins late" if restore.restore_from else ""
    return f"offset {restore.restore_from} of {restore.changelog}{late}"


def _delete(command: str, again: Again) -> Step:
    ask, check = asking_again(again, ["restart", "restart-older", "start-over"])
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

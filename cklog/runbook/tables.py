"""Steps for tables that a job writes to: those that go back do so before the restart, and are looked at after it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.runbook.frame import Steps, asking_again, looking, repairing
from cklog.runbook.model import Step
from cklog.runbook.shell import Again, commands
from cklog.sink_tables.beside import SinkLine, TableRollback


def steps_with_tables(line: RecoveryLine, run: RunAction, again: Again, steps: Steps) -> Sequence[Step]:
    """Return the steps of a kind of run, with those for its tables before and after them."""
    told: SinkLine | None = line.details.get("sink_line")
    if told is None or told.run != run.run:
        return steps(line, run, again)
    if told.agrees:
        return [*steps(line, run, again), _looking_at_tables()]
    if told.fits is not None and told.at is not None and run.action == "restart-older":
        return [_asking_for(told.at, told.fits, again)]
    if not told.rollbacks:
        return [repairing(replace(run, note=told.instead or run.note), again)]
    by_state = replace(run, action=told.action, command=told.command, note=told.note)
    backs = [_taking_back(one, again) for one in told.rollbacks]
    return [*backs, *steps(line, by_state, again), _looking_at_tables()]


def _asking_for(at: str, name: str, again: Again) -> Step:
    asked = f'cklog runbook "$RUN"{again.whole} --at={shlex.quote(at)} --format=md'
    return Step(
        title=f"Ask for the steps to {name}",
        why="the tables contradict the newest line, and agree with this one",
        worked="they are there: take those, and none of here",
        command=commands(f'{asked} --output="$SAVE/steps.md"'),
        check='test -s "$SAVE/steps.md"',
        undo="remove them",
        undo_command='rm -- "$SAVE/steps.md"',
        stop_if="there are none: the line cannot be restored by now",
    )


def _taking_back(one: TableRollback, again: Again) -> Step:
    ask, check = asking_again(again, ["restart", "restart-older"])
    said = "; ".join(f"in {where}: {text}" for where, text in one.to.statements.items())
    others = f"; it undoes commits of others: {', '.join(one.to.undoes_others[:5])}" if one.to.undoes_others else ""
    return Step(
        title=f"Take {one.sink} to {one.to.commit}, then ask once more",
        why=f"{said or 'by the tool of its format'}. As it is, the table and the line do not agree{others}",
        worked="the tables agree with the line: asked again, the action is restart",
        command=commands(ask),
        check=check,
        undo=f"take it to {one.head or 'nothing'} again, before anything writes to it; its snapshots must not expire",
        stop_if="the action is another one: start nothing",
    )


def _looking_at_tables() -> Step:
    return looking(
        "Look at the tables after the first commit",
        "only then it is certain that the sinks took what they were offered",
        "asked once more with the same --sink, the tables agree, and each has a commit after the line",
    )

"""Steps of a runbook for Kafka Connect: stop a connector, write its offsets down, set them, look, let it go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.runbook.frame import looking, repairing
from cklog.runbook.model import Step
from cklog.runbook.shell import Again, commands

_CURL = "curl --fail --silent --show-error"
_JSON = "--header 'Content-Type: application/json'"


def connector_steps(line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
    """Return what comes after the copy: Connect's offset API (Kafka 3.6 and later), and never a record by hand."""
    rows = [row for row in line.details.get("connectors", ()) if row["connector"] == run.run]
    if not rows:
        return []
    number = [one.run for one in line.runs].index(run.run)
    name = str(rows[0]["stored"]["connector"])
    changed = [row for row in rows if row["planned"]["offset"] != row["stored"]["offset"]]
    if run.action == "restart-older" or (run.action == "repair-first" and not changed):
        return [repairing(run, again)]
    setting = list(_setting(name, run.run, number, again)) if changed else []
    return [*setting, _resume(name), _look(run)]


def _setting(name: str, run: str, number: int, again: Again) -> Iterator[Step]:
    """Yield the steps that store the plan in place of what is stored."""
    before, plan, now = (f'"$SAVE/{what}-{number}.json"' for what in ("before", "plan", "now"))
    yield Step(
        title=f"Stop the connector {name}",
        why="offsets of a connector can be changed only while it is STOPPED; PAUSED is not enough",
        worked="its state is STOPPED",
        command=commands(f"{_CURL} --request PUT {_url(name, 'stop')}"),
        check=commands(_state_is(name, "STOPPED")),
        undo="let it go on",
        undo_command=commands(f"{_CURL} --request PUT {_url(name, 'resume')}"),
        stop_if="it is not STOPPED: Connect before 3.5 knows no such state",
        dangerous=True,
    )
    yield Step(
        title=f"Write down the offsets of {name}, and the plan",
        why="with the first file the change is undone",
        worked="both files are there",
        command=commands(
            f"{_CURL} {_url(name, 'offsets')} > {before}",
            f'cklog replay "$RUN"{again.whole} --operator={shlex.quote(run)} --fail-on=never --quiet '
            f"--format=connect-json --output={plan}",
        ),
        check=f"test -s {before}\ntest -s {plan}",
        undo="remove both files",
        undo_command=f"rm -- {before} {plan}",
        stop_if="either of them is empty",
    )
    yield Step(
        title=f"Set the offsets of {name}",
        why="where the source no longer has what follows, the offset is deleted: the connector takes a new snapshot",
        worked="the answer says that the offsets were altered, and they are as planned",
        command=commands(
            f"{_CURL} --request PATCH {_JSON} --data-binary @{plan} {_url(name, 'offsets')}",
            f"{_CURL} {_url(name, 'offsets')} > {now}",
            f"cat -- {plan} {now}",
        ),
        check=f"test -s {now}",
        undo="set them to what they were",
        undo_command=commands(f"{_CURL} --request PATCH {_JSON} --data-binary @{before} {_url(name, 'offsets')}"),
        stop_if="the offsets that it has now are not the planned ones; a deleted one is not listed",
        dangerous=True,
    )


def _resume(name: str) -> Step:
    return Step(
        title=f"Let the connector {name} go on",
        why="the workers run again, and it resumes at its offsets",
        worked="its state is RUNNING",
        command=commands(f"{_CURL} --request PUT {_url(name, 'resume')}"),
        check=commands(_state_is(name, "RUNNING")),
        undo="stop it",
        undo_command=commands(f"{_CURL} --request PUT {_url(name, 'stop')}"),
        stop_if="it is not RUNNING, or its tasks FAILED: its status names the reason",
        dangerous=True,
    )


def _look(run: RunAction) -> Step:
    twice = "no duplicates are known" if run.doubled == 0 else "the last records of its topics are duplicated"
    return looking(
        "Look at the first records",
        f"a connector produces every record after its offset again: {twice}",
        "the first records begin where the line says, and the sinks have every key once",
    )


def _url(name: str, what: str) -> str:
    return f'"$CONNECT/connectors/{quote(name, safe="")}/{what}"'


def _state_is(name: str, state: str) -> str:
    return f'{_CURL} {_url(name, "status")} | grep -q -e \'"connector":{{"state":"{state}"\''

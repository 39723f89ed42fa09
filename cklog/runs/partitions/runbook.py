"""Steps of a runbook for a Kafka broker: salvage before the start, then reset groups that point outside of the logs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.runbook.frame import repairing, starting
from cklog.runbook.model import Step
from cklog.runbook.shell import Again, commands

RESET = frozenset({"committed-beyond-log-end", "retention-hole", "topic-recreated"})
"""Findings that are mended by resetting the group."""


def partition_steps(line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
    """Return what comes after the copy."""
    others = [one for one in run.blocked_by if one.partition(" ")[0] not in RESET]
    if run.action == "repair-first" and others:
        return [repairing(run, again)]
    groups = sorted(
        {g["group"] for g in line.details["groups"] if g["resume"] is not None and g["committed"] != g["resume"]}
    )
    plans = [_plans(groups, again)] if groups else []
    why = "it cuts what the findings name, and checks the rest; groups stay down" if others else ""
    start = starting("Start the broker as usual", why, "stop it, and put the copy back: it has all that was cut")
    return [*plans, start, *(step for i, group in enumerate(groups) for step in _reset(i, group))]


def _plans(groups: Sequence[str], again: Again) -> Step:
    made = [
        f'cklog replay "$RUN"{again.whole} --operator={shlex.quote(group)}{undo} --fail-on=never --quiet '
        f'--format=kafka-csv --output="$SAVE/{name}-{i}.csv"'
        for i, group in enumerate(groups)
        for name, undo in (("plan", ""), ("before", " --rollback"))
    ]
    return Step(
        title="Write down where groups go on, and what they have committed",
        why=f"{len(groups)} of the groups have committed what the log will not have: auto.offset.reset would decide",
        worked="each group has a plan, and a way back",
        command=commands(*made),
        check="\n".join(f'test -s "$SAVE/{name}-{i}.csv"' for i in range(len(groups)) for name in ("plan", "before")),
        undo="remove them",
        stop_if="a plan is empty",
    )


def _reset(number: int, group: str) -> Iterator[Step]:
    tool = (
        f'kafka-consumer-groups.sh --bootstrap-server "$BOOTSTRAP_SERVERS" --group {shlex.quote(group)} --reset-offsets'
    )
    plan, out = f'"$SAVE/plan-{number}.csv"', f'"$SAVE/reset-{number}'
    no_error = "the tool ends with exit 0 even when it fails: look for Error and WARN"
    yield Step(
        title=f"Reset group {group}: dry run",
        why=no_error,
        worked="it prints the plan, and no error",
        command=commands(f'{tool} --from-file {plan} --dry-run > {out}.dry" 2>&1', f'cat -- {out}.dry"'),
        check=_without_errors(f'{out}.dry"'),
        stop_if="it prints Error or WARN: a member is active, or an offset is outside of the log and would be moved",
    )
    yield Step(
        title=f"Reset group {group}",
        why=no_error,
        worked="what is committed now is the plan",
        command=commands(
            f'{tool} --from-file {plan} --execute > {out}.done" 2>&1',
            f'{tool} --to-current --all-topics --dry-run --export > {out}.now"',
        ),
        check=f"{_without_errors(f'{out}.done' + chr(34))}\nwhile IFS= read -r row; do "
        f'grep -q -x -F -e "$row" -- {out}.now"; done < {plan}',
        undo="reset it to what was committed before",
        undo_command=commands(f'{tool} --from-file "$SAVE/before-{number}.csv" --execute'),
        stop_if="it prints Error or WARN, or something else is committed",
        dangerous=True,
    )


def _without_errors(file: str) -> str:
    return f'test "$(grep -c -e Error -e WARN -- {file})" = 0'

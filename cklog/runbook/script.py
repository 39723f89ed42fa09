"""A runbook as a script for `sh`: it stops at the first doubt, and says in which step and why."""

from __future__ import annotations

import shlex

from cklog.errors import UsageError
from cklog.model.unchecked import unchecked_sentence
from cklog.model.verdict import Answer
from cklog.render.text import visible
from cklog.runbook.model import ARGUMENTS, OPTIONAL, Runbook, Step

_HEAD = """\
# Read it before you run it. It stops at the first doubt, with the step and the reason on stderr.
set -eu
STEP=0 DOUBT='a variable is not set, or SAVE is there already, or lies in the folder'
ended() { [ "$1" -eq 0 ] || printf 'Stopped in step %s (exit %s): %s.\\n' "$STEP" "$1" "$DOUBT" >&2; }
trap 'ended $?' EXIT
step() { STEP=$1 DOUBT=$3; printf '\\n%s. %s\\n' "$1" "$2"; }
need() { [ -n "$2" ] || { printf '%s is not set: %s\\n' "$1" "$3" >&2; exit 2; }; }
confirmed() { [ "${CONFIRM-}" = yes ] || { DOUBT='it wants CONFIRM=yes'; exit 1; }; }
by_hand() { printf 'By hand: %s.\\n' "$1"; }
"""


def as_script(answer: Answer[Runbook]) -> str:
    """Write a script for `sh`; where the action is undetermined, one that does nothing but say so.

    Raises
    ------
    UsageError : several runs lie here, and one script is for one of them
    """
    book = answer.result
    if len(book.runs) > 1:
        hint = "make one of them PATH, or choose it with --run; --format md has the steps of all"
        raise UsageError(f"--format script: {len(book.runs)} runs lie here", hint)
    unchecked = unchecked_sentence(book.unchecked)
    lines = ["#!/bin/sh", *(f"# {visible(line)}" for line in (book.headline, unchecked) if line), _HEAD.rstrip()]
    if book.action == "undetermined":
        why = book.steps[-1].why
        return "\n".join([*lines, f"DOUBT={_text(f'the action is undetermined: {why}')}", "exit 5", ""])
    for one in book.variables:
        if one.name == ARGUMENTS:
            lines.append(f'need "arguments" "$*" {_text(one.means)}')
        elif one.name not in OPTIONAL:
            lines.append(f'need {one.name} "${{{one.name}-}}" {_text(one.means)}')
    lines.append(book.setup)
    for step in book.steps:
        lines += _step_lines(step, last=step is book.steps[-1])
    return "\n".join(lines) + "\n"


def _step_lines(step: Step, last: bool) -> list[str]:
    found = ["", f"# {visible(step.why)}", f"step {step.number} {_text(step.title)} {_text(step.stop_if)}"]
    found += ["confirmed"] if step.dangerous else []
    found += [step.command] if step.command else [f"by_hand {_text(f'{step.title}: {step.why}')}"]
    found += [f"# it worked, if {visible(step.worked)}"]
    found += [step.check] if step.check else []
    if not (step.command or step.check or last):
        found.append("exit 3")
    found += [f"# undo: {visible(line)}" for line in (step.undo, *(step.undo_command or "").splitlines()) if line]
    return found


def _text(text: str) -> str:
    return shlex.quote(visible(text))

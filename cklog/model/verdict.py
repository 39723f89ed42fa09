"""From what an analysis found to the verdict and the exit code (docs/json.md), in one place and once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, cast

from cklog.errors import CklogError, CorruptInput, UnknownInput, Unreadable
from cklog.model.about import findings_by_run
from cklog.model.actions import Acted, RunAction, action_with, worst
from cklog.model.findings import Effect, Finding, InputUsed
from cklog.model.lines import RecoveryLine

DAMAGE = frozenset(
    {
        "bad-record",
        "torn-tail",
        "corrupt-file",
        "empty-file",
        "checksum-mismatch",
        "missing-file",
        "missing-events",
        "bad-manifest",
        "torn-batch-file",
        "empty-batch-file",
        "missing-batch-file",
        "corrupt-batch",
        "corrupt-metadata",
        "damaged-value",
        "missing-part",
        "bad-index-entry",
        "over-budget",
        "cut-offsets-file",
        "corrupt-offsets-file",
    }
)
"""Findings that speak of damaged bytes: what `--strict` refuses, and what may hide records."""

UNREAD, UNKNOWN_VERSION = "unreadable-file", "unknown-version"
"""The findings that a file could not be read, and that cklog does not know its format or version."""

NOT_JUDGED = frozenset({UNREAD, UNKNOWN_VERSION})
"""Findings about files that may well be sound: where an answer depends on one, it is only a bound."""

FLAWS = DAMAGE | {UNKNOWN_VERSION}
"""Findings about files, or parts of them, that were looked at and could not be used."""

HIDING = DAMAGE | NOT_JUDGED
"""Findings after which records may be there that nobody has read."""

LOSSES = FLAWS | {"conflicting-checkpoint", "foreign-channel"}
"""Findings after which checkpoint records may be missing: a graph of what is left has fewer and coarser edges."""

_ORDER = {"error": 0, "warning": 1, "info": 2}


Verdict = Literal["ok", "findings", "unrecoverable", "indeterminate"]

VERDICTS: dict[int, Verdict] = {3: "findings", 4: "unrecoverable", 5: "indeterminate"}
"""The verdict that goes with each exit code of an answer but 0; of several answers the greatest code counts."""

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Answer(Generic[R_co]):
    """What a command answers, with a result of type `R_co`: the parts of the envelope, before any rendering."""

    command: str
    verdict: Verdict
    exit_code: int
    inputs: tuple[InputUsed, ...]
    findings: tuple[Finding, ...]
    result: R_co


@dataclass(frozen=True, slots=True)
class Draft(Generic[R_co]):
    """What an analysis found, before anything is concluded from it; steps hand drafts on, `conclude` ends them.

    `command` names the answer's schema and view. `unrecoverable`: there is no recovery point but the initial state, or
    not the one asked for. `indeterminate`: evidence is missing, so that the result is a bound. `spoken` goes to stderr.
    `line` is the line whose action the result says, where it is about a restart from one.
    """

    command: str
    result: R_co
    findings: Sequence[Finding]
    inputs: Sequence[InputUsed]
    unrecoverable: bool = False
    indeterminate: bool = False
    spoken: tuple[str, ...] = ()
    line: RecoveryLine | None = None


def conclude(draft: Draft[R], strict: bool = False) -> Answer[R]:
    """Make an answer of a draft: findings in order and each once, the verdict, and the exit code that follows.

    Raises
    ------
    CorruptInput : under `strict`, if any byte of the input is damaged
    """
    result = draft.result
    if isinstance(result, RecoveryLine):
        result = cast("R", with_action(cast("Draft[RecoveryLine]", draft)))
    elif draft.line is not None:
        action = with_action(cast("Draft[RecoveryLine]", replace(cast("Any", draft), result=draft.line))).action
        result = cast("R", replace(cast("Any", result), action=action))
    found = sorted(set(draft.findings), key=lambda f: (_ORDER[f.severity], f.id, f.subject, f.message))
    if strict:
        refuse_damage(found)
    unread = is_bound(found)
    unknown = isinstance(result, Acted) and result.action == "undetermined" and not draft.unrecoverable
    verdict, code = _verdict(found, draft.unrecoverable, draft.indeterminate or unread or unknown)
    if not code and isinstance(result, Acted) and result.action in ("repair-first", "salvage-first"):
        verdict, code = VERDICTS[3], 3  # who goes by the exit code alone must not restart it as it is
    return Answer(
        command=draft.command,
        verdict=verdict,
        exit_code=code,
        inputs=tuple(draft.inputs),
        findings=tuple(found),
        result=result,
    )


def is_bound(findings: Iterable[Finding]) -> bool:
    """Return whether an answer with these findings is only a bound: it may rest on a file that was not judged."""
    return any(f.id == UNREAD or (f.id == UNKNOWN_VERSION and f.severity == "error") for f in findings)


def error_without_records(what: str, known: Sequence[Finding], copy: str) -> CklogError:
    """Return the error for an input of which nothing could be read: not understood, refused, or damaged.

    `what` is what cannot be read, `copy` what a person looks for where it is damaged.
    """
    ways: tuple[tuple[str, type[CklogError], str], ...] = (
        (UNKNOWN_VERSION, UnknownInput, "use a newer cklog"),
        (UNREAD, Unreadable, "ask again as a user who may read it, or on a whole copy"),
    )
    for id, kind, hint in ways:
        first = next((f for f in known if f.id == id), None)
        if first is not None:
            return kind(f"{what}: {first.message}", hint)
    first = next((f for f in known if f.severity == "error"), next(iter(known), None))
    return CorruptInput(f"{what}: {first.message}" if first else what, copy)


def refuse_damage(findings: Sequence[Finding]) -> None:
    """Raise `CorruptInput` for the first finding that speaks of damaged bytes: what `--strict` asks for."""
    damaged = next((f for f in findings if f.id in DAMAGE), None)
    if damaged is not None:
        raise CorruptInput(damaged.message, "--strict refuses any damage; without it the intact part is read")


def _verdict(findings: Sequence[Finding], unrecoverable: bool, indeterminate: bool) -> tuple[Verdict, int]:
    code = 5 if indeterminate else 4 if unrecoverable else 3 if any(f.severity == "error" for f in findings) else 0
    if code:
        return VERDICTS[code], code
    return ("findings" if any(f.severity == "warning" for f in findings) else "ok"), 0


UNDETERMINED = "Undetermined"
"""The first word of a sentence that does not say what to do."""

_MOST_BLOCKS = 50


def _without_command(run: RunAction, before: RunAction) -> RunAction:
    """Return a run whose action is undetermined without advice to go ahead: neither a command nor a note says so.

    `before` is the run as its kind made it: a note for an undetermined action and no checkpoint names missing evidence.
    """
    why = "supply what the findings name, and ask again; start nothing"
    kept = before.note if before.action == "undetermined" and before.chosen is None else None
    return replace(run, command=None, note=kept or why)


def _with_effects(run: RunAction, about: Sequence[Finding]) -> RunAction:
    """Return a run with the action that the findings about it ask for, and without a count that an error contradicts.

    The command of one that has to be repaired would restart it as it is, so that it stands in the note.
    """
    effects = [f.effect for f in about if f.blocks]
    action = action_with(run.action, effects, [f.effect for f in about if not f.blocks])
    lost, doubled = (_uncounted(run.lost, "data-lost", effects), _uncounted(run.doubled, "data-duplicated", effects))
    run = replace(run, lost=lost, doubled=doubled, blocked_by=_named([f for f in about if f.blocks]))
    if action == run.action or action != "repair-first":
        return replace(run, action=action)
    then = run.command or run.note or "restart"
    mind = f". Mind: {run.note}" if run.command and run.note else ""
    note = f"repair what the errors name, or accept what they cause; then {then}{mind}"
    return replace(run, action=action, command=None, note=note)


def _uncounted(count: int | None, effect: Effect, effects: Sequence[Effect]) -> int | None:
    """Return a count of what is lost or comes twice; None where it is 0, and an error says, or may say, otherwise."""
    return None if count == 0 and {effect, "unknown"} & {*effects} else count


def with_action(draft: Draft[RecoveryLine]) -> RecoveryLine:
    """Return a line that has an action, and whose runs name what stands in their way.

    Where evidence is missing, and no run says that it is about it, it may be about any of them. The action is that of
    the run that asks most; a line that already says `restart` has runs that begin anew by themselves beside others.
    """
    unsure = draft.indeterminate or any(f.id in NOT_JUDGED and f.severity == "error" for f in draft.findings)
    line = draft.result
    runs = line.runs
    if unsure and all(run.action != "undetermined" for run in runs):
        runs = tuple(replace(run, action="undetermined") for run in runs)
    mended = []
    for run, about in zip(runs, findings_by_run(runs, [f for f in draft.findings if f.effect != "none"]), strict=True):
        one = _with_effects(run, about)
        mended.append(_without_command(one, run) if one.action == "undetermined" else one)
    details, own = line.details, line.details.get("headline")  # of kinds of run that say themselves what comes
    if own and any(run.action == "undetermined" for run in mended):
        order: dict[str, Any] = {"restore": []} if "restore" in details else {}
        lead = "" if own.startswith((UNDETERMINED, "Indeterminate")) else f"{UNDETERMINED}: evidence is missing. "
        details = {**details, **order, "headline": f"{lead}By what was read: {own}" if lead else own}
    elif own and any(a.action != b.action == "repair-first" for b, a in zip(mended, runs, strict=True)):
        details = {**details, "headline": f"Not yet: errors are in the way. Then: {own}"}
    actions = [run.action for run in mended]
    left = [action for action in actions if action != "start-over"] if line.action == "restart" else []
    return replace(line, action=worst(left or actions), runs=tuple(mended), details=details)


def _named(errors: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{f.id} {f.subject}" for f in errors))[:_MOST_BLOCKS]

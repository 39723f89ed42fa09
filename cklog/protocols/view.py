"""Protocols in sentences, rows and a curve: metrics of several runs, the audit of an index, failures over time."""

from __future__ import annotations

from typing import Any

from cklog.lines.sentences import checkpoint_name, message_words, path_words
from cklog.lines.view import metric_rows
from cklog.model.verdict import LOSSES, Answer
from cklog.model.wording import agreeing, many, utc
from cklog.model.zigzag import AuditResult
from cklog.protocols.failures_over_time import FailureAt, FailuresOverTime
from cklog.protocols.metrics import RunComparison
from cklog.render.curve import figure
from cklog.render.view import Section, View

# --- compare


def compare_view(answer: Answer[RunComparison]) -> View:
    """Lay several runs side by side: a row per metric that some run has, in the order of the first run that has it."""
    runs = answer.result["runs"]
    columns = [dict(metric_rows({k: v for k, v in run.items() if k != "run"})) for run in runs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = tuple((name, *(column.get(name, "-") for column in columns)) for name in names)
    section = Section("Metrics", ("metric", *(run["run"] for run in runs)), rows)
    return View(f"{len(runs)} runs side by side.", (section,))


# --- audit-cic

_RULES = {
    "messages": "The index rises as it must: no message goes to an interval of a lower index, so no Z-cycle can exist.",
    "zigzag paths": "The index rises along every zigzag path, so no Z-cycle can exist; single messages do fall (HMNR).",
}

_LOST = (
    "Records are lost. What they may have held counts as received, so a path with an unknown message (m?) need not be "
    "real; and an index that does not rise may be among them"
)


def audit_view(answer: Answer[AuditResult]) -> View:
    """Show the verdict on an index, then every breach."""
    found = answer.result
    broken = (
        f"The index does not rise at {found.broken} of {many(found.indexed, 'checkpoint')}: the protocol was broken."
    )
    rows = tuple(
        (
            checkpoint_name(b.end),
            b.end_index,
            checkpoint_name(b.start),
            b.start_index,
            len(b.path),
            path_words(b.path),
        )
        for b in found.breaches
    )
    names = ("checkpoint", "index", "not above", "its index", "messages", "Z-path")
    rest = found.broken - len(rows)
    note = f"and {rest} more; --limit N lists N of them" if rest else ""
    notes = []
    if found.by_message is not None:
        notes.append(f"{many(found.falling, 'message', 'fall')} in index; the first: {message_words(found.by_message)}")
    if found.not_indexed:
        unstated = (
            f"{many(found.not_indexed, 'checkpoint', 'state')} no index and {agreeing(found.not_indexed, 'were')}"
        )
        notes.append(f"{unstated} taken to have that of the one before")
    notes += [_LOST] if any(finding.id in LOSSES for finding in answer.findings) else []
    section = Section("Indices that do not rise", names, rows, note)
    return View(_RULES.get(found.rule, broken), (section,) if rows else (), tuple(notes), data=section)


# --- failures-over-time

_SHOWN = 10
"""Moments in a table: of a longer history those that would have cost most."""


def failures_view(answer: Answer[FailuresOverTime]) -> View:
    """Show the worst moments in order of time, and a curve; as data, every moment of the answer."""
    found = answer.result
    names = ("time", "stored", "rolled_past", "subtasks_back", "farthest", "distance", "lost_s", "at_initial")
    costly = sorted(found.moments, key=lambda m: (-m.rolled_past, m.time))[:_SHOWN]
    rows = tuple(_moment_row(m) for m in sorted(costly, key=lambda m: m.time))
    rest = len(found.moments) - len(rows)
    note = f"and {many(rest, 'moment')} that would have cost no more; --json and --format csv have them" if rest else ""
    every = Section("Moments", names, tuple(_moment_row(m) for m in found.moments))
    shown = Section("Failures", tuple(name.replace("_", " ") for name in names), rows, note)
    return View(_failures_headline(found), (shown,), figures=_failures_curve(found), data=every)


def _moment_row(moment: FailureAt) -> tuple[Any, ...]:
    return (
        utc(moment.time),
        moment.stored,
        moment.rolled_past,
        moment.subtasks_back,
        moment.farthest or "-",
        moment.distance,
        "-" if moment.lost_ms is None else f"{moment.lost_ms / 1000:.3f}",
        moment.at_initial,
    )


def _none_of_moments(times: int) -> str:
    return f"none of {times} moments" if times > 1 else "no moment"


def _failures_headline(found: FailuresOverTime) -> str:
    worst = found.worst
    if worst is None or not worst.rolled_past:
        return f"At {_none_of_moments(found.times)} would a failure of everything have rolled past a stored checkpoint."
    text = (
        f"The worst of {many(found.times, 'moment')} is {utc(worst.time)}: a failure of everything would have rolled "
        f"past {worst.rolled_past} of {many(worst.stored, 'stored checkpoint')}, {worst.farthest} furthest, "
        f"by {worst.distance}."
    )
    if found.total_dominoes:
        plural = "s" if found.total_dominoes > 1 else ""
        text += f" At {found.total_dominoes} moment{plural} nothing but initial states would have been left."
    return text


def _failures_curve(found: FailuresOverTime) -> tuple[str, ...]:
    """Draw checkpoints rolled past against the seconds since the first moment; nothing where no curve can be seen."""
    start = found.moments[0].time
    seconds, values = [], []
    for before, now in zip([found.moments[0], *found.moments], found.moments, strict=False):
        seconds += 2 * [(now.time - start) / 1000]  # a step: nothing changes in between
        values += [before.rolled_past, now.rolled_past]
    if max(seconds) <= 0 or max(values) <= 0:
        return ()
    return (figure("Checkpoints that a failure would have rolled past", seconds, values, None),)

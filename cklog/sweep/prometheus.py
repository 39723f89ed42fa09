"""A scan as a textfile for Prometheus' node exporter: names and labels that stay, times as times, no ages.

Ages are the server's to compute, as `time() - cklog_run_restorable_timestamp_seconds`: the same bytes in give the same
bytes out, whenever they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from cklog.model.verdict import Answer
from cklog.render.text import visible_lines
from cklog.sweep.model import ScanAnswer, ScannedRun

Labels = tuple[tuple[str, str], ...]


class _Metric(NamedTuple):
    """A gauge of each run: its name, what it tells, and its samples, as further labels and a value."""

    name: str
    help: str
    samples: Callable[[ScannedRun], Iterable[tuple[Labels, int | Decimal]]]


def prometheus_text(answer: Answer[ScanAnswer]) -> str:
    """Write a scan in Prometheus' text format, version 0.0.4."""
    found = answer.result
    lines = [*_head("cklog_runs", "Runs found below the roots, by what to do about them.")]
    lines += [_sample("cklog_runs", (("action", name),), count) for name, count in found.actions.items()]
    runs = _each_once(found.runs)
    for metric in _METRICS:
        lines += _head(metric.name, metric.help)
        for labels, row in runs:
            lines += [_sample(metric.name, (*labels, *more), value) for more, value in metric.samples(row)]
    return "".join(f"{line}\n" for line in lines)


def _each_once(rows: Sequence[ScannedRun]) -> list[tuple[Labels, ScannedRun]]:
    """Rows with their labels, in order; of rows with the same labels only the one with most findings."""
    found: dict[Labels, ScannedRun] = {}
    for row in sorted(rows, key=lambda row: (row.path, row.format, row.run, -row.errors, -row.warnings)):
        found.setdefault((("path", row.path), ("format", row.format), ("run", row.run)), row)
    return [*found.items()]


def _time(value: int | None) -> Iterator[tuple[Labels, Decimal]]:
    """A time in seconds; no sample where it is not known."""
    if value is not None:
        yield (), Decimal(value).scaleb(-3)


_METRICS = (
    _Metric(
        "cklog_run_action",
        "1 for what to do about a run: restart, restart-older, repair-first, salvage-first, start-over, undetermined.",
        lambda row: [((("action", row.action),), 1)],
    ),
    _Metric(
        "cklog_run_exit_code",
        "The exit code of cklog recovery-line for the folder of a run.",
        lambda row: [((), row.exit)],
    ),
    _Metric(
        "cklog_run_findings",
        "Findings about a run, by severity.",
        lambda row: [
            ((("severity", name),), count)
            for name, count in (("error", row.errors), ("warning", row.warnings), ("info", row.infos))
        ],
    ),
    _Metric(
        "cklog_run_stored_timestamp_seconds",
        "When the newest checkpoint of a run was stored, by its own logs.",
        lambda row: _time(row.newest_time),
    ),
    _Metric(
        "cklog_run_restorable_timestamp_seconds",
        "When the newest checkpoint that a run can restart from was stored, by its own logs.",
        lambda row: _time(row.chosen_time),
    ),
    _Metric(
        "cklog_run_last_timestamp_seconds",
        "The last moment that a run's own logs tell of.",
        lambda row: _time(row.last_time),
    ),
    _Metric("cklog_run_files", "Files in the folder of a run.", lambda row: [((), row.files)]),
    _Metric("cklog_run_size_bytes", "Bytes of the files in the folder of a run.", lambda row: [((), row.bytes)]),
)


def _head(name: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} gauge"]


def _sample(name: str, labels: Labels, value: int | Decimal) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {value}"


def _escaped(text: str) -> str:
    r"""Escape a label's value as the format asks, and what a terminal would obey as everywhere.

    >>> _escaped('a"b\\c' + chr(10)) == 'a\\"b\\\\c\\n'
    True
    """
    return visible_lines(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

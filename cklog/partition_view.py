"""Where a broker's logs end and its groups go on, as sentences and rows."""

from __future__ import annotations

from typing import Any

from cklog.model import Answer
from cklog.view import Section, View, section, utc


def partition_view(answer: Answer) -> View:
    """Of `recovery-line` and `replay` on a broker's folder; ranges first where there are any."""
    line = answer.result
    details = line.details
    sections = [_logs(details["partitions"]), _groups(details["groups"])]
    if details.get("ranges"):
        sections.insert(0, _ranges(details["ranges"]))
    sections.append(_cuts(details["cuts"]))
    return View(details["headline"], tuple(s for s in sections if s.rows), tuple(line.notes))


def _logs(rows: list[dict[str, Any]]) -> Section:
    names = ("log_start", "last_stable", "restart_end", "log_end", "high_watermark")
    cells = [(row["partition"], *(_cell(row[name]) for name in names)) for row in rows]
    titles = ("partition", "start", "last stable", "end after restart", "end on disk", "high watermark")
    return section("Logs", titles, cells, "all ends are the next offset; readers of committed data stop at last stable")


def _groups(rows: list[dict[str, Any]]) -> Section:
    names = ("group", "partition", "committed", "resume", "restart_end", "lag", "pending")
    cells = [(*(_cell(row[name]) for name in names), utc(row["committed_time"])) for row in rows]
    titles = ("group", "partition", "committed", "resume at", "end after restart", "lag", "pending", "committed at")
    return section("Groups go on at", titles, cells, "lag counts offsets; cklog replay counts records")


def _ranges(rows: list[dict[str, Any]]) -> Section:
    names = ("group", "log", "from", "to", "data", "control", "aborted", "open", "bytes", "cut")
    cells = [tuple(_cell(row[name]) for name in names) for row in rows]
    titles = ("group", "partition", "from", "to", "data", "control", "aborted", "open", "bytes", "cut off")
    note = "records; control records and aborted ones never reach an application, open ones not yet"
    if not all(row["exact"] for row in rows):
        note += "; a batch at an edge could not be decoded and is counted as far as it reaches"
    return section("To replay, by group", titles, cells, note)


def _cuts(rows: list[dict[str, Any]]) -> Section:
    names = ("partition", "offset", "path", "at", "batches", "records", "why")
    cells = [tuple(row[name] for name in names) for row in rows]
    titles = ("partition", "cut at offset", "file", "byte", "batches lost", "records lost", "because")
    return section(
        "A restart cuts", titles, cells, "copy the folder first: what is lost can be salvaged from the copy only"
    )


def _cell(value: Any) -> Any:
    return "-" if value is None else value

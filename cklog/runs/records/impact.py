"""What a restart from a recovery line does to the results of sinks, channel by channel.

A sink is an operator that nobody reads from. One that restarts from a checkpoint takes again what it had taken since,
and puts it out again: of every channel into it, from the line's watermark to where it is known to have come, and at the
most to what had been sent. One that keeps running takes nothing again. What a channel has lost of its messages in
flight never reaches the sinks below it. An operator with an output queue finds in it what it had put out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cklog.history.events import current_state
from cklog.impact.sinks.guarantees import all_hold, guarantee_of
from cklog.impact.sinks.model import Again, GuaranteeEvidence, OutputInterval, SinkGuarantee, SinkImpact
from cklog.impact.sinks.sources import BoundLogs, input_piece, read_again
from cklog.lines.replay_ranges import sources_of
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine, ReplayRange
from cklog.model.names import Subtask, parse_channel
from cklog.model.question import Question
from cklog.model.verdict import LOSSES, NOT_JUDGED, Draft
from cklog.runs.records.evidence import Planned
from cklog.runs.records.plan import plan_line
from cklog.runs.records.reading import RecordReader

_DELIVERIES = ("transactional", "deduplicates")
"""What `delivery` of a sink may say in job.json: it takes nothing twice."""

_FEW = 3
"""Sinks that are told one by one of what all of them miss."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far the crashed run is known to have come: received by channel, read by source and reader."""

    received: Mapping[str, int]
    read: Mapping[tuple[str, str], int]


def checkpoint_impact(reader: RecordReader, question: Question, logs: BoundLogs | None) -> Draft[SinkImpact]:
    """Say what a restart from the line of checkpoints does to the results of sinks."""
    planned = plan_line(reader, question)
    reached = _reached_by_checkpoints(planned, reader.tables.manifest)
    return _impact(reader, planned.draft("impact-sinks", planned.result), reached, question, logs)


def queue_impact(
    reader: RecordReader, line: Draft[RecoveryLine], question: Question, logs: BoundLogs | None
) -> Draft[SinkImpact]:
    """Say the same of a line that eventual checkpoints are on."""
    return _impact(reader, line, Reached({}, {}), question, logs)


def _impact(
    reader: RecordReader,
    line: Draft[RecoveryLine],
    reached: Reached,
    question: Question,
    logs: BoundLogs | None,
) -> Draft[SinkImpact]:
    """The answer that rests on a line, with how far the crashed run is known to have come."""
    received, damage = _received(reader, question.as_of)
    reached = Reached(_highest(reached.received, received), reached.read)
    findings = [*line.findings, *_of_results(damage, line.findings)]
    whole = not any(f.id in LOSSES for f in findings)
    logged = _logged(reader)
    result = impact_of(line.result, reached, reader.tables.manifest, logged, logs, whole)
    return Draft(
        "impact-sinks",
        result,
        findings,
        line.inputs,
        unrecoverable=line.unrecoverable,
        indeterminate=line.indeterminate,
    )


def _of_results(damage: Iterable[Finding], told: Iterable[Finding]) -> Iterator[Finding]:
    """Yield damage to raw events that the line does not need: it hides results, and does nothing to the restart."""
    known = {(f.id, f.subject, f.message) for f in told}
    for finding in damage:
        if (finding.id, finding.subject, finding.message) not in known:
            yield finding if finding.id in NOT_JUDGED else replace(finding, effect="none")


def _logged(reader: RecordReader) -> Set[str]:
    """The channels that have a log: of others nobody knows what was sent after the last checkpoint of the sender."""
    if not reader.tables.has("channels"):
        return frozenset()
    from cklog.runs.records import channel_logs as log

    table, _, _ = reader.scan_all("channels", ("channel",), log.named, log.NAMED, log.NAMED_REDUCE)
    return frozenset(table["channel"].to_pylist())


def _received(reader: RecordReader, as_of: int | None) -> tuple[dict[str, int], list[Finding]]:
    """Next sequence number per channel that raw events tell the receiving of; what is lost makes it no higher."""
    if not reader.tables.has("events"):
        return {}, []
    kernel, partial = current_state.kernel(as_of), current_state.PARTIAL
    columns, reduce = current_state.COLUMNS, current_state.REDUCE
    table, findings, _ = reader.scan_all("events", columns, kernel, partial, reduce)
    found: dict[str, int] = {}
    for row in table.to_pylist():
        if row["event"] == "receive" and row["channel"] is not None and row["next"] is not None:
            found[row["channel"]] = max(found.get(row["channel"], 0), row["next"])
    return found, findings


def _reached_by_checkpoints(planned: Planned, manifest: Mapping[str, Any]) -> Reached:
    """What the newest checkpoint of every subtask had received and read, whether it is on the line or not."""
    history = planned.evidence.history
    marks = history.received_of(history.newest).tolist()
    received = {name: mark for name, mark in zip(history.channels, marks, strict=True) if mark < 1 << 62}
    sources = sources_of(planned.evidence.records, history, history.newest - history.survivor, manifest)
    read = {(s.source, f"{s.operator}/{s.subtask}"): s.offset for s in sources if s.offset is not None}
    return Reached(received, read)


def _highest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}


def impact_of(
    line: RecoveryLine,
    reached: Reached,
    manifest: Mapping[str, Any],
    logged: Set[str],
    logs: BoundLogs | None,
    whole: bool = True,
) -> SinkImpact:
    """Say what happens to the results of every sink when the run restarts from `line`.

    Parameters
    ----------
    logged : the channels that have a log, so that nothing beyond it was sent
    whole : no record is lost; else what no record tells of may have happened all the same
    """
    graph = _Graph(line, manifest)
    again = [read_again(s, [reached.read.get((s.source, f"{s.operator}/{s.subtask}"))], logs) for s in line.sources]
    doubled = [*_doubled(line, graph, reached, logged), *_doubled_sources(graph, again)]
    found = (_guarantee(line, graph, sink, doubled, again, manifest) for sink in sorted(graph.sinks))
    guarantees = found if whole else map(_doubted, found)
    return SinkImpact(
        system="native",
        line=tuple({"operator": e.operator, "subtask": e.subtask, "checkpoint": e.checkpoint} for e in line.line),
        intervals=(*doubled, *_lost(line, graph)),
        guarantees=tuple(guarantees),
        again=tuple(again),
        fails=not line.consistent,
        notes=() if graph.sinks else ("no-sinks",),
    )


class _Graph:
    """Which operators feed which, and which nobody reads from."""

    def __init__(self, line: RecoveryLine, manifest: Mapping[str, Any]) -> None:
        names = [row.channel for row in line.channels] + [row["channel"] for row in manifest.get("channels", [])]
        channels = {name: parse_channel(name) for name in names}
        self.ends = {name: channel for name, channel in channels.items() if channel is not None}
        operators = {entry.operator for entry in line.line}
        feeds = {c.sender.operator for c in self.ends.values() if c.sender.operator != c.receiver.operator}
        stated = {row["name"] for row in manifest.get("operators", []) if row.get("kind") == "sink"}
        self.sinks = (operators - feeds) | (stated & operators)
        self.feeders: dict[str, set[str]] = {}
        for channel in self.ends.values():
            self.feeders.setdefault(channel.receiver.operator, set()).add(channel.sender.operator)
        fed = {c.receiver.operator for c in self.ends.values() if c.sender.operator != c.receiver.operator}
        self._unfed = [entry for entry in line.line if entry.operator not in fed]
        self.in_flight = [
            (row, self.ends[row.channel].receiver.operator)
            for row in line.channels
            if row.replay_from < row.replay_to and row.channel in self.ends
        ]
        self.current = {Subtask(e.operator, e.subtask) for e in line.line if e.state == "current"}
        self.queued = {e.operator for e in line.line if e.state == "eventual"}

    def keeps_reading(self, operators: set[str]) -> bool:
        """Return whether all sources among some operators keep running: those that take from no other one."""
        sources = [Subtask(e.operator, e.subtask) for e in self._unfed if e.operator in operators]
        return bool(sources) and all(subtask in self.current for subtask in sources)

    def above(self, sink: str) -> set[str]:
        """Return the operators that a sink's results rest on, and itself."""
        found, new = {sink}, {sink}
        while new:
            new = {sender for receiver in new for sender in self.feeders.get(receiver, ())} - found
            found |= new
        return found

    def sinks_below(self) -> dict[str, list[str]]:
        """Return the sinks by operator that rest on it; one that is a sink rests on itself."""
        found: dict[str, list[str]] = {}
        for sink in sorted(self.sinks):
            for operator in self.above(sink):
                found.setdefault(operator, []).append(sink)
        return found


def _doubled(line: RecoveryLine, graph: _Graph, reached: Reached, logged: Set[str]) -> Iterable[OutputInterval]:
    """What sinks take again, by channel."""
    rows: dict[str, list[ReplayRange]] = {}
    for row in line.channels:
        rows.setdefault(row.channel, []).append(row)
    for name, parts in sorted(rows.items()):
        channel = graph.ends.get(name)
        if channel is None or channel.receiver.operator not in graph.sinks or channel.receiver in graph.current:
            continue
        unlogged = [part.replay_to for part in parts if part.retained is not True and not part.messages]
        start = max([min(part.replay_from for part in parts), *unlogged])  # nothing brings back what no log holds
        sent = max(max(part.replay_to, part.resent_to or 0) for part in parts)
        known = max(reached.received.get(name, 0), start)
        most = max(sent, known) if name in logged else None
        interval = partial(OutputInterval, sink=str(channel.receiver), readers="", of=name, from_=start, most=most)
        if channel.receiver.operator in graph.queued:
            if sent > start:
                yield interval(fate="once", to=sent, count=sent - start, why="in-its-queue")
        elif known > start:
            yield interval(fate="doubled", to=known, count=known - start, why="rolled-back")
        elif most is None or most > start:
            yield interval(fate="may-be-doubled", to=None, count=None, why="taken-since")


def _doubled_sources(graph: _Graph, again: Iterable[Again]) -> Iterable[OutputInterval]:
    """What sinks that read sources themselves put out again."""
    for row in again:
        if row.reader.rpartition("/")[0] in graph.sinks - graph.queued:
            known = isinstance(row.to, int)
            count = row.to - (row.from_ or 0) if known else None
            fate: Any = "doubled" if known else "may-be-doubled"
            yield OutputInterval(
                sink=row.reader,
                readers="",
                fate=fate,
                of=row.source,
                from_=row.from_,
                to=row.to,
                most=row.most,
                count=count,
                why="read-again",
            )


def _lost(line: RecoveryLine, graph: _Graph) -> Iterable[OutputInterval]:
    """Messages in flight that no log holds, by the sinks that miss what comes of them."""
    below = graph.sinks_below()
    for row in line.channels:
        channel = graph.ends.get(row.channel)
        if channel is None or row.retained is True or row.replay_from >= row.replay_to:
            continue
        start, end = row.replay_from, row.replay_to
        interval = partial(OutputInterval, readers="", of=row.channel, from_=start, to=end, most=end)
        operator = channel.receiver.operator
        for sink in _named(below.get(operator, []), operator):
            if row.retained is False:
                gone = end - start - (row.messages or 0)
                yield interval(sink=sink, fate="missing", count=gone, why="gone-from-log")
            else:
                yield interval(sink=sink, fate="may-be-missing", count=None, why="no-log")


def _named(sinks: list[str], operator: str) -> list[str]:
    """Sinks one by one, or many as one."""
    return sinks if len(sinks) <= _FEW else [f"{len(sinks)} sinks below {operator}"]


def _guarantee(
    line: RecoveryLine,
    graph: _Graph,
    sink: str,
    doubled: Iterable[OutputInterval],
    again: Iterable[Again],
    manifest: Mapping[str, Any],
) -> SinkGuarantee:
    above = graph.above(sink)
    sources = [row for row in again if row.reader.rpartition("/")[0] in above]
    pieces = [
        _channels_kept(graph, above),
        *([] if graph.keeps_reading(above) else [input_piece(sources)]),
        GuaranteeEvidence("state", line.consistent or None, "line-stored"),
        _output(graph, sink, doubled, manifest, told=sink in graph.feeders or bool(sources)),
    ]
    return guarantee_of(sink, "", pieces)


def _doubted(found: SinkGuarantee) -> SinkGuarantee:
    """Take back what rests on no record saying otherwise: records are lost, and one of them may have said it."""
    silent = ("channels-kept", "nothing-again")
    lost = [replace(p, holds=None, because="records-lost") if p.because in silent else p for p in found.evidence]
    return guarantee_of(found.sink, found.readers, lost)


def _channels_kept(graph: _Graph, above: set[str]) -> GuaranteeEvidence:
    """Return whether the messages in flight above a sink are all in the logs."""
    rows = [row for row, receiver in graph.in_flight if receiver in above]
    holds = all_hold(row.retained for row in rows)
    names = tuple(dict.fromkeys(row.channel for row in rows if row.retained is holds)) if holds is not True else ()
    why = {True: "channels-kept", False: "channels-gone", None: "channels-unlogged"}[holds]
    return GuaranteeEvidence("input", holds, why, names)


def _output(
    graph: _Graph, sink: str, doubled: Iterable[OutputInterval], manifest: Mapping[str, Any], told: bool
) -> GuaranteeEvidence:
    """Say whether results come twice; unless anything is `told` of what the sink takes, that is not known."""
    rows = {row["name"]: row for row in manifest.get("operators", [])}
    said = rows.get(sink, {}).get("delivery")
    if said in _DELIVERIES:
        return GuaranteeEvidence("output", True, said)
    if sink in graph.queued:
        return GuaranteeEvidence("output", True, "replay-filter")
    if told and not any(row.sink.rpartition("/")[0] == sink for row in doubled):
        return GuaranteeEvidence("output", True, "nothing-again")
    return GuaranteeEvidence("output", None, "delivery-not-stated")

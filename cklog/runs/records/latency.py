"""Latencies of messages into sinks, from raw events: when a message was received, less when it was sent.

A send and its receipt lie in different files, and are paired by channel and sequence number. Pairs are counted and let
go, so many at a time: of a longer log one residue class of the sequence numbers after the other, each by a scan of its
own. Where events do not tell of a send, the channel's log does. A message that was received twice counts once, when it
came first.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.engine.merge import merge
from cklog.engine.scan import Reduce
from cklog.errors import NotFound
from cklog.history.events.batch import encoded
from cklog.latency.answer import Measured
from cklog.latency.histogram import COUNTS, COUNTS_REDUCE, FURTHEST, counts_of
from cklog.latency.model import LatencyQuestion, Marks
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Channel, parse_channel
from cklog.model.wording import first_few, many
from cklog.runs.records.reading import RecordReader

PAIRS_AT_ONCE = 1 << 21
"""Messages into sinks that one scan pairs."""

SURVEY = pa.schema(
    [pa.field(name, pa.string()) for name in ("event", "channel")]
    + [pa.field(name, pa.int64()) for name in ("time", "events", "timed")]
)
"""Events of a kind on a channel; of checkpoints those at each `time`. Of so many `events`, `timed` have a time."""

_SURVEY_REDUCE = Reduce(("event", "channel", "time"), {"events": "sum", "timed": "sum"})

PAIRS = pa.schema([pa.field(name, pa.int64()) for name in ("channel", "seq", "sent", "received")])
"""A message, its channel as an index into those asked for, and when it was first sent and first received (ms)."""

_PAIRS_REDUCE = Reduce(("channel", "seq"), {"sent": "min", "received": "min"})


class _Wanted(NamedTuple):
    """Messages that one scan pairs: those of `channels` whose sequence number leaves `rest` when divided."""

    channels: tuple[str, ...]
    modulus: int
    rest: int


class _Into(NamedTuple):
    """The channels into sinks, by name, and how many messages were received there with a time, and without one."""

    channels: Mapping[str, Channel]
    timed: int
    untimed: int


def survey_events(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Count sends and receipts by channel, and checkpoints by time: a kernel."""
    event = batch["event"].cast(pa.string())
    at = pc.if_else(pc.equal(event, "checkpoint"), batch["time"], pa.scalar(None, pa.int64()))
    timed = batch["time"].is_valid().cast(pa.int64())
    ones = pa.array(np.ones(batch.num_rows, np.int64))
    rows = pa.table([event, batch["channel"].cast(pa.string()), at, ones, timed], schema=SURVEY)
    return _one_batch(merge([rows], _SURVEY_REDUCE), SURVEY)


def pair_events(wanted: _Wanted, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return when wanted messages were sent, or received: a kernel."""
    is_send = pc.equal(batch["event"].cast(pa.string()), "send")
    nothing = pa.scalar(None, pa.int64())
    sent, received = pc.if_else(is_send, batch["time"], nothing), pc.if_else(is_send, nothing, batch["time"])
    return _pairs(wanted, batch, sent, received)


def pair_messages(wanted: _Wanted, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return when wanted messages of channel logs were sent: a kernel."""
    return _pairs(wanted, batch, batch["time"], pa.nulls(batch.num_rows, pa.int64()))


def _pairs(wanted: _Wanted, batch: pa.RecordBatch, sent: pa.Array, received: pa.Array) -> pa.RecordBatch:
    names, code = encoded(batch["channel"])
    places = {name: place for place, name in enumerate(wanted.channels)}
    place_of = np.array([*(places.get(name, -1) for name in names.to_pylist()), -1], np.int64)
    channel, seq = place_of[code], pc.fill_null(batch["seq"], -1).to_numpy()
    timed = pc.is_valid(pc.coalesce(sent, received)).to_numpy(zero_copy_only=False)
    chosen = pa.array((channel >= 0) & (seq >= 0) & timed & (seq % wanted.modulus == wanted.rest))
    rows = pa.table([pa.array(channel), pa.array(seq), sent, received], schema=PAIRS)
    return _one_batch(merge([rows.filter(chosen)], _PAIRS_REDUCE), PAIRS)


def _one_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)


def run_marks(reader: RecordReader) -> Marks:
    """Say when a run took checkpoints and when it failed, as its records, or else its raw events, tell."""
    failed_at = reader.tables.manifest.get("failure_time")
    findings: list[Finding] = []
    inputs: list[InputUsed] = []
    if reader.has_checkpoints():
        columns = ("time", "kind")
        schema = pa.schema([pa.field("time", pa.int64()), pa.field("kind", pa.string())])
        rows, findings, inputs = reader.scan_all("checkpoints", columns, _times_and_kinds, schema, None)
        stored = rows.filter(pc.fill_null(pc.not_equal(rows["kind"], "volatile"), True))
        times = stored["time"].drop_null().to_numpy()
        if len(times):
            return Marks(times, failed_at, tuple(findings), tuple(inputs))
    if not reader.tables.has("events"):
        return Marks(failed_at=failed_at, findings=tuple(findings), inputs=tuple(inputs))
    surveyed, more, read = _survey(reader)
    return Marks(_checkpoint_times(surveyed), failed_at, (*findings, *more), (*inputs, *read))


def _times_and_kinds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with its words as plain text: a kernel."""
    return pa.RecordBatch.from_arrays([batch["time"], batch["kind"].cast(pa.string())], ["time", "kind"])


def _survey(reader: RecordReader) -> tuple[pa.Table, list[Finding], list[InputUsed]]:
    return reader.scan_all("events", ("event", "channel", "time"), survey_events, SURVEY, _SURVEY_REDUCE)


def _checkpoint_times(surveyed: pa.Table) -> Ints:
    rows = surveyed.filter(pc.is_valid(surveyed["time"]))
    times: Ints = np.repeat(rows["time"].to_numpy(), rows["events"].to_numpy())
    return times


def message_latencies(reader: RecordReader, asked: LatencyQuestion) -> Measured:
    """Measure how long messages took on the channels into sinks, or into one operator.

    Raises
    ------
    NotFound : raw events tell of no such channel, or of no message with both times
    """
    surveyed, findings, inputs = _survey(reader)
    into = _channels_into(reader, surveyed, asked.operator)
    passes = max(-(-into.timed // PAIRS_AT_ONCE), 1)
    counts, unmatched = COUNTS.empty_table(), 0
    for rest in range(passes):
        pairs, more, read = _paired(reader, _Wanted(tuple(into.channels), passes, rest))
        findings, inputs = [*findings, *more], [*inputs, *(used for used in read if used not in inputs)]
        table, missing = _counted(pairs, asked.step_ms)
        counts, unmatched = merge([counts, table], COUNTS_REDUCE), unmatched + missing
    sinks = tuple(sorted({channel.receiver.operator for channel in into.channels.values()}))
    findings += _unmeasured(into.untimed, unmatched, sinks)
    if not counts.num_rows:
        raise NotFound(
            f"no message into {first_few(sinks, 3)} has a time of sending and one of receipt",
            "events need `time`, or name a sink's results with --results PATH --event-time FIELD",
        )
    sources, senders = _sources(reader, surveyed), {c.sender.operator for c in into.channels.values()}
    whole = senders <= sources
    if not whole:
        message = (
            f"latency is that of the last channel, from {first_few(sorted(senders), 3)} to {first_few(sinks, 3)}: raw "
            "events do not tell which record of a source a message comes from"
        )
        findings.append(Finding("last-channel-only", "info", sinks[0], message))
    return Measured(counts, "messages", sinks, whole, findings, inputs)


def _channels_into(reader: RecordReader, surveyed: pa.Table, operator: str) -> _Into:
    """Return the channels into an operator, or into all sinks: those that job.json calls so, or that send nothing."""
    named = {row["channel"]: parse_channel(row["channel"]) for row in surveyed.to_pylist() if row["channel"]}
    channels = {name: channel for name, channel in named.items() if channel is not None}
    receivers = {channel.receiver.operator for channel in channels.values()}
    kinds = {row["name"] for row in reader.tables.manifest.get("operators", []) if row.get("kind") == "sink"}
    _, more = reader.named()
    senders = {channel.sender.operator for channel in [*channels.values(), *filter(None, map(parse_channel, more))]}
    sinks = {operator} if operator else (kinds & receivers) or receivers - senders
    chosen = {name: channels[name] for name in sorted(channels) if channels[name].receiver.operator in sinks}
    if not chosen:
        there = f"operators that receive: {', '.join(sorted(receivers))}" if receivers else "cklog inspect says more"
        what = f"messages into {operator}" if operator else "messages into a sink"
        raise NotFound(f"raw events tell of no {what}", there)
    rows = [r for r in surveyed.to_pylist() if r["event"] == "receive" and r["channel"] in chosen]
    timed, events = sum(row["timed"] for row in rows), sum(row["events"] for row in rows)
    return _Into(chosen, timed, events - timed)


def _sources(reader: RecordReader, surveyed: pa.Table) -> set[str]:
    """Return the operators that job.json calls sources; if none, those that receive nothing."""
    kinds = {row["name"] for row in reader.tables.manifest.get("operators", []) if row.get("kind") == "source"}
    channels = [parse_channel(name) for name in surveyed["channel"].drop_null().unique().to_pylist()]
    found = [channel for channel in channels if channel is not None]
    return kinds or {c.sender.operator for c in found} - {c.receiver.operator for c in found}


def _paired(reader: RecordReader, wanted: _Wanted) -> tuple[pa.Table, list[Finding], list[InputUsed]]:
    """Return when wanted messages were sent and received; sends that events do not tell of by the channel logs."""
    columns, kernel = ("event", "channel", "seq", "time"), functools.partial(pair_events, wanted)
    pairs, findings, inputs = reader.scan_all("events", columns, kernel, PAIRS, _PAIRS_REDUCE)
    unsent = pc.and_(pc.is_null(pairs["sent"]), pc.is_valid(pairs["received"]))
    if not pc.any(unsent).as_py():
        return pairs, findings, inputs
    logged = reader.scan_messages(columns[1:], functools.partial(pair_messages, wanted), PAIRS, _PAIRS_REDUCE)
    if logged is None:
        return pairs, findings, inputs
    mended = merge([pairs.filter(unsent), logged.table], _PAIRS_REDUCE)
    both = pa.concat_tables([pairs.filter(pc.invert(unsent)), mended])
    return both, [*findings, *logged.findings], [*inputs, *logged.inputs]


def _counted(pairs: pa.Table, step_ms: int) -> tuple[pa.Table, int]:
    """Return latencies of pairs as rows of `COUNTS`, and how many receipts there are without a send."""
    received = pairs.filter(pc.is_valid(pairs["received"]))
    whole = received.filter(pc.is_valid(received["sent"]))
    sent, taken = whole["sent"].to_numpy(), whole["received"].to_numpy()
    near = (np.abs(sent) <= FURTHEST) & (np.abs(taken) <= FURTHEST)
    counts = pa.Table.from_batches([counts_of(sent[near], taken[near], step_ms)], schema=COUNTS)
    return counts, received.num_rows - int(np.count_nonzero(near))


def _unmeasured(untimed: int, unmatched: int, sinks: Sequence[str]) -> Iterator[Finding]:
    """Say how many receipts have no latency, and why."""
    where = first_few(sinks, 3)
    if untimed:
        message = f"{many(untimed, 'receipt', 'have', grouped=True)} no time, and so no latency into {where}"
        yield Finding("untimed-messages", "warning", sinks[0], message)
    if unmatched:
        lead = many(unmatched, "message", "were", grouped=True)
        message = f"{lead} received by {where} and sent at a time that nothing tells: no latency is counted for that"
        yield Finding("unsent-messages", "warning", sinks[0], message)

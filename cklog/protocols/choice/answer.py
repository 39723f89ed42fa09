"""The answer of `advise protocol`: what each checkpointing protocol would have cost along a run, and which to use.

The run's own messages are replayed under uncoordinated checkpoints, two communication-induced protocols (BCS, HMNR) and
coordinated rounds with aligned markers, all with the same timers. Costs are seconds lost in an hour:

    timers     what a checkpoint takes, once in each interval: the same under every protocol, for a coordinator that
               cannot keep up with its interval saves nothing that a longer one would not save, too
    forced     the same for the checkpoints that messages force
    messages   bytes that the protocol adds, and bytes logged so that they can be replayed, at the rate of the log
    failures   how far the job goes back on average, times failures

Stalls of aligned markers postpone messages and lose none: they are told beside the costs, and make rounds, and with
them what a failure loses, longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.errors import NotFound, UsageError
from cklog.history.events.steps import read_steps
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.wording import many, utc
from cklog.policies.induced import least_bytes
from cklog.policies.intervals import daly, young
from cklog.protocols.choice.coordinated import cycle_of, rounds_along
from cklog.protocols.choice.costs import rollback_of, useless_of
from cklog.protocols.choice.execution import ReplayedRun, of_steps, of_watermarks
from cklog.protocols.choice.model import (
    PROTOCOLS,
    BestInterval,
    LostTime,
    Protocol,
    ProtocolAdvice,
    ProtocolCost,
    ProtocolQuestion,
    ReplayedSize,
    TurningPoint,
)
from cklog.protocols.choice.placed import placed, timed
from cklog.runs.records.reading import RecordReader

MOST_EVENTS = 5_000_000
"""Events that are replayed: some 20 seconds in all."""

_NEAR = 1000
"""So many times more or less often, or faster: what is further off changes nobody's mind, and may be rounding alone."""

MOST_ESTIMATED = 1_000_000
"""Events that are made up of watermarks: a number in a damaged record promises any number of them."""

_MOST_CHECKPOINTS = 2_000_000

_MOST_IN_ROUNDS = 200_000
"""Checkpoints of rounds, which are followed one by one: some five seconds. One wrong time makes a run of decades."""


def protocol_answer(reader: RecordReader, asked: ProtocolQuestion) -> Draft[ProtocolAdvice]:
    """Replay the run under each protocol, and draft the advice.

    Raises
    ------
    NotFound : no checkpoint has a time, or no message is known
    UsageError : there are too many events to replay
    """
    execution, checkpoint_ms, findings, inputs = _read(reader, asked)
    if execution.span[0] >= execution.span[1]:
        raise _nothing()
    execution, more, used = _with_logged_sizes(reader, execution)
    findings, inputs = list(dict.fromkeys((*findings, *more))), list(dict.fromkeys((*inputs, *used)))
    if not len(execution.owner) or not any(len(before) for before, _ in execution.basic):
        raise _nothing()
    if asked.checkpoint_ms is not None:
        checkpoint_ms = asked.checkpoint_ms
    costs = [
        replace(_cost(execution, protocol, interval, checkpoint_ms, asked), interval_ms=interval)
        for interval in (*(1000 * s for s in asked.intervals_s), *(() if asked.intervals_s else (None,)))
        for protocol in PROTOCOLS
    ]
    result = _advice(execution, costs, checkpoint_ms, asked)
    return Draft("advise-protocol", result, (*findings, *_doubts(execution, checkpoint_ms)), inputs)


def _nothing() -> NotFound:
    message = "there is nothing to replay: no message between subtasks, no checkpoint with a time, or one moment only"
    return NotFound(message, "write events/ (docs/run-folder.md), or the watermarks and times of checkpoints")


def _read(
    reader: RecordReader, asked: ProtocolQuestion
) -> tuple[ReplayedRun, float | None, list[Finding], list[InputUsed]]:
    """What the run did, and how long a checkpoint took in ms, None if no record tells."""
    evidence = reader.evidence_of(Question(as_of=asked.as_of, everything=True))
    table = evidence.records.table
    believable = pc.greater_equal(table["duration_ms"], 0)
    duration = pc.mean(table["duration_ms"].filter(believable)).as_py()
    if not reader.tables.has("events"):
        if not evidence.history.channels or not (evidence.history.time >= 0).any():
            raise _nothing()
        estimated = of_watermarks(evidence.history, partial(_refuse_above, MOST_ESTIMATED))
        return (
            _with_state_sizes(estimated, table),
            duration,
            list(evidence.findings),
            list(evidence.inputs),
        )
    scan = partial(reader.scan_all, "events")
    steps, found, used = read_steps(scan, asked.as_of, partial(_refuse_above, MOST_EVENTS))
    kinds = zip(*(table[name].to_pylist() for name in ("operator", "subtask", "checkpoint", "kind")), strict=True)
    forced = frozenset((Subtask(name, i), label) for name, i, label, kind in kinds if kind == "forced")
    findings = list(dict.fromkeys((*evidence.findings, *found)))
    return (
        _with_state_sizes(of_steps(steps, evidence.records.subtasks, forced), table),
        duration,
        findings,
        list(dict.fromkeys((*evidence.inputs, *used))),
    )


def _with_logged_sizes(
    reader: RecordReader, execution: ReplayedRun
) -> tuple[ReplayedRun, list[Finding], list[InputUsed]]:
    """Take the sizes of messages that events do not tell from the logs of channels."""
    if not np.isnan(execution.bytes).any() or not reader.tables.has("channels"):
        return execution, [], []
    from cklog.runs.records import channel_logs as log

    table, findings, inputs = reader.scan_all("channels", log.columns(None), log.runs, log.RUNS, log.RUNS_REDUCE)
    totals: dict[str, tuple[int, int]] = {}
    for name, rows, size in zip(*(table[n].to_pylist() for n in ("channel", "rows", "bytes")), strict=True):
        before = totals.get(name, (0, 0))
        totals[name] = before[0] + rows, before[1] + size
    means = np.array([totals[n][1] / totals[n][0] if n in totals else np.nan for n in execution.channels])
    sizes = np.where(np.isnan(execution.bytes), means, execution.bytes)
    return replace(execution, bytes=sizes), findings, inputs


def _with_state_sizes(execution: ReplayedRun, records: pa.Table) -> ReplayedRun:
    """Take the sizes of checkpoints from their records."""
    means = records.unify_dictionaries().group_by(["operator", "subtask"]).aggregate([("bytes", "mean")])
    known = {
        Subtask(name, i): size
        for name, i, size in zip(*(means[n].to_pylist() for n in ("operator", "subtask", "bytes_mean")), strict=True)
        if size is not None
    }
    sizes = np.array([known.get(subtask, np.nan) for subtask in execution.subtasks])
    return replace(execution, state_bytes=sizes)


def _refuse_above(most: int, events: int) -> None:
    if events > most:
        message = f"{events:,} events: more than {most:,} are not replayed one by one"
        raise UsageError(message, "ask about a part of the run with --as-of, or about a folder with fewer of its logs")


def _cost(
    execution: ReplayedRun,
    protocol: Protocol,
    interval_ms: float | None,
    checkpoint_ms: float | None,
    asked: ProtocolQuestion,
) -> ProtocolCost:
    """Replay the run under one protocol."""
    begin, end = execution.span
    messages = int(np.count_nonzero(~execution.receives))
    if interval_ms is not None and (end - begin) / interval_ms * len(execution.subtasks) > _MOST_CHECKPOINTS:
        raise UsageError(f"--interval {interval_ms / 1000:g}: that is over {_MOST_CHECKPOINTS:,} checkpoints")
    if protocol == "coor":
        cycle = cycle_of(execution)
        if cycle:
            because = f"markers deadlock on the cycle {' -> '.join(cycle)}"
            return ProtocolCost(protocol, interval_ms, usable=False, because=because)
        every = interval_ms or _usual_interval(execution)
        if (end - begin) / every * len(execution.subtasks) > _MOST_IN_ROUNDS:
            because = f"over {_MOST_IN_ROUNDS:,} checkpoints, every {every / 1000:g} s from {utc(begin)} to {utc(end)}"
            return ProtocolCost(protocol, interval_ms, usable=False, because=f"not tried: {because}")
        rounds = rounds_along(execution, every)
        if not len(rounds.complete):
            because = "no round is complete before the run ends"
            return ProtocolCost(protocol, interval_ms, usable=False, because=because, rounds=0)
        took = rounds.complete - rounds.began
        n = len(rounds.complete)
        cost = ProtocolCost(
            protocol,
            interval_ms,
            usable=True,
            timers=n * len(execution.subtasks),
            rounds=n,
            round_ms=float(took.mean()),
            worst_round_ms=float(took.max()),
            stalled_ms=rounds.stalled_ms / n / len(execution.subtasks),
            postponed=rounds.postponed / n,
            logged_bytes=0.0,
            rollback=rollback_of(execution, rounds.checkpoints, rounds),
        )
        return replace(cost, lost=_lost(cost, execution, checkpoint_ms, asked))
    found = placed(execution, protocol, timed(execution, interval_ms))
    timers, forced = found.counts
    carried = messages * least_bytes(protocol, len(execution.subtasks))
    sends = np.bincount(execution.channel[~execution.receives], minlength=len(execution.channels))
    payload = float((sends * execution.bytes)[sends > 0].sum())
    cost = ProtocolCost(
        protocol,
        interval_ms,
        usable=True,
        timers=timers,
        forced=forced,
        useless=useless_of(execution, found),
        carried_bytes=carried,
        logged_bytes=None if np.isnan(payload) else payload + carried,
        rollback=rollback_of(execution, found, None),
    )
    return replace(cost, lost=_lost(cost, execution, checkpoint_ms, asked))


def _usual_interval(execution: ReplayedRun) -> float:
    """Return the median time between the timers' checkpoints of a subtask, in ms."""
    gaps = np.concatenate([np.diff(times[times >= 0]) for _, times in execution.basic])
    begin, end = execution.span
    return float(max(np.median(gaps), 1)) if len(gaps) else float(max(end - begin, 1))


def _lost(cost: ProtocolCost, execution: ReplayedRun, checkpoint_ms: float | None, asked: ProtocolQuestion) -> LostTime:
    """Return the seconds that a protocol loses in an hour."""
    begin, end = execution.span
    n, hours = len(execution.subtasks), max(end - begin, 1) / 3_600_000
    interval_ms = cost.interval_ms or _usual_interval(execution)
    timers = None if checkpoint_ms is None else 3600 * checkpoint_ms / interval_ms
    forced = None if checkpoint_ms is None else cost.forced / n * checkpoint_ms / 1000 / hours
    size = None if cost.logged_bytes is None else cost.logged_bytes + cost.carried_bytes
    messages = None if size is None else size / n / (asked.log_mb_s * 1e6) / hours
    failures = (cost.rollback.lost_ms if cost.rollback else 0.0) / 1000 / asked.between_failures_h
    known = sum(part for part in (timers, forced, messages) if part is not None)
    return LostTime(timers, forced, messages, failures, known + failures)


def _advice(
    execution: ReplayedRun, costs: Sequence[ProtocolCost], checkpoint_ms: float | None, asked: ProtocolQuestion
) -> ProtocolAdvice:
    usable = [cost for cost in costs if cost.lost is not None]
    best = min(
        usable, key=lambda cost: (round(cost.lost.total, 9) if cost.lost else 0.0, PROTOCOLS.index(cost.protocol))
    )
    rivals = [cost for cost in usable if cost.protocol != best.protocol and cost.interval_ms == best.interval_ms]
    turns = [
        turn for rival in rivals for turn in _turns(best, rival, asked) if 1 / _NEAR < turn.value / turn.now < _NEAR
    ]
    begin, end = execution.span
    return ProtocolAdvice(
        certainty=execution.certainty,
        replayed=ReplayedSize(
            subtasks=len(execution.subtasks),
            channels=len(execution.channels),
            messages=int(np.count_nonzero(~execution.receives)),
            from_ms=begin,
            to_ms=end,
        ),
        between_failures_h=asked.between_failures_h,
        log_mb_s=asked.log_mb_s,
        checkpoint_ms=checkpoint_ms,
        recommended=best.protocol,
        interval_ms=best.interval_ms,
        costs=tuple(costs),
        turns=tuple(sorted(turns, key=lambda turn: (abs(np.log(turn.value / turn.now)), turn.instead))),
        best_intervals=tuple(_best_intervals(usable, checkpoint_ms, asked)),
    )


def _turns(best: ProtocolCost, rival: ProtocolCost, asked: ProtocolQuestion) -> list[TurningPoint]:
    """Return where the costs of two protocols meet, if one number changes and the others stay."""
    if best.lost is None or rival.lost is None:
        return []
    found = []
    rest = rival.lost.total - rival.lost.failures - best.lost.total + best.lost.failures
    failures = (best.lost.failures - rival.lost.failures) * asked.between_failures_h
    if (rest > 0 and failures > 0) or (rest < 0 and failures < 0):
        found.append(TurningPoint("between-failures-h", failures / rest, asked.between_failures_h, rival.protocol))
    if best.lost.messages is not None and rival.lost.messages is not None:
        written = (rival.lost.messages - best.lost.messages) * asked.log_mb_s
        others = best.lost.total - best.lost.messages - rival.lost.total + rival.lost.messages
        if others != 0 and written / others > 0:
            found.append(TurningPoint("log-mb-s", written / others, asked.log_mb_s, rival.protocol))
    return found


def _best_intervals(
    costs: Sequence[ProtocolCost], checkpoint_ms: float | None, asked: ProtocolQuestion
) -> list[BestInterval]:
    """Return the best interval of each protocol by theory; to what a checkpoint takes a stall is added."""
    found: dict[Protocol, BestInterval] = {}
    for cost in costs if checkpoint_ms else ():
        takes = (checkpoint_ms or 0.0) + (cost.stalled_ms or 0.0)
        if cost.protocol not in found:
            seconds, between = takes / 1000, asked.between_failures_h * 3600
            found[cost.protocol] = BestInterval(cost.protocol, seconds, young(seconds, between), daly(seconds, between))
    return list(found.values())


def _doubts(execution: ReplayedRun, checkpoint_ms: float | None) -> list[Finding]:
    """What the costs leave out, or only estimate."""
    found = []
    if execution.certainty == "estimated":
        message = (
            "no events/ are here: how many messages were sent and received between checkpoints is known, their order "
            "is not, so that forced and useless checkpoints, rounds and stalls are estimates"
        )
        found.append(Finding("estimated-order", "warning", "events/", message))
    if execution.disordered and execution.certainty == "exact":
        message = (
            f"{many(execution.disordered, 'message', 'were')} received before being sent, by the logs' own order: logs "
            "of different runs are mixed, or numbers are wrong"
        )
        found.append(Finding("impossible-order", "warning", "events/", message))
    if checkpoint_ms is None:
        message = "no record tells how long a checkpoint takes, so that it costs nothing here: give --checkpoint-ms"
        found.append(Finding("no-duration", "info", "checkpoints/", message))
    if np.isnan(execution.bytes).any():
        message = "no record tells how large messages are, so that logging them costs nothing here"
        found.append(Finding("no-message-sizes", "info", "events/", message))
    return found

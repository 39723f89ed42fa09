"""The checkpoints of a simulated run as a history, and what the run comes to in figures."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass

import numpy as np

from cklog.arrays.types import Ints
from cklog.history.history import History
from cklog.lines.fixpoint import recovery_line
from cklog.lines.rollback import is_domino
from cklog.simulate.dataflow.setting import DataflowSetting, InstanceLayout, Taken
from cklog.simulate.dataflow.simulation import DataflowRun
from cklog.zigzag.intervals import useless


@dataclass(frozen=True, slots=True)
class OperatorFigures:
    """Checkpoints of all instances of an operator; `rolled_past` and `useless` as in `Figures`."""

    operator: str
    instances: int
    local: int
    forced: int
    coordinated: int
    rolled_past: int
    useless: int


@dataclass(frozen=True, slots=True)
class EdgeFigures:
    """Messages from one operator to another.

    `per_interval` : messages per channel and checkpoint interval, on average
    """

    sender: str
    receiver: str
    channels: int
    messages: int
    per_interval: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A run in figures.

    `rolled_past` : checkpoints newer than the latest consistent line of a failure of all instances at the end (what
        CheckMate's Table III counts as invalid), under coordination newer than the last complete round
    `rolled_past_between_workers` : the same if channels inside a worker are left out of the graph, as CheckMate's
        published coordinator does: its count, and too few
    `useless` : checkpoints on a Z-cycle, in no consistent line ever
    `deepest` : the most checkpoints that one instance falls back
    `domino` : a rollback forces another one
    `checkpointing_ms` : mean time of a checkpoint, or of a complete coordinated round; None without any
    `latency_p50_ms`, `latency_p99_ms` : of the results after the warm-up (`cklog.simulate.dataflow.setting.WARM_UP_S`),
        from when the record was there to be read; None without any
    `ratio` : all bytes sent, relative to those of the records alone; None if nothing was sent
    """

    checkpoints: int
    local: int
    forced: int
    coordinated: int
    rolled_past: int
    rolled_past_between_workers: int
    useless: int
    deepest: int
    domino: bool
    rounds_complete: int
    rounds_incomplete: int
    checkpointing_ms: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    messages: int
    payload_bytes: int
    carried_bytes: int
    control_bytes: int
    ratio: float | None
    operators: tuple[OperatorFigures, ...]
    edges: tuple[EdgeFigures, ...]


class Journal:
    """The watermarks of every checkpoint of a run, 8 bytes each."""

    def __init__(self, layout: InstanceLayout) -> None:
        self._layout = layout
        self._times = [array("q") for _ in layout.subtasks]
        self._sent = [array("q") for _ in layout.subtasks]  # per checkpoint the channels of `InstanceLayout.out`
        self._received = [array("q") for _ in layout.subtasks]
        self.kinds: list[Counter[str]] = [Counter() for _ in layout.subtasks]
        self.duration_us = 0

    def add(self, taken: Taken) -> None:
        """Add a checkpoint."""
        self._times[taken.instance].append(taken.time)
        self._sent[taken.instance].extend(taken.sent)
        self._received[taken.instance].extend(taken.received)
        self.kinds[taken.instance][taken.kind] += 1
        self.duration_us += taken.duration_us

    def history(self, between_workers: bool = False) -> History:
        """Return the checkpoints as the analyses take them; every instance failed.

        `between_workers`: without the channels inside a worker.
        """
        layout = self._layout
        order = sorted(range(len(layout.subtasks)), key=layout.subtasks.__getitem__)
        place = {instance: i for i, instance in enumerate(order)}
        there = [c for c in range(len(layout.channels)) if not (between_workers and layout.inside(c))]
        channels = sorted(there, key=layout.channels.__getitem__)
        rows = [len(self._times[i]) + 1 for i in order]
        sent_at, sent = self._channel_marks(channels, layout.sender, layout.out, self._sent)
        received_at, received = self._channel_marks(channels, layout.receiver, layout.into, self._received)
        return History(
            subtasks=tuple(layout.subtasks[i] for i in order),
            channels=tuple(layout.channels[c] for c in channels),
            src=np.array([place[layout.sender[c]] for c in channels], np.int64),
            dst=np.array([place[layout.receiver[c]] for c in channels], np.int64),
            first=_stretch_starts(rows),
            label=np.concatenate([np.arange(n) for n in rows]),
            time=np.concatenate([np.r_[-1, self._times[i]].astype(np.int64) for i in order]),
            sent_at=sent_at,
            received_at=received_at,
            sent=sent,
            received=received,
            survivor=np.zeros(len(order), np.bool_),
        )

    def _channel_marks(
        self, channels: list[int], owner: list[int], of: list[list[int]], marks: list[array[int]]
    ) -> tuple[Ints, Ints]:
        """Where each channel's watermarks start, and the watermarks: 0 for the initial state, one per checkpoint.

        `marks` : by instance, row by row, of the channels `of` it; e.g. [1, 5, 2, 7] of two channels are the
        watermarks [0, 1, 2] of the first and [0, 5, 7] of the second
        """
        found: dict[int, Ints] = {}
        for instance in set(owner):
            rows = np.array(marks[instance], np.int64).reshape(-1, len(of[instance]))
            columns = np.vstack([np.zeros((1, len(of[instance])), np.int64), rows]).T
            found.update(zip(of[instance], columns, strict=True))
        parts = [found[c] for c in channels]
        return _stretch_starts([len(part) for part in parts]), np.concatenate([np.zeros(0, np.int64), *parts])


def figures_of(setting: DataflowSetting, run: DataflowRun, journal: Journal) -> Figures:
    """Return the figures of a run that has ended."""
    history = journal.history()
    owner = np.repeat(np.arange(len(history.subtasks)), np.diff(history.first))
    start = _newest_usable(setting, history)
    past = history.newest - recovery_line(history, start)
    between = journal.history(between_workers=True)
    past_between = between.newest - recovery_line(between, _newest_usable(setting, between))
    lost = np.bincount(owner[useless(history)], minlength=len(history.subtasks))
    kinds: Counter[str] = sum(journal.kinds, Counter())
    taken, traffic = kinds.total(), run.traffic
    if setting.protocol == "coor":
        spans, spent = len(run.round_us), sum(run.round_us)
    else:
        spans, spent = taken, journal.duration_us
    sent = traffic.payload + traffic.carried + traffic.control
    return Figures(
        checkpoints=taken,
        local=kinds["local"],
        forced=kinds["forced"],
        coordinated=kinds["coordinated"],
        rolled_past=int(past.sum()),
        rolled_past_between_workers=int(past_between.sum()),
        useless=int(lost.sum()),
        deepest=int(past.max()),
        domino=is_domino(history, start),
        rounds_complete=len(run.round_us),
        rounds_incomplete=run.rounds_begun - len(run.round_us),
        checkpointing_ms=spent / 1000 / spans if spans else None,
        latency_p50_ms=_percentile_ms(run, 50),
        latency_p99_ms=_percentile_ms(run, 99),
        messages=traffic.messages,
        payload_bytes=traffic.payload,
        carried_bytes=traffic.carried,
        control_bytes=traffic.control,
        ratio=sent / traffic.payload if traffic.payload else None,
        operators=tuple(_operator_figures(history, run.layout, journal, past, lost)),
        edges=tuple(_edge_figures(setting, run)),
    )


def _percentile_ms(run: DataflowRun, percent: int) -> float | None:
    """A percentile of the latencies; None if there are none."""
    return float(np.percentile(run.latency_us, percent)) / 1000 if run.latency_us else None


def _newest_usable(setting: DataflowSetting, history: History) -> Ints:
    """The newest checkpoints that a restart may use: without message logs those of the last round that all took."""
    return np.full_like(history.newest, history.newest.min()) if setting.protocol == "coor" else history.newest


def _operator_figures(
    history: History, layout: InstanceLayout, journal: Journal, past: Ints, lost: Ints
) -> list[OperatorFigures]:
    """One row per operator, in the order of the query."""
    names = np.array([subtask.operator for subtask in history.subtasks])
    found = []
    for number, operator in enumerate(layout.operators):
        of = range(number * layout.workers, (number + 1) * layout.workers)
        kinds: Counter[str] = sum((journal.kinds[i] for i in of), Counter())
        own = names == operator.name
        found.append(
            OperatorFigures(
                operator=operator.name,
                instances=layout.workers,
                local=kinds["local"],
                forced=kinds["forced"],
                coordinated=kinds["coordinated"],
                rolled_past=int(past[own].sum()),
                useless=int(lost[own].sum()),
            )
        )
    return found


def _edge_figures(setting: DataflowSetting, run: DataflowRun) -> list[EdgeFigures]:
    """One row per pair of operators with channels between them, in the order of the query."""
    messages: Counter[tuple[str, str]] = Counter()
    channels: Counter[tuple[str, str]] = Counter()
    subtasks = run.layout.subtasks
    for channel, (a, b) in enumerate(zip(run.layout.sender, run.layout.receiver, strict=True)):
        pair = subtasks[a].operator, subtasks[b].operator
        messages[pair] += run.sent[channel]
        channels[pair] += 1
    intervals = setting.failure_s / setting.interval_s
    return [
        EdgeFigures(
            sender=sender,
            receiver=receiver,
            channels=n,
            messages=messages[sender, receiver],
            per_interval=messages[sender, receiver] / n / intervals if intervals else 0.0,
        )
        for (sender, receiver), n in channels.items()
    ]


def _stretch_starts(lengths: list[int]) -> Ints:
    """Where stretches of these lengths start in one array, and where the last ends: [2, 1] → [0, 2, 3]."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)

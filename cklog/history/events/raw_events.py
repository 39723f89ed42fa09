"""Raw events read in two to four scans: checkpoint records made of them, current states, and findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.engine.scan import Kernel, Reduce
from cklog.history.deliveries import Deliveries
from cklog.history.events import kernels as events
from cklog.history.events.batch import SIDES
from cklog.history.events.channels import examine_channels, suspect_channels
from cklog.history.events.losses import losses
from cklog.history.events.order import Order, order_of, unusable_events
from cklog.history.events.records import (
    Ports,
    checkpoint_table,
    current_states,
    ports_of,
    usable_checkpoints,
    with_records,
)
from cklog.history.watermarks import CurrentState
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.wording import many, numbered


class ScanEvents(Protocol):
    """A function that scans `events/`."""

    def __call__(
        self, columns: tuple[str, ...], kernel: Kernel, partial: pa.Schema, reduce: Reduce
    ) -> tuple[pa.Table, list[Finding], list[InputUsed]]:
        """Return the reduced table, what is wrong with the files, and which they are."""


class RawEvents(NamedTuple):
    """What was made of raw events.

    Attributes
    ----------
    order : the checkpoint events in their local order
    ports : the watermarks of both ends of all channels
    deliveries : what receivers got of channels that delivered out of order
    current : what subtasks hold now, as far as their events are whole
    table : a checkpoint record for each checkpoint that may be used, as `WITH_PLACES`
    """

    order: Order
    ports: Ports
    deliveries: Deliveries
    current: Mapping[Subtask, CurrentState]
    table: pa.Table

    @property
    def subtasks(self) -> tuple[Subtask, ...]:
        """The subtasks that have events."""
        return self.order.places.subtasks

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that an event names."""
        return self.ports.names

    def current_of(self, survivors: Iterable[Subtask]) -> tuple[CurrentState, frozenset[Subtask]]:
        """Return what survivors hold now, and the survivors whose events say so."""
        joined = CurrentState()
        found = [s for s in survivors if s in self.current]
        for subtask in found:  # the ends of channels that they own are different ones
            joined.sent.update(self.current[subtask].sent)
            joined.received.update(self.current[subtask].received)
        return joined, frozenset(found)

    def known_sent(self, channels: Sequence[str]) -> Ints:
        """Return how far each channel is known to have been sent, by its sends or its receives; shape (channels,)."""
        known = dict.fromkeys(self.ports.names, 0)
        for k, value in zip(self.ports.channel.tolist(), self.ports.now().tolist(), strict=True):
            known[self.ports.names[k]] = max(known[self.ports.names[k]], value)
        return np.array([known.get(name, 0) for name in channels], np.int64)


def read_events(
    scan: ScanEvents, as_of: int | None, sources: Collection[str], channels: Iterable[str], metadata: pa.Table | None
) -> tuple[RawEvents, list[Finding], list[InputUsed]]:
    """Read raw events; return them with what is wrong with them, and the files that were read.

    Parameters
    ----------
    scan : reads `events/`
    as_of : milliseconds; what happened later does not count
    sources : operators that receive nothing
    channels : channels that exist although no event may name them
    metadata : records of `checkpoints/` that hold no watermarks; None if there is no such place
    """
    survey, findings, inputs = scan(
        events.SURVEY_COLUMNS, events.survey_kernel(as_of), events.SURVEY, events.SURVEY_REDUCE
    )
    order = order_of(survey, findings, as_of)
    places = order.places
    rows, more, _ = scan(places.columns(), events.interval_kernel(places), events.INTERVALS, events.INTERVALS_REDUCE)
    used = pc.is_in(rows["side"], value_set=pa.array(SIDES))
    strange = _unusable_findings(rows.filter(pc.invert(used)))
    intervals = rows.filter(used)
    found = [*findings, *more, *order.findings, *strange]

    def numbers(subtasks: frozenset[Subtask]) -> pa.Table:
        return scan(places.columns(), events.lsn_kernel(places, subtasks), events.LSNS, events.LSNS_REDUCE)[0]

    lost = losses(order, intervals, found, numbers)
    ports = ports_of(order, intervals, lost.trimmed, channels)
    deliveries, others = Deliveries(), _unlogged_sends(ports)
    suspected = suspect_channels(order, ports, intervals, lost)
    if suspected:
        runs = scan(
            places.columns(), events.run_kernel(places, suspected), events.SEQUENCE_RUNS, events.SEQUENCE_RUNS_REDUCE
        )[0]
        deliveries, wrong = examine_channels(order, ports, lost, runs, suspected)
        others += wrong
    table = checkpoint_table(order, ports, usable_checkpoints(order, lost, sources))
    current = current_states(order, ports, lost)
    if metadata is not None:
        silent = None if lost.damaged else CurrentState()

        def now(subtask: Subtask) -> CurrentState | None:
            return current.get(subtask) if subtask in places.index else silent

        table, left_out = with_records(table, metadata, now, as_of)
        others += left_out
    raw = RawEvents(order=order, ports=ports, deliveries=deliveries, current=current, table=table)
    return raw, [*_with_most_places(findings + more), *order.findings, *strange, *lost.findings, *others], inputs


def _with_most_places(findings: list[Finding]) -> list[Finding]:
    """Leave out findings of which another scan, which read other fields, has found more places."""
    return [
        f
        for f in findings
        if not any(f.id == g.id and f.subject == g.subject and set(f.where) < set(g.where) for g in findings)
    ]


def _unusable_findings(rows: pa.Table) -> list[Finding]:
    """Report events that cannot be used: of a channel that is not their subtask's, or of no channel or number."""
    found = []
    for side, fault in (
        (events.FOREIGN, "of a channel that is not the subtask's"),
        (events.INCOMPLETE, "without a channel or a sequence number"),
    ):
        mine = rows.filter(pc.equal(rows["side"], side))
        if len(mine):
            places = zip(mine["path"].to_pylist(), mine["least"].to_pylist(), strict=True)
            names = sorted(name for name in mine["channel"].to_pylist() if name is not None)
            subject = names[0] if names else "events/"
            found.append(unusable_events(side, subject, pc.sum(mine["rows"]).as_py(), fault, sorted(places)))
    return found


def _unlogged_sends(ports: Ports) -> list[Finding]:
    """Report channels of which more was received than the sender's log, which a crash cuts short, says was sent."""
    sent, received = np.zeros((2, len(ports.names)), np.int64)
    now = ports.now()
    sent[ports.channel[ports.side == 0]] = now[ports.side == 0]
    received[ports.channel[ports.side == 1]] = now[ports.side == 1]
    over = np.flatnonzero(received > sent).tolist()
    if not over:
        return []
    k = over[0]
    message = (
        f"on {many(len(over), 'channel')} messages were received and no event tells that they were sent, on "
        f"{ports.names[k]} {numbered('number', int(sent[k]), int(received[k]) - 1)}; they count as sent after the last "
        "checkpoint of their sender"
    )
    return [Finding("unlogged-sends", "info", ports.names[k], message)]

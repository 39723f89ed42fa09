"""Raw events as checkpoint records: the watermarks that each checkpoint event stands for.

Whatever follows from checkpoint records follows from these in the same way. A checkpoint has sent and received what
its subtask did before it in its local order; watermarks are one more than the highest number by then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes, holds
from cklog.arrays.types import Ints, Mask
from cklog.errors import CorruptInput
from cklog.history.events.losses import Losses
from cklog.history.events.order import Order
from cklog.history.records import records_of
from cklog.history.watermarks import MOST_WATERMARKS, CurrentState
from cklog.inputs.tables import WITH_PLACES
from cklog.model.findings import Finding
from cklog.model.names import Subtask
from cklog.model.wording import among, many

_PLACE = ("_path", "_offset")
_WATERMARKS = WITH_PLACES.field("sent").type


class Ports(NamedTuple):
    """The watermarks of both ends of channels, as far as the subtask there has events.

    Port p is side `side[p]` (0 send, 1 receive) of channel `names[channel[p]]`. Its watermark at checkpoint event x
    of its subtask `owner[p]` is `value[at[p] + x]`, and now `value[at[p + 1] - 1]`. Ports are sorted by (channel,
    side).
    """

    names: tuple[str, ...]
    channel: Ints
    side: Ints
    owner: Ints
    at: Ints
    value: Ints

    def now(self) -> Ints:
        """Return the watermark of each port at the end of the log, shape (ports,)."""
        return self.value[self.at[1:] - 1]


def ports_of(order: Order, intervals: pa.Table, trimmed: Mask, channels: Iterable[str] = ()) -> Ports:
    """Compute the watermarks of every port at every checkpoint event of its subtask.

    Parameters
    ----------
    intervals : `cklog.history.events.kernels.INTERVALS`, of sends and receives
    channels : channels that exist although no event may name them
    trimmed : subtasks whose log begins late, shape (n,). A port of theirs was at the first number known before
        that; a receiver of which none is known, at all that has been sent, or at 1 if no event tells of its sender

    Raises
    ------
    CorruptInput : there are more than `MOST_WATERMARKS`

    Notes
    -----
    Sends are numbered in the sender's order. Where they are not (`order-backwards`), a checkpoint has sent no more
    than all numbers below those that follow it: the line may get older by that.
    """
    names = tuple(sorted({*intervals["channel"].unique().to_pylist(), *channels}))
    ends = np.array([order.places.ends(name) for name in names], np.int64).reshape(-1)
    there = np.flatnonzero(ends >= 0)  # the key 2 * channel + side of each port
    owner, side = ends[there], there & 1
    lengths = np.diff(order.places.start)[owner] + 1
    if lengths.sum() > MOST_WATERMARKS:
        message = f"{len(there)} ends of channels with up to {lengths.max()} checkpoints: their watermarks do not fit"
        raise CorruptInput(message, "analyse a part of the history: move old events out of a copy")
    at = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    # the highest number + 1 of each port and interval, and the lowest: `_NONE` where nothing was sent or received
    value, bound = np.zeros(int(at[-1]), np.int64), np.full(int(at[-1]), _NONE)
    port = np.searchsorted(there, port_keys(names, intervals))
    cell = at[port] + intervals["interval"].to_numpy()
    value[cell], bound[cell] = intervals["next"].to_numpy(), intervals["least"].to_numpy()
    least = np.full(len(there), _NONE)
    np.minimum.at(least, port, intervals["least"].to_numpy())
    late = trimmed[owner]
    value[at[:-1]] = np.maximum(value[at[:-1]], np.where(late & (least < _NONE), least, 0))
    for p in range(len(there)):
        part = slice(at[p], at[p + 1])
        np.maximum.accumulate(value[part], out=value[part])
        if not side[p]:
            later = np.minimum.accumulate(bound[part][::-1])[::-1]  # the lowest number sent in an interval or later
            value[part][:-1] = np.minimum(value[part][:-1], later[1:])
    found = Ports(names=names, channel=there >> 1, side=side, owner=owner, at=at, value=value)
    for p in np.flatnonzero(late & (least == _NONE) & (side == 1)).tolist():
        sender = np.searchsorted(there, there[p] - 1)
        # of a sender that no event tells of, one message at least may have come: its initial state has sent none
        value[at[p] : at[p + 1]] = found.now()[sender] if there[sender] == there[p] - 1 else 1
    return found


def port_keys(names: Sequence[str], intervals: pa.Table) -> Ints:
    """Return 2 * channel + side of each row of `INTERVALS`, for channels numbered as in `names`, which are sorted."""
    code, mine = codes(intervals["channel"])
    received = pc.equal(intervals["side"], "receive").to_numpy(zero_copy_only=False)
    index = {name: k for k, name in enumerate(names)}
    found: Ints = 2 * np.array([index[name] for name in mine] or [0], np.int64)[code] + received
    return found


_NONE = np.iinfo(np.int64).max
"""No sequence number."""


def checkpoint_table(order: Order, ports: Ports, usable: Mask) -> pa.Table:
    """Make a record of each usable checkpoint event, as `WITH_PLACES`.

    Parameters
    ----------
    usable : which rows of `order.taken` may be used, shape (checkpoints,)
    """
    sent, received = (_watermark_maps(order, ports, side, usable) for side in (0, 1))
    taken = order.taken.filter(pa.array(usable))
    none = {field.name: pa.nulls(len(taken), field.type) for field in WITH_PLACES}
    columns = none | {name: taken[name] for name in ("operator", "subtask", "checkpoint", "time")}
    columns |= {"sent": sent, "received": received, "_path": taken["path"], "_offset": taken["offset"]}
    return pa.table([columns[name] for name in WITH_PLACES.names], WITH_PLACES.names)


def _watermark_maps(order: Order, ports: Ports, side: int, usable: Mask) -> pa.MapArray:
    """Return the watermarks of one side as a map from channel for each usable checkpoint.

    Subtask by subtask: its k usable checkpoints times its m ports, flat, and k times the size m.
    """
    start = order.places.start
    mine = np.flatnonzero(ports.side == side)
    mine = mine[np.argsort(ports.owner[mine], kind="stable")]  # ports of this side by subtask
    bounds = np.searchsorted(ports.owner[mine], np.arange(len(start)))
    keys, items, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for i in range(len(start) - 1):
        held = mine[bounds[i] : bounds[i + 1]]
        kept = np.flatnonzero(usable[start[i] : start[i + 1]])
        keys.append(np.tile(ports.channel[held], len(kept)))
        items.append(ports.value[(ports.at[held] + kept[:, None]).ravel()])
        sizes.append(np.full(len(kept), len(held)))
    offsets = np.r_[0, np.cumsum(np.concatenate(sizes))].astype(np.int32)
    names = pa.array(ports.names, pa.string())
    coded = pa.DictionaryArray.from_arrays(pa.array(np.concatenate(keys).astype(np.int32)), names)
    return pa.MapArray.from_arrays(pa.array(offsets), coded, pa.array(np.concatenate(items)))


def usable_checkpoints(order: Order, lost: Losses, sources: Collection[str]) -> Mask:
    """Find the checkpoint events whose watermarks are known, shape (checkpoints,).

    No event before them is missing, or none can have been a receive: `sources` are operators that receive nothing.
    """
    count = np.diff(order.places.start)  # checkpoints of each subtask
    before = order.places.position < np.repeat(lost.first, count)
    source = np.array([subtask.operator in sources for subtask in order.places.subtasks] or [False])
    found: Mask = before | np.repeat(source[: len(count)], count)
    return found


def current_states(order: Order, ports: Ports, lost: Losses) -> dict[Subtask, CurrentState]:
    """Return the current state of each subtask that had events by the moment asked for, if none can be missing."""
    found = {}
    now = ports.now()
    for i, subtask in enumerate(order.places.subtasks):
        if subtask in order.heard and not lost.doubtful[i]:
            current = found[subtask] = CurrentState()
            for p in np.flatnonzero(ports.owner == i).tolist():
                side = current.received if ports.side[p] else current.sent
                side[ports.names[ports.channel[p]]] = int(now[p])
    return found


def with_records(
    table: pa.Table, metadata: pa.Table, now: Callable[[Subtask], CurrentState | None], as_of: int | None = None
) -> tuple[pa.Table, list[Finding]]:
    """Join the checkpoints of events with what `checkpoints/` says of them besides watermarks.

    A checkpoint that `checkpoints/` does not know may never have been stored, and one without an event has no place:
    neither is used. Initial states need no event; a record of kind volatile stands for its subtask's current state.

    Parameters
    ----------
    table : records made of events, as `WITH_PLACES`
    metadata : records of `checkpoints/`, without watermarks
    now : returns the current state of a subtask, None if it is not known
    as_of : milliseconds; the events are those up to then, and nobody misses one of a later checkpoint

    Returns
    -------
    table : as `WITH_PLACES`
    findings : on the records, and on checkpoints that are not used
    """
    records = records_of(metadata)
    who = [records.subtasks[i] for i in records.subtask.tolist()]
    row = {(*subtask, n): r for r, (subtask, n) in enumerate(zip(who, records.number.tolist(), strict=True))}
    keys = list(zip(*(table[name].to_pylist() for name in ("operator", "subtask", "checkpoint")), strict=True))
    placed = [k for k, key in enumerate(keys) if key in row]
    taken = table.take(pa.array(placed, pa.int64()))
    known = records.table.take(pa.array([row[keys[k]] for k in placed], pa.int64()))
    joined = _with_watermarks(known, taken["sent"], taken["received"])
    columns = {"time": pc.coalesce(joined["time"], taken["time"])} | {name: taken[name] for name in _PLACE}
    for name, column in columns.items():
        joined = joined.set_column(WITH_PLACES.get_field_index(name), name, column.cast(WITH_PLACES.field(name).type))
    parts = [joined]
    volatile = holds(records.table["kind"], "volatile")
    unplaced = []
    for key in sorted(set(row) - set(keys)):
        if key[2] == 0:
            state: CurrentState | None = CurrentState()
        elif volatile[row[key]]:
            state = now(who[row[key]])
        else:
            time = records.table["time"][row[key]].as_py()
            if as_of is None or (time is not None and time <= as_of):
                unplaced.append(key)
            continue
        if state is not None:
            sent, received = (pa.array([sorted(side.items())], _WATERMARKS) for side in (state.sent, state.received))
            parts.append(_with_watermarks(records.table.slice(row[key], 1), sent, received))
    found = _left_out("unplaced-checkpoint", unplaced, "have", "no checkpoint event in events/")
    unrecorded = sorted(set(keys) - set(row))
    found += _left_out("unrecorded-checkpoint", unrecorded, "are", "not in checkpoints/ and may never have been stored")
    return pa.concat_tables(parts), [*records.findings, *found]


def _with_watermarks(records: pa.Table, sent: Any, received: Any) -> pa.Table:
    """Return records with these columns of watermarks, as `WITH_PLACES`."""
    columns = {name: records[name] for name in records.column_names} | {"sent": sent, "received": received}
    return pa.table([columns[name] for name in WITH_PLACES.names], WITH_PLACES.names).cast(WITH_PLACES)


def _left_out(id: str, keys: list[tuple[str, int, int]], verb: str, reason: str) -> list[Finding]:
    """Report (operator, subtask, checkpoint) that are not used, for a reason: a `verb` in the plural, and the rest."""
    if not keys:
        return []
    first = f"{keys[0][0]}/{keys[0][1]}={keys[0][2]}"
    unused = "it is not used" if len(keys) == 1 else "they are not used"
    message = f"{many(len(keys), 'checkpoint', verb)} {reason}, {among(len(keys), first)}; {unused}"
    return [Finding(id, "warning", first, message)]

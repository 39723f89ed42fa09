"""A batch of raw events as numbers: of each row the channel and side, and the place in its subtask's local order."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.columns import integers, true_rows
from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints, Mask
from cklog.model.names import Subtask, parse_channel

SIDES = ("send", "receive")
"""The two ends of a channel, in the order of their keys."""

_FILE = 1 << 42
"""A file's places are its rank times this, plus an offset: more than any file has."""

_RADIX = 1 << 16
"""Numpy sorts 16-bit numbers by radix, several times faster than wider ones."""


class _EventScratch(threading.local):
    """Arrays kept from batch to batch of a thread: fresh pages cost more than the work on them."""

    def __init__(self) -> None:
        self._held: dict[str, NDArray[Any]] = {}

    def array(self, name: str, count: int, kind: type[np.generic] = np.int64) -> NDArray[Any]:
        """Return an array of `count` numbers, whatever they are; the last one of the same name is overwritten."""
        if name not in self._held or count > len(self._held[name]) or self._held[name].dtype != kind:
            self._held[name] = np.zeros(count, kind)
        return self._held[name][:count]


SCRATCH = _EventScratch()


@dataclass(frozen=True)
class Places:
    """Where each of n subtasks took its checkpoints, in its own order.

    Attributes
    ----------
    subtasks : n names, sorted
    start, position : subtask i took its checkpoints at `position[start[i] : start[i + 1]]`, rising
    numbered : whether positions of a subtask are local numbers (`lsn`), shape (n,); else they are `place`s in files
    rank : the rank of each file, by path
    as_of : behind a subtask's last checkpoint, events after this moment (ms), or without a time, do not count
    """

    subtasks: tuple[Subtask, ...]
    start: Ints
    position: Ints
    numbered: Mask
    rank: Mapping[str, int]
    as_of: int | None = None

    @functools.cached_property
    def index(self) -> dict[Subtask, int]:
        """The index of each subtask."""
        return {subtask: i for i, subtask in enumerate(self.subtasks)}

    @functools.cached_property
    def _ends_of(self) -> dict[str | None, tuple[int, int]]:
        """The ends of channels that were asked for, so that each name is parsed once."""
        return {None: (-1, -1)}

    def ends(self, channel: str | None) -> tuple[int, int]:
        """Return sender and receiver of a channel by index, -1 for one that has no events."""
        if channel not in self._ends_of:
            found = parse_channel(channel or "")
            sender = -1 if found is None else self.index.get(found.sender, -1)
            receiver = -1 if found is None else self.index.get(found.receiver, -1)
            self._ends_of[channel] = sender, receiver
        return self._ends_of[channel]

    def columns(self) -> tuple[str, ...]:
        """Return the columns of `cklog.model.schemas.EVENTS` that the kernels read."""
        time = () if self.as_of is None else ("time",)
        return ("event", "operator", "subtask", "lsn", "channel", "seq", *time, "_path", "_offset")


_Numbers = TypeVar("_Numbers", int, Ints)


def place(rank: _Numbers, offset: _Numbers) -> _Numbers:
    """Return the position in the order of files of an offset in the file with this rank, in bytes.

    >>> place(1, 7)
    4398046511111
    """
    return rank * _FILE + offset


@dataclass(slots=True)
class EventBatch:
    """The sends and receives among the b rows of a batch.

    It holds until the thread makes the next one, because `key` lies in `SCRATCH`.

    Attributes
    ----------
    places : where the checkpoints lie
    names : c channels of the batch
    key : 2 * channel + side of each row, `passed` if it does not count, `passed` + 1 if it is unusable; shape (b,)
    passed : 2 * c, behind the keys of all channels
    seq : the message's sequence number, shape (b,)
    position : the place in the local order of its subtask, shape (b,)
    owner : subtask of each key, -1 for none, shape (passed + 2,)
    """

    places: Places
    names: pa.Array
    key: Ints
    passed: int
    seq: Ints
    position: Ints
    owner: Ints

    @classmethod
    def of(cls, places: Places, batch: pa.RecordBatch, channels: frozenset[str] | None = None) -> EventBatch:
        """Read a batch; with `channels`, events of others do not count."""
        names, channel = encoded(batch["channel"])
        kinds, kind = encoded(batch["event"])
        passed = 2 * len(names)
        narrow = np.uint16 if passed < _RADIX - 1 else np.int64
        keys = np.full((len(kinds), len(names) + 1), passed, narrow)  # the key of each kind of event on each channel
        for side, word in enumerate(SIDES):
            keys[kinds.to_numpy(zero_copy_only=False) == word] = [*range(side, passed, 2), passed + 1]
        ends = [places.ends(name) for name in names.to_pylist()]
        owner = np.array([*itertools.chain.from_iterable(ends), -1, -1], np.int64)
        which = np.multiply(kind, len(names) + 1, out=SCRATCH.array("which", len(kind)), casting="unsafe")
        which += channel
        # "clip", as the default, "raise", takes several times as long with `out` or narrow indices
        key = keys.ravel().take(which, out=SCRATCH.array("key", len(kind), narrow), mode="clip")
        seq = integers(batch["seq"])
        if batch["seq"].null_count:
            key[batch["seq"].is_null().to_numpy(zero_copy_only=False) & (key < passed)] = passed + 1
        owners = Owners.of(batch)
        expected = np.append(owners.find(places.subtasks), -1)[owner]
        strange = owners.code != expected.take(key, out=which, mode="clip")  # of a channel of another subtask
        strange &= key != passed
        key[strange] = passed + 1
        found = cls(
            places=places,
            names=names,
            key=key,
            passed=passed,
            seq=seq,
            position=_local_positions(places, batch, owner, key),
            owner=owner,
        )
        if channels is not None:
            unwanted = np.array([name not in channels for name in names.to_pylist()] + [True], np.bool_)
            key[unwanted[key >> 1]] = passed
        if places.as_of is not None:
            found._pass_late(batch)
        return found

    def interval(self, key: Ints, position: Ints) -> Ints:
        """Return how many checkpoints of the owner lie before each position; shapes (q,).

        A receive at the very place of a checkpoint lies before it, a send behind it.
        """
        owner = self.owner.take(key)
        low, high = self.places.start[owner], self.places.start[owner + 1]
        sends = (key & 1) ^ 1
        return first_at_least(self.places.position, low, high, position + sends) - low

    def _pass_late(self, batch: pa.RecordBatch) -> None:
        """Pass over events behind their subtask's last checkpoint that had not happened by the moment asked for."""
        timely = true_rows(pc.less_equal(batch["time"], self.places.as_of))
        late = np.flatnonzero(~timely & (self.key < self.passed))
        owner = self.owner[self.key[late]]
        checkpoints = self.places.start[owner + 1] - self.places.start[owner]
        opened = self.interval(self.key[late], self.position[late]) == checkpoints
        self.key[late[opened]] = self.passed


def _local_positions(places: Places, batch: pa.RecordBatch, owner: Ints, key: Ints) -> Ints:
    """Return the position of each row in the local order of its subtask, shape (b,).

    That is the row's `lsn` where all events of the subtask have one, else its place in files.
    """
    if places.numbered.all():
        return integers(batch["lsn"])
    path = batch["_path"][0].as_py() if batch.num_rows else ""
    offset = integers(batch["_offset"])
    found = place(np.full(len(offset), places.rank.get(path, len(places.rank))), offset)
    if places.numbered.any():
        numbered = np.append(places.numbered, False)[owner]
        found = np.where(numbered[key], integers(batch["lsn"]), found)
    return found


@dataclass(slots=True)
class Owners:
    """The subtask of each of b rows as one number.

    Attributes
    ----------
    operators : the operators of the batch
    parts : the distinct subtask numbers, rising, where they are too large to be used as they are; else None
    width : how many subtask numbers, or places in `parts`, there are
    code : operator * `width` + subtask number, or its place in `parts`; shape (b,), in `SCRATCH`
    """

    operators: pa.Array
    parts: Ints | None
    width: int
    code: Ints

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Owners:
        """Read the subtasks of a batch."""
        operators, operator = encoded(batch["operator"])
        part, parts = integers(batch["subtask"]), None
        width = int(part.max(initial=0)) + 1
        if width > _RADIX:
            parts, part = np.unique(part, return_inverse=True)
            width = len(parts)
        code = np.multiply(operator, width, out=SCRATCH.array("code", len(part)), casting="unsafe")
        code += part
        return cls(operators, parts, width, code)

    @property
    def size(self) -> int:
        """The number of possible codes: all are below it."""
        return len(self.operators) * self.width

    def names(self, code: Ints) -> dict[str, pa.Array]:
        """Return codes as columns `operator` and `subtask`."""
        part = code % self.width
        part = part if self.parts is None else self.parts[part]
        return {"operator": self.operators.take(pa.array(code // self.width)), "subtask": pa.array(part)}

    def find(self, subtasks: tuple[Subtask, ...]) -> Ints:
        """Return the code of each subtask, -2 if no row has it."""
        operator_at = {name: i for i, name in enumerate(self.operators.to_pylist())}
        part_at = None if self.parts is None else {number: i for i, number in enumerate(self.parts.tolist())}
        codes = []
        for operator, number in subtasks:
            part = number if part_at is None else part_at.get(number, self.width)
            there = operator in operator_at and 0 <= part < self.width
            codes.append(operator_at[operator] * self.width + part if there else -2)
        return np.array(codes, np.int64)


def encoded(column: pa.Array) -> tuple[pa.Array, Ints]:
    """Return the distinct values of a text column, and each row's value as an index; null is behind the last one.

    >>> values, index = encoded(pa.array(["b", None, "b", "a"]))
    >>> values.to_pylist(), index.tolist()
    (['b', 'a'], [0, 2, 0, 1])
    """
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    elif len(column.dictionary.unique()) < len(column.dictionary):  # allowed, and rare
        column = column.cast(pa.string()).dictionary_encode()
    code = column.indices
    if code.null_count:
        code = pc.fill_null(code, len(column.dictionary))
    return column.dictionary.cast(pa.string()), code.to_numpy()

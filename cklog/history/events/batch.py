"""A batch of raw events as numbers: each row's channel and side, and its place in its subtask's local order."""

from __future__ import annotations

import functools
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
from cklog.arrays.types import Ints
from cklog.model.names import Subtask, parse_channel

SIDES = ("send", "receive")
"""The two ends of a channel, in the order of their keys."""

_FILE = 1 << 42
"""Places of one file: more than its offsets."""

_RADIX = 1 << 16
"""Numpy sorts 16-bit numbers by radix, several times faster than wider ones."""


class _EventScratch(threading.local):
    """Arrays kept from batch to batch of a thread: fresh pages cost more than the work on them."""

    def __init__(self) -> None:
        self._held: dict[str, NDArray[Any]] = {}

    def array(self, name: str, count: int, kind: type[np.generic] = np.int64) -> NDArray[Any]:
        """`count` numbers, whatever they are; those of the same name before are overwritten."""
        if name not in self._held or count > len(self._held[name]) or self._held[name].dtype != kind:
            self._held[name] = np.zeros(count, kind)
        return self._held[name][:count]


SCRATCH = _EventScratch()


@dataclass(frozen=True)
class Places:
    """Where each subtask took its checkpoints, in its own order.

    Subtask i took them at `position[start[i] : start[i + 1]]`, rising; these are local numbers where `numbered[i]`,
    else places in files (`rank` of the path, and offset). Events after `as_of` (ms), or without a time, do not count
    after the last checkpoint.
    """

    subtasks: tuple[Subtask, ...]
    start: Ints
    position: Ints
    numbered: NDArray[np.bool_]
    rank: Mapping[str, int]
    as_of: int | None = None

    @functools.cached_property
    def index(self) -> dict[Subtask, int]:
        """Where each subtask is."""
        return {subtask: i for i, subtask in enumerate(self.subtasks)}

    @functools.cached_property
    def _known(self) -> dict[str | None, tuple[int, int]]:
        return {None: (-1, -1)}

    def ends(self, channel: str | None) -> tuple[int, int]:
        """Sender and receiver of a channel by index, -1 if it has no events."""
        if channel not in self._known:
            found = parse_channel(channel or "")
            ends = (-1, -1) if found is None else tuple(self.index.get(end, -1) for end in found[:2])
            self._known[channel] = ends[0], ends[1]
        return self._known[channel]

    def columns(self) -> tuple[str, ...]:
        """Columns of `cklog.model.schemas.EVENTS` that the kernels read."""
        time = () if self.as_of is None else ("time",)
        return ("event", "operator", "subtask", "lsn", "channel", "seq", *time, "_path", "_offset")


_Numbers = TypeVar("_Numbers", int, Ints)


def place(rank: _Numbers, offset: _Numbers) -> _Numbers:
    """Positions in file order.

    >>> place(1, 7)
    4398046511111
    """
    return rank * _FILE + offset


@dataclass(slots=True)
class EventBatch:
    """The sends and receives of a batch, until the next one of the thread: `key` is in `SCRATCH`.

    Attributes
    ----------
    names : channels of the batch
    key : 2 * channel + side of every row; `passed` for rows that do not count, `passed` + 1 for unusable ones
    seq, position : of every row
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
        names, channel = encoded(batch["channel"])
        kinds, kind = encoded(batch["event"])
        passed = 2 * len(names)
        narrow = np.uint16 if passed < _RADIX - 1 else np.int64
        keys = np.full((len(kinds), len(names) + 1), passed, narrow)
        for side, word in enumerate(SIDES):
            keys[kinds.to_numpy(zero_copy_only=False) == word] = [*range(side, passed, 2), passed + 1]
        ends = [places.ends(name) for name in names.to_pylist()]
        owner = np.array([end for pair in ends for end in pair] + [-1, -1], np.int64)
        which = np.multiply(kind, len(names) + 1, out=SCRATCH.array("which", len(kind)), casting="unsafe")
        which += channel
        # "clip", as the default, "raise", takes several times as long with `out` or narrow indices
        key = keys.ravel().take(which, out=SCRATCH.array("key", len(kind), narrow), mode="clip")
        seq = integers(batch["seq"])
        if batch["seq"].null_count:
            key[batch["seq"].is_null().to_numpy(zero_copy_only=False) & (key < passed)] = passed + 1
        owners = Owners.of(batch)
        expected = np.append(owners.find(places.subtasks), -1)[owner]
        strange = owners.code != expected.take(key, out=which, mode="clip")
        strange &= key != passed
        key[strange] = passed + 1
        found = cls(places, names, key, passed, seq, _positions(places, batch, owner, key), owner)
        if channels is not None:
            unwanted = np.array([name not in channels for name in names.to_pylist()] + [True], np.bool_)
            key[unwanted[key >> 1]] = passed
        if places.as_of is not None:
            found._pass_late(batch)
        return found

    def interval(self, key: Ints, position: Ints) -> Ints:
        """Checkpoints of the owner before each position; a receive at the very place of one lies before it."""
        owner = self.owner.take(key)
        low, high = self.places.start[owner], self.places.start[owner + 1]
        sends = (key & 1) ^ 1
        return first_at_least(self.places.position, low, high, position + sends) - low

    def _pass_late(self, batch: pa.RecordBatch) -> None:
        """Pass over what happened behind its subtask's last checkpoint and not by the moment asked for."""
        timely = true_rows(pc.less_equal(batch["time"], self.places.as_of))
        late = np.flatnonzero(~timely & (self.key < self.passed))
        owner = self.owner[self.key[late]]
        checkpoints = self.places.start[owner + 1] - self.places.start[owner]
        opened = self.interval(self.key[late], self.position[late]) == checkpoints
        self.key[late[opened]] = self.passed


def _positions(places: Places, batch: pa.RecordBatch, owner: Ints, key: Ints) -> Ints:
    """Each row's place in its subtask's order."""
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
    """Each row's subtask as a number, in `SCRATCH`: operator * `width` + (rank of its) subtask."""

    operators: pa.Array
    parts: Ints | None
    width: int
    code: Ints

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Owners:
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
        """All codes are below it."""
        return len(self.operators) * self.width

    def names(self, code: Ints) -> dict[str, pa.Array]:
        """Columns `operator` and `subtask` of codes."""
        part = code % self.width
        part = part if self.parts is None else self.parts[part]
        return {"operator": self.operators.take(pa.array(code // self.width)), "subtask": pa.array(part)}

    def find(self, subtasks: tuple[Subtask, ...]) -> Ints:
        """The code of each subtask, -2 if no row has it."""
        place = {name: i for i, name in enumerate(self.operators.to_pylist())}
        part = {p: i for i, p in enumerate(self.parts.tolist())} if self.parts is not None else None
        codes = []
        for operator, number in subtasks:
            inside = part.get(number, -1) if part is not None else number if number < self.width else -1
            codes.append(place[operator] * self.width + inside if operator in place and inside >= 0 else -2)
        return np.array(codes, np.int64)


def encoded(column: pa.Array) -> tuple[pa.Array, Ints]:
    """Distinct values of a text column, and each row's value as an index; behind the last one where it is null."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    elif len(column.dictionary.unique()) < len(column.dictionary):  # allowed, and rare
        column = column.cast(pa.string()).dictionary_encode()
    code = column.indices
    if code.null_count:
        code = pc.fill_null(code, len(column.dictionary))
    return column.dictionary.cast(pa.string()), code.to_numpy()

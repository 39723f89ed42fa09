"""The pickle machine for plain values: a stack, marks and a memo, and what limits them.

What it holds is bounded by the bytes that are there: memo entries are dense, and containers, nesting and the length of
numbers have limits. Nothing here recurses. The opcodes are in `cklog.parsers.pickles.restricted`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cklog.budgets import (
    HASHED_PARTS,
    HASHED_PER_BYTE,
    NESTED,
    NUMBER_BYTES,
    SAME_HASH,
    TUPLE_PARTS,
    TUPLES_NESTED,
    over,
)

_FEW_CONTAINERS = 1_000
_BYTES_A_CONTAINER = 8
"""Beyond the first few, a container needs so many bytes of pickle: memory stays within a small multiple of them."""


_HASHED_AT_ONCE = 64
"""Bits of a whole number that count as one part of what is hashed."""


class Stop(Exception):
    """Raised where the machine stops, and says why; the offset is known to its caller."""


class Skipped:
    """Stand for a container of a `kind` that was read and not kept, or for an object, whose kind (None) nobody knows.

    What a pickle names has the kind `type`, as mostly it is a class. Only that and an object may be called, and may
    take items of every sort.
    """

    __slots__ = ("kind",)

    def __init__(self, kind: type[Any] | None) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<skipped {self.kind.__name__ if self.kind else 'object'}>"


SKIPPED, NAMED = Skipped(None), Skipped(type)
_SKIPPED_KINDS = {kind: Skipped(kind) for kind in (list, dict, set, tuple, frozenset)}


def skipped_kind(kind: type[Any]) -> Skipped:
    """Return what stands for a container of a kind: list, dict, set, tuple or frozenset."""
    return _SKIPPED_KINDS[kind]


class Machine:
    """What a pickle has made so far.

    `data` is the buffer, `limit` its size, and `here` where the opcode in hand begins. `stack` holds values, `marks`
    the heights of it at which a mark stands, `memo` what may be fetched again. `_depth` is how deep tuples and
    frozensets nest, and how many parts they have, by identity; `_alive` keeps those alive. `_same` counts keys by
    their hash, `_hashed` the parts that were hashed, `_left` how many containers may still be made.

    All methods raise `Stop` where what is on the stack does not fit, and `OverBudget` where a limit is reached.
    """

    def __init__(self, data: bytes, at: int, keys: frozenset[str] | None) -> None:
        self.data = data
        self.limit = len(data)
        self.here = at
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self._keys = keys
        self._depth: dict[int, tuple[int, int]] = {}
        self._alive: list[Any] = []
        self._same: dict[int, int] = {}
        self._hashed = 0
        self._left = _FEW_CONTAINERS + (len(data) - at) // _BYTES_A_CONTAINER

    def result(self) -> Any:
        """Return the one value that is left."""
        if len(self.stack) != 1 or self.marks:
            raise Stop(f"STOP with {len(self.stack)} values")
        return self.stack[0]

    def push(self, value: Any) -> None:
        """Push a value that is no container, as it is."""
        self.stack.append(value)

    def number(self, value: int) -> None:
        """Push a whole number, if it is short enough to be printed."""
        if value.bit_length() > 8 * NUMBER_BYTES:
            raise over("the length of a number in the pickle", NUMBER_BYTES)
        self.stack.append(value)

    def mark(self) -> None:
        """Note that the items of the next container begin here."""
        if len(self.marks) >= NESTED:
            raise over("how deep the pickle nests", NESTED)
        self.marks.append(len(self.stack))

    def require(self, count: int) -> None:
        """Stop unless so many values are behind the last mark: no opcode reaches beyond it."""
        if len(self.stack) - (self.marks[-1] if self.marks else 0) < count:
            raise Stop("an opcode needs more values than there are")

    def popped(self) -> list[Any]:
        """Take the values behind the last mark off the stack."""
        at, stack = self.marks.pop(), self.stack
        items = stack[at:]
        del stack[at:]
        return items

    def begin(self, make: type[list[Any]] | type[dict[Any, Any]] | type[set[Any]]) -> None:
        """Push an empty container, which waits for items; what stands for it if nobody asked for it."""
        self.stack.append(skipped_kind(make) if self._is_unwanted() else self._counted(make()))

    def _is_unwanted(self) -> bool:
        """Return whether the next container is under a key that nobody asked for, or in something skipped.

        Items wait on the stack behind their container and a mark; a single one, without a mark.
        """
        if self._keys is None or not self.stack:
            return False
        below, holder = self.stack[-1], self._holder()
        if isinstance(holder, Skipped) or (isinstance(below, Skipped) and below.kind not in (tuple, frozenset)):
            return True
        if not isinstance(holder, dict) or isinstance(below, list | dict | set):
            return False
        return not (isinstance(below, str) and below in self._keys)

    def _holder(self) -> Any:
        """Return the container that the items behind the last mark are for; None for a tuple's."""
        at = self.marks[-1] - 1 if self.marks else 0
        return self.stack[at] if 0 <= at < len(self.stack) else None

    def _counted(self, container: Any) -> Any:
        """Return a container again, if there are bytes enough for one more."""
        self._left -= 3 if isinstance(container, dict | set | frozenset) else 1
        if self._left < 0:
            raise over("the number of containers for the bytes of the pickle", self.limit // _BYTES_A_CONTAINER)
        return container

    def fixed(self, make: type[tuple[Any, ...]] | type[frozenset[Any]], items: list[Any]) -> None:
        """Push a tuple or a frozenset, which never changes."""
        unwanted = self._keys is not None and isinstance(self._holder(), Skipped)  # else it is a class before arguments
        if unwanted or any(isinstance(item, Skipped) for item in items):
            self.stack.append(skipped_kind(make))
            return
        inside = [self._depth.get(id(item)) or (0, _parts_of_leaf(item)) for item in items]
        depth = 1 + max((deep for deep, _ in inside), default=0)
        parts = 1 + sum(count for _, count in inside)
        if depth > TUPLES_NESTED:
            raise over("how deep tuples nest in the pickle", TUPLES_NESTED)
        if depth > 1 and parts > TUPLE_PARTS + self.limit:
            raise over("the work of hashing a tuple in the pickle", TUPLE_PARTS + self.limit)
        made = self._counted(make(self._checked_keys(items, len(self._alive)) if make is frozenset else items))
        self._depth[id(made)] = depth, parts
        self._alive.append(made)
        self.stack.append(made)

    def drop(self) -> None:
        """Take the top off the stack, or the mark that stands there: of a tuple in itself that was made on the way."""
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.stack.pop()

    def drop_marked(self) -> None:
        """Take what stands behind the last mark off the stack, as `drop` does one by one."""
        self.popped()

    def made(self, items: list[Any]) -> None:
        """Leave what stands for an object, or its class, on top: `items` are what it is made of, or its state."""
        if not _takes(self.stack[-1], None):
            raise Stop("an object of what is no class")

    def called(self, items: list[Any]) -> None:
        """Leave what stands for an object on top: `items` are a tuple of arguments, and a dict of those with names."""
        self.made(items)
        for item, kind in zip(items, (tuple, dict), strict=False):
            if not isinstance(item, kind) and (item is NAMED or not _takes(item, kind)):
                raise Stop("arguments that are none")
        self.stack[-1] = SKIPPED

    def marked_object(self) -> None:
        """Push what stands for an object: what it is made of stands behind the mark."""
        self.popped()
        self.push(SKIPPED)

    def marked_call(self) -> None:
        """Push what stands for an object: its class stands behind the mark, and then what it is made of."""
        items = self.popped()
        if not items or not _takes(items[0], None):
            raise Stop("an object of what is no class")
        self.push(SKIPPED)

    def listed(self, items: list[Any]) -> None:
        """Add items to the list on top."""
        top = self.stack[-1]
        if isinstance(top, list):
            top += items
        elif not _takes(top, list):
            raise Stop("items for what is no list")

    def paired(self, items: list[Any]) -> None:
        """Add keys and values, which come in turn, to the dict on top."""
        top = self.stack[-1]
        if len(items) % 2:
            raise Stop("a key without a value")
        if isinstance(top, dict):
            top.update(zip(self._checked_keys(items[::2], id(top)), items[1::2], strict=True))
        elif not _takes(top, dict):
            raise Stop("pairs for what is no dict")

    def added(self, items: list[Any]) -> None:
        """Add members to the set on top."""
        top = self.stack[-1]
        if isinstance(top, set):
            top.update(self._checked_keys(items, id(top)))
        elif not _takes(top, set):
            raise Stop("members for what is no set")

    def whole(self, make: type[list[Any]] | type[dict[Any, Any]], add: Callable[[Machine, list[Any]], None]) -> None:
        """Push a container of what stands behind the mark, which still waits for more (protocol 0)."""
        items = self.popped()
        self.begin(make)
        add(self, items)

    def remember(self, index: int) -> None:
        """Put the top into the memo: at the next index, or at one that is there already."""
        self.require(1)
        if not 0 <= index <= len(self.memo):
            raise Stop(f"memo index {index} is refused: {len(self.memo)} entries so far")
        self.memo[index : index + 1] = [self.stack[-1]]

    def fetch(self, index: int) -> None:
        """Push what the memo holds."""
        if not 0 <= index < len(self.memo):
            raise Stop(f"memo index {index} of {len(self.memo)}")
        self.stack.append(self.memo[index])

    def _checked_keys(self, items: list[Any], holder: int) -> list[Any]:
        """Return values again that may be keys of one `holder`: few of them have the same hash.

        Long numbers with one hash are easily found, and so are tuples: they make a dict as slow as a list. Neither
        keeps its hash, so that a key that is fetched again is gone through again: all of it together is counted.
        """
        for item in items:
            kind = type(item)
            if kind is tuple or kind is frozenset or (kind is int and item.bit_length() > _HASHED_AT_ONCE):
                self._hashed += (self._depth.get(id(item)) or (0, _parts_of_leaf(item)))[1]
                if self._hashed > (most := HASHED_PARTS + HASHED_PER_BYTE * self.limit):
                    raise over("the work of hashing keys in the pickle", most)
                place = hash(item) ^ holder
                self._same[place] = self._same.get(place, 0) + 1
                if self._same[place] > SAME_HASH:
                    raise over("the number of keys with one hash in the pickle", SAME_HASH)
        return items


def _takes(item: Any, kind: type[Any] | None) -> bool:
    """Return whether something was skipped that is of a kind, or an object or a class, which may do as that does."""
    return isinstance(item, Skipped) and item.kind in (None, type, kind)


def _parts_of_leaf(item: Any) -> int:
    """Return how much of a tuple's hash is a value that has no parts: a long number is gone through each time."""
    return 1 + item.bit_length() // _HASHED_AT_ONCE if type(item) is int else 1

"""Plain pickles, read without building anything but containers, text, bytes and numbers (protocols 0 to 5).

    pickle = opcode*  "."       each opcode with its argument; the stream ends itself, so that pickles can be joined

A pickle is a program. This machine runs the opcodes that make None, bool, int, float, str, bytes, bytearray, list,
tuple, dict, set and frozenset, and refuses every other one by name, before anything of it is done. Python writes some
plain values as calls in old protocols (a set before 4, bytes before 3, a bytearray before 5): they are refused, too.

What it holds is bounded by the bytes that are there: memo entries are dense, and containers, nesting and the length of
numbers have limits. Nothing here recurses.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from typing import Any

_NESTED = 1_000
"""Marks that may stand open at once: more than Python's own pickler can write by recursion."""

_TUPLES_NESTED = 100
"""Tuples in tuples: their hash, which a dict asks for, is computed by recursion."""

_NUMBER_BYTES = 4_096
_FEW_CONTAINERS = 1_000
_BYTES_A_CONTAINER = 8
"""Beyond the first few, a container needs so many bytes of pickle: memory stays within a small multiple of them."""


class Refused(ValueError):
    """A pickle that is not plain data, or no pickle; `offset` in bytes of the buffer."""

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(f"{why} at byte {offset}")
        self.why = why
        self.offset = offset


class CutShort(Refused):
    """The buffer ends inside the pickle."""


class Skipped:
    """Stands for a container that the caller did not ask for; it was read and not kept."""

    __slots__ = ()


SKIPPED = Skipped()


def load(data: bytes, keys: frozenset[str] | None = None) -> Any:
    """The value of `data`, which is one pickle and nothing else.

    Parameters
    ----------
    keys : containers under other keys of dicts are `SKIPPED`, and some in tuples; None keeps everything

    Raises
    ------
    Refused : `data` is not plain, or not whole (`CutShort`), or goes on behind the pickle

    >>> load(b"\\x80\\x04}\\x94\\x8c\\x01a\\x94K\\x07s.")
    {'a': 7}
    >>> load(b"cos\\nsystem\\n(S'true'\\ntR.")
    Traceback (most recent call last):
        ...
    cklog.parsers.restricted_pickle.Refused: GLOBAL os system is refused at byte 0
    """
    value, end = load_from(data, 0, keys)
    if end != len(data):
        raise Refused(f"{len(data) - end} bytes follow the pickle", end)
    return value


def load_from(data: bytes, at: int, keys: frozenset[str] | None = None) -> tuple[Any, int]:
    """The value of the pickle that begins at byte `at`, and where it ends; the rest as `load`."""
    file = io.BytesIO(data)
    file.seek(at)
    return load_stream(file, len(data) - at, keys)


def load_stream(file: io.BytesIO, size: int, keys: frozenset[str] | None = None) -> tuple[Any, int]:
    """The same from an open buffer's place on, of which `size` bytes may be the pickle; offsets are the buffer's."""
    start = file.tell()
    machine = _Machine(size, keys)
    here = start
    try:
        for opcode, argument, position in pickletools.genops(file):
            here = start if position is None else position
            if opcode.name == "STOP":
                return machine.result(), file.tell()
            step = _STEPS.get(opcode.name)
            if step is None:
                raise _Stop(f"{_named(opcode.name, argument, machine.stack)} is refused")
            step(machine, argument)
    except _Stop as stop:
        raise Refused(str(stop), here) from None
    except (ValueError, OverflowError) as error:
        raise _unreadable(error, file.tell(), start + size, here) from None
    except (IndexError, TypeError, KeyError, AttributeError):
        raise Refused("an opcode does not fit what is there", here) from None
    raise CutShort("the pickle has no end", here)


class _Stop(Exception):
    """Why the machine stops; the offset is known to its caller."""


def _unreadable(error: Exception, at: int, end: int, here: int) -> Refused:
    """`genops` says in words only that bytes ran out: then it has read to the end."""
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    if at >= end and why.startswith(("pickle exhausted", "not enough data", "no newline", "expected")):
        return CutShort("the pickle is cut short", here)
    return Refused(f"no pickle ({why[:80]})", here)


def _named(opcode: str, argument: Any, stack: list[Any]) -> str:
    """An opcode with what it names, in printable letters."""
    told = argument
    if opcode == "STACK_GLOBAL" and len(stack) > 1:
        told = f"{stack[-2]} {stack[-1]}" if isinstance(stack[-1], str) and isinstance(stack[-2], str) else None
    shown = "".join(c for c in str(told) if c.isprintable())[:80] if isinstance(told, str | int) else ""
    return f"{opcode} {shown}".rstrip()


class _Machine:
    """The pickle machine for plain values.

    `stack` holds values, `marks` the heights of it at which a mark stands, `memo` what may be fetched again, `tall`
    how deep tuples nest, by identity (`held` keeps those alive).
    """

    def __init__(self, size: int, keys: frozenset[str] | None) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self._keys = keys
        self._tall: dict[int, int] = {}
        self._held: list[Any] = []
        self._left = _FEW_CONTAINERS + size // _BYTES_A_CONTAINER

    def result(self) -> Any:
        """The one value that is left."""
        if len(self.stack) != 1 or self.marks:
            raise _Stop(f"STOP with {len(self.stack)} values")
        return self.stack[0]

    def push(self, value: Any) -> None:
        """A leaf, as it is."""
        self.stack.append(value)

    def number(self, value: int) -> None:
        """A whole number of a length that can be printed."""
        if value.bit_length() > 8 * _NUMBER_BYTES:
            raise _Stop("a number of more than 4096 bytes is refused")
        self.stack.append(value)

    def mark(self) -> None:
        """Where the items of the next container begin."""
        if len(self.marks) >= _NESTED:
            raise _Stop("nested more than 1000 deep")
        self.marks.append(len(self.stack))

    def popped(self) -> list[Any]:
        """The values behind the last mark, taken off the stack."""
        at = self.marks.pop()
        items = self.stack[at:]
        del self.stack[at:]
        return items

    def begin(self, make: type[list[Any]] | type[dict[Any, Any]] | type[set[Any]]) -> None:
        """An empty container, which waits for items; `SKIPPED` if nobody asked for it."""
        self.stack.append(SKIPPED if self._unwanted() else self._counted(make()))

    def _unwanted(self) -> bool:
        """Whether the next container is under a key that nobody asked for, or in something skipped.

        Items wait on the stack behind their container and a mark; a single one, without a mark.
        """
        if self._keys is None or not self.stack:
            return False
        below, holder = self.stack[-1], self._holder()
        if holder is SKIPPED or below is SKIPPED:
            return True
        if not isinstance(holder, dict) or isinstance(below, list | dict | set):
            return False
        return not (isinstance(below, str) and below in self._keys)

    def _holder(self) -> Any:
        """What the items behind the last mark are for; None for a tuple's."""
        at = self.marks[-1] - 1 if self.marks else 0
        return self.stack[at] if 0 <= at < len(self.stack) else None

    def _counted(self, container: Any) -> Any:
        """A container, if there are bytes enough for one more."""
        self._left -= 3 if isinstance(container, dict | set | frozenset) else 1
        if self._left < 0:
            raise _Stop("more containers than its bytes can mean")
        return container

    def fixed(self, make: type[tuple[Any, ...]] | type[frozenset[Any]], items: list[Any]) -> None:
        """A tuple or a frozenset, which never changes."""
        if self._holder() is SKIPPED or any(item is SKIPPED for item in items):
            self.stack.append(SKIPPED)
            return
        height = 1 + max((self._tall.get(id(item), 0) for item in items), default=0)
        if height > _TUPLES_NESTED:
            raise _Stop("tuples nested more than 100 deep")
        if any(type(item) is int and item.bit_length() > 64 for item in items):
            raise _Stop("a number beyond 64 bits in a tuple")
        made = self._counted(make(_keyed(items) if make is frozenset else items))
        self._tall[id(made)] = height
        self._held.append(made)
        self.stack.append(made)

    def listed(self, items: list[Any]) -> None:
        """Items for the list on top."""
        top = self.stack[-1]
        if isinstance(top, list):
            top += items
        elif top is not SKIPPED:
            raise _Stop("items for what is no list")

    def paired(self, items: list[Any]) -> None:
        """Keys and values, in turn, for the dict on top."""
        top = self.stack[-1]
        if len(items) % 2:
            raise _Stop("a key without a value")
        if isinstance(top, dict):
            top.update(zip(_keyed(items[::2]), items[1::2], strict=True))
        elif top is not SKIPPED:
            raise _Stop("pairs for what is no dict")

    def added(self, items: list[Any]) -> None:
        """Members for the set on top."""
        top = self.stack[-1]
        if isinstance(top, set):
            top.update(_keyed(items))
        elif top is not SKIPPED:
            raise _Stop("members for what is no set")

    def whole(self, make: type[list[Any]] | type[dict[Any, Any]], add: Callable[[_Machine, list[Any]], None]) -> None:
        """A container with what stands behind the mark, which still waits for more (protocol 0)."""
        items = self.popped()
        self.begin(make)
        add(self, items)

    def remember(self, index: int | None = None) -> None:
        """Put the top into the memo: at the next index, or at one that is there already."""
        index = len(self.memo) if index is None else index
        if not 0 <= index <= len(self.memo):
            raise _Stop(f"memo index {index} is refused: {len(self.memo)} entries so far")
        self.memo[index : index + 1] = [self.stack[-1]]

    def fetch(self, index: int) -> None:
        """Push what the memo holds."""
        if not 0 <= index < len(self.memo):
            raise _Stop(f"memo index {index} of {len(self.memo)}")
        self.stack.append(self.memo[index])


def _keyed(items: list[Any]) -> list[Any]:
    """Values as keys. Long numbers with one hash are easily found, and make a dict as slow as a list."""
    for item in items:
        if type(item) is int and item.bit_length() > 64:
            raise _Stop("a number beyond 64 bits as a key")
    return items


def _one(add: Callable[[_Machine, list[Any]], None], count: int) -> Callable[[_Machine, Any], None]:
    """The last `count` values as items of what is below them."""

    def step(machine: _Machine, _argument: Any) -> None:
        items = machine.stack[-count:]
        del machine.stack[-count:]
        add(machine, items)

    return step


def _many(add: Callable[[_Machine, list[Any]], None]) -> Callable[[_Machine, Any], None]:
    return lambda machine, _argument: add(machine, machine.popped())


def _leaf(machine: _Machine, argument: Any) -> None:
    machine.push(argument)


def _tuple(machine: _Machine, items: list[Any]) -> None:
    machine.fixed(tuple, items)


def _pass(_machine: _Machine, _argument: Any) -> None:
    """Says how the pickle was written, not what is in it."""


_LEAVES = "BINFLOAT FLOAT BINUNICODE SHORT_BINUNICODE BINUNICODE8 UNICODE BINBYTES SHORT_BINBYTES BINBYTES8"
_NUMBERS = "INT BININT BININT1 BININT2 LONG LONG1 LONG4"

_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(_LEAVES.split(), _leaf),
    **dict.fromkeys(_NUMBERS.split(), lambda machine, n: machine.number(n)),
    **dict.fromkeys(("PROTO", "FRAME"), _pass),
    "BYTEARRAY8": lambda machine, data: machine.push(bytearray(data)),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "MARK": lambda machine, _: machine.mark(),
    "EMPTY_LIST": lambda machine, _: machine.begin(list),
    "EMPTY_DICT": lambda machine, _: machine.begin(dict),
    "EMPTY_SET": lambda machine, _: machine.begin(set),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "TUPLE": _many(_tuple),
    "TUPLE1": _one(_tuple, 1),
    "TUPLE2": _one(_tuple, 2),
    "TUPLE3": _one(_tuple, 3),
    "FROZENSET": _many(lambda machine, items: machine.fixed(frozenset, items)),
    "LIST": lambda machine, _: machine.whole(list, _Machine.listed),
    "DICT": lambda machine, _: machine.whole(dict, _Machine.paired),
    "APPEND": _one(_Machine.listed, 1),
    "APPENDS": _many(_Machine.listed),
    "SETITEM": _one(_Machine.paired, 2),
    "SETITEMS": _many(_Machine.paired),
    "ADDITEMS": _many(_Machine.added),
    "PUT": lambda machine, index: machine.remember(index),
    "BINPUT": lambda machine, index: machine.remember(index),
    "LONG_BINPUT": lambda machine, index: machine.remember(index),
    "MEMOIZE": lambda machine, _: machine.remember(),
    "GET": lambda machine, index: machine.fetch(index),
    "BINGET": lambda machine, index: machine.fetch(index),
    "LONG_BINGET": lambda machine, index: machine.fetch(index),
}

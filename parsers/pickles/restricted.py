"""Plain pickles, read without building anything but containers, text, bytes and numbers (protocols 0 to 5).

    pickle = opcode*  "."       each opcode with its argument; the stream ends itself, so that pickles can be joined

A pickle is a program. This machine runs the opcodes that make None, bool, int, float, str, bytes, bytearray, list,
tuple, dict, set and frozenset, and refuses every other one by name, before anything of it is done. Python writes some
plain values as calls in old protocols (a set before 4, bytes before 3, a bytearray before 5): they are refused, too.

What it holds is bounded by the bytes that are there, and nothing here recurses (`cklog.parsers.pickles.machine`).
"""

from __future__ import annotations

import io
import pickletools
import struct
import sys
from collections.abc import Callable
from typing import Any

from cklog.parsers.pickles.machine import SKIPPED, Machine, Stop

__all__ = ["SKIPPED", "CutShort", "Refused", "load", "load_from"]

_STOP, _SHORT_TEXT, _MEMOIZE = 0x2E, 0x8C, 0x94


class Refused(ValueError):
    """A pickle that is not plain data, or no pickle; `offset` in bytes of the buffer."""

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(f"{why} at byte {offset}")
        self.why = why
        self.offset = offset


class CutShort(Refused):
    """The buffer ends inside the pickle."""


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
    cklog.parsers.pickles.restricted.Refused: GLOBAL os system is refused at byte 0
    """
    value, end = load_from(data, 0, keys)
    if end != len(data):
        raise Refused(f"{len(data) - end} bytes follow the pickle", end)
    return value


def load_from(data: bytes, at: int, keys: frozenset[str] | None = None) -> tuple[Any, int]:
    """The value of the pickle that begins at byte `at`, and where it ends; the rest as `load`."""
    machine = Machine(data, at, keys)
    try:
        at = _run(machine, at)
        return machine.result(), at
    except Stop as stop:
        raise Refused(str(stop), machine.here) from None
    except (_Cut, struct.error):
        raise CutShort("the pickle is cut short", machine.here) from None
    except (ValueError, OverflowError) as error:
        raise Refused(_unreadable(error), machine.here) from None
    except (IndexError, TypeError, KeyError, AttributeError):
        raise Refused("an opcode does not fit what is there", machine.here) from None


def _run(machine: Machine, at: int) -> int:
    """Do opcodes up to the one that ends the pickle, and give the byte behind it.

    Most of a pickle are short strings, each with an opcode that puts it into the memo. They are read here: a call for
    each would take as long again.
    """
    data, limit, push, remember = machine.data, machine.limit, machine.stack.append, machine.memo.append
    while at < limit:
        code = data[at]
        machine.here = at
        at += 1
        if code != _SHORT_TEXT:
            if code == _STOP:
                return at
            at = _STEPS[code](machine, at)
            continue
        start = at + 1
        at = start + data[at] if start <= limit else start
        if at > limit:
            raise _Cut
        try:
            value = data[start:at].decode()
        except UnicodeDecodeError:
            value = _text(data[start:at])
        push(value)
        if at < limit and data[at] == _MEMOIZE:
            remember(value)
            at += 1
    machine.here = at
    raise _Cut


class _Cut(Exception):
    """The buffer ends inside an opcode."""


def _unreadable(error: Exception) -> str:
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"no pickle ({why[:80]})"


# Arguments

_U2, _I4, _U4, _U8 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I"), struct.Struct("<Q")
_F8 = struct.Struct(">d")
_LENGTHS = {1: struct.Struct("<B"), 4: _U4, 8: _U8}
_Step = Callable[[Machine, int], int]
"""Does what an opcode says; given the byte behind the opcode, gives the one behind its argument."""


def _piece(machine: Machine, at: int, size: int) -> tuple[bytes, int]:
    """`size` bytes, and where they end."""
    end = at + size
    if end > machine.limit:
        raise Stop("no pickle (a length beyond any memory)") if size > sys.maxsize else _Cut
    return machine.data[at:end], end


def _line(machine: Machine, at: int) -> tuple[bytes, int]:
    """The bytes up to the next newline, and where the next line begins."""
    end = machine.data.find(b"\n", at)
    if end < 0:
        raise _Cut
    return machine.data[at:end], end + 1


def _text(data: bytes) -> str:
    """Python writes halves of surrogate pairs, too."""
    return data.decode("utf-8", "surrogatepass")


def _decimal(line: bytes) -> int | bool:
    return line == b"01" if line in (b"00", b"01") else int(line)


# Opcodes

_RAN_OUT = ("not enough data", "no newline", "expected")
"""How `pickletools` begins to say that bytes ran out."""


def _refused(machine: Machine, at: int) -> int:
    """An opcode that is none, or that makes something else than a plain value: named with its argument."""
    known = next((op for op in pickletools.opcodes if ord(op.code) == machine.data[at - 1]), None)
    if known is None:
        raise Stop(f"no pickle (opcode {machine.data[at - 1]:#04x} is not known)")
    argument = None
    if known.arg is not None:
        file = io.BytesIO(machine.data)
        file.seek(at)
        try:
            argument = known.arg.reader(file)
        except ValueError as error:
            cut = file.tell() == machine.limit and str(error).startswith(_RAN_OUT)
            raise _Cut if cut else Stop(_unreadable(error)) from None
    raise Stop(f"{_named(known.name, argument, machine.stack)} is refused")


def _named(opcode: str, argument: Any, stack: list[Any]) -> str:
    """An opcode with what it names, in printable letters."""
    told = argument
    if opcode == "STACK_GLOBAL" and len(stack) > 1:
        told = f"{stack[-2]} {stack[-1]}" if isinstance(stack[-1], str) and isinstance(stack[-2], str) else None
    shown = "".join(c for c in str(told) if c.isprintable())[:80] if isinstance(told, str | int) else ""
    return f"{opcode} {shown}".rstrip()


def _byte(machine: Machine, at: int) -> int:
    try:
        machine.stack.append(machine.data[at])
    except IndexError:
        raise _Cut from None
    return at + 1


def _memoize(machine: Machine, at: int) -> int:
    machine.memo.append(machine.stack[-1])
    return at


def _constant(value: Any) -> _Step:
    def step(machine: Machine, at: int) -> int:
        machine.stack.append(value)
        return at

    return step


def _fixed(kind: struct.Struct) -> _Step:
    """A number of a fixed size."""

    def step(machine: Machine, at: int) -> int:
        machine.stack.append(kind.unpack_from(machine.data, at)[0])
        return at + kind.size

    return step


def _sized(width: int, make: Callable[[bytes], Any]) -> _Step:
    """A length of `width` bytes, and so many bytes that a value is made of."""
    length = _LENGTHS[width]

    def step(machine: Machine, at: int) -> int:
        held, end = _piece(machine, at + width, length.unpack_from(machine.data, at)[0])
        machine.stack.append(make(held))
        return end

    return step


def _number(length: struct.Struct) -> _Step:
    """A whole number of any length, little-endian."""

    def step(machine: Machine, at: int) -> int:
        size = length.unpack_from(machine.data, at)[0]
        if size < 0:
            raise Stop(f"no pickle (a number of {size} bytes)")
        held, end = _piece(machine, at + length.size, size)
        machine.number(int.from_bytes(held, "little", signed=True))
        return end

    return step


def _lined(make: Callable[[bytes], Any], take: Callable[[Machine, Any], None]) -> _Step:
    """A value written as a line."""

    def step(machine: Machine, at: int) -> int:
        line, end = _line(machine, at)
        take(machine, make(line))
        return end

    return step


def _indexed(kind: struct.Struct, do: Callable[[Machine, int], None]) -> _Step:
    """A place of the memo."""

    def step(machine: Machine, at: int) -> int:
        do(machine, kind.unpack_from(machine.data, at)[0])
        return at + kind.size

    return step


def _passed(width: int) -> _Step:
    """Says how the pickle was written, not what is in it."""

    def step(machine: Machine, at: int) -> int:
        return _piece(machine, at, width)[1]

    return step


def _plain(do: Callable[[Machine], None]) -> _Step:
    """An opcode without an argument."""

    def step(machine: Machine, at: int) -> int:
        do(machine)
        return at

    return step


def _last(add: Callable[[Machine, list[Any]], None], count: int) -> _Step:
    """The last `count` values as items of what is below them."""

    def step(machine: Machine, at: int) -> int:
        items = machine.stack[-count:]
        del machine.stack[-count:]
        add(machine, items)
        return at

    return step


def _marked(add: Callable[[Machine, list[Any]], None]) -> _Step:
    """The values behind the mark as items of what is below it."""

    def step(machine: Machine, at: int) -> int:
        add(machine, machine.popped())
        return at

    return step


def _tuple(machine: Machine, items: list[Any]) -> None:
    machine.fixed(tuple, items)


_U1 = _LENGTHS[1]
_BY_CODE: dict[bytes, _Step] = {
    b"N": _constant(None),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b")": _constant(()),
    b"K": _byte,
    b"M": _fixed(_U2),
    b"J": _fixed(_I4),
    b"G": _fixed(_F8),
    b"\x8a": _number(_U1),
    b"\x8b": _number(_I4),
    b"I": _lined(_decimal, Machine.number),
    b"L": _lined(lambda line: int(line.removesuffix(b"L")), Machine.number),
    b"F": _lined(float, Machine.push),
    b"V": _lined(lambda line: str(line, "raw-unicode-escape"), Machine.push),
    b"X": _sized(4, _text),
    b"\x8d": _sized(8, _text),
    b"C": _sized(1, bytes),
    b"B": _sized(4, bytes),
    b"\x8e": _sized(8, bytes),
    b"\x96": _sized(8, bytearray),
    b"(": _plain(Machine.mark),
    b"]": _plain(lambda machine: machine.begin(list)),
    b"}": _plain(lambda machine: machine.begin(dict)),
    b"\x8f": _plain(lambda machine: machine.begin(set)),
    b"t": _marked(_tuple),
    b"\x85": _last(_tuple, 1),
    b"\x86": _last(_tuple, 2),
    b"\x87": _last(_tuple, 3),
    b"\x91": _marked(lambda machine, items: machine.fixed(frozenset, items)),
    b"l": _plain(lambda machine: machine.whole(list, Machine.listed)),
    b"d": _plain(lambda machine: machine.whole(dict, Machine.paired)),
    b"a": _last(Machine.listed, 1),
    b"e": _marked(Machine.listed),
    b"s": _last(Machine.paired, 2),
    b"u": _marked(Machine.paired),
    b"\x90": _marked(Machine.added),
    b"p": _lined(_decimal, Machine.remember),
    b"q": _indexed(_U1, Machine.remember),
    b"r": _indexed(_U4, Machine.remember),
    b"\x94": _memoize,
    b"g": _lined(_decimal, Machine.fetch),
    b"h": _indexed(_U1, Machine.fetch),
    b"j": _indexed(_U4, Machine.fetch),
    b"\x80": _passed(1),
    b"\x95": _passed(8),
}
_STEPS: list[_Step] = [_BY_CODE.get(bytes([code]), _refused) for code in range(256)]

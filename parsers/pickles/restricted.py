"""Plain pickles, read without building anything but containers, text, bytes and numbers (protocols 0 to 5).

    pickle = opcode*  "."       each opcode with its argument; the stream ends itself, so that pickles can be joined

A pickle is a program. This machine runs the opcodes that make None, bool, int, float, str, bytes, bytearray, list,
tuple, dict, set and frozenset. An object of any class is passed over: what it is made of is read, nothing is imported,
built or called, and `SKIPPED` stands for it; for a tuple that holds one stands another `Skipped`. Plain values that
Python writes as calls in old protocols (a set before 4, bytes before 3, a bytearray before 5) are passed over as well.
All other opcodes are refused by name.

What it holds is bounded by the bytes that are there, and nothing here recurses (`cklog.parsers.pickles.machine`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from cklog.errors import Picklable
from cklog.parsers.pickles.arguments import (
    Cut,
    decode_text,
    parse_decimal,
    parse_real,
    parse_whole,
    read_bytes,
    read_line,
    refuse_opcode,
    why_no_pickle,
)
from cklog.parsers.pickles.machine import NAMED, SKIPPED, Machine, Skipped, Stop
from cklog.unknown_formats import UnknownFormat, require_known

__all__ = ["SKIPPED", "CutShort", "Refused", "Skipped", "load", "load_from"]

_NEWEST_PROTOCOL = 5
_STOP, _SHORT_TEXT, _MEMOIZE = 0x2E, 0x8C, 0x94


class Refused(Picklable, ValueError):
    """Raised for a pickle that is not plain data, or for no pickle; `offset` in bytes of the buffer.

    `id` is that of the damage.
    """

    id = "corrupt-file"

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(f"{why} at byte {offset}")
        self.why = why
        self.offset = offset


class OfLaterProtocol(Refused, UnknownFormat):
    """Raised for a pickle of a protocol that is not known: nothing may be wrong with it."""

    id = UnknownFormat.id


class CutShort(Refused):
    """Raised where the buffer ends inside the pickle."""


def load(data: bytes, keys: frozenset[str] | None = None) -> Any:
    """Return the value of `data`, which is one pickle and nothing else.

    Parameters
    ----------
    keys : containers under other keys of dicts become `Skipped`, and so may tuples with one in them; None keeps all

    Raises
    ------
    Refused : `data` is no pickle, or not whole (`CutShort`), or goes on behind the pickle, or has no bounds; or it is
        of a later protocol (`OfLaterProtocol`)

    >>> load(b"\\x80\\x04}\\x94\\x8c\\x01a\\x94K\\x07s.")
    {'a': 7}
    >>> load(b"(lp0\\nI7\\nacos\\nsystem\\n(Vtrue\\ntRa.")[1] is SKIPPED  # os.system("true") is not called
    True
    """
    value, end = load_from(data, 0, keys)
    if end != len(data):
        raise Refused(f"{len(data) - end} bytes follow the pickle", end)
    return value


def load_from(data: bytes, at: int, keys: frozenset[str] | None = None) -> tuple[Any, int]:
    """Return the value of the pickle that begins at byte `at`, and where it ends; else like `load`."""
    machine = Machine(data, at, keys)
    try:
        at = _run_opcodes(machine, at)
        return machine.result(), at
    except UnknownFormat as error:
        raise OfLaterProtocol(str(error), machine.here) from None
    except Stop as stop:
        raise Refused(str(stop), machine.here) from None
    except (Cut, struct.error):
        raise CutShort("the pickle is cut short", machine.here) from None
    except (ValueError, OverflowError) as error:
        raise Refused(why_no_pickle(error), machine.here) from None
    except (IndexError, TypeError, KeyError, AttributeError):
        raise Refused("an opcode does not fit what is there", machine.here) from None


def _run_opcodes(machine: Machine, at: int) -> int:
    """Do opcodes up to the one that ends the pickle; return the byte behind it.

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
            raise Cut
        try:
            value = data[start:at].decode()
        except UnicodeDecodeError:
            value = decode_text(data[start:at])
        push(value)
        if at < limit and data[at] == _MEMOIZE:
            remember(value)
            at += 1
    machine.here = at
    raise Cut


# Arguments

_U2, _I4, _U4, _U8 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I"), struct.Struct("<Q")
_F8 = struct.Struct(">d")
_LENGTHS = {1: struct.Struct("<B"), 4: _U4, 8: _U8}
_Step = Callable[[Machine, int], int]
"""A function that does what an opcode says: it gets the byte behind the opcode, and returns that behind its argument.

Functions below that return a `_Step` describe it: "push a number" is what the step does.
"""


# Opcodes


def _push_byte(machine: Machine, at: int) -> int:
    """Push a byte as a number."""
    try:
        machine.stack.append(machine.data[at])
    except IndexError:
        raise Cut from None
    return at + 1


def _memoize_top(machine: Machine, at: int) -> int:
    """Put the top of the stack into the memo, at its end."""
    machine.require(1)
    machine.memo.append(machine.stack[-1])
    return at


def _push_constant(value: Any) -> _Step:
    """Push a value that the opcode itself means."""

    def step(machine: Machine, at: int) -> int:
        machine.stack.append(value)
        return at

    return step


def _push_fixed(kind: struct.Struct) -> _Step:
    """Push a number of a fixed size."""

    def step(machine: Machine, at: int) -> int:
        machine.stack.append(kind.unpack_from(machine.data, at)[0])
        return at + kind.size

    return step


def _push_sized(width: int, make: Callable[[bytes], Any]) -> _Step:
    """Push what `make` makes of bytes, whose length stands before them in `width` bytes."""
    length = _LENGTHS[width]

    def step(machine: Machine, at: int) -> int:
        held, end = read_bytes(machine, at + width, length.unpack_from(machine.data, at)[0])
        machine.stack.append(make(held))
        return end

    return step


def _push_number(length: struct.Struct) -> _Step:
    """Push a whole number of any length, little-endian."""

    def step(machine: Machine, at: int) -> int:
        size = length.unpack_from(machine.data, at)[0]
        if size < 0:
            raise Stop(f"no pickle (a number of {size} bytes)")
        held, end = read_bytes(machine, at + length.size, size)
        machine.number(int.from_bytes(held, "little", signed=True))
        return end

    return step


def _take_line(make: Callable[[bytes], Any], take: Callable[[Machine, Any], None]) -> _Step:
    """Let `take` have a value written as a line, which `make` parses."""

    def step(machine: Machine, at: int) -> int:
        line, end = read_line(machine, at)
        take(machine, make(line))
        return end

    return step


def _do_at_place(kind: struct.Struct, do: Callable[[Machine, int], None]) -> _Step:
    """Do something with a place of the memo."""

    def step(machine: Machine, at: int) -> int:
        do(machine, kind.unpack_from(machine.data, at)[0])
        return at + kind.size

    return step


def _push_class(machine: Machine) -> None:
    """Push what stands for a class, or whatever else a pickle names."""
    machine.push(NAMED)


def _push_extension(code: struct.Struct) -> _Step:
    """Push what stands for the class that a code is for, in a registry of the process that wrote the pickle."""

    def step(machine: Machine, at: int) -> int:
        if code.unpack_from(machine.data, at)[0] <= 0:
            raise Stop("no pickle (no class has such a code)")
        _push_class(machine)
        return at + code.size

    return step


def _pass_protocol(machine: Machine, at: int) -> int:
    """Pass over the version of the protocol."""
    held, end = read_bytes(machine, at, 1)
    require_known("pickle: protocol", held[0], _NEWEST_PROTOCOL)
    return end


def _pass_frame(machine: Machine, at: int) -> int:
    """Pass over how many bytes are to be read at once, all of which must be there."""
    end = at + _U8.size
    read_bytes(machine, end, _U8.unpack_from(machine.data, at)[0])
    return end


def _do_alone(do: Callable[[Machine], None]) -> _Step:
    """Do something that needs no argument."""

    def step(machine: Machine, at: int) -> int:
        do(machine)
        return at

    return step


def _take_last(add: Callable[[Machine, list[Any]], None], count: int, below: int = 1) -> _Step:
    """Take the last `count` values off the stack and add them to what is below them, which takes `below` values."""

    def step(machine: Machine, at: int) -> int:
        machine.require(count + below)
        items = machine.stack[-count:]
        del machine.stack[-count:]
        add(machine, items)
        return at

    return step


def _take_marked(add: Callable[[Machine, list[Any]], None], below: int = 1) -> _Step:
    """Take the values behind the last mark off the stack and add them to what is below it, which takes `below`."""

    def step(machine: Machine, at: int) -> int:
        items = machine.popped()
        machine.require(below)
        add(machine, items)
        return at

    return step


def _skip_named(do: Callable[[Machine], None]) -> _Step:
    """Pass over two lines, which name a class, and do something."""

    def step(machine: Machine, at: int) -> int:
        for _ in ("module", "name"):
            line, at = read_line(machine, at)
            if not line.decode("ascii"):
                raise Stop("no pickle (a class without a name)")
        do(machine)
        return at

    return step


def _push_named(machine: Machine, names: list[Any]) -> None:
    """Push what stands for the class of a module, of which both names are given."""
    if not all(isinstance(name, str) for name in names):
        raise Stop("a class whose name is no text")
    _push_class(machine)


def _push_tuple(machine: Machine, items: list[Any]) -> None:
    """Push a tuple of items."""
    machine.fixed(tuple, items)


_U1 = _LENGTHS[1]
_BY_CODE: dict[bytes, _Step] = {
    b"N": _push_constant(None),
    b"\x88": _push_constant(True),
    b"\x89": _push_constant(False),
    b")": _push_constant(()),
    b"K": _push_byte,
    b"M": _push_fixed(_U2),
    b"J": _push_fixed(_I4),
    b"G": _push_fixed(_F8),
    b"\x8a": _push_number(_U1),
    b"\x8b": _push_number(_I4),
    b"I": _take_line(parse_decimal, Machine.number),
    b"L": _take_line(lambda line: parse_whole(line.removesuffix(b"L")), Machine.number),
    b"F": _take_line(parse_real, Machine.push),
    b"V": _take_line(lambda line: str(line, "raw-unicode-escape"), Machine.push),
    b"X": _push_sized(4, decode_text),
    b"\x8d": _push_sized(8, decode_text),
    b"C": _push_sized(1, bytes),
    b"B": _push_sized(4, bytes),
    b"\x8e": _push_sized(8, bytes),
    b"\x96": _push_sized(8, bytearray),
    b"(": _do_alone(Machine.mark),
    b"0": _do_alone(Machine.drop),
    b"1": _do_alone(Machine.drop_marked),
    b"]": _do_alone(lambda machine: machine.begin(list)),
    b"}": _do_alone(lambda machine: machine.begin(dict)),
    b"\x8f": _do_alone(lambda machine: machine.begin(set)),
    b"t": _take_marked(_push_tuple, 0),
    b"\x85": _take_last(_push_tuple, 1, 0),
    b"\x86": _take_last(_push_tuple, 2, 0),
    b"\x87": _take_last(_push_tuple, 3, 0),
    b"\x91": _take_marked(lambda machine, items: machine.fixed(frozenset, items), 0),
    b"l": _do_alone(lambda machine: machine.whole(list, Machine.listed)),
    b"d": _do_alone(lambda machine: machine.whole(dict, Machine.paired)),
    b"a": _take_last(Machine.listed, 1),
    b"e": _take_marked(Machine.listed),
    b"s": _take_last(Machine.paired, 2),
    b"u": _take_marked(Machine.paired),
    b"\x90": _take_marked(Machine.added),
    b"p": _take_line(parse_decimal, Machine.remember),
    b"q": _do_at_place(_U1, Machine.remember),
    b"r": _do_at_place(_U4, Machine.remember),
    b"\x94": _memoize_top,
    b"g": _take_line(parse_decimal, Machine.fetch),
    b"h": _do_at_place(_U1, Machine.fetch),
    b"j": _do_at_place(_U4, Machine.fetch),
    b"c": _skip_named(_push_class),
    b"i": _skip_named(Machine.marked_object),
    b"\x93": _take_last(_push_named, 2, 0),
    b"\x82": _push_extension(_U1),
    b"\x83": _push_extension(_U2),
    b"\x84": _push_extension(_I4),
    b"b": _take_last(Machine.made, 1),
    **dict.fromkeys((b"R", b"\x81"), _take_last(Machine.called, 1)),
    b"\x92": _take_last(Machine.called, 2),
    b"o": _do_alone(Machine.marked_call),
    b"\x80": _pass_protocol,
    b"\x95": _pass_frame,
}
_STEPS: list[_Step] = [_BY_CODE.get(bytes([code]), refuse_opcode) for code in range(256)]

"""Plain pickles read by Python's own list of opcodes: slow, and a second opinion on where each begins and ends.

Shares the stack with the reader (`cklog.parsers.pickles.machine`), and none of its reading of bytes.
"""

from __future__ import annotations

import io
import pickletools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from cklog.errors import OverBudget
from cklog.parsers.pickles.machine import NAMED, Machine, Stop

_RAN_OUT = ("pickle exhausted", "not enough data", "no newline", "expected")


class Read(NamedTuple):
    """How reading ended: `how` is value, cut, refused or over budget; `at` is the end, or where the opcode begins."""

    how: str
    at: int
    value: Any = None
    why: str = ""


def by_genops(data: bytes, start: int = 0, keys: frozenset[str] | None = None) -> Read:
    file = io.BytesIO(data)
    file.seek(start)
    machine = Machine(data, start, keys)
    here, behind = start, start
    try:
        for opcode, argument, position in pickletools.genops(file):
            here, behind = position or 0, file.tell()
            if opcode.name == "STOP":
                return Read("value", behind, machine.result())
            step = STEPS.get(opcode.name)
            if step is None:
                return Read("refused", here, why=opcode.name)
            if not _is_written_so(opcode.name, data[here + 1 : behind - 1], argument, len(data) - behind):
                return Read("cut" if opcode.name == "FRAME" and int(argument or 0) <= sys.maxsize else "refused", here)
            step(machine, argument)
            here = behind
    except Stop as stop:
        return Read("refused", here, why=str(stop))
    except OverBudget as error:
        return Read("over budget", start, why=error.what)
    except (ValueError, OverflowError) as error:
        cut = file.tell() >= len(data) and str(error).startswith(_RAN_OUT)
        return Read("cut" if cut else "refused", here)
    except (IndexError, TypeError, KeyError, AttributeError):
        return Read("refused", here)
    raise AssertionError("genops ended without STOP")


def _is_written_so(name: str, line: bytes, argument: Any, left: int) -> bool:
    """Whether an opcode has an argument that Python writes, or can read; `line` is its text, without the newline."""
    if name in ("INT", "LONG", "PUT", "GET"):
        digits = line.removesuffix(b"L") if name == "LONG" else line
        return (digits in (b"00", b"01") and name != "LONG") or digits == str(int(argument)).encode()
    if name == "FLOAT":
        return not any(byte in b" \t\r\v\f_" for byte in line)
    if name in ("GLOBAL", "INST"):
        return all(line.split(b"\n"))
    if name == "FRAME":
        return bool(argument <= left)
    return not (name == "PROTO" and argument > 5) and not (name.startswith("EXT") and argument <= 0)


def _popped(add: Callable[[Machine, list[Any]], None], below: int = 1) -> Callable[[Machine, Any], None]:
    def step(machine: Machine, _: Any) -> None:
        items = machine.popped()
        machine.require(below)
        add(machine, items)

    return step


def _last(add: Callable[[Machine, list[Any]], None], count: int, below: int = 1) -> Callable[[Machine, Any], None]:
    def step(machine: Machine, _: Any) -> None:
        machine.require(count + below)
        items = machine.stack[-count:]
        del machine.stack[-count:]
        add(machine, items)

    return step


def _named(machine: Machine, names: list[Any]) -> None:
    if [type(name) for name in names] != [str, str]:
        raise Stop("a class whose name")
    machine.push(NAMED)


def _tuple(machine: Machine, items: list[Any]) -> None:
    machine.fixed(tuple, items)


_LEAVES = "BINFLOAT FLOAT BINUNICODE SHORT_BINUNICODE BINUNICODE8 UNICODE BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8"
_NUMBERS = "INT BININT BININT1 BININT2 LONG LONG1 LONG4"
STEPS: dict[str, Callable[[Machine, Any], None]] = {
    **dict.fromkeys(_LEAVES.split(), Machine.push),
    **dict.fromkeys(_NUMBERS.split(), Machine.number),
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, _: None),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), Machine.remember),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), Machine.fetch),
    "MEMOIZE": lambda machine, _: machine.remember(len(machine.memo)),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "MARK": lambda machine, _: machine.mark(),
    "POP": lambda machine, _: machine.drop(),
    "POP_MARK": lambda machine, _: machine.drop_marked(),
    "EMPTY_LIST": lambda machine, _: machine.begin(list),
    "EMPTY_DICT": lambda machine, _: machine.begin(dict),
    "EMPTY_SET": lambda machine, _: machine.begin(set),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "TUPLE": _popped(_tuple, 0),
    "TUPLE1": _last(_tuple, 1, 0),
    "TUPLE2": _last(_tuple, 2, 0),
    "TUPLE3": _last(_tuple, 3, 0),
    "FROZENSET": _popped(lambda machine, items: machine.fixed(frozenset, items), 0),
    "LIST": lambda machine, _: machine.whole(list, Machine.listed),
    "DICT": lambda machine, _: machine.whole(dict, Machine.paired),
    "APPEND": _last(Machine.listed, 1),
    "APPENDS": _popped(Machine.listed),
    "SETITEM": _last(Machine.paired, 2),
    "SETITEMS": _popped(Machine.paired),
    "ADDITEMS": _popped(Machine.added),
    **dict.fromkeys(("GLOBAL", "EXT1", "EXT2", "EXT4"), lambda machine, _: machine.push(NAMED)),
    "STACK_GLOBAL": _last(_named, 2, 0),
    "BUILD": _last(Machine.made, 1),
    **dict.fromkeys(("REDUCE", "NEWOBJ"), _last(Machine.called, 1)),
    "NEWOBJ_EX": _last(Machine.called, 2),
    "INST": lambda machine, _: machine.marked_object(),
    "OBJ": lambda machine, _: machine.marked_call(),
}

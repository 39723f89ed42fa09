"""Plain pickles read by Python's own list of opcodes: slow, and a second opinion on where each begins and ends.

Shares the stack with the reader (`cklog.parsers.pickles.machine`), and none of its reading of bytes.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

from cklog.errors import OverBudget
from cklog.parsers.pickles.machine import SKIPPED, Machine, Stop

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


def _popped(add: Callable[[Machine, list[Any]], None]) -> Callable[[Machine, Any], None]:
    return lambda machine, _: add(machine, machine.popped())


def _last(add: Callable[[Machine, list[Any]], None], count: int) -> Callable[[Machine, Any], None]:
    def step(machine: Machine, _: Any) -> None:
        items = machine.stack[-count:]
        del machine.stack[-count:]
        add(machine, items)

    return step


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
    "TUPLE": _popped(_tuple),
    "TUPLE1": _last(_tuple, 1),
    "TUPLE2": _last(_tuple, 2),
    "TUPLE3": _last(_tuple, 3),
    "FROZENSET": _popped(lambda machine, items: machine.fixed(frozenset, items)),
    "LIST": lambda machine, _: machine.whole(list, Machine.listed),
    "DICT": lambda machine, _: machine.whole(dict, Machine.paired),
    "APPEND": _last(Machine.listed, 1),
    "APPENDS": _popped(Machine.listed),
    "SETITEM": _last(Machine.paired, 2),
    "SETITEMS": _popped(Machine.paired),
    "ADDITEMS": _popped(Machine.added),
    **dict.fromkeys(("GLOBAL", "EXT1", "EXT2", "EXT4"), lambda machine, _: machine.push(SKIPPED)),
    "STACK_GLOBAL": _last(lambda machine, _: machine.push(SKIPPED), 2),
    **dict.fromkeys(("REDUCE", "NEWOBJ", "BUILD"), _last(Machine.made, 1)),
    "NEWOBJ_EX": _last(Machine.made, 2),
    **dict.fromkeys(("INST", "OBJ"), lambda machine, _: machine.marked_object()),
}

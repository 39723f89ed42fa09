"""Arguments of a pickle's opcodes, as Python writes them, and what is said of an opcode that is refused."""

from __future__ import annotations

import io
import pickletools
import re
import sys
from typing import Any

from cklog.errors import first_line
from cklog.parsers.pickles.machine import Machine, Stop


class Cut(Exception):
    """Raised where the buffer ends inside an opcode."""


def why_no_pickle(error: Exception) -> str:
    """Say that bytes are no pickle, in the words of an error."""
    why = first_line(error)
    return f"no pickle ({why[:80]})"


def read_bytes(machine: Machine, at: int, size: int) -> tuple[bytes, int]:
    """Return `size` bytes, and where they end."""
    end = at + size
    if end > machine.limit:
        raise Stop("no pickle (a length beyond any memory)") if size > sys.maxsize else Cut
    return machine.data[at:end], end


def read_line(machine: Machine, at: int) -> tuple[bytes, int]:
    """Return the bytes up to the next newline, and where the next line begins."""
    end = machine.data.find(b"\n", at)
    if end < 0:
        raise Cut
    return machine.data[at:end], end + 1


def decode_text(data: bytes) -> str:
    """Decode text; Python writes halves of surrogate pairs, too."""
    return data.decode("utf-8", "surrogatepass")


def parse_decimal(line: bytes) -> int | bool:
    """Parse a number in digits; 00 and 01 are how old protocols write False and True."""
    return line == b"01" if line in (b"00", b"01") else parse_whole(line)


def parse_whole(line: bytes) -> int:
    """Parse a number in digits, as Python writes it: what else it reads means another number to some of its readers."""
    if not _DIGITS.fullmatch(line):
        raise ValueError(f"{line[:20]!r} is no number in digits")
    return int(line)


def parse_real(line: bytes) -> float:
    """Parse a number with a fraction; Python reads spaces and underscores where its pickles have none."""
    if not _REAL.fullmatch(line):
        raise ValueError(f"{line[:20]!r} is no number")
    return float(line)


_DIGITS, _REAL = re.compile(rb"0|-?[1-9][0-9]*"), re.compile(rb"[^\s_]+")


_RAN_OUT = ("not enough data", "no newline", "expected")
"""How `pickletools` begins to say that bytes ran out."""


def refuse_opcode(machine: Machine, at: int) -> int:
    """Refuse an opcode that is none, or that makes something else than a plain value, by name and argument."""
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
            raise Cut if cut else Stop(why_no_pickle(error)) from None
    raise Stop(f"{_opcode_with_argument(known.name, argument, machine.stack)} is refused")


def _opcode_with_argument(opcode: str, argument: Any, stack: list[Any]) -> str:
    """Name an opcode with its argument, in printable letters; STACK_GLOBAL has its argument on the stack."""
    if opcode == "STACK_GLOBAL" and len(stack) > 1:
        module, name = stack[-2:]
        argument = f"{module} {name}" if isinstance(module, str) and isinstance(name, str) else None
    shown = "".join(c for c in str(argument) if c.isprintable())[:80] if isinstance(argument, str | int) else ""
    return f"{opcode} {shown}".rstrip()

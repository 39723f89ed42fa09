"""Keys and encodings of a checkpoint store in the patent's layout; see `cklog.parsers.patent.parser` for the whole.

    key     = checkpoint " " part [" " chunk]           part = NON | INCR | INDEX, chunk = a number from 0, or H
    header  = chunk size:u64  last index:u64  last size:u64
    entry   = form:u8  start:u64  [ checkpoint:u64  at:u64 ]    the last two of a delta only: 9 bytes, or 25

The patent gives fields, their order and sizes, and writes keys as `1 NON`; that numbers are big-endian, 0 stands for
the base form and 1 for the delta, and that chunks are numbered from 0, is chosen here.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from cklog.unknown_formats import is_one_bit_off

PARTS = ("NON", "INCR", "INDEX")
HEAD = "H"
LARGEST = (1 << 63) - 1

HEADER = struct.Struct(
    ">Q"  # chunk size
    "Q"  # index of the last chunk
    "Q"  # size of the last chunk
)
BASE = struct.Struct(
    ">B"  # i: the form, 0
    "Q"  # ii: where the variable starts in K INCR
)
DELTA = struct.Struct(
    ">B"  # i: the form, 1
    "Q"  # ii: where the variable starts in K INCR
    "Q"  # iii: the checkpoint with the previous version of the variable
    "Q"  # iv: where in that checkpoint's INDEX the entry of that version is
)
FORMS = {0: ("base", BASE), 1: ("delta", DELTA)}

_PART = re.compile(rb"(?:0|[1-9][0-9]{0,18}) ([A-Z][A-Z0-9_]{0,30})(?: .*)?", re.DOTALL)
_KEY = re.compile(rb"(0|[1-9][0-9]{0,18}) (NON|INCR|INDEX)(?: (H|0|[1-9][0-9]{0,18}))?")


class Key(NamedTuple):
    """A key taken apart. `chunk` None: the whole value; `HEAD`: the header of its chunks; else a chunk's index."""

    checkpoint: int
    part: str
    chunk: int | str | None = None

    @property
    def original(self) -> str:
        """The key that the value would have in one piece."""
        return f"{self.checkpoint} {self.part}"

    def __str__(self) -> str:
        return self.original + ("" if self.chunk is None else f" {self.chunk}")


def is_of_unknown_part(key: bytes) -> bool:
    """Return whether a key is one of a checkpoint's, of a part that is not known, nor one bit away from a known one.

    >>> is_of_unknown_part(b"2 COLUMNS"), is_of_unknown_part(b"2 IOCR"), is_of_unknown_part(b"setup")
    (True, False, False)
    """
    found = _PART.fullmatch(key)
    part = found[1].decode() if found else PARTS[0]
    return part not in PARTS and not is_one_bit_off(part, PARTS)


def key_of(key: bytes) -> Key | None:
    """Take a key of the layout apart; None if it is no such key.

    >>> key_of(b"12 INCR 3"), key_of(b"1 INDEX H"), key_of(b"01 NON")
    (Key(checkpoint=12, part='INCR', chunk=3), Key(checkpoint=1, part='INDEX', chunk='H'), None)
    """
    found = _KEY.fullmatch(key)
    if found is None:
        return None
    checkpoint, part, chunk = int(found[1]), found[2].decode(), found[3]
    if checkpoint > LARGEST:
        return None
    if chunk is None:
        return Key(checkpoint, part)
    if chunk == HEAD.encode():
        return Key(checkpoint, part, HEAD)
    return Key(checkpoint, part, int(chunk)) if int(chunk) <= LARGEST else None

"""The numbers of Parquet's format that cklog knows (`parquet.thrift`, parquet-format 2.12), and who has a later one.

    footer   = 1 version  2 SchemaElement*  …        element = 1 type  3 repetition  6 converted type  10 logical type

Arrow's reader takes numbers that it does not know for damage, or reads on as if nothing was said. So the beginning of a
footer is looked at before Arrow reads it, and what is said of columns and pages before they are decoded.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable
from typing import Any

from cklog.parsers.tables.compact import I32, LIST, STRUCT, Compact, Field
from cklog.parsers.tables.footers import KEPT_BYTES, TAIL, Chunk
from cklog.unknown_formats import UnknownFormat, require_known

NEWEST_PAGE_TYPE, NEWEST_ENCODING = 3, 9
_NEWEST_VERSION, _NEWEST_TYPE, _NEWEST_REPETITION, _NEWEST_CONVERTED, _NEWEST_LOGICAL = 2, 7, 2, 21, 18
_NEWEST_CODEC, _LZO = 7, 3
_ENCRYPTED = b"PARE"


def require_known_footer(file: Any) -> None:
    """Raise `UnknownFormat` for a file of a later version, or with types of one; the place in `file` moves.

    Bytes that are no footer are passed over: reading it says what is wrong.
    """
    size = file.size()
    file.seek(max(size - TAIL.size, 0))
    tail = file.read(TAIL.size)
    if len(tail) < TAIL.size:
        return
    length, mark = TAIL.unpack(tail)
    if mark == _ENCRYPTED:
        raise UnknownFormat("its footer is encrypted (PARE)")
    if mark[:3] == b"PAR" and mark[3:].isdigit():
        require_known("it ends with the mark of Parquet", int(mark[3:]), 1)
    if mark[:3] != b"PAR" or length > size - TAIL.size:
        return
    file.seek(size - TAIL.size - length)
    footer = file.read(length)
    (_require_kept if length <= KEPT_BYTES else _require_known)(footer)


def _require_known(footer: bytes) -> None:
    """Raise `UnknownFormat` for the bytes of a footer of a later version, or with types of one."""
    try:
        found = Compact(footer).leading(_FILE)
    except (IndexError, struct.error):
        return
    except ValueError as error:
        if isinstance(error, UnknownFormat):
            raise
        return
    require_known("version", found.get(1, 0), _NEWEST_VERSION)


_require_kept = functools.lru_cache(maxsize=8)(_require_known)
"""A file is opened for each of its splits: its footer is decoded once for all of them, by its bytes."""


def require_known_columns(chunks: Iterable[Chunk]) -> None:
    """Raise `UnknownFormat` where one of these columns is stored as cklog does not know."""
    for chunk in chunks:
        name = b".".join(chunk.path).decode(errors="replace")[:80]
        require_known(f"column {name}: type", chunk.type, _NEWEST_TYPE)
        require_known(f"column {name}: codec", chunk.codec, _NEWEST_CODEC)
        if chunk.codec == _LZO:
            raise UnknownFormat(f"column {name}: codec LZO is not read")
        require_known(f"column {name}: encoding", max(chunk.encodings, default=0), NEWEST_ENCODING)
        if chunk.encrypted:
            raise UnknownFormat(f"column {name} is encrypted")


def _element(compact: Compact) -> None:
    """Pass over an element of a schema whose types are known."""
    found = compact.fields(_ELEMENT, 1)
    for id, (what, newest) in _KINDS.items():
        require_known(f"a column's {what}", found.get(id, 0), newest)


_KINDS = {
    1: ("type", _NEWEST_TYPE),
    3: ("repetition", _NEWEST_REPETITION),
    6: ("converted type", _NEWEST_CONVERTED),
    10: ("logical type", _NEWEST_LOGICAL),
}
_ELEMENT = {
    **{id: Field(I32, Compact.integer) for id in (1, 3, 6)},
    10: Field(STRUCT, lambda compact: compact.union(2)),
}
_FILE = {
    1: Field(I32, Compact.integer),
    2: Field(LIST, lambda compact: compact.list_of(STRUCT, _element)),
}

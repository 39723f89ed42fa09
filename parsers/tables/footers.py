"""What the footer of a Parquet file notes of its row groups: where columns lie, and bounds of those of 64-bit integers.

pyarrow ends the process where a footer's entry of a column contradicts itself, and no checksum covers a footer. So
these entries are read here, and pyarrow is never asked for them. A footer is a `FileMetaData` in Thrift's compact
protocol; of its fields only those below matter, the others are passed over.

    file      = … FileMetaData length:u32 "PAR1"
"""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

from cklog.parsers.tables.compact import BINARY, I32, I64, LIST, STRUCT, Compact, Field

TAIL = struct.Struct("<I4s")
_INTEGER = struct.Struct("<q")
_INT64 = 2

KEPT_BYTES = 1 << 18
"""A footer of up to this size is read once for several splits of its file; what is read of it takes many times that."""


class Chunk(NamedTuple):
    """A column in a row group.

    `path` : its name, and of a column inside others theirs before it
    `start`, `size` : the bytes of its pages; -1, as of every number: not said
    `dictionary` : whether it has a dictionary, which lies before its other pages
    `type`, `codec`, `encodings` : the numbers of its type, of what compresses its pages, and of how values are written
    `values` : how many values its pages have
    `how` : whether its pages follow its dictionary, how long each of its bounds is, and of which levels there are how
        many counts
    `encrypted` : whether its pages are encrypted
    `bounds` : (least, greatest), if it holds 64-bit integers and these are noted
    """

    path: tuple[bytes, ...]
    start: int
    size: int
    dictionary: bool
    type: int
    codec: int
    encodings: tuple[int, ...]
    values: int
    how: tuple[object, ...]
    encrypted: bool
    bounds: tuple[int, int] | None


class Footer(NamedTuple):
    """The columns of each row group, and the bytes of what is said of the file as a whole, but for its rows."""

    chunks: list[list[Chunk]]
    about: bytes


def read_footer(file: Any) -> Footer | None:
    """Return the footer of an open file, None if it does not make sense."""
    size = file.size()
    file.seek(max(size - TAIL.size, 0))
    tail = file.read(TAIL.size)
    if len(tail) < TAIL.size:
        return None
    length, mark = TAIL.unpack(tail)
    if mark != b"PAR1" or length > size - TAIL.size:
        return None
    file.seek(size - TAIL.size - length)
    footer = file.read(length)
    return _footer_kept(footer) if length <= KEPT_BYTES else footer_in(footer)


def footer_in(footer: bytes) -> Footer | None:
    """Return what the bytes of a footer tell, None if they do not make sense."""
    try:
        found = Compact(footer).fields(_FILE)
    except (IndexError, ValueError, struct.error):
        return None
    about, at = b"", 0
    for start, _, end in sorted(found.values()):
        about += footer[at:start]
        at = end
    _, groups, _ = found.get(_GROUPS, (0, [], 0))
    return Footer(groups, about + footer[at:])


_footer_kept = functools.lru_cache(maxsize=8)(footer_in)


Bounds = dict[str, tuple[int, int]]
"""(least, greatest) by column."""


def bounds_of(chunks: list[Chunk]) -> Bounds:
    """Return what is noted of a row group's columns; columns inside others, such as values of maps, are left out.

    Raises
    ------
    UnicodeDecodeError : a name is no UTF-8
    """
    return {c.path[0].decode(): c.bounds for c in chunks if c.bounds is not None and len(c.path) == 1}


def _chunk(compact: Compact) -> Chunk:
    """Read a column's entry."""
    entry = compact.fields(_CHUNK, 2)
    about = entry.get(3, {})
    noted = about.get(12, {})
    data, dictionary = about.get(9, -1), about.get(11, 0)
    first = dictionary > 0 and (data <= 0 or dictionary < data)  # of no rows nothing but the dictionary is there
    least, greatest = noted.get(6, noted.get(2, b"")), noted.get(5, noted.get(1, b""))
    whole = about.get(1) == _INT64 and len(least) == len(greatest) == _INTEGER.size
    return Chunk(
        path=tuple(about.get(3, ())),
        start=dictionary if first else data,
        size=about.get(7, -1),
        dictionary=11 in about,
        type=about.get(1, -1),
        codec=about.get(4, -1),
        encodings=tuple(about.get(2, ())),
        values=about.get(5, -1),
        how=(
            *(dictionary < data, *((id, len(noted[id])) for id in sorted(noted))),
            *sorted(about.get(16, {}).items()),
        ),
        encrypted=_CRYPTO in entry,
        bounds=(_INTEGER.unpack(least)[0], _INTEGER.unpack(greatest)[0]) if whole else None,
    )


def _group(compact: Compact) -> list[Chunk]:
    """Read a row group's entry."""
    found: list[Chunk] = compact.fields(_GROUP, 1).get(1, [])
    return found


_NOTED = {id: Field(BINARY, Compact.binary) for id in (1, 2, 5, 6)}
"""`Statistics`: the greatest and the least, in fields of old and of new writers."""


def _is_there(compact: Compact) -> bool:
    """Pass over a number that is not the same in all row groups."""
    compact.integer()
    return True


_COUNTS = Field(LIST, lambda compact: len(compact.list_of(I64, Compact.integer)))
_SIZES = {1: Field(I64, _is_there), 2: _COUNTS, 3: _COUNTS}
"""`SizeStatistics`: whether there is a number of bytes, and of repetition and definition levels how many counts."""

_ABOUT = {
    1: Field(I32, Compact.integer),
    2: Field(LIST, lambda compact: compact.list_of(I32, Compact.integer)),
    3: Field(LIST, lambda compact: compact.list_of(BINARY, Compact.binary)),
    4: Field(I32, Compact.integer),
    5: Field(I64, Compact.integer),
    7: Field(I64, Compact.integer),
    9: Field(I64, Compact.integer),
    11: Field(I64, Compact.integer),
    12: Field(STRUCT, lambda compact: compact.fields(_NOTED, 4)),
    16: Field(STRUCT, lambda compact: compact.fields(_SIZES, 4)),
}
"""`ColumnMetaData`: type, encodings, path_in_schema, codec, num_values, total_compressed_size, the offsets of data and
dictionary, statistics, size_statistics."""

_CRYPTO = 8
_CHUNK = {
    3: Field(STRUCT, lambda compact: compact.fields(_ABOUT, 3)),
    _CRYPTO: Field(STRUCT, lambda compact: compact.fields({}, 3)),
}
_GROUP = {1: Field(LIST, lambda compact: compact.list_of(STRUCT, _chunk))}
_ROWS, _GROUPS = 3, 4
_FILE = {
    _ROWS: Field(I64, lambda compact: (compact.at, compact.integer(), compact.at)),
    _GROUPS: Field(LIST, lambda compact: (compact.at, compact.list_of(STRUCT, _group), compact.at)),
}
"""`ColumnChunk`: meta_data and crypto_metadata; `RowGroup`: columns; `FileMetaData`: num_rows and row_groups, each with
where it lies."""

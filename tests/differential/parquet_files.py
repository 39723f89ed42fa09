"""Parquet files taken apart and put together again: compressed otherwise, damaged inside, with right checksums."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tests.differential.thrift import FALSE, I32, TRUE, NoThrift, get, put, read_struct, write_struct

CODECS = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6, "lz4": 7}
"""By the numbers that footers have for them; lz4 is the one without frames."""

_GROUPS, _COLUMNS, _ABOUT = 4, 1, 3
_BYTES, _STORED, _SUM, _VERSION_2 = 2, 3, 4, 8
_DATA_AT, _DICTIONARY_AT = 9, 11

Change = Callable[[bytes], bytes]


def _pack(plain: bytes, codec: int) -> bytes:
    if codec == CODECS["gzip"]:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        return packer.compress(plain) + packer.flush()
    if codec == CODECS["none"]:
        return plain
    return bytes(pa.Codec({1: "snappy", 6: "zstd", 7: "lz4_raw"}[codec]).compress(plain, asbytes=True))


Page = tuple[list[Any], bytes, int]
"""Its header, its bytes, and where its header begins."""

Parts = tuple[list[Any], list[tuple[Any, Any, list[Page]]]]
"""The footer, and of each column chunk its entry, what that says of it, and its pages."""


def take_apart(data: bytes) -> Parts:
    """Return the parts of a file."""
    length = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != b"PAR1" or length > len(data) - 8:
        raise NoThrift("no footer")
    footer, _ = read_struct(data, len(data) - 8 - length)
    chunks = []
    for group in get(footer, _GROUPS)[1]:
        for column in get(group, _COLUMNS)[1]:
            about = get(column, _ABOUT)
            at = min((one for one in (get(about, _DATA_AT), get(about, _DICTIONARY_AT)) if one), default=0)
            end = at + get(about, 7)
            pages = []
            while at < end:
                start = at
                header, at = read_struct(data, start)
                stored = get(header, _STORED)
                if stored < 0:
                    raise NoThrift("a page that ends before it begins")
                pages.append((header, data[at : at + stored], start))
                at += stored
            chunks.append((column, about, pages))
    return footer, chunks


def compressed(parts: Parts, codec: int, change_plain: Change, change_packed: Change, change_tree: Change2) -> bytes:
    """Return an uncompressed file with its pages compressed; each part passes through what may change it.

    Sizes and checksums are those of the bytes that are written, whatever was changed; trees change at last. The parts
    are changed as well.
    """
    footer, chunks = parts
    out = b"PAR1"
    for column, about, pages in chunks:
        began, plain_total = len(out), 0
        places = []
        for header, body, _ in pages:
            version_2 = get(header, _VERSION_2)
            levels = (get(version_2, 5) or 0) + (get(version_2, 6) or 0) if version_2 is not None else 0
            plain = change_plain(body)
            levels = min(levels, len(plain))
            packed = change_packed(plain[:levels] + _pack(plain[levels:], codec))
            put(header, _BYTES, len(plain))
            put(header, _STORED, len(packed))
            if get(header, _SUM) is not None:
                put(header, _SUM, _signed(zlib.crc32(packed)))
            for field in version_2 or ():
                if field[0] == 7:  # whether its values are compressed: of a boolean field the kind is the value
                    field[1] = TRUE if codec else FALSE
            change_tree(header)
            places.append(len(out))
            head = write_struct(header)
            out += head + packed
            plain_total += len(head) + len(plain)
        put(about, 4, codec)
        put(about, 6, plain_total)
        put(about, 7, len(out) - began)
        has_dictionary = bool(places) and get(about, _DICTIONARY_AT) is not None
        if has_dictionary:
            put(about, _DICTIONARY_AT, places[0])
        if places:
            put(about, _DATA_AT, places[1] if has_dictionary and len(places) > 1 else places[0])
        if get(column, 2):
            put(column, 2, began)
    for group in get(footer, _GROUPS)[1]:
        if get(group, 5) is not None:
            abouts = [get(column, _ABOUT) for column in get(group, _COLUMNS)[1]]
            put(group, 5, min(get(about, _DICTIONARY_AT) or get(about, _DATA_AT) for about in abouts))
            put(group, 6, sum(get(about, 7) for about in abouts))
    change_tree(footer)
    tail = write_struct(footer)
    return out + tail + len(tail).to_bytes(4, "little") + b"PAR1"


Change2 = Callable[[list[Any]], None]


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def with_right_sums(data: bytes) -> bytes:
    """Return a file in which the checksums of pages are right, as far as its structure can be followed."""
    try:
        footer, chunks = take_apart(data)
        length = int.from_bytes(data[-8:-4], "little")
        found = bytearray(data)
        for _, _, pages in chunks:
            for header, body, at in pages:
                if get(header, _SUM) is None:
                    continue
                size = len(write_struct(header))
                put(header, _SUM, _signed(zlib.crc32(body)), I32)
                new = write_struct(header)
                if len(new) == size:
                    found[at : at + size] = new
        return bytes(found) if length and footer else data
    except (NoThrift, TypeError, ValueError, IndexError, OverflowError, RecursionError):
        return data

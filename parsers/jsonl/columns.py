"""JSON lines of one shape as columns, all lines at once.

    block   = line+
    line    = JSON object "\\n"       its strings without escapes, its numbers integers of 64 bits

A log writer prints every record by the same template, so only the values of a block differ. The first line
gives the template: the literal bytes before each value and the type of each value, however deep it lies
(`cklog.parsers.jsonl.template`). The block is then read as a few passes over all lines at once: compare the
literal, find the end of the value, go on behind it. Nothing is skipped: a block is decoded if every one of its
bytes is explained by the template, else `decode` gives None and a reader that understands all of JSON takes over.
So this file decides speed, never answers.

Values are read as little-endian words of eight bytes, which `cklog.parsers.jsonl.words` gathers from any address.

Blocks of JSON lines of a few shapes, such as sends and checkpoints in one log: each shape decoded on its own.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cklog.arrays.buffers import unfilled
from cklog.arrays.types import U64, Bytes, Ints, Mask
from cklog.inputs.member_names import damaged_name, find_misspelling, misplaced
from cklog.parsers.jsonl.template import ColumnKind, LineTemplate, TemplateValue, template_of
from cklog.parsers.jsonl.walk import WALK, json_texts, walk
from cklog.parsers.jsonl.words import (
    HIGH,
    MIX,
    QUOTES,
    WORDS_AT_ONCE,
    Deviates,
    LineWords,
    Widths,
    bytes_below,
    every_byte,
    hexadecimal,
    line_crcs,
    read_digits,
    unused_bits,
    zero_bytes,
)

Names = Collection[str]
Fields = tuple[tuple[str, ColumnKind | Literal["json"]], ...]
"""(name, kind) of the columns that are wanted; "json" is the text of a member of any type."""


_LONGEST_WORDS = 31
"""Longer strings and literals are left to the slower reader: every pass costs all lines of the block."""

_LONGEST_LINE_BYTES = 1 << 16

_PAD_BYTES = 4096
"""Zeros around the block, so that no gather needs a bounds check of its own. Also the longest CRC."""


def decode(block: bytes | memoryview, fields: Fields, known: Names = (), spelt: Names = ()) -> pa.RecordBatch | None:
    """Read columns `fields` of a block of whole lines; None if not every line has the first line's shape.

    Parameters
    ----------
    block : whole lines; one to four megabytes are best (numpy's calls amortised, words still in cache)
    fields : names and types of the wanted columns; the other members are checked all the same. `_offset` is
        the line's first byte in the block
    known : members that a record may have: none of a line without a checksum has the damaged name of another
    spelt : members of which no line has a misspelt one

    Returns
    -------
    RecordBatch, or None
        Strings as a dictionary column, integers as int64; a member that no line has, or that is null in all,
        is a column of nulls. If the last member of the shape is `crc32c`, each line agreed with it.

    Examples
    --------
    >>> decode(b'{"channel":"a","seq":7}\\n{"channel":"b","seq":-8}\\n', (("seq", "int64"),)).to_pydict()
    {'seq': [7, -8]}
    >>> decode(b'{"channel":"a","seq":7}\\n{"channel":"b","seq":8.0}\\n', (("seq", "int64"),)) is None
    True
    """
    try:
        return _decode_columns(block, fields, known, spelt)
    except Deviates:
        return None


def _decode_columns(block: bytes | memoryview, fields: Fields, known: Names, spelt: Names) -> pa.RecordBatch:
    """Read columns as `decode` does; raise `Deviates` where it gives None."""
    template = template_of(bytes(block[:_LONGEST_LINE_BYTES]))
    if "crc32c" not in template.members and damaged_name(template.members, known):
        raise Deviates
    if misplaced(template.members, known) or find_misspelling(template.members, spelt):
        raise Deviates
    raw = np.frombuffer(block, np.uint8)
    kinds = {value.name: value.kind for value in template.values}
    flat = [(name, kind) for name, kind in fields if kind != "json"]
    if any(kinds.get(name, kind) != kind or name in template.others for name, kind in flat):
        raise Deviates
    if bytes(block[-len(template.tail) :]) != template.tail:
        raise Deviates
    wanted, texts = {name for name, _ in flat}, {name for name, kind in fields if kind == "json"}
    if raw.max() >= 0x80:
        _check_utf8(block)
    columns = _walked_columns(raw, template, wanted, texts)
    if columns is None:
        lines = _BlockLines(raw, template)
        columns = lines.columns(wanted, texts)
        columns["_offset"] = pa.array(lines.starts - _PAD_BYTES)
    none = {"int64": pa.int64(), "string": pa.string(), "json": pa.string()}
    rows = len(columns["_offset"])
    arrays = [columns[n] if n in columns else pa.nulls(rows, none[kind]) for n, kind in fields]
    return pa.RecordBatch.from_arrays(arrays, [name for name, _ in fields])


def _walked_columns(
    raw: Bytes, template: LineTemplate, wanted: set[str], texts: set[str]
) -> dict[str, pa.Array] | None:
    """Return the columns and `_offset` by loops; None of few lines, or where it is checksums that take the time."""
    if template.values[-1].name == "crc32c" or not WALK.is_worth(len(raw) // len(template.line)):
        return None
    walked = walk(raw, template, wanted)
    if walked is None:
        return None
    more = json_texts(raw, template, walked.starts, walked.ends, texts)
    return walked.columns | more | {"_offset": pa.array(walked.starts)}


def _check_utf8(block: bytes | memoryview) -> None:
    try:
        str(block, "utf-8")
    except UnicodeDecodeError:
        raise Deviates from None


class _BlockScratch(threading.local):
    """Memory kept from block to block of a thread: fresh pages cost more than the work on them."""

    def __init__(self) -> None:
        self._bytes = np.zeros(0, np.uint8)
        self._marks = np.zeros(0, np.bool_)

    def padded(self, raw: NDArray[np.uint8], tail: bytes) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Return a copy of the block between zeros, as if a line's `tail` preceded it, and as many free marks."""
        size = -(-len(raw) // 8) * 8 + 2 * _PAD_BYTES
        if size > len(self._bytes):
            self._bytes, self._marks = np.zeros(size, np.uint8), np.zeros(size, np.bool_)
        memory = self._bytes[:size]
        memory[_PAD_BYTES - len(tail) : _PAD_BYTES] = np.frombuffer(tail, np.uint8)
        memory[: _PAD_BYTES - len(tail)] = 0
        memory[_PAD_BYTES : _PAD_BYTES + len(raw)] = raw
        memory[_PAD_BYTES + len(raw) :] = 0
        return memory, self._marks[:size]


_SCRATCH = _BlockScratch()


def _newlines(memory: NDArray[np.uint8], marks: NDArray[np.bool_]) -> Ints:
    """Return the addresses of newlines: in every eight bytes the first, for no line of a template is that short.

    E.g. of "\\n" at 3, 5 and 9: [3, 9]. The one that is passed over lies inside a line then, where no template has one.
    """
    words = np.equal(memory, 0x0A, out=marks).view(np.uint64)
    at = np.flatnonzero(words != 0)
    found = words[at] - np.uint64(1)
    found &= ~words[at]  # the bits below the first mark: eight for each byte before it
    at *= 8
    at += np.bitwise_count(found) >> np.uint8(3)
    return at


class _BlockLines:
    """A block's lines, read member by member. Positions are addresses in the padded copy of the block."""

    def __init__(self, raw: NDArray[np.uint8], template: LineTemplate) -> None:
        memory, marks = _SCRATCH.padded(raw, template.tail)
        newlines = _newlines(memory, marks)
        self.starts, self._ends, self._template = newlines[:-1] + 1, newlines[1:], template
        self._memory = memory
        size = 8 * WORDS_AT_ONCE
        every = (len(memory) - size + 1,)
        self._windows = np.ndarray(every, np.dtype(f"V{size}"), memory.data, strides=(1,))

    def words(self, at: Ints) -> LineWords:
        """Return the words that begin at an address of each line, shape (lines,)."""
        return LineWords(self._windows, at)

    def columns(self, wanted: set[str], texts: set[str]) -> dict[str, pa.Array]:
        """Read all members of all lines; return the columns of those `wanted`, and of others the JSON `texts`.

        Raises
        ------
        Deviates : a line is not of the template
        """
        columns: dict[str, pa.Array] = {}
        ends: list[Ints] = []
        tail = len(self._template.tail)
        end = self.starts - tail
        for value in self._template.values:
            start = end + len(value.literal)
            words = self._behind(value.literal, start)
            if value.name == "crc32c":
                _check_crc(value, self, end, words)
            width, column = _READ_VALUE[value.kind](words, value.name in wanted)
            end = start + width
            ends.append(end)
            if (end > self._ends).any():
                raise Deviates
            if column is not None:
                columns[value.name] = column
        if (end + (tail - 1) != self._ends).any():
            raise Deviates
        return columns | json_texts(self._memory, self._template, self.starts, ends, texts)

    def _behind(self, literal: bytes, start: Ints) -> LineWords:
        """Compare the literal before `start` in every line, and return the words of the value there."""
        count = -(-len(literal) // 8)
        if count > _LONGEST_WORDS:
            raise Deviates
        words = self.words(start - 8 * count)
        expected = np.frombuffer(literal.rjust(8 * count, b"\0"), "<u8")
        foreign = 8 * (8 * count - len(literal))  # bits of the first word that precede the literal
        for j in range(count):
            found = words[j] if j or not foreign else words[j] >> np.uint64(foreign) << np.uint64(foreign)
            if not (found == expected[j]).all():
                raise Deviates
        return words.behind(count)


def _read_integers(words: LineWords, wanted: bool) -> tuple[Widths, pa.Array | None]:
    """Return the width and, if `wanted`, the value of each line's integer, as JSON writes it and within 64 bits."""
    number, width = read_digits(words)
    if width.all():
        if number.max() >> np.uint64(63):
            raise Deviates
        return width, pa.array(number.view(np.int64)) if wanted else None
    negative = (words[0] & np.uint64(0xFF)) == ord("-")
    number, width = read_digits(words.moved(negative))
    fits = number <= np.uint64(2**63 - 1) + negative
    if not (width.all() and fits.all() and number[negative].all()):
        raise Deviates
    return width + negative, pa.array(np.where(negative, -number.view(np.int64), number.view(np.int64)))


def _read_strings(words: LineWords, wanted: bool) -> tuple[Widths, pa.Array | None]:
    """Return the width and, if `wanted`, the value of each line's string, which needs no unescaping."""
    contents: list[U64] = []  # word by word; bytes behind a string are 0
    width: Widths = np.zeros((), np.uint8)
    for j in range(_LONGEST_WORDS):
        word = words[j]
        count = bytes_below(zero_bytes(word ^ QUOTES))
        count *= width == 8 * j  # nothing counts behind a quote that has been met
        width = width + count
        unused = unused_bits(count)
        contents.append(word << unused >> unused)
        if width.max() < 8 * (j + 1):
            break
    else:
        raise Deviates
    if wanted:
        return width, _dictionary(contents, width)
    _check_plain(contents, width)
    return width, None


def _check_plain(contents: list[U64], width: Widths) -> None:
    """Raise `Deviates` where a string holds a backslash or a control character; `contents` as in `_read_strings`."""
    for j, word in enumerate(contents):
        used = np.minimum(np.maximum(width, 8 * j) - 8 * j, 8).astype(np.uint8)
        below = word | (every_byte(0x20) << np.uint64(64) - unused_bits(used))  # spaces behind the string
        if ((zero_bytes(word ^ every_byte(0x5C)) | ((below - every_byte(0x20)) & ~below)) & HIGH).any():
            raise Deviates


def _dictionary(contents: list[U64], width: Widths) -> pa.DictionaryArray:
    """Return strings as a dictionary: codes by hash, then each line compared with its code's string."""
    hashed = contents[0]
    for word in contents[1:]:
        hashed = hashed * MIX
        hashed ^= hashed >> np.uint64(32)
        hashed += word
    encoded = pa.array(hashed).dictionary_encode()
    codes = encoded.indices.to_numpy()
    one = unfilled(len(encoded.dictionary), np.int64)  # a line of each code
    one[codes] = np.arange(len(codes))
    strings, widths = [word[one] for word in contents], width[one]
    if (widths[codes] != width).any():  # zeros at the end of a string look as what lies behind one
        raise Deviates
    if len(contents) > 1 and any((string[codes] != word).any() for string, word in zip(strings, contents, strict=True)):
        raise Deviates
    _check_plain(strings, widths)
    return pa.DictionaryArray.from_arrays(encoded.indices, _strings(strings, widths))


def _strings(contents: list[U64], width: Widths) -> pa.Array:
    """Return the first `width` bytes of each row of words as strings; `contents` as `_read_strings` has them."""
    characters = np.stack(contents, axis=1).view(np.uint8)  # (strings, 8 * words)
    used = np.arange(characters.shape[1]) < width[:, None]
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(width, dtype=np.int32)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(characters[used])]
    return pa.Array.from_buffers(pa.string(), len(width), buffers)


def _check_crc(value: TemplateValue, lines: _BlockLines, end: Ints, words: LineWords) -> None:
    """Raise `Deviates` unless the last member is the CRC-32C of the line before it, in eight lowercase hex digits."""
    if value.kind != "string" or not value.literal.endswith(b',"crc32c":"'):
        raise Deviates
    if (words[1] & np.uint64(0xFF) != ord('"')).any():
        raise Deviates
    covered = end + (len(value.literal) - len(b',"crc32c":"'))  # a closing quote belongs to the literal
    if (words[0] != hexadecimal(line_crcs(lines.words, lines.starts, covered, _PAD_BYTES))).any():
        raise Deviates


_READ_VALUE = {"int64": _read_integers, "string": _read_strings}


_SHAPES = 8
"""A block of more shapes is not decoded here; a record has few members that may be absent."""


def decode_mixed(block: bytes, fields: Fields, known: Names = (), spelt: Names = ()) -> pa.RecordBatch | None:
    """Read columns as `cklog.parsers.jsonl.columns.decode` does, of lines of up to eight shapes; None: it cannot.

    Lines with equally many quotes are taken to be of one shape; if they are not, those whose second member begins
    with one letter. `decode` sees whether they are.

    Examples
    --------
    >>> block = b'{"channel":"a","seq":7}\\n{"checkpoint":1}\\n{"channel":"b","seq":8}\\n'
    >>> decode_mixed(block, (("seq", "int64"), ("_offset", "int64"))).to_pydict()
    {'seq': [7, None, 8], '_offset': [0, 24, 41]}
    """
    raw = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(raw == ord("\n")) + 1
    if not len(ends) or ends[-1] != len(raw):
        return None
    starts = np.append(0, ends[:-1])
    quotes = np.add.reduceat(raw == ord('"'), starts).astype(np.int64)
    found = _decode_kinds(raw, starts, ends, quotes, fields, (known, spelt))
    if found is None:
        found = _decode_kinds(raw, starts, ends, _quotes_and_letter(raw, quotes), fields, (known, spelt))
    return found


def _quotes_and_letter(raw: Bytes, quotes: Ints) -> Ints:
    """Return each line's number of quotes, times 256, plus the byte behind its fifth quote; shapes (lines,).

    In an event log the fifth quote begins the name of the second member: {"ts":"1","seq":7} → 256 * 6 + ord("s").
    Lines of fewer quotes have 0 for the byte.
    """
    behind = np.append(np.flatnonzero(raw == ord('"')) + 1, 0)  # of every quote of the block; the last is no quote's
    fifth = np.where(quotes > 4, np.cumsum(quotes) - quotes + 4, len(behind) - 1)
    return 256 * quotes + np.where(quotes > 4, raw[behind[fifth]], 0)


def _decode_kinds(
    raw: Bytes, starts: Ints, ends: Ints, kind_of: Ints, fields: Fields, names: tuple[Names, Names]
) -> pa.RecordBatch | None:
    """Decode each kind of lines on its own and put them together; None unless all of them can be."""
    kinds, count = np.unique(kind_of, return_counts=True)
    if not 1 < len(kinds) <= _SHAPES:
        return None
    parts, lines = [], []
    for kind in kinds[np.argsort(count, kind="stable")].tolist():  # a damaged line is in a small group
        chosen = np.flatnonzero(kind_of == kind)
        part = decode(_chosen_lines(raw, starts, ends, kind_of == kind), fields, *names)
        if part is None or part.num_rows != len(chosen):
            return None
        parts.append(_with_places(part, starts[chosen]))
        lines.append(chosen)
    table = pa.Table.from_batches(parts).unify_dictionaries().combine_chunks()
    found: pa.RecordBatch = table.take(np.argsort(np.concatenate(lines))).combine_chunks().to_batches()[0]
    return found


def _chosen_lines(raw: Bytes, starts: Ints, ends: Ints, wanted: Mask) -> bytes:
    """Return the lines that are `wanted`, one behind the other."""
    return raw[np.repeat(wanted, ends - starts)].tobytes()


def _with_places(part: pa.RecordBatch, starts: Ints) -> pa.RecordBatch:
    """Return a part with its lines' offsets in the whole block; strings become dictionaries, so that parts fit."""
    arrays = []
    for name, column in zip(part.schema.names, part.columns, strict=True):
        if name == "_offset":
            column = pa.array(starts)
        elif pa.types.is_string(column.type):
            column = column.dictionary_encode()
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, part.schema.names)

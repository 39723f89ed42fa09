"""JSON lines of one shape, byte by byte: what `cklog.parsers.jsonl.columns` does in passes, as loops for many lines.

Compiled, a loop reads each byte once, where passes over words gather and compare all lines for every value. Both hold
the same template against every byte, and have the same values or none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cklog.arrays.buffers import unfilled
from cklog.arrays.loops import Loop, only_read
from cklog.arrays.types import Bytes, Ints, Small
from cklog.parsers.jsonl.template import LineTemplate, member_spans
from cklog.parsers.jsonl.words import Deviates

_PROBES = 16
"""Looks into a table of texts that a line may cost on average: names that were chosen to collide go another way."""

_MOST, _COUNTED = 1 << 31, 1 << 17


def _walk_lines(
    block: Bytes, literals: Bytes, literal_at: Small, kind: Small, column: Small, starts: Ints, ends: Ints, found: Ints
) -> int:
    """Hold each line of a block against a template; return how many lines there are, -1 where one does not agree.

    Literal k, bytes `literal_at[k]` to `literal_at[k + 1]` of `literals`, stands before value k, the last one behind
    the last value. Value k is text where `kind[k]` is 1, else an integer, which goes to column `column[k]` of `found`
    unless that is -1. `starts` has where lines begin, and room for all that a block can have; `ends` where values end,
    and `found`, go value by value, each with as much room.
    """
    size = len(block)
    most = len(starts)
    values = len(kind)
    at = 0
    line = 0
    while at < size:
        if line == most:
            return -1
        starts[line] = at
        for k in range(values + 1):
            low = literal_at[k]
            length = literal_at[k + 1] - low
            if at + length > size:
                return -1
            text, literal = block[at : at + length], literals[low : low + length]
            wrong = 0
            for j in range(length):  # without a way out: the compiler takes many bytes at once
                wrong |= text[j] ^ literal[j]
            if wrong:
                return -1
            at += length
            if k == values:
                break
            if kind[k] == 1:
                while at < size and block[at] >= 32 and block[at] != 34 and block[at] != 92:
                    at += 1
                if at == size or block[at] != 34:  # no quote: a backslash, a control character, or the end
                    return -1
            else:
                negative = at < size and block[at] == 45
                if negative:
                    at += 1
                first = at
                stop = min(size, first + 18)  # so many digits fit 64 bits
                number = 0
                while at < stop:
                    digit = block[at] - 48
                    if digit < 0 or digit > 9:
                        break
                    number = 10 * number - digit  # below 0, where there is one number more
                    at += 1
                if at == first + 18 and at < size and block[at] >= 48 and block[at] <= 57:
                    digit = block[at] - 48
                    if number < -922337203685477580 or (number == -922337203685477580 and digit > 7 + negative):
                        return -1
                    number = 10 * number - digit
                    at += 1
                if at == first or (block[first] == 48 and (at > first + 1 or negative)):
                    return -1
                if column[k] >= 0:
                    found[column[k] * most + line] = number if negative else -number
            ends[k * most + line] = at
        line += 1
    return line


def _number_texts(block: Bytes, starts: Ints, ends: Ints, table: Small, code: Small, first: Small) -> int:
    """Number the texts of all lines as they first come; return how many there are, -1 where that takes too long.

    `table`, twice as long as there are lines or longer and a power of two, is full of -1. `code` gets the number of
    each line's text, `first` the line that has each text first.
    """
    mask = len(table) - 1
    texts = 0
    left = _PROBES * len(starts)
    for i in range(len(starts)):
        text = block[starts[i] : ends[i]]
        mixed = 0
        for j in range(len(text)):  # each byte by itself, so that the compiler takes many at once
            mixed += (text[j] + 1) * ((j + 1) * 40503 & 0xFFFF)
        mixed = (mixed & 0xFFFFFFFF) * 40503
        slot = (mixed ^ (mixed >> 15)) & mask
        while True:
            left -= 1
            if left < 0:
                return -1
            known = table[slot]
            if known < 0:
                table[slot] = known = texts
                first[texts] = i
                texts += 1
                break
            other = block[starts[first[known]] : ends[first[known]]]
            wrong = len(other) ^ len(text)
            for j in range(min(len(text), len(other))):
                wrong |= text[j] ^ other[j]
            if not wrong:
                break
            slot = (slot + 1) & mask
        code[i] = known
    return texts


def count_lines(block: bytes | Bytes) -> int:
    """Return how many newlines there are, faster than `bytes.count` does where they are many."""
    raw = np.frombuffer(block, np.uint8) if isinstance(block, bytes) else block
    parts = (raw[at : at + _COUNTED] for at in range(0, len(raw), _COUNTED))  # what is made of each stays in the cache
    return sum(int(np.count_nonzero(part == ord("\n"))) for part in parts)


WALK = Loop(_walk_lines)
NUMBER = Loop(_number_texts)


@dataclass(frozen=True, slots=True)
class WalkedLines:
    """Where the lines of a block begin, shape (lines,), where each value ends in each line, and the wanted columns."""

    starts: Ints
    ends: list[Ints]
    columns: dict[str, pa.Array]


def walk(raw: Bytes, template: LineTemplate, wanted: set[str]) -> WalkedLines | None:
    """Read the lines of a block by loops; None where its texts take too long to number, or it is too large.

    Raises
    ------
    Deviates : a line is not of the template
    """
    values, tail = template.values, template.tail
    literals = [values[0].literal[len(tail) :], *(value.literal for value in values[1:]), tail]
    shortest = sum(map(len, literals)) + sum(value.kind == "int64" for value in values)
    most = len(raw) // shortest
    if len(raw) >= _MOST or not most:
        return None
    integers = [value.name for value in values if value.kind == "int64" and value.name in wanted]
    column = [integers.index(v.name) if v.kind == "int64" and v.name in wanted else -1 for v in values]
    starts, ends = unfilled(most, np.int64), unfilled(len(values) * most, np.int64)
    found = unfilled(max(len(integers), 1) * most, np.int64)
    given = (
        only_read(np.frombuffer(b"".join(literals), np.uint8)),
        _small([0, *np.cumsum([len(literal) for literal in literals])]),
        _small([value.kind == "string" for value in values]),
        _small(column),
    )
    lines = WALK(len(raw) // len(template.line), only_read(raw), *given, starts, ends, found)
    if lines < 0:
        raise Deviates
    starts = starts[:lines]
    by_value = [ends[k * most : k * most + lines] for k in range(len(values))]
    columns = {name: pa.array(found[k * most : k * most + lines]) for k, name in enumerate(integers)}
    for k, value in enumerate(values):
        if value.kind == "string" and value.name in wanted:
            before = by_value[k - 1] if k else starts
            texts = _numbered(raw, before + len(literals[k]), by_value[k])
            if texts is None:
                return None
            columns[value.name] = texts
    return WalkedLines(starts, by_value, columns)


def _numbered(raw: Bytes, starts: Ints, ends: Ints) -> pa.DictionaryArray | None:
    """Return the texts of all lines as a dictionary column; None where too many of them collide."""
    lines = len(starts)
    table = np.full(1 << (2 * lines).bit_length(), -1, np.int32)
    code, first = unfilled(lines, np.int32), unfilled(lines, np.int32)
    texts = NUMBER(lines, only_read(raw), only_read(starts), only_read(ends), table, code, first)
    if texts < 0:
        return None
    one = first[:texts]
    return pa.DictionaryArray.from_arrays(pa.array(code), _texts_between(raw, starts[one], ends[one]))


def _small(values: list[int] | list[bool]) -> Small:
    return only_read(np.array(values, np.int32))


def _texts_between(memory: Bytes, start: Ints, end: Ints) -> pa.Array:
    """Return the bytes from `start` to `end`, of every line, as strings."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - start)])
    # the address of every byte that is taken: [10, 20] to [12, 23] → [10, 11, 20, 21, 22]
    source = np.repeat(start - offsets[:-1], end - start) + np.arange(offsets[-1])
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(memory[source])]
    return pa.Array.from_buffers(pa.string(), len(start), buffers)


def _in_all_lines(starts: Ints, ends: list[Ints], at: int) -> Ints:
    """Return where byte `at` of the first line is in every line, shape (lines,): as far behind the value before it.

    `ends` has the end of each value in each line: of {"a":1,"b":2} and {"a":10,"b":2} with the lines at 0 and 14,
    `ends` is [[6, 21], [12, 27]], and the comma, byte 6 of the first line, is at [6, 21].
    """
    first = [int(end[0] - starts[0]) for end in ends]
    before = sum(end <= at for end in first)
    return ends[before - 1] + (at - first[before - 1]) if before else starts + at


def json_texts(
    memory: Bytes, template: LineTemplate, starts: Ints, ends: list[Ints], texts: set[str]
) -> dict[str, pa.Array]:
    """Return the JSON text of members of all lines, which begin at `starts` and whose values end at `ends`."""
    places = member_spans(template.line, texts).items() if texts else ()
    return {
        name: _texts_between(memory, _in_all_lines(starts, ends, first), _in_all_lines(starts, ends, last))
        for name, (first, last) in places
    }

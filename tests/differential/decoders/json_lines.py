"""Lines of JSON, against Python's `json`, line by line, and the types that the columns of a table have."""

from __future__ import annotations

import json
import random
from typing import Any

import crc32c

from cklog.engine.scan import Damage as Flaw
from cklog.parsers.jsonl.columns import decode, decode_mixed
from cklog.parsers.jsonl.reader import rows_of, shape_of
from tests.differential.mutations import Damage
from tests.differential.verdicts import Decoder, Outcome

_TABLE = "channels"
_COLUMNS = ("channel", "seq", "bytes", "_offset")
_KINDS = {"channel": str, "seq": int, "bytes": int}


def _line(chance: random.Random, summed: bool, spaces: str) -> bytes:
    record: dict[str, Any] = {
        "channel": chance.choice(("a", "a/0->b/0", "naïve", 'quo"te', "x" * 40, "back\\slash")),
        "seq": chance.choice((0, 1, 12, 99_999_999, 100_000_000, 10**17, (1 << 63) - 2)),
        "bytes": chance.choice((0, 7, 1234, 123_456_789, 10**18)),
    }
    text = json.dumps(record, ensure_ascii=chance.random() < 0.5, separators=("," + spaces, ":" + spaces)).encode()
    if summed:
        head = text[:-1]
        text = head + b',"crc32c":"%08x"}' % crc32c.crc32c(head)
    return text


def _made(damage: Damage) -> bytes:
    """Write lines of one shape or of two; the second kind may have members that no table knows."""
    chance = damage.chance
    summed, spaces = chance.random() < 0.3, " " if chance.random() < 0.2 else ""
    plain = chance.random() < 0.6
    lines = []
    for _ in range(chance.choice((1, 3, 12, 40))):
        line = _line(chance, summed, spaces)
        if plain and (b"\\" in line or not line.isascii()):
            line = (
                line.replace(b"\\", b"").replace(b'quo"te', b"quote")
                if not summed
                else _line(random.Random(1), True, spaces)
            )
        if chance.random() < 0.1 and not summed:
            line = line[:-1] + chance.choice(
                (b',"more":[1,2]}', b',"note":"n"}', b',"time":5}', b',"x":1.5}', b',"y":null}')
            )
        lines.append(line)
    data = b"\n".join(lines) + b"\n"
    return data.replace(b"\n\n", b"\n") if chance.random() < 0.5 else data


def _with_right_sums(data: bytes) -> bytes:
    lines = data.split(b"\n")
    for i, line in enumerate(lines):
        head, mark, tail = line.rpartition(b',"crc32c":"')
        if mark and len(tail) == 10 and tail.endswith(b'"}'):
            lines[i] = head + mark + b'%08x"}' % crc32c.crc32c(head)
    return b"\n".join(lines)


def _rows(batch: Any) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in _COLUMNS) for row in batch.to_pylist()]


def _read(data: bytes) -> Outcome:
    """Read whole lines as readers of files do, and at once; what both have must be the same."""
    shape = shape_of("f", _TABLE, _COLUMNS, trusted=True)
    block = data[: data.rfind(b"\n") + 1]
    rows, why = [], "no lines"
    for found in rows_of(shape, 0, block):
        if isinstance(found, Flaw):
            why = found.detail
        else:
            rows += _rows(found)
    rows.sort(key=lambda row: row[-1])
    assert shape.flat is not None
    at_once = decode(block, shape.flat, shape.known) if block.strip() else None
    at_once = decode_mixed(block, shape.flat, shape.known) if at_once is None and block.strip() else at_once
    if at_once is not None:
        ranges = [row for row in _rows(at_once) if _is_record(row)]
        assert ranges == rows, f"at once: {ranges[:3]}, line by line: {rows[:3]}"
    return Outcome("value", rows) if rows else Outcome("refused", why=why)


def _is_record(row: tuple[Any, ...]) -> bool:
    """Return whether a row breaks no rule of its table, which readers look at after decoding."""
    channel, seq, size, _ = row
    return (
        channel is not None
        and seq is not None
        and 0 <= seq < (1 << 63) - 1
        and (size is None or 0 <= size < (1 << 63) - 1)
    )


class _Twice(ValueError):
    """Raised where an object has a member twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Twice
    return dict(pairs)


def _refer(data: bytes) -> Outcome:
    rows, at = [], 0
    for line in data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]:
        row = _record(line)
        if row is not None:
            rows.append((*row, at))
        at += len(line) + 1
    return Outcome("value", rows) if rows else Outcome("refused", why="no line is a record")


def _record(line: bytes) -> tuple[Any, ...] | None:
    """Return the columns of a line by `json`, if each has its type and the line the checksum that it says."""
    try:
        found = json.loads(line.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if "crc32c" in found:
        head = line.rstrip().rpartition(b",")[0]
        if not isinstance(found["crc32c"], str) or f"{crc32c.crc32c(head):08x}" != found["crc32c"].lower():
            return None
    row = tuple(found.get(name) for name in _KINDS)
    for value, kind in zip(row, _KINDS.values(), strict=True):
        if value is not None and type(value) is not kind:
            return None
    return row if row[0] is not None and row[1] is not None else None


def _equal(ours: Any, theirs: Any) -> bool:
    """Return whether each row of cklog is one of the reference; it may have fewer, for it also judges them."""
    return {*map(repr, ours)} <= {*map(repr, theirs)}


DECODERS = (
    Decoder(
        name="json-lines",
        reference="json",
        make=_made,
        read=_read,
        refer=_refer,
        repair=_with_right_sums,
        equal=_equal,
        compiled=True,
    ),
)

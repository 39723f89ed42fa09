"""A store of the patent's layout exported as JSON lines, plain, gzip or Zstandard: one key and its value a line.

    {"key":"2 INDEX","value_hex":"0000000000000000000100…"}

Byte n of a value is at digit 2n, so that the places that answers give can be looked up. A line may end with a
`crc32c` of its own, as in run folders. What a crash leaves is a torn last line at the most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import crc32c

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import reading
from cklog.engine.scan import Damage, Split, damage_of
from cklog.model.findings import Where
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.parsers.jsonl.stream import COMPRESSION, ByteStream, whole_lines
from cklog.parsers.patent.keys import HEAD, Key, is_of_unknown_part, key_of
from cklog.parsers.patent.values import StoredValue
from cklog.parsers.tables.records import NotARecord, strict_json
from cklog.storage import FileEntry, Root

_HEAD_BYTES = 64 << 10
_MARK = b'"value_hex"'


def suffix_of(path: str) -> str | None:
    """Return the suffix of a file that may be an export, the longest that fits; None if none does."""
    return next((s for s in sorted(COMPRESSION, key=len, reverse=True) if path.endswith(s) and path != s), None)


def is_export(root: Root, entry: FileEntry) -> bool:
    """Return whether a file begins with a line of an export."""
    try:
        with ByteStream(_split_of(root, entry)) as file:
            return _MARK in file.read(_HEAD_BYTES)
    except (OSError, *ARROW_ERRORS) as error:
        root.is_refused(entry.path, error)
        return False


def stored_in(root: Root, entry: FileEntry) -> Iterator[StoredValue | Damage]:
    """Read every key with its value, and as damage the lines that are none."""
    split = _split_of(root, entry)
    try:
        with ByteStream(split) as file:
            for start, block, believed in whole_lines(file, split):
                if isinstance(block, Damage):
                    yield block
                    continue
                for at, line in _lines_at(start, block):
                    yield _decode_line(entry.path, at, line, believed)
    except (OSError, *ARROW_ERRORS) as error:
        yield damage_of(entry.path, error)


def _split_of(root: Root, entry: FileEntry) -> Split:
    return Split(uri=root.uri(entry.path), path=entry.path, reader="", start=0, end=entry.size, size=entry.size)


def _lines_at(start: int, block: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield lines that are not empty with their offsets; the block of whole lines begins at byte `start`."""
    for line in block.split(b"\n")[:-1]:
        if line.strip():
            yield start, line
        start += len(line) + 1


def _decode_line(path: str, at: int, line: bytes, trusted: bool) -> StoredValue | Damage:
    """Decode the line at byte `at`; unless `trusted`, it needs a crc32c of its own."""
    try:
        with reading(path, at):
            found = strict_json(line, required=not trusted)
        key, value = _text_member(found, "key"), _bytes_of_hex(_text_member(found, "value_hex"))
    except NotARecord as why:
        return Damage(path, "bad-record", at, str(why))
    name = key.encode("utf-8", "surrogatepass")
    known = key_of(name)
    if known is None:
        return no_key(path, at, name, f"{key[:40]!a}")
    return stored(known, value, f"{path}:{at}", Where(path, at))


def stored(key: Key, value: bytes, place: str, where: Where) -> StoredValue:
    """Return a key with its value, keeping the bytes only of what leads to other values."""
    kept = value if key.part == "INDEX" or key.chunk == HEAD else b""
    return StoredValue(key=key, size=len(value), crc=crc32c.crc32c(value), data=kept, place=place, where=where)


def no_key(path: str, at: int | None, key: bytes, shown: str) -> Damage:
    """Return what is said of a key that is none of a known part of a checkpoint."""
    if is_of_unknown_part(key):
        return Damage(path, UNKNOWN_VERSION, at, f"{shown} is of a part of checkpoints that is not known")
    return Damage(path, "unknown-key", at, f"{shown} is no key of a checkpoint")


def _text_member(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise NotARecord(f"no text {name}")
    return value


def _bytes_of_hex(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError as error:
        raise NotARecord(f"value_hex: {error}") from None

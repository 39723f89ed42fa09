"""Mutations of single JSON fields: in lines, compressed or not, and in files of one object."""

from __future__ import annotations

import gzip
import json
import random
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import crc32c
import pyarrow as pa

from tests.builders.native import zstd
from tests.fuzz.mutations.change import Change, Mutation, some_file
from tests.fuzz.tree import Tree

INTEGERS = frozenset(
    {"checkpoint", "subtask", "seq", "sent", "received", "sources", "lsn", "pos", "round", "open_windows"}
)
"""Fields of native records that are integers of at least 0, or maps to such; what else they may not be is told."""

_NONSENSE: Mapping[str, Callable[[random.Random], Any]] = {
    "word": lambda dice: "x",
    "digits": lambda dice: "7",
    "negative": lambda dice: -dice.randrange(1, 1 << 40),
    "fraction": lambda dice: 5.5,
    "float": lambda dice: 5.0,
    "true": lambda dice: True,
    "huge": lambda dice: dice.choice((1 << 63, (1 << 63) - 1, 10**30)),
    "list": lambda dice: [1],
    "object": lambda dice: {"a": {"b": 1}},
}
_TEXTS = ("NaN", "1e400", "-0", "Infinity", "[" * 3000 + "]" * 3000, '"\\ud800"', '"\x00"', "0" * 400 + "1", "9" * 5000)
"""What a writer of JSON would not write."""
_MARK = "\x01here\x01"


def unpacked(name: str, data: bytes) -> bytes | None:
    """The lines of a file by its name, or None if they cannot be had."""
    try:
        if name.endswith(".gz"):
            return gzip.decompress(data)
        if name.endswith(".zst"):
            with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
                return bytes(stream.read())
    except (OSError, EOFError, ValueError, pa.ArrowException):
        return None
    except Exception:  # zlib.error and what else a stream may raise
        return None
    return data


def packed(name: str, data: bytes) -> bytes:
    """The bytes of a file by its name."""
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else zstd(data) if name.endswith(".zst") else data


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, by the keys that lead to it."""
    found = [path] if path else []
    if isinstance(value, dict):
        found += [place for key, below in value.items() for place in places(below, (*path, key))]
    elif isinstance(value, list):
        found += [place for at, below in enumerate(value[:4]) for place in places(below, (*path, at))]
    return found


def _holder(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def _edited(record: Any, others: list[Any], dice: random.Random) -> tuple[str, str, bool] | None:
    """The text of a record with one field changed, what was done, and whether that is no valid record any more."""
    path = dice.choice(places(record) or [()])
    if not path:
        return None
    holder, key = _holder(record, path), path[-1]
    value = holder[key]
    counts = type(value) is int and path[0] in INTEGERS
    how = dice.choice(("nonsense", "nonsense", "nonsense", "other", "near", "delete", "null", "text", "twice"))
    strict, raw = False, ""
    if how == "nonsense":
        how = dice.choice(list(_NONSENSE))
        holder[key] = _NONSENSE[how](dice)
        strict = counts
    elif how == "delete":
        del holder[key]
    elif how == "null":
        holder[key] = None
    elif how == "near" and type(value) is int:
        holder[key] = max(0, value + dice.choice((-1, 1, -5, 5, 1000)))
    elif how in ("text", "near"):
        raw = dice.choice(_TEXTS)
        holder[key] = _MARK
    elif how == "twice":
        pass
    else:
        try:
            holder[key] = _holder(dice.choice(others), path)[key]
        except (KeyError, IndexError, TypeError):
            holder[key] = dice.choice(list(_NONSENSE))
    text = json.dumps(record, separators=(",", ":"))
    text = text.replace(json.dumps(_MARK), raw) if raw else text
    if how == "twice" and text.endswith("}"):
        text = f"{text[:-1]},{json.dumps(str(path[0]))}:{json.dumps(record[path[0]])}}}"
    return text, f"{'.'.join(map(str, path))}: {how}", strict


def in_lines(tree: Tree, dice: random.Random) -> Change | None:
    """A field of one line; its own checksum is left, or made right as a hostile writer would."""
    found = some_file(tree, dice, (".jsonl", ".jsonl.gz", ".jsonl.zst"))
    plain = unpacked(*found) if found else None
    if not found or not plain:
        return None
    name = found[0]
    lines = plain.splitlines()
    at = dice.randrange(len(lines))
    try:
        record, other = json.loads(lines[at]), json.loads(dice.choice(lines))
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    signature = record.pop("crc32c", None)
    edited = _edited(record, [other], dice)
    if edited is None:
        return None
    text, what, strict = edited
    signs = signature is not None and dice.random() < 0.5
    if signs:
        signature = f"{crc32c.crc32c(text[:-1].encode()):08x}"
    if signature is not None:
        text = f'{text[:-1]},"crc32c":"{signature}"}}'
    lines[at] = text.encode()
    paths: tuple[str, ...] = (name,)
    data = packed(name, b"\n".join(lines) + b"\n")
    tree.put(name, data)
    side = hadoop_name(name)
    if signs and side in tree.files:
        tree.put(side, hadoop(data))
        paths = (name, side)
    return Change(paths, f"{name}: line {at}: {what}{', signed' if signs else ''}", strict=strict and not signs)


def in_objects(tree: Tree, dice: random.Random) -> Change | None:
    """A field of a file that is one object, or of the lines of one of Spark's."""
    names = [n for n in tree.names if n.endswith(".json") or _of_spark(n)]
    if not names:
        return None
    name = dice.choice(names)
    lines = (tree.now(name) or b"").split(b"\n")
    wanted = [at for at, line in enumerate(lines) if line[:1] == b"{"]
    if not wanted:
        return None
    at = dice.choice(wanted)
    try:
        record = json.loads(lines[at])
    except (ValueError, RecursionError):
        try:
            at, record = 0, json.loads(b"\n".join(lines))
            lines = [b""]
        except (ValueError, RecursionError):
            return None
    edited = _edited(record, [record], dice) if isinstance(record, dict) else None
    if edited is None:
        return None
    lines[at] = edited[0].encode()
    data = b"\n".join(lines)
    paths: tuple[str, ...] = (name,)
    tree.put(name, data)
    side = hadoop_name(name)
    if side in tree.files and dice.random() < 0.5:
        tree.put(side, hadoop(data))
        paths = (name, side)
    return Change(paths, f"{name}: {edited[1]}")


def _of_spark(name: str) -> bool:
    folder, _, base = name.rpartition("/")
    return (base.isdigit() and folder.rpartition("/")[2] in ("offsets", "commits")) or base == "metadata"


def hadoop_name(name: str) -> str:
    """The name of the side file with Hadoop's checksums."""
    folder, slash, base = name.rpartition("/")
    return f"{folder}{slash}.{base}.crc"


def hadoop(data: bytes) -> bytes:
    """Hadoop's checksums of a file: of each 512 bytes."""
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    return b"crc\0" + struct.pack(f">i{len(sums)}I", 512, *sums)


MUTATIONS: Mapping[str, tuple[Mutation, int]] = {"json.line": (in_lines, 14), "json.object": (in_objects, 4)}

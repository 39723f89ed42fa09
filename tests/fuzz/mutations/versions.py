"""Mutations of versions and names of formats: what a later writer would have written, with right checksums.

Each field is one that a reader has to understand before it can use the file at all. A file with another value there is
neither damaged nor known, so that `tests.fuzz.unknown` knows what may be said about it.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from tests.differential.thrift import NoThrift, get, put, read_struct, write_struct
from tests.fuzz.mutations.change import Change, Mutation
from tests.fuzz.mutations.fields import hadoop, hadoop_name
from tests.fuzz.mutations.frames import batches, signed
from tests.fuzz.tree import Tree

LATER = 99
"""A version that no format has reached."""

Edit = Callable[[str, bytes, random.Random], tuple[bytes, str] | None]
"""From a file's name and bytes to the bytes of a later writer, and what is different; None: there is no such field."""


def text_line(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The line `v1` in front of Spark's files."""
    found = re.match(rb"v[0-9]+\n", data)
    return (b"v%d\n" % LATER + data[found.end() :], f"version v{LATER}") if found else None


def first_number(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The number in front of Kafka's checkpoint files."""
    return (b"%d\n" % LATER + data[2:], f"version {LATER}") if data.startswith(b"0\n") else None


def flink_metadata(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The version behind the magic number of Flink's metadata."""
    return (data[:4] + struct.pack(">i", LATER) + data[8:], f"version {LATER}") if len(data) > 8 else None


def batch_format(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The format of one of Kafka's batches, whose checksum format 2 does not understand."""
    places = batches(data)
    if not places:
        return None
    at, _ = dice.choice(places)
    out = bytearray(data)
    out[at + 16], out[at + 20] = 3, out[at + 20] ^ 1
    return bytes(out), f"batch at {at} of format 3"


_READ_INSIDE = re.compile(r"(^|/)(__consumer_offsets|connect-offsets|outputs)")
"""Logs whose records are read; of others their offsets are."""


def batch_codec(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The codec of a batch whose records are read."""
    places = [(at, end) for at, end in batches(data) if data[at + 16] == 2 and not data[at + 22] & 0x20]
    if not places or not _READ_INSIDE.search(name):
        return None
    at, end = dice.choice(places)
    out = bytearray(data)
    out[at + 22] = out[at + 22] & ~7 | 6
    signed(out, at, end)
    return bytes(out), f"batch at {at} of codec 6"


def gzip_method(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The method of a gzip member."""
    return (data[:2] + b"\x09" + data[3:], "gzip method 9") if data[:3] == b"\x1f\x8b\x08" else None


def zstd_frame(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The reserved bit of a Zstandard frame: a decoder of today must refuse it."""
    if data[:4] != b"\x28\xb5\x2f\xfd":
        return None
    return data[:4] + bytes([data[4] | 8]) + data[5:], "the reserved bit of the frame"


def parquet_codec(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The codec of all columns in a Parquet footer, or the magic number of an encrypted one."""
    if dice.random() < 0.2:
        return b"PARE" + data[4:-4] + b"PARE", "an encrypted footer"
    found = _footer(data)
    if found is None:
        return None
    start, footer = found
    for column in _columns(footer):
        put(column, 4, LATER)
    written = write_struct(footer)
    return data[:start] + written + struct.pack("<I", len(written)) + data[-4:], f"codec {LATER}"


def parquet_encoding(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The encoding of the first data page of every column; page checksums leave the header out."""
    found = _footer(data)
    out = bytearray(data)
    for column in _columns(found[1]) if found else ():
        at = get(column, 9)
        try:
            header, end = read_struct(data, at)
        except NoThrift:
            return None
        page = get(header, 5) or get(header, 8)
        put(page, 2 if get(header, 5) else 4, _ENCODING)
        written = write_struct(header)
        if len(written) != end - at:
            return None
        out[at:end] = written
    return (bytes(out), f"encoding {_ENCODING}") if found else None


_ENCODING = 40
"""An encoding that no format has reached, of one byte as every other one."""


def _footer(data: bytes) -> tuple[int, list[Any]] | None:
    """The first byte of a Parquet footer, and the footer, if it has rows."""
    start = len(data) - 8 - struct.unpack_from("<I", data, len(data) - 8)[0] if len(data) > 12 else -1
    try:
        footer, end = read_struct(data, start)
    except NoThrift:
        return None
    groups = get(footer, 4)
    return (start, footer) if end == len(data) - 8 and groups and groups[1] else None


def _columns(footer: list[Any]) -> list[list[Any]]:
    return [get(chunk, 3) for group in get(footer, 4)[1] for chunk in get(group, 1)[1]]


def lz4_method(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The method in the token of lz4-java's blocks."""
    return (data[:8] + bytes([data[8] & 15 | 0x30]) + data[9:], "lz4 method 3") if data[:8] == b"LZ4Block" else None


def pickle_protocol(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The protocol of a pickle."""
    return (data[:1] + bytes([LATER]) + data[2:], f"pickle protocol {LATER}") if data[:1] == b"\x80" else None


def java_stream(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The version of a stream of Java's objects."""
    return (data[:2] + struct.pack(">h", LATER) + data[4:], f"version {LATER}") if data[:2] == b"\xac\xed" else None


def avro_codec(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The codec's name in the head of an Avro file."""
    found = re.search(rb"avro\.codec.(null|deflate|snappy|zstandard|xz|bzip2)", data[:100_000], re.DOTALL)
    if found is None:
        return None
    word = b"later"[: len(found[1])].ljust(len(found[1]), b"x")
    return data[: found.start(1)] + word + data[found.end(1) :], f"codec {word.decode()}"


def sst_version(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The format version in the footer of RocksDB's tables, whose checksum is of another version then, too."""
    if len(data) < 53 or not data.endswith(_SST_MAGIC):
        return None
    return data[:-12] + struct.pack("<I", LATER) + data[-8:], f"format version {LATER}"


_SST_MAGIC = struct.pack("<Q", 0x88E241B785F4CFF7)


def _number(key: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'(?:\\?"%s\\?"\s*:\s*\\?"?|^%s=)([0-9]+)' % (key, key), re.MULTILINE)


_NUMBERS = {
    "minReaderVersion": _number(b"minReaderVersion"),
    "format-version": _number(b"format-version"),
    "version": _number(b"version"),
    "hoodie.table.version": _number(rb"hoodie\.table\.version"),
    "hoodie.timeline.layout.version": _number(rb"hoodie\.timeline\.layout\.version"),
}


def _numbered(*keys: str) -> Edit:
    def edit(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
        found = {key: _NUMBERS[key].search(data) for key in keys}
        there = {key: match for key, match in found.items() if match}
        if not there:
            return None
        key = dice.choice(sorted(there))
        match = there[key]
        return data[: match.start(1)] + b"%d" % LATER + data[match.end(1) :], f"{key} {LATER}"

    return edit


_PROVIDER = re.compile(rb'"spark\.sql\.streaming\.stateStore\.providerClass":"([^"]+)"')


def spark_provider(name: str, data: bytes, dice: random.Random) -> tuple[bytes, str] | None:
    """The class of the state store, in a plan."""
    found = _PROVIDER.search(data)
    return (
        (data[: found.start(1)] + b"org.later.Provider" + data[found.end(1) :], "another provider") if found else None
    )


FIELDS: tuple[tuple[re.Pattern[str], tuple[Edit, ...]], ...] = tuple(
    (re.compile(pattern), edits)
    for pattern, edits in (
        (r"(^|/)(offsets|commits|sources/\d+|_spark_metadata)/\d+(\.compact)?$", (text_line,)),
        (r"(^|/)offsets/\d+$", (spark_provider,)),
        (r"/state/.*/(metadata|schema)$", (text_line,)),
        (r"/state/.*\.(delta|snapshot|changelog)$", (lz4_method,)),
        (r"\.sst$", (sst_version,)),
        (r"(^|[-/.])checkpoint$", (first_number,)),
        (r"(^|/)meta\.properties$", (_numbered("version"),)),
        (r"(^|/)_metadata$", (flink_metadata,)),
        (r"(^|/)\d{20}\.log$", (batch_format, batch_codec)),
        (r"\.gz$", (gzip_method,)),
        (r"\.zst$", (zstd_frame,)),
        (r"\.parquet$", (parquet_codec, parquet_encoding)),
        (r"\.bin$", (pickle_protocol,)),
        (r"(^|/)connect\.offsets$", (java_stream,)),
        (r"(^|/)metadata/[^/]*\.avro$|(^|/)manifest/manifest-", (avro_codec,)),
        (r"(^|/)_delta_log/\d+\.json$", (_numbered("minReaderVersion"),)),
        (r"\.metadata\.json$", (_numbered("format-version"),)),
        (r"(^|/)snapshot/snapshot-\d+$", (_numbered("version"),)),
        (r"hoodie\.properties$", (_numbered("hoodie.table.version", "hoodie.timeline.layout.version"),)),
    )
)
"""By what a file is called, the fields that say how it is to be read."""


def edits_of(name: str) -> list[Edit]:
    """The fields that a file of such a name may have."""
    return [edit for pattern, edits in FIELDS if pattern.search(name) for edit in edits]


def later(tree: Tree, dice: random.Random) -> Change | None:
    """A version number is a later one, or the name of a format another; checksums are right."""
    names = [name for name in tree.names if edits_of(name)]
    for _ in range(4):
        if not names:
            return None
        name = dice.choice(names)
        data, edit = tree.now(name), dice.choice(edits_of(name))
        if edit is spark_provider and not _is_planned_with_state(tree, name):
            continue
        if edit is sst_version and hadoop_name(name) in tree.files:
            continue  # the side file proves the table, and nobody has to look inside
        edited = edit(name, data, dice) if data else None
        if edited is not None and edited[0] != data:
            return _written(tree, name, *edited)
    return None


def _is_planned_with_state(tree: Tree, name: str) -> bool:
    """Whether a plan is the newest of its query, which has state: settings of older ones are not used."""
    folder, _, number = name.rpartition("/")
    root = folder.removesuffix("offsets")
    plans = [other.rpartition("/")[2] for other in tree.names if other.rpartition("/")[0] == folder]
    newest = max(int(other) for other in plans if other.isdigit())
    return int(number) == newest and any(other.startswith(f"{root}state/") for other in tree.names)


def _written(tree: Tree, name: str, data: bytes, what: str) -> Change:
    tree.put(name, data)
    paths: tuple[str, ...] = (name,)
    side = hadoop_name(name)
    if side in tree.files:
        tree.put(side, hadoop(data))
        paths = (name, side)
    return Change(paths, f"{name}: {what}", unknown=name)


MUTATIONS: Mapping[str, tuple[Mutation, int]] = {"version.later": (later, 8)}

"""Whether a state file can be read: from cheap to dear, and no more than proves it.

    1  it has bytes at all, and a snapshot's files are beside it with the sizes that it states
    2  its checksum file, where Hadoop or Spark left one, proves every byte
    3  else, as on an object store, the stream is decompressed to its end block and its end mark; of a codec that is
       not read here (lzf), it begins as that codec's streams do and is not full of zeros

A delta, a snapshot and a changelog of version 1 or 3 end in the key length -1; one of version 2 or 4, which is of a
store with column families, in record type 0.

    changelog = ["v2" | "v3" | "v4"] [lineage] record*     strings as Java's modified UTF-8 with a u16 length
    lineage   = from version 3 on, JSON [{"version", "checkpointUniqueId"}]: the versions that this one stands on,
                from the last snapshot on to the version before it; of version 1, none

Snapshots of the RocksDB provider: `V.zip` and what it names in the folders beside it.

    V.zip/metadata   "v1"  {"sstFiles": [{"localFileName", "dfsSstFileName", "sizeBytes"}],
                            "logFiles": [{"localFileName", "dfsLogFileName", "sizeBytes"}], "numKeys", …}
    SSTs/            immutable files that several snapshots share; logs/ likewise

RocksDB is not needed to see whether every file is there with its size.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import budgets, check_json, inflating, over, reading
from cklog.errors import OverBudget
from cklog.inputs.batches import FileFlaw
from cklog.model.verdict import UNKNOWN_VERSION, UNREAD
from cklog.parsers.codecs import snappy_frames
from cklog.parsers.codecs.byte_stream import ByteStream
from cklog.parsers.codecs.hadoop_crc import sidecar_of
from cklog.parsers.codecs.streams import open_stream
from cklog.parsers.codecs.zeros import tell_zeros
from cklog.parsers.codecs.zip_archives import BadArchive, read_member
from cklog.parsers.codecs.zstd_frames import has_checksums
from cklog.parsers.spark.metadata_log import Damaged, is_bit_damaged, version_of, why_not
from cklog.parsers.spark.state.checksums import CHUNK_BYTES, read_chunks, verify
from cklog.parsers.spark.state.listing import StoredVersion
from cklog.parsers.spark.state.lz4_blocks import MAGIC, decoded
from cklog.parsers.spark.state.schemas import has_all_schemas
from cklog.parsers.spark.state.tables import SnapshotTables
from cklog.storage import FileEntry, Root, open_file
from cklog.unknown_formats import UnknownFormat

_ZSTD = b"\x28\xb5\x2f\xfd"
_BEGINS = {"lz4": MAGIC, "zstd": _ZSTD, "snappy": snappy_frames.MAGIC, "lzf": b"ZV"}
"""How streams begin, by the short name of their codec; settings may name its class instead."""
_END = b"\xff\xff\xff\xff"
_VERSION = re.compile(rb"\x00([\x02-\x0a])v([1-9][0-9]{0,8})")
"""A version as Java's `writeUTF` stores it, its length before it."""
_NEWEST_VERSION = 4
_LINEAGE_FROM = 3
_OF_FAMILIES = (2, 4)


@dataclass(frozen=True, slots=True)
class Content:
    """What reading a state file showed. `size`: with the files that it names; `lineage`: the id of each version."""

    flaw: FileFlaw | None
    size: int
    lineage: dict[int, str] = field(default_factory=dict)
    has_families: bool = False  # a changelog of a store with column families
    proved: bool = True  # False: it is there, but nothing proves its bytes


class StateContents:
    """A reader of state files, each read once.

    `by_path` are all files of state, `codec` the one that the query's settings name, "" for none.
    """

    def __init__(self, root: Root, by_path: Mapping[str, FileEntry], codec: str, thorough: bool = False) -> None:
        self.tables = SnapshotTables(root, thorough)
        self._root, self._by_path, self._codec = root, by_path, codec
        self._known: dict[str, Content] = {}
        self._shared_files: dict[str, FileFlaw | None] = {}

    def of(self, file: StoredVersion) -> Content:
        """Return what is known of a file, read now unless it was before."""
        path = file.entry.path
        if path not in self._known:
            self._known[path] = self._read_content(file.entry, file.version)
        return self._known[path]

    def known(self, file: StoredVersion) -> Content | None:
        """Return what is known of a file that was read before, else None."""
        return self._known.get(file.entry.path)

    def flaws(self) -> list[tuple[str, FileFlaw]]:
        """Return the files read so far that cannot be used, by path."""
        return [(path, content.flaw) for path, content in sorted(self._known.items()) if content.flaw is not None]

    def unproved(self) -> list[str]:
        """Return the files read so far whose bytes nothing proves, sorted."""
        return sorted(path for path, content in self._known.items() if not content.proved)

    def schema_flaw(self, entry: FileEntry) -> FileFlaw | None:
        """Return what is wrong with a file of schemas that metadata names, None if nothing is."""
        try:
            self._root.refuse_link(entry.path)
            if entry.size == 0:
                raise Damaged("corrupt-file", 0, "the file is empty")
            with reading(entry.path):
                whole = has_all_schemas(self._root.read(entry.path))
                if verify(self._root, self._by_path, entry) or whole:
                    return None
                raise Damaged(UNKNOWN_VERSION, None, "it is cut short, or has another form than Spark 4.3 writes")
        except Damaged as damaged:
            return damaged.flaw
        except (OSError, ValueError) as error:
            return FileFlaw(UNREAD, None, why_not(error))

    def _read_content(self, entry: FileEntry, number: int) -> Content:
        """Read a file as far as it takes to prove it; what is wrong becomes its flaw."""
        try:
            self._root.refuse_link(entry.path)
            if entry.size == 0:
                raise Damaged("corrupt-file", 0, "the file is empty")
            with reading(entry.path):
                summed = self._verify(entry)
                if entry.path.endswith(".zip"):
                    return self._read_snapshot(entry)
                return self._read_stream(entry, summed, number)
        except Damaged as damaged:
            return Content(damaged.flaw, entry.size)
        except (OSError, ValueError, *ARROW_ERRORS) as error:
            return Content(FileFlaw(UNREAD, None, why_not(error)), entry.size)

    def _verify(self, entry: FileEntry) -> bool:
        """Return whether a checksum file proves a file; one that refutes it says nothing of a version not known."""
        try:
            return verify(self._root, self._by_path, entry)
        except Damaged:
            self._refuse_unknown(entry)
            raise

    def _refuse_unknown(self, entry: FileEntry) -> None:
        """Raise `Damaged` for a file whose version is not known, as far as it can be read; look for nothing else.

        Its checksum has refuted the file already: what cannot be read, or decoded, now says nothing more of it. A bit
        that the checksum shows to be damaged is looked for in a snapshot, which stores its version as it is.
        """
        try:
            if entry.path.endswith(".zip"):
                data, side = self._root.read(entry.path), self._by_path.get(sidecar_of(entry.path))
                if not is_bit_damaged(data, self._root.read(side.path) if side else b"", parts_of):
                    parts_of(data)
            elif entry.path.endswith(".changelog") and (plain := self._decompress(entry, prove=False)) is not None:
                _read_head(next(plain, b""), plain)
        except (Damaged, OverBudget, OSError, ValueError, *ARROW_ERRORS) as error:
            if isinstance(error, Damaged) and error.flaw.id == UNKNOWN_VERSION:
                raise

    def _read_snapshot(self, entry: FileEntry) -> Content:
        """Read a RocksDB snapshot, and look at the files that it names."""
        parts = parts_of(self._root.read(entry.path))
        folder, size = posixpath.dirname(entry.path), entry.size
        for part in parts:
            path = f"{folder}/{part.path}"
            size += part.size
            flaw = self._snapshot_file_flaw(path, part.size)
            if flaw is not None:
                return Content(flaw, size)
        return Content(None, size)

    def _snapshot_file_flaw(self, path: str, size: int) -> FileFlaw | None:
        """Return what is wrong with a file that a snapshot needs, None if nothing; several snapshots may share it."""
        there = self._by_path.get(path)
        if there is None:
            return FileFlaw("missing-state-file", None, f"{path}, which it names, is missing")
        self._root.refuse_link(path)
        if there.size != size:
            return FileFlaw("corrupt-file", None, f"{path} has {there.size} bytes, it says {size}")
        if path not in self._shared_files:
            try:  # what cannot be read is raised, for every snapshot that names it
                proved = verify(self._root, self._by_path, there)
                self._shared_files[path] = None if proved else self.tables.flaw(there)
            except Damaged as damaged:
                self._shared_files[path] = FileFlaw(
                    "checksum-mismatch", damaged.flaw.offset, f"{path}: {damaged.flaw.why}"
                )
        return self._shared_files[path]

    def _read_stream(self, entry: FileEntry, summed: bool, number: int) -> Content:
        """Read a compressed file of version `number`; to its end mark, unless a checksum file proves it (`summed`)."""
        plain = self._decompress(entry, prove=not summed)
        if plain is None:
            if not summed:
                self._require_other_than_zeros(entry)
            return Content(None, entry.size, proved=summed)
        head = next(plain, b"")
        version, lineage = _read_head(head, plain) if entry.path.endswith(".changelog") else (1, {})
        if version >= _LINEAGE_FROM:
            _check_lineage(lineage, number)
        if not summed:
            _expect_end(head, plain, b"\0" if version in _OF_FAMILIES else _END)
        return Content(None, entry.size, lineage, version in _OF_FAMILIES, summed or self._has_own_sums(entry))

    def _has_own_sums(self, entry: FileEntry) -> bool:
        """Return whether a stream that was read to its end proves its bytes: zstd's only where they carry sums."""
        magic = self._root.read(entry.path, len(MAGIC))
        if not magic.startswith(_ZSTD):
            return magic != snappy_frames.MAGIC
        with self._root.open(entry.path) as file:
            return has_checksums(file)

    def _require_other_than_zeros(self, entry: FileEntry) -> None:
        """Raise `Damaged` for a file that is full of zeros, which no codec writes."""
        with self._root.open(entry.path) as file:
            zeros = tell_zeros(lambda at, count: file.read_at(min(count, entry.size - at), at), entry.size)
        if zeros:
            raise Damaged("corrupt-file", 0, zeros)

    def _decompress(self, entry: FileEntry, prove: bool) -> Iterator[bytes] | None:
        """Decompress a stream by the codec that its first bytes show; None: by one that cannot be read here."""
        magic = self._root.read(entry.path, len(MAGIC))
        if magic == MAGIC:
            return inflating(decoded(read_chunks(self._root, entry), prove), entry.size)
        if magic == snappy_frames.MAGIC:
            return inflating(_decompress_snappy(read_chunks(self._root, entry)), entry.size)
        if magic.startswith(_ZSTD):
            whole = entry.size <= CHUNK_BYTES
            source = pa.BufferReader(self._root.read(entry.path, CHUNK_BYTES)) if whole else self._root.uri(entry.path)
            return inflating(_decompress_zstd(source), entry.size)
        begins = _BEGINS.get(_short_name(self._codec or "lz4"))
        if begins is not None and not magic.startswith(begins):
            raise Damaged("corrupt-file", 0, "it does not begin as a compressed stream of Spark")
        return None


def _short_name(codec: str) -> str:
    """Return the short name of a codec that settings name by it, or by its class.

    >>> _short_name("LZ4"), _short_name("org.apache.spark.io.ZStdCompressionCodec"), _short_name("com.example.Own")
    ('lz4', 'zstd', 'own')
    """
    return codec.rpartition(".")[2].lower().removesuffix("compressioncodec")


def _decompress_snappy(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a stream of snappy blocks."""
    most = budgets().payload
    try:
        yield from snappy_frames.unframed(ByteStream(chunks), most)
    except UnknownFormat as error:
        raise Damaged(error.id, 0, str(error)) from None
    except snappy_frames.BadSnappy as bad:
        raise Damaged("corrupt-file", bad.at, str(bad)) from None
    except snappy_frames.SnappyOverLimit:
        raise over("what a block of it becomes", most) from None


def _decompress_zstd(source: Any) -> Iterator[bytes]:
    """Decompress a zstd stream, given as a buffer or as the URI where it lies."""
    try:
        with open_stream(open_file(source) if isinstance(source, str) else source, "zstd") as stream:
            while plain := stream.read(CHUNK_BYTES):
                yield plain
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # refused: nothing is known of the stream
        if isinstance(error, UnknownFormat):
            raise Damaged(error.id, None, str(error)) from None
        raise Damaged("corrupt-file", None, "its zstd stream breaks off or is damaged") from None


def _read_head(plain: bytes, more: Iterator[bytes]) -> tuple[int, dict[int, str]]:
    """Read the version of a changelog, and its lineage; one of version 1 begins with its first record.

    >>> _read_head(b"\\0\\2v3" + (2).to_bytes(2, "big") + b"[]" + b"\\xff" * 4, iter(()))
    (3, {})
    """
    match = _VERSION.match(plain)
    version = int(match[2][: match[1][0] - 1]) if match is not None and len(match[2]) >= match[1][0] - 1 else 1
    if version > _NEWEST_VERSION:
        raise Damaged("unknown-version", 0, f"changelog version v{version}, known are v1 to v{_NEWEST_VERSION}")
    if version < _LINEAGE_FROM:
        return version, {}
    end = 6 + int.from_bytes(plain[4:6], "big")
    while len(plain) < end and (following := next(more, b"")):
        plain += following
    try:
        rows = json.loads(plain[6:end])
        return version, {int(row["version"]): str(row["checkpointUniqueId"]) for row in rows}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise Damaged("corrupt-file", 0, "its lineage cannot be read") from None


def _check_lineage(lineage: Mapping[int, str], number: int) -> None:
    """Raise `Damaged` unless a lineage is that of version `number`: each version up to the one before, without gaps."""
    versions = sorted(lineage)
    first, last = (versions[0], versions[-1]) if versions else (1, 0)
    if (last, len(versions)) == (number - 1, number - first):
        return
    names = f"names versions {', '.join(map(str, versions))[:80]}" if versions else "is empty"
    why = f"its lineage {names}, and that of version {number} ends with {number - 1}: it is of another version"
    raise Damaged("corrupt-file", 0, why)


def _expect_end(head: bytes, rest: Iterable[bytes], mark: bytes) -> None:
    """Read to the end of a stream, which must be the end mark."""
    last = head[-4:]
    for plain in rest:
        last = (last + plain)[-4:]
    if not last.endswith(mark):
        raise Damaged("corrupt-file", None, "its stream ends before its end mark")


_KINDS = (("sstFiles", "dfsSstFileName", "SSTs"), ("logFiles", "dfsLogFileName", "logs"))


class SnapshotFile(NamedTuple):
    """A file that a snapshot needs: its path beside the zip, and its size."""

    path: str
    size: int


def parts_of(data: bytes) -> tuple[SnapshotFile, ...]:
    """Read which files a snapshot names, sorted by path; its own members are proved by their checksums.

    Raises
    ------
    Damaged : no whole archive, no metadata in it, or metadata that cannot be understood
    """
    try:
        metadata = read_member(data, "metadata")
    except UnknownFormat as error:
        raise Damaged(error.id, None, str(error)) from None
    except BadArchive as error:
        raise Damaged("corrupt-file", None, str(error)) from None
    return _decode_metadata(metadata)


def _decode_metadata(metadata: bytes) -> tuple[SnapshotFile, ...]:
    """Decode the metadata of a snapshot."""
    head, _, body = metadata.partition(b"\n")
    version_of(head.decode(errors="replace"), 1, "corrupt-file")
    found: list[SnapshotFile] = []
    try:
        check_json(body)
        value = json.loads(body)
        for kind, name, folder in _KINDS:
            found += [_decode_file(row, name, folder) for row in value.get(kind) or ()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Damaged("corrupt-file", None, "its metadata does not say which files it needs") from None
    return tuple(sorted(found))


def _decode_file(row: dict[str, Any], name: str, folder: str) -> SnapshotFile:
    """Decode one file; `name` is the key of its name beside the archive, if that is not its own."""
    stored, size = row.get(name) or row["localFileName"], row["sizeBytes"]
    if not isinstance(stored, str) or "/" in stored or type(size) is not int or size < 0:
        raise ValueError(stored)
    return SnapshotFile(f"{folder}/{stored}", size)

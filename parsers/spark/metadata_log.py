"""Metadata logs of Spark Structured Streaming: folders of one small text file a batch (Spark 2.1 to 4.3).

    metadata        {"id": "<query uuid>"}
    offsets/N       "v1"|"v2"  {"batchWatermarkMs", "batchTimestampMs", "conf"}  one line a source
                    v1: its end offset as JSON, in source order; v2: "<source id>:<end offset>"; "-" is none yet
    commits/N       "v1"|"v2"  {"nextBatchWatermarkMs", v2: "stateUniqueIds"}
    sources/I/N     file source: "v1"  {"path", "timestamp", "batchId"}*       also N.compact: all before, too
                    rate: "v1"  start time; Kafka: one zero byte "v1"  {topic: {partition: offset}}; only 0
    _spark_metadata/N   file sink: "v1"  {"path", "size", "action"}*           also N.compact

Lines end in a newline, the last one does not. Spark writes a temporary file and renames it, so a file that is there
should be whole; object stores, full disks and copies made in haste leave others. Beside each file may lie its Hadoop
checksum. Damage is returned as a `cklog.inputs.batches.FileFlaw`, never raised. Two logs list files: a file source's,
which says what a batch reads, and a file sink's.

Tasks write part files into the sink's folder, where readers find them; a batch counts when its file appears in the log,
`_spark_metadata/N`. A batch that was cut short leaves part files that no log lists, and runs again with other names:
each has a random one. Which folder the sink writes to is not stored in the checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import math
import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import unquote

from cklog.budgets import check_json, reading
from cklog.errors import Picklable
from cklog.inputs.batches import (
    BatchCommit,
    BatchOffsets,
    FileFlaw,
    FileLog,
    FileRead,
    FoundSize,
    LoggedFile,
    LogListing,
)
from cklog.local_files import UnfollowedLink, reason
from cklog.model.values import is_integer
from cklog.model.verdict import UNKNOWN_VERSION, UNREAD
from cklog.parsers.codecs import hadoop_crc
from cklog.storage import FileEntry, Root

T = TypeVar("T")

_BATCH_FILE = re.compile(r"(0|[1-9][0-9]{0,17})(\.compact)?")
_VERSION = re.compile(r"v([0-9]{1,18})")
_NEWEST_OF_OFFSETS, _NEWEST_OF_COMMITS = 2, 3
_LAYOUTS = {
    "spark.sql.streaming.stateStore.checkpointFormatVersion": 2,
    "spark.sql.streaming.join.stateFormatVersion": 4,
}
"""Settings in a plan that say how state is laid out, with the newest layout that is known."""

_DIGITS = 18
"""Of a number of any length so many tell that it is greater than another."""

VOID = "-"


class Line(NamedTuple):
    """A line of a file and the offset of its first byte."""

    offset: int
    text: str


class Damaged(Picklable, Exception):
    """Raised by a decoder, and caught by `read`, where a file cannot be used."""

    def __init__(self, id: str, offset: int | None, why: str, passed: bool = False) -> None:
        super().__init__(why)
        self.flaw = FileFlaw(id, offset, why, passed)


def list_log(entries: Iterable[FileEntry], folder: str) -> LogListing:
    """List the batch files directly in `folder`; names that are no batch number are left out, as Spark does."""
    files: dict[int, FileEntry] = {}
    compacts: set[int] = set()
    sidecars: dict[str, FileEntry] = {}
    summed: set[int] = set()
    for entry in entries:
        if posixpath.dirname(entry.path) != folder:
            continue
        owner = hadoop_crc.file_of(entry.path)
        if owner is not None:
            sidecars[entry.path] = entry
        match = _BATCH_FILE.fullmatch(posixpath.basename(owner or entry.path))
        if match is None:
            continue
        number = int(match[1])
        if owner is not None:
            summed.add(number)
        elif match[2] or number not in compacts:
            files[number] = entry
            compacts.update({number} if match[2] else ())
    orphans = tuple(sorted(summed - files.keys()))
    return LogListing(folder=folder, files=files, compacts=frozenset(compacts), orphans=orphans, sidecars=sidecars)


def read(root: Root, entry: FileEntry, decode: Callable[[bytes], T], sidecar: FileEntry | None) -> FileRead[T]:
    """Read, verify and decode one file; whatever is wrong with it becomes its flaw.

    `sidecar` is its checksum file; None: there is none, or the file is not to be verified.
    """
    done: FileRead[T] = FileRead(entry.path, entry.size, hadoop_crc.sidecar_of(entry.path))
    try:
        data = root.read(entry.path)
    except (OSError, ValueError) as error:  # pyarrow's own errors are either
        return replace(done, flaw=FileFlaw(UNREAD, None, why_not(error)))
    try:
        sums = root.read(sidecar.path) if sidecar is not None else None
    except (OSError, ValueError):
        sums = b""  # nothing is checked by it
    done = replace(done, unchecked=sums is not None and not hadoop_crc.is_readable(sums))
    try:
        _check_not_empty(data)
        with reading(entry.path):
            value = decode(data)  # first what stops a restart: Spark passes over a wrong checksum
        _check_sums(data, sums)
        return replace(done, value=value)
    except Damaged as damaged:
        flaw = damaged.flaw
        if flaw.id == UNKNOWN_VERSION and is_bit_damaged(data, sums or b"", decode):
            flaw = FileFlaw("torn-batch-file", flaw.offset, f"{flaw.why}; its checksum shows that one bit is damaged")
        return replace(done, flaw=flaw)


def is_bit_damaged(data: bytes, sums: bytes, decode: Callable[[bytes], Any]) -> bool:
    """Return whether Hadoop's checksums show that one bit of a file is damaged, and its version without that known."""
    try:
        decode(hadoop_crc.undo_flipped_bit(data, sums) or data)
    except Damaged as damaged:
        return damaged.flaw.id != UNKNOWN_VERSION
    return True


def why_not(error: Exception) -> str:
    """Return why a file could not be read, by the error of the operating system or of Arrow."""
    return reason(error) if isinstance(error, UnfollowedLink) else type(error).__name__


def _check_not_empty(data: bytes) -> None:
    if not data.strip():
        raise Damaged("empty-batch-file", 0, "the file is empty")


def _check_sums(data: bytes, sums: bytes | None) -> None:
    mismatch = hadoop_crc.check(data, sums) if sums is not None else None
    if mismatch is not None:
        raise Damaged("checksum-mismatch", mismatch.offset, mismatch.why, passed=True)


def decode_metadata(data: bytes) -> str:
    """Decode `metadata`: the id of the query."""
    value = _parse_json(Line(0, _decode_text(data)))
    if not (isinstance(value, dict) and isinstance(value.get("id"), str) and value["id"]):
        raise Damaged("torn-batch-file", 0, "no query id in it")
    return str(value["id"])


def decode_offsets(data: bytes) -> BatchOffsets:
    """Decode a file of `offsets/`."""
    version, lines = _lines_after_version(data, _NEWEST_OF_OFFSETS)
    if len(lines) < 2:
        raise Damaged("torn-batch-file", len(data), "it ends before the offsets of the sources")
    head = _parse_json(lines[0]) if lines[0].text.strip() else {}
    watermark = _watermark_of(head, "batchWatermarkMs", lines[0].offset)
    pairs = [_split_source_id(line) if version == 2 else (str(i), line) for i, line in enumerate(lines[1:])]
    ends = {key: None if line.text == VOID else _parse_json(line) for key, line in pairs}
    if len(ends) < len(pairs):
        raise Damaged("torn-batch-file", lines[1].offset, "a source is named twice")
    _require_watermark(head, watermark, lines[0].offset)
    found = head.get("conf")
    conf: dict[str, Any] = found if isinstance(found, dict) else {}
    _check_layouts(conf, lines[0].offset)
    return BatchOffsets(
        watermark=watermark,
        time=_integer_member(head, "batchTimestampMs"),
        ends=ends,
        conf=conf,
        version=version,
    )


def _check_layouts(conf: dict[str, Any], offset: int) -> None:
    """Raise `Damaged` for a setting that says that state is laid out as no version does that is known."""
    for name, newest in _LAYOUTS.items():
        text = str(conf.get(name, ""))
        if text.isdecimal() and int(text.lstrip("0")[:_DIGITS] or 0) > newest:
            raise Damaged(UNKNOWN_VERSION, offset, f"{name} is {text:.20}, known are 1 to {newest}")


def decode_commit(data: bytes) -> BatchCommit:
    """Decode a file of `commits/`."""
    version, lines = _lines_after_version(data, _NEWEST_OF_COMMITS)
    if not lines:  # of version 2 a restart needs the ids that are not there
        raise Damaged("torn-batch-file", len(data), "it ends before its JSON object", passed=version == 1)
    value = _parse_json(lines[0])
    watermark = _watermark_of(value, "nextBatchWatermarkMs", lines[0].offset)
    ids = _state_ids(value.get("stateUniqueIds"), lines[0].offset)
    if version == 3:
        _check_sinks(value.get("sinkMetadataMap"), lines[0].offset)
    _require_watermark(value, watermark, lines[0].offset)
    return BatchCommit(watermark, ids, version)


def _watermark_of(value: Any, key: str, offset: int) -> int | None:
    """Return the watermark in the object of a line, None if it has no such member; any other value is damage."""
    if not isinstance(value, dict):
        raise Damaged("torn-batch-file", offset, "no JSON object begins here")
    watermark = _integer_member(value, key)
    if key in value and watermark is None:
        raise Damaged("torn-batch-file", offset, f"its {key} is no whole number")
    return watermark


def _require_watermark(value: dict[str, Any], watermark: int | None, offset: int) -> None:
    """Raise `Damaged` for an object with other members and no watermark: the name may be one bit off.

    Read in Spark's source, whose JSON takes 0 for a number without a member: it stops no restart. What does was looked
    for before.
    """
    if value and watermark is None:
        raise Damaged("torn-batch-file", offset, "no watermark in it", passed=True)


def _check_sinks(value: Any, offset: int) -> None:
    """Raise `Damaged` unless one sink of those that a commit of version 3 names is active."""
    try:
        active = [sink["isActive"] for sink in value.values()]
    except (AttributeError, TypeError, KeyError):
        raise Damaged("torn-batch-file", offset, "it names no sinks") from None
    if active.count(True) != 1 or active.count(False) != len(active) - 1:
        raise Damaged("torn-batch-file", offset, "not one sink is active in it")


def _state_ids(value: Any, offset: int) -> dict[str, list[frozenset[str]]]:
    """Decode {operator: [[id per store] per partition]}; absent before version 2 of state checkpoints."""
    if value is None:
        return {}
    found: dict[str, list[frozenset[str]]] = {}
    try:
        for operator, partitions in value.items():
            found[str(operator)] = [frozenset(map(_checked_id, stores)) for stores in partitions]
    except (AttributeError, TypeError):
        raise Damaged("torn-batch-file", offset, "its ids of states are no lists of ids") from None
    return found


def _checked_id(value: Any) -> str:
    """Return a value that is text, or raise TypeError."""
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def decode_files(data: bytes, numbers: Iterable[str] = ()) -> tuple[LoggedFile, ...]:
    """Decode a file of a file source's or file sink's log; `numbers` are members that each line has to have."""
    return tuple(_logged_file(line, numbers) for line in _lines_after_version(data, newest=1)[1])


def decode_source_files(data: bytes) -> tuple[LoggedFile, ...]:
    """Decode a file of a file source's log, which is only written for a batch with files.

    Spark 4.3 does not start with an entry that lacks one of its members.
    """
    files = decode_files(data, ("timestamp", "batchId"))
    if not files:
        raise Damaged("torn-batch-file", len(data), "it ends before its first file")
    return files


def decode_initial(data: bytes) -> Any:
    """Decode what a source without a file log stores in `sources/I/0`; None if only the source knows its form."""
    if not data.strip(b"\0"):
        raise Damaged("torn-batch-file", 0, "it has no bytes but zeros")
    if data[1:2] == b"{":  # by Kafka's source in Spark 2.1.0: a byte, and no version; later ones read it, too
        with contextlib.suppress(Damaged):
            return _parse_json(_cut_lines(data[1:])[0])
    lines = _cut_lines(data.removeprefix(b"\0"))
    if _VERSION.fullmatch(lines[0].text.strip()) is None:
        return None
    version_of(lines[0].text, 1)
    if len(lines) < 2:
        raise Damaged("torn-batch-file", len(data), "it ends after its version")
    return _parse_json(lines[1])


def _lines_after_version(data: bytes, newest: int) -> tuple[int, list[Line]]:
    """Return the version on line 1 and the lines after it."""
    lines = _cut_lines(data)
    return version_of(lines[0].text, newest), lines[1:]


def version_of(text: str, newest: int, id: str = "torn-batch-file") -> int:
    """Return the version that a file begins with; a later one than the newest that is known is no damage.

    Raises
    ------
    Damaged : of the flaw `id`, if it is no version; of an unknown version
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None or not int(match[1]):
        raise Damaged(id, 0, "line 1 is no version")
    if int(match[1]) > newest:
        raise Damaged(UNKNOWN_VERSION, 0, f"version {match[0]}, known are v1 to v{newest}")
    return int(match[1])


def _cut_lines(data: bytes) -> list[Line]:
    """Cut a file into its lines, each with its offset."""
    lines, offset = [], 0
    for raw in data.removesuffix(b"\n").split(b"\n"):
        lines.append(Line(offset, _decode_text(raw, offset)))
        offset += len(raw) + 1
    return lines


def _decode_text(raw: bytes, offset: int = 0) -> str:
    """Decode text that begins at byte `offset` of its file."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged("torn-batch-file", offset + error.start, "not UTF-8") from None


def _split_source_id(line: Line) -> tuple[str, Line]:
    """Split "<source id>:<offset>"; the offset becomes a line of its own, with its place in the file."""
    key, colon, text = line.text.partition(":")
    if not colon:
        raise Damaged("torn-batch-file", line.offset, "no source id on the line")
    return key, Line(line.offset + len(key.encode()) + 1, text)


def _parse_json(line: Line) -> Any:
    """Parse a line as JSON, without the constants and floats that JSON does not have."""
    check_json(line.text)
    try:
        return json.loads(line.text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        raise Damaged("torn-batch-file", line.offset, "not whole JSON from here on") from None


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_constant(text)


def _integer_member(value: dict[str, Any], key: str) -> int | None:
    """Return a member that is a whole number, else None."""
    found = value.get(key)
    return found if is_integer(found) else None


def _logged_file(line: Line, numbers: Iterable[str]) -> LoggedFile:
    """Decode a line of a file log; `numbers` are members that it has to have."""
    value = _parse_json(line)
    if not (isinstance(value, dict) and isinstance(value.get("path"), str)):
        raise Damaged("torn-batch-file", line.offset, "no path on the line")
    for name in numbers:
        if _integer_member(value, name) is None:
            raise Damaged("torn-batch-file", line.offset, f"no {name} on the line")
    batch, size, written = (_integer_member(value, name) for name in ("batchId", "size", "modificationTime"))
    return LoggedFile(value["path"], batch, size, line.offset, value.get("action") == "delete", written)


def read_file_log(
    root: Root,
    listing: LogListing,
    decode: Callable[[bytes], tuple[LoggedFile, ...]] = decode_files,
    everything: bool = False,
) -> FileLog:
    """Read the files of a log that whoever reads all of it needs; `everything`: those before a compact one, too."""
    reads = {}
    for number, entry in listing.files.items():
        if number >= listing.base or everything:
            sidecar = listing.sidecars.get(hadoop_crc.sidecar_of(entry.path))
            reads[number] = read(root, entry, decode, sidecar)
    return FileLog(listing, reads)


def size_of(root: Root, stored: str) -> FoundSize:
    """Return the size of an input file; Spark stores its path as a URI, in which a space is %20."""
    try:
        found = root.exists_outside(stored)
        return found if found is not None or "%" not in stored else root.exists_outside(unquote(stored))
    except (OSError, ValueError):
        return "outside"

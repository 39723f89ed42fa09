"""Handles in Flink's `_metadata`: which file, or which bytes of the metadata itself, hold a piece of state.

Each begins with a byte that says what it is, whatever the version of the file. KEY = start:i32 groups:i32.

    STREAM    00 null | 01 utf name, blob | 02 size:i64 utf uri | 06 utf relative size:i64 | 10 empty
              | 03 start:i32 n:i32 offset:i64*n STREAM | 0f start:i64 size:i64 scope:i32 utf uri utf file id
    STATES    00 null | 04 LISTS STREAM | 11 LISTS utf task-owned utf shared empty:bool STREAM
    LISTS     n:i32 (utf name mode:u8 k:i32 offset:i64*k)*n          where in STREAM each element of a list begins
    KEYED     00 null | 03, 07, 0c start:i32 n:i32 offset:i64*n STREAM [0c: utf id]
              | 05, 0b checkpoint:i64 utf backend KEY [0b: size:i64] STREAM FILES FILES [0b: utf id]
              | 08, 0e KEY size:i64 n:i32 KEYED*n n:i32 KEYED*n id:i64 [0e: checkpoint:i64] utf id
              | 09 KEY from:i64 to:i64 n:i32 (group:i32 blob)*n utf id
              | 0a, 0d KEY n:i32 (offset:i64 STREAM)*n size:i64 size:i64 utf id [0d: utf storage]
    FILES     n:i32 (utf local name STREAM)*n                        first the shared ones, then the private ones
    CHANNEL   [01, 02] subtask:i32 gate:i32 channel:i32 n:i32 offset:i64*n size:i64 STREAM
              | 03, 04 subtask:i32 size:i64 STREAM length:i32 n:i32 (gate:i32 channel:i32 size:i64 k:i32 offset:i64*k)*n

A blob is a length:i32 and so many bytes. The name of state inlined in the metadata (01) looks like a file's, and no
such file exists; it tells the folder where the snapshot was written. A file of the changelog is one byte longer than
its handle says. Input channels are 01 and 03, output channels 02 and 04; before version 6 there is no such byte.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import numpy as np

from cklog.budgets import HANDLES_NESTED
from cklog.engine.scan import Split
from cklog.parsers.flink.contents import ByteStretch, SnapshotContents
from cklog.parsers.flink.elements import STATES, OperatorSource, StateList, listed_state
from cklog.parsers.flink.inlined import check_inlined
from cklog.parsers.flink.java import Cursor, Malformed, UnknownVersion, wrong_number
from cklog.parsers.flink.rows import Owner, Row, form_of_file, form_of_part, handle_row, row

_SCOPES = {0: "exclusive", 1: "shared"}
_MODES = 3  # split, union, broadcast
_CHANNELS = {"input": {1: False, 3: True}, "output": {2: False, 4: True}}
"""Whether several subtasks share the file, by the type of the handle."""

_CHANGELOG = (8, 9, 10, 13, 14)
"""Handles of a state backend that writes a changelog."""

_MANIFEST = re.compile(r"MANIFEST-([0-9]{1,18})")

_NEWEST_TYPE = 17

_AT_ONCE, _ONE_BY_ONE = 1024, 16
"""Entries that are tried as alike, and after them one by one, so that a vain try costs little."""


class Handles:
    """A reader of the handles of one file, each at the place of the cursor; `folders` are those that handles name.

    `newest_split` is the greatest version that is known of the splits of the operator at which the cursor is.
    """

    def __init__(self, cursor: Cursor, split: Split) -> None:
        self._cursor = cursor
        self._contents = SnapshotContents(split)
        self._groups = (0, 0)
        self._claimed = False
        self.folders: set[str] = set()
        self.source = OperatorSource()

    def stream(self) -> ByteStretch | None:
        """Read a STREAM; None for null."""
        cursor = self._cursor
        kind = cursor.u8("a handle")
        while kind == 3:
            self._read_key_groups()
            kind = cursor.u8("a handle")
        if kind == 2:
            size = self._read_file_size()
            file = cursor.utf("a file's URI")
            self.folders.add(file.rpartition("/")[0])
            return ByteStretch("absolute", file, 0, size)
        if kind == 6:
            file = cursor.utf("a relative path")
            return ByteStretch("relative", file, 0, self._read_file_size(), scope="exclusive")
        if kind == 1:
            self.folders.add(cursor.utf("the name of inlined state").rpartition("/")[0])
            at = cursor.blob("inlined state")
            return ByteStretch("inline", None, None, cursor.at - at, at=at)
        if kind == 15:
            return self._read_segment()
        if kind in (0, 16):
            return ByteStretch("empty", None, None, 0) if kind else None
        raise _wrong_type(cursor.at - 1, kind, "a stream handle")

    def _read_segment(self) -> ByteStretch:
        """Read where in a file of several handles a segment is."""
        cursor = self._cursor
        start, size = cursor.size("the start of a segment"), cursor.size("the size of a segment")
        scope = cursor.i32("the scope of a segment")
        if scope not in _SCOPES:
            raise wrong_number(cursor.at - 4, scope, max(_SCOPES), f"the scope of a segment is {scope}")
        file = cursor.utf("a file's URI")
        self.folders.add(file.rpartition("/")[0])
        cursor.utf("the id of a merged file")
        return ByteStretch("segment", file, start, size, scope=_SCOPES[scope])

    def _read_file_size(self) -> int | None:
        size = self._cursor.i64("the size of a file")
        if size < -1:
            raise Malformed(self._cursor.at - 8, f"the size of a file is {size}")
        return None if size == -1 else size

    def coordinator(self) -> ByteStretch | None:
        """Read the state of an operator's coordinator, which is always inlined; None if there is none."""
        at = self._cursor.at
        piece = self.stream()
        if piece is not None and piece.name != "inline":
            raise Malformed(at, f"the state of a coordinator is {piece.name}, and not inlined")
        return piece

    def operator_state(self, operator: str, subtask: int, part: str) -> Iterator[Row]:
        """Read STATES, behind a number that says whether there are any; with what sources and sinks keep in them."""
        cursor = self._cursor
        there = cursor.i32(f"whether there is {part} state")
        if there not in (0, 1):
            raise Malformed(cursor.at - 4, f"{there} where 1 or 0 says whether there is {part} state")
        at = cursor.at
        kind = cursor.u8("a handle of operator state") if there else 0
        if kind == 0:
            return
        if kind not in (4, 17):
            raise _wrong_type(at, kind, "a handle of operator state")
        names, lists = self._read_lists()
        if kind == 17:
            self.folders.update((cursor.utf("the task-owned folder"), cursor.utf("the shared folder")))
            cursor.flag("whether the state is empty")
        piece = self.stream()
        if piece is None:
            return
        form = form_of_part(part)
        check_inlined(cursor.data, piece, form, names)
        yield handle_row(at, Owner(operator, subtask, part), piece, form=form)
        if lists and part == "managed-operator":
            whose = {"operator": operator, "subtask": subtask}
            yield from listed_state(self._contents, cursor.data, at, whose, piece, lists, self.source)

    def _read_lists(self) -> tuple[set[str], list[StateList]]:
        """Read LISTS; return the names of all, and where the offsets of elements are of those that are understood."""
        cursor, names, found = self._cursor, set(), []
        for _ in range(cursor.count(7, "states")):
            name = cursor.utf("the name of a state")
            names.add(name)
            mode = cursor.u8("the mode of a state")
            if mode >= _MODES:
                raise _wrong_byte(cursor.at - 1, mode, _MODES - 1, f"state {name} has the unknown mode {mode}")
            count = cursor.count(8, "elements of a state")
            at = cursor.skip(8 * count, "the offsets of a state")
            if name in STATES:
                found.append(StateList(name, at, count))
        return names, found

    def keyed_state(self, operator: str, subtask: int, part: str, groups: tuple[int, int]) -> Iterator[Row]:
        """Read a KEYED and what is nested in it; `groups` are the subtask's first key group and how many it has."""
        self._groups = groups
        return self._read_keyed(Owner(operator, subtask, part), 0)

    def _read_keyed(self, owner: Owner, depth: int) -> Iterator[Row]:
        """Read a KEYED that is nested `depth` deep."""
        cursor, at = self._cursor, self._cursor.at
        if depth > HANDLES_NESTED:
            raise Malformed(at, f"handles nested more than {HANDLES_NESTED} deep")
        kind = cursor.u8("a handle of keyed state")
        if kind in _CHANGELOG and not self._claimed:
            self._claimed = True
            yield row(at, "claim", operator=owner.operator, subtask=owner.subtask, kind="changelog")
        if kind in (3, 7, 12):
            groups = self._read_key_groups()
            self._check_key_groups(at + 1, groups[0], len(groups) - 1, depth)
            piece = self.stream()
            if kind == 12:
                cursor.utf("the id of a handle")
            if piece is not None:
                form = form_of_part(owner.kind)
                check_inlined(cursor.data, piece, form, groups=groups)
                yield handle_row(at, owner, piece, form=form, offsets=groups)
        elif kind in (5, 11):
            yield from self._read_incremental(owner, depth, kind == 11)
        elif kind in (8, 14):
            yield from self._read_changelog(owner, depth, kind == 14)
        elif kind == 9:
            yield self._read_inlined_changes(at, owner, depth)
        elif kind in (10, 13):
            yield from self._read_changes(owner, depth, kind == 13)
        elif kind:
            raise _wrong_type(at, kind, "a handle of keyed state")

    def _read_key_groups(self) -> tuple[int, ...]:
        """Read the first key group, and where each begins."""
        cursor = self._cursor
        first, count = cursor.i32("a key group"), cursor.count(8, "key groups")
        at = cursor.skip(8 * count, "the offsets of key groups")
        return first, *struct.unpack_from(f">{count}q", cursor.data, at)

    def _read_key_range(self, depth: int) -> None:
        at = self._cursor.at
        first, count = self._cursor.i32("a key group"), self._cursor.i32("the number of key groups")
        self._check_key_groups(at, first, count, depth)

    def _check_key_groups(self, at: int, first: int, count: int, depth: int) -> None:
        """Refuse key groups that the subtask cannot have.

        They follow from its index and the parallelism. What is nested may be of a job with another parallelism, which
        this one was restored from: some of its key groups are the subtask's.
        """
        start, most = self._groups
        its = first == start and count == most
        if depth and first >= 0 and count > 0:
            its = first < start + most and start < first + count
        if not its:
            why = f"{count} key groups from {first} on, where the subtask has {most} from {start} on"
            raise Malformed(at, why)

    def _read_incremental(self, owner: Owner, depth: int, second: bool) -> Iterator[Row]:
        """Read the files of an LSM tree (RocksDB, ForSt): its own description, then shared ones, then private ones."""
        cursor = self._cursor
        cursor.i64("the checkpoint of a handle")
        uid = cursor.utf("the id of a backend")
        self._read_key_range(depth)
        if second:
            cursor.i64("a size")
        at = cursor.at
        piece = self.stream()
        if piece is not None:
            check_inlined(cursor.data, piece, "keyed-meta")
            yield handle_row(at, owner, piece, uid=uid, form="keyed-meta")
        manifests: set[int] = set()
        current: list[tuple[int, ByteStretch, str]] = []
        for detail in ("shared", "private"):
            for at, name, piece in self._read_files(detail):
                form = form_of_file(name)
                if form == "manifest" and (told := _MANIFEST.fullmatch(name)):
                    manifests.add(int(told[1]))
                if form == "current":  # told last: it names a MANIFEST, which may come behind it
                    current.append((at, piece, detail))
                else:
                    check_inlined(cursor.data, piece, form)
                    yield handle_row(at, owner, piece, detail, uid, form=form)
        beside = [*manifests] if len(manifests) == 1 else None  # a tree has one
        for at, piece, detail in current:
            check_inlined(cursor.data, piece, "current", manifests=beside or ())
            yield handle_row(at, owner, piece, detail, uid, form="current", offsets=beside)
        if second:
            cursor.utf("the id of a handle")

    def _read_files(self, detail: str) -> Iterator[tuple[int, str, ByteStretch]]:
        """Read FILES: yield each that is there, with the place of its entry and its local name."""
        cursor = self._cursor
        left = cursor.count(3, f"{detail} files")
        while left:
            alike = self._read_alike_files(min(left, _AT_ONCE))
            yield from alike
            left -= len(alike)
            for _ in range(min(left, _ONE_BY_ONE)):
                at = cursor.at
                name = cursor.utf("the local name of a file")
                piece = self.stream()
                if piece is not None:
                    yield at, name, piece
                left -= 1

    def _read_alike_files(self, most: int) -> list[tuple[int, str, ByteStretch]]:
        """Read at once the files at the cursor whose entries are like the first; return each with place and local name.

        Most handles of a large job are such files, alike in the lengths of both names: of three entries whose third
        has a longer URI, two are read. Whatever else stands there, `stream` will read or refuse.
        """
        cursor, at = self._cursor, self._cursor.at
        # an entry: length:u16, `local` bytes of name, 02, size:i64, length:u16, `uri` bytes of URI
        local = int.from_bytes(cursor.data[at : at + 2], "big")
        uri = int.from_bytes(cursor.data[at + local + 11 : at + local + 13], "big")
        length = local + uri + 13
        count = min(most, (cursor.end - at) // length)
        if not (count and uri):
            return []
        entries = np.frombuffer(cursor.data, np.uint8, count * length, at).reshape(count, length)  # one a row
        lengths, kinds = [0, 1, local + 11, local + 12], entries[:, local + 2]  # columns of both lengths; (count,)
        texts = np.r_[2 : local + 2, local + 13 : length]  # columns of both names
        sizes = entries[:, local + 3 : local + 11].copy().view(">i8")[:, 0]  # (count,)
        good = (entries[:, lengths] == entries[0, lengths]).all(axis=1) & (kinds == 2) & (sizes >= 0)
        good &= ((entries[:, texts] - 1) < 127).all(axis=1)  # what modified UTF-8 has in common with ASCII
        count = len(good) if good.all() else int(good.argmin())  # how many before the first that is not alike
        text = entries[:count, local + 13 :].tobytes().decode("ascii")
        files = [text[i : i + uri] for i in range(0, len(text), uri)]
        self.folders.update(file.rpartition("/")[0] for file in files)
        cursor.at += count * length
        pieces = (
            ByteStretch("absolute", file, 0, size) for file, size in zip(files, sizes[:count].tolist(), strict=True)
        )
        text = entries[:count, 2 : local + 2].tobytes().decode("ascii")
        names = [text[i : i + local] for i in range(0, len(text), local)] if local else [""] * count
        return list(zip(range(at, cursor.at, length), names, pieces, strict=True))

    def _read_changelog(self, owner: Owner, depth: int, second: bool) -> Iterator[Row]:
        """Read the state as of some time (materialized), and the changes since."""
        cursor = self._cursor
        self._read_key_range(depth)
        cursor.i64("a size")
        for part in ("materialized", "changing"):
            for _ in range(cursor.count(1, f"{part} handles")):
                yield from self._read_keyed(owner, depth + 1)
        cursor.skip(16 if second else 8, "the ids of a changelog")
        cursor.utf("the id of a handle")

    def _read_inlined_changes(self, at: int, owner: Owner, depth: int) -> Row:
        """Read changes that stand in the metadata itself, as one piece; their handle begins at byte `at`."""
        cursor, size = self._cursor, 0
        self._read_key_range(depth)
        cursor.skip(16, "a range of changes")
        for _ in range(cursor.count(8, "changes")):
            cursor.i32("a key group")
            size -= cursor.blob("a change")
            size += cursor.at
        cursor.utf("the id of a handle")
        return handle_row(at, owner, ByteStretch("inline", None, None, size), "changelog")

    def _read_changes(self, owner: Owner, depth: int, second: bool) -> Iterator[Row]:
        """Read changes that are in files; `second`: the newer of the two handles, which names the storage."""
        cursor = self._cursor
        self._read_key_range(depth)
        for _ in range(cursor.count(9, "increments")):
            at = cursor.at
            offset = cursor.i64("the offset of an increment")
            piece = self.stream()
            if piece is not None:
                check_inlined(cursor.data, piece, "changes")
                yield handle_row(at, owner, piece, "changelog", at_least=True, form="changes", offsets=(offset,))
        cursor.skip(16, "the sizes of a changelog")
        cursor.utf("the id of a handle")
        if second:
            cursor.utf("the storage of a changelog")

    def channels(self, operator: str, subtask: int, side: str, typed: bool) -> Iterator[Row]:
        """Read all CHANNELs of a subtask: one row per channel, and one per file that holds them.

        `typed`: each begins with the byte of its type, as from version 6 on.
        """
        cursor, files = self._cursor, set()
        for _ in range(cursor.count(18, f"{side} channels")):
            at = cursor.at
            kind = cursor.u8("a handle of channels") if typed else min(_CHANNELS[side])
            if kind not in _CHANNELS[side]:
                raise _wrong_type(at, kind, f"a handle of {side} channels")
            of = cursor.i32("a subtask")
            if of != subtask:
                raise Malformed(cursor.at - 4, f"{side} channels of subtask {of} beside the state of subtask {subtask}")
            merged = _CHANNELS[side][kind]
            gate, channel = (0, 0) if merged else self._read_channel()
            size = cursor.size("the size of channel state")
            place = cursor.at
            piece = self.stream()
            if piece is not None and (piece.file is None or piece.file not in files):
                files.add(piece.file)
                check_inlined(cursor.data, piece, "channels")
                if piece.file is None:  # several channels may share what is inlined, too: each counts its own bytes
                    piece = piece._replace(bytes=size)
                yield handle_row(place, Owner(operator, subtask, f"{side}-channel"), piece, form="channels")
            if merged:
                yield from self._read_merged_channels(operator, subtask, side)
            else:
                yield row(
                    at, "channel", operator=operator, subtask=subtask, kind=side, gate=gate, channel=channel, bytes=size
                )

    def _read_channel(self) -> tuple[int, int]:
        cursor = self._cursor
        gate, channel = cursor.i32("a gate"), cursor.i32("a channel")
        cursor.skip(8 * cursor.count(8, "offsets of a channel"), "the offsets of a channel")
        return gate, channel

    def _read_merged_channels(self, operator: str, subtask: int, side: str) -> Iterator[Row]:
        """Read the channels of one subtask in a file that several share."""
        start = self._cursor.blob("merged channels")
        cursor = Cursor(self._cursor.data, start, self._cursor.at)
        for _ in range(cursor.count(20, "merged channels")):
            at = cursor.at
            gate, channel = cursor.i32("a gate"), cursor.i32("a channel")
            size = cursor.size("the size of channel state")
            cursor.skip(8 * cursor.count(8, "offsets of a channel"), "the offsets of a channel")
            yield row(
                at, "channel", operator=operator, subtask=subtask, kind=side, gate=gate, channel=channel, bytes=size
            )
        cursor.done("merged channels")


def _wrong_type(at: int, kind: int, what: str) -> Malformed | UnknownVersion:
    """Return what to raise for a type of handle that there is not, or not of what is expected there."""
    return _wrong_byte(at, kind, _NEWEST_TYPE, f"{what} of unknown type {kind}")


def _wrong_byte(at: int, byte: int, newest: int, why: str) -> Malformed | UnknownVersion:
    return wrong_number(at, byte - 256 if byte > 127 else byte, newest, why)  # Java's bytes have a sign

"""A file of JSON lines as blocks of whole lines: what of its bytes is to be believed, and what is wrong with them.

A split owns the lines that *begin* in its byte range. Offsets are those of the decompressed bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cklog.budgets import budgets, inflated_of, over
from cklog.engine.scan import Damage, Split
from cklog.errors import first_line
from cklog.parsers.codecs.streams import ZERO_TAIL, Gunzip, open_stream
from cklog.parsers.codecs.zstd_frames import has_checksums
from cklog.progress import count_bytes
from cklog.storage import open_file
from cklog.stores.opening import Beginning
from cklog.unknown_formats import UnknownFormat

BLOCK_BYTES = 2 << 20
"""Read at a time: small enough for the cache, large enough for vectorised decoding."""

_BEYOND_BYTES = 16 << 10
"""Read at a time behind a split's end, where only the rest of its last line is wanted."""

_LOOK_BYTES = 4 << 10
"""The last bytes of what is to be read, in which a line is likely to end."""

COMPRESSION = {".jsonl": None, ".jsonl.gz": "gzip", ".jsonl.zst": "zstd"}
"""The codec of a file, by the end of its name."""

_BY_LENGTH = sorted(COMPRESSION.items(), key=lambda item: -len(item[0]))


class ByteStream:
    """The (decompressed) bytes of a split's file, as far as they can be had; `whole_lines` reads it.

    A compressed file is decompressed twice: its checksums stand behind what they cover, and until they have been seen
    the bytes prove nothing. `proven` is how many bytes they vouch for, None: nothing is wrong. Behind it bytes may be
    wrong and not only missing, so that only lines with a checksum of their own are records. `faults` say what is wrong.

    The file ends where it ended when it was listed: what was written since is of no split.
    """

    def __init__(self, split: Split, trusted: bool = True) -> None:
        self._split = split
        self._codec = next(codec for suffix, codec in _BY_LENGTH if split.path.endswith(suffix))
        self.proven: int | None = None if trusted else 0
        self.faults: tuple[Damage, ...] = ()
        self.unchecked = False
        """No checksum covers the bytes of a compressed stream."""

        self._left: int | None = split.size if self._codec is None else None
        self._taken = 0  # of what is stored of a compressed file

    def __enter__(self) -> ByteStream:
        if self._codec is not None:
            self._verify()
        if self._codec == "zstd":
            with open_file(self._split.uri) as file:
                self.unchecked = not has_checksums(file)
        self._file = self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end of what is there."""
        if self._left is not None:
            size = min(size, self._left)
        data: bytes = self._file.read(size) if size else b""
        self._count(len(data))
        if self._left is not None:
            self._left -= len(data)
        return data

    def in_lines(self, size: int) -> int:
        """Return how many of the next bytes, at most `size`, to read so that they end with a line, where that is cheap.

        A look at the last of them tells; what is cut off behind it would have to be copied with all that comes next.
        """
        if self._left is None or not isinstance(self._file, pa.OSFile) or min(size, self._left) <= _LOOK_BYTES:
            return size
        size, at = min(size, self._left), self._file.tell()
        newline = self._file.read_at(_LOOK_BYTES, at + size - _LOOK_BYTES).rfind(b"\n")
        self._file.seek(at)
        return size if newline < 0 else size - _LOOK_BYTES + newline + 1

    def seek(self, to: int) -> None:
        """Move to a byte of an uncompressed file."""
        self._file.seek(to)
        self._left = max(self._split.size - to, 0)

    def _count(self, size: int) -> None:
        """Count as progress what was read: of a compressed file, which is read twice, half of what was taken of it."""
        if self._codec is not None:
            before, self._taken = self._taken, self._stored.tell()
            size = (self._taken - before) // 2
        count_bytes(size)

    def _open(self) -> Any:
        file = open_file(self._split.uri)
        if self._codec is not None and file.size() > self._split.size:
            file = pa.PythonFile(Beginning(file, self._split.size), mode="r")
        self._stored, self._taken = file, 0
        if self._codec is None:
            return file
        return Gunzip(file) if self._codec == "gzip" else open_stream(file, self._codec)

    def _verify(self) -> None:
        """Find how many bytes decompress, why not more, and how many of them a checksum vouches for."""
        good = proven = 0
        for step in (BLOCK_BYTES, 4096, 1):
            good, proven, error = self._decompress(good, step)
            if error is None:
                return
        self._left = good
        self.proven = proven if self.proven is None else self.proven
        if isinstance(error, UnknownFormat):
            self.faults = (Damage(self._split.path, error.id, good, str(error)),)
            return
        assert error is not None  # the last step ended in it
        reason = first_line(error)
        cut = "Truncated" in reason or (reason == ZERO_TAIL and good > 0)
        kind, end = ("torn-tail", f"breaks off ({reason})") if cut else ("corrupt-file", f"is corrupt ({reason})")
        kept = f"; of the last {good - self.proven} only lines with a crc32c of their own are kept"
        why = f"the compressed stream {end} after {good} bytes{kept if self.proven < good else ''}"
        self.faults = (Damage(self._split.path, kind, good, why),)

    def _decompress(self, skip: int, step: int) -> tuple[int, int, OSError | None]:
        """Count the bytes that come out when read in `step`s after the first `skip`, and of them those proven.

        Also returns the error that ends them.
        """
        done = 0
        most = inflated_of(self._split.size)
        with self._open() as file:
            try:
                while data := file.read(min(BLOCK_BYTES, skip - done) if done < skip else step):
                    done += len(data)
                    self._count(len(data))
                    if done > most:
                        raise over(f"what its {self._split.size} compressed bytes become", most, self._split.path)
            except OSError as error:
                if error.errno is not None:
                    raise  # refused: nothing is known of the stream
                return done, getattr(file, "proven", 0), error
        return done, done, None


Lines = tuple[int, bytes | Damage, bool]
"""Whole lines with the offset of the first, and whether they are to be believed; or what is wrong at that offset."""


def whole_lines(file: ByteStream, split: Split) -> Iterator[Lines]:
    """Yield blocks of whole lines that begin in the split, and all that is wrong, in order.

    Lines that are not to be believed are records only with a checksum of their own. Reads little beyond the split's
    end.
    """
    sealed = True  # whether every line may have a checksum of its own
    for start, block in _blocks(file, split):
        if isinstance(block, Damage):
            yield start, block, False
            continue
        if file.unchecked and sealed:
            sealed = block.count(b'"crc32c":"') >= block.count(b"\n")
        cut = len(block) if file.proven is None else block.rfind(b"\n", 0, max(file.proven - start, 0)) + 1
        if cut:
            yield start, block[:cut], True
        if cut < len(block):
            yield start + cut, block[cut:], False
    for fault in file.faults:
        yield fault.offset or 0, fault, False
    if file.unchecked and not sealed:
        yield 0, Damage(split.path, "unchecked-file", None, _UNCHECKED), False


_UNCHECKED = (
    "its Zstandard stream carries no checksum: a wrong byte would show in lines with a crc32c of their own alone"
)


def _blocks(file: ByteStream, split: Split) -> Iterator[tuple[int, bytes | Damage]]:
    """Yield blocks of whole lines with their offsets, and lines that are too long or not ended as damage."""
    whole = split.start == 0 and split.end >= split.size
    at, rest = 0, b""  # what has been read and not given yet begins at `at`
    if not whole:
        at, rest = _first_line(file, split)
    while True:
        size, ahead = BLOCK_BYTES, split.end - at - len(rest)
        if not whole:
            size = min(size, ahead) if ahead > 0 else _BEYOND_BYTES
        data = file.read(size if rest else file.in_lines(size))
        if whole and (cut := data.rfind(b"\n") + 1):  # what usually comes, copied once
            yield at, b"".join((rest, memoryview(data)[:cut])) if rest or cut < len(data) else data
            at, rest = at + len(rest) + cut, data[cut:]
            continue
        rest = rest + data if rest else data
        cut = rest.rfind(b"\n") + 1
        if not whole and at + cut >= split.end:
            last = rest.find(b"\n", max(split.end - 1 - at, 0)) + 1
            if last and at < split.end:
                yield at, rest[:last]
            if last or at >= split.end:
                return
        if cut:
            yield at, rest[:cut]
            at, rest = at + cut, rest[cut:]
        if not data:
            break
        if len(rest) > budgets().file:
            if len(rest.strip(b"\0")) > budgets().file // 8:
                raise over("a line", budgets().file).of(split.path, at)
            yield at, Damage(split.path, "bad-record", at, f"more than {len(rest) >> 20} MiB of zeros")  # a crash's
            at, rest = _after_newline(file, at + len(rest), BLOCK_BYTES)
    if rest and file.proven is not None:
        yield at, rest + b"\n"  # its own checksum tells whether all of it is there
    elif at == 0 and rest and not rest.strip(b"\0"):  # a crash leaves zeros after what was written
        yield at, Damage(split.path, "corrupt-file", at, f"it holds nothing but zeros ({len(rest)} bytes)")
    elif rest and (whole or at < split.end):
        yield at, Damage(split.path, "torn-tail", at, f"the last line has no newline ({len(rest)} bytes)")


def _first_line(file: ByteStream, split: Split) -> tuple[int, bytes]:
    """Position the file after the line that the split before owns; return the offset and bytes already read there."""
    if split.start == 0:
        return 0, b""
    file.seek(split.start - 1)
    return _after_newline(file, split.start - 1, min(BLOCK_BYTES, split.end - split.start + 1))


def _after_newline(file: ByteStream, at: int, size: int) -> tuple[int, bytes]:
    """Read on, `size` bytes at a time, to behind the next newline; return the offset and bytes already read there."""
    while data := file.read(size):
        newline = data.find(b"\n")
        if newline >= 0:
            return at + newline + 1, data[newline + 1 :]
        at += len(data)
    return at, b""

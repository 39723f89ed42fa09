"""Checksum side files of Hadoop's local file system (`ChecksumFileSystem`, `ChecksumFs`): `.NAME.crc` beside `NAME`.

    side file = "crc\\0"  bytes_per_sum:i32  crc32(chunk):u32*        big-endian
    chunk     = the next bytes_per_sum bytes of the file (512 unless configured), the last one shorter

CRC-32 is zlib's. An empty file has no chunk. Hadoop writes the side file before it closes the file; it ignores one
whose header it cannot read (with a warning) and refuses data that its sums do not cover or do not match.
"""

from __future__ import annotations

import posixpath
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

MAGIC = b"crc\0"
HEADER = struct.Struct(
    ">4s"  # magic
    "i"  # bytes per sum
)
_SUM = struct.Struct(">I")
_POLYNOMIAL = 0xEDB88320

EMPTY = "holds nothing: written but never filled, or cut to 0"
EMPTIED = "is empty, but its .crc has checksums of data: its records are lost"
"""What is wrong with a file of 0 bytes: nothing proves that it held records, or its checksum file does."""


@dataclass(frozen=True, slots=True)
class CrcMismatch:
    """Bytes of the file, from `offset` on, that its side file does not vouch for."""

    offset: int
    why: str


def sidecar_of(path: str) -> str:
    """Return where the side file of a file lies.

    >>> sidecar_of("ck/offsets/14"), sidecar_of("metadata")
    ('ck/offsets/.14.crc', '.metadata.crc')
    """
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.crc")


def file_of(path: str) -> str | None:
    """Return the file that a side file belongs to, None if `path` is not a side file.

    >>> file_of("ck/offsets/.14.crc"), file_of("ck/offsets/14")
    ('ck/offsets/14', None)
    """
    folder, name = posixpath.split(path)
    if not (name.startswith(".") and name.endswith(".crc") and len(name) > len("..crc")):
        return None
    return posixpath.join(folder, name[1 : -len(".crc")])


def is_readable(sidecar: bytes) -> bool:
    """Return whether the header can be read; if not, the file counts as unchecked.

    >>> is_readable(encode(b"ok")), is_readable(b""), is_readable(b"crc\\0")
    (True, False, False)
    """
    return len(sidecar) >= HEADER.size and sidecar.startswith(MAGIC)


def check(data: bytes, sidecar: bytes) -> CrcMismatch | None:
    """Find the first chunk of `data` that disagrees with `sidecar`; None: all agree, or the header is unreadable.

    >>> check(b"ok", encode(b"ok"))
    >>> check(b"on", encode(b"ok"))
    CrcMismatch(offset=0, why='CRC-32 of bytes 0 to 2 is 09b629c8, the side file says 79dcdd47')
    """
    return check_pieces([data], sidecar)


def check_pieces(pieces: Iterable[bytes], sidecar: bytes) -> CrcMismatch | None:
    """Return the same for a file that comes in pieces of any sizes, none of which is kept."""
    if not is_readable(sidecar):
        return None
    chunk = HEADER.unpack_from(sidecar)[1]
    if chunk <= 0:
        return CrcMismatch(0, f"the side file sums {chunk} bytes at a time")
    sums = memoryview(sidecar)[HEADER.size :]
    summed = len(sums) // _SUM.size * chunk  # what lies behind has no sum, and is only counted
    at, computed = 0, 0
    for piece in pieces:
        done = 0
        while done < len(piece) and at < summed:
            taken = memoryview(piece)[done : done + chunk - at % chunk]
            computed = zlib.crc32(taken, computed)
            at, done = at + len(taken), done + len(taken)
            if at % chunk == 0:
                wrong = _check_sum(sums, at - chunk, at, chunk, computed)
                if wrong is not None:
                    return wrong
                computed = 0
        at += len(piece) - done
    if at % chunk and at < summed:
        wrong = _check_sum(sums, at - at % chunk, at, chunk, computed)
        if wrong is not None:
            return wrong
    return _check_length(at, chunk, len(sums))


def undo_flipped_bit(data: bytes, sidecar: bytes) -> bytes | None:
    """Return `data` with one bit flipped so that `sidecar` agrees with it; None: it agrees already, or no bit does it.

    >>> undo_flipped_bit(b"on", encode(b"oo")), undo_flipped_bit(b"on", encode(b"ok"))
    (b'oo', None)
    """
    wrong = check(data, sidecar)
    if wrong is None:
        return None
    chunk = HEADER.unpack_from(sidecar)[1]
    if chunk <= 0 or len(sidecar) != HEADER.size + -(-len(data) // chunk) * _SUM.size:
        return None
    part = data[wrong.offset : wrong.offset + chunk]
    (stored,) = _SUM.unpack_from(sidecar, HEADER.size + wrong.offset // chunk * _SUM.size)
    differs, of_bit = zlib.crc32(part) ^ stored, _POLYNOMIAL  # what the part's last bit adds to its sum
    for i in range(8 * len(part)):
        if of_bit == differs:
            mended = bytearray(data)
            mended[wrong.offset + len(part) - 1 - i // 8] ^= 0x80 >> i % 8
            return bytes(mended) if check(bytes(mended), sidecar) is None else None
        of_bit = of_bit >> 1 ^ (_POLYNOMIAL if of_bit & 1 else 0)
    return None


def _check_sum(sums: memoryview, start: int, end: int, chunk: int, computed: int) -> CrcMismatch | None:
    """Compare the sum of the bytes from `start` to `end` with the stored one."""
    (stored,) = _SUM.unpack_from(sums, start // chunk * _SUM.size)
    if computed == stored:
        return None
    why = f"CRC-32 of bytes {start} to {end} is {computed:08x}, the side file says {stored:08x}"
    return CrcMismatch(start, why)


def _check_length(size: int, chunk: int, stored: int) -> CrcMismatch | None:
    """Compare the bytes of sums with those that a file of `size` bytes needs: one sum a chunk, no more and no less."""
    needed = -(-size // chunk) * _SUM.size
    if stored == needed:
        return None
    covered = min(stored // _SUM.size * chunk, size)
    return CrcMismatch(covered, f"{size} bytes need {needed} bytes of sums, the side file has {stored}")


def encode(data: bytes, chunk: int = 512) -> bytes:
    """Return the side file of `data`, as Hadoop writes it.

    >>> encode(b"ok").hex(" ", 4)
    '63726300 00000200 79dcdd47'
    """
    sums = (zlib.crc32(data[at : at + chunk]) for at in range(0, len(data), chunk))
    return HEADER.pack(MAGIC, chunk) + b"".join(map(_SUM.pack, sums))

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
from dataclasses import dataclass

MAGIC = b"crc\0"
HEADER = struct.Struct(
    ">4s"  # magic
    "i"  # bytes per sum
)
_SUM = struct.Struct(">I")


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
    if not is_readable(sidecar):
        return None
    chunk = HEADER.unpack_from(sidecar)[1]
    if chunk <= 0:
        return CrcMismatch(0, f"the side file sums {chunk} bytes at a time")
    sums = memoryview(sidecar)[HEADER.size :]
    for i in range(min(-(-len(data) // chunk), len(sums) // _SUM.size)):
        piece = data[i * chunk : (i + 1) * chunk]
        computed, stored = zlib.crc32(piece), _SUM.unpack_from(sums, i * _SUM.size)[0]
        if computed != stored:
            end = i * chunk + len(piece)
            return CrcMismatch(
                i * chunk,
                f"CRC-32 of bytes {i * chunk} to {end} is {computed:08x}, the side file says {stored:08x}",
            )
    return _check_length(len(data), chunk, len(sums))


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

"""What compressed streams say of their format in their first bytes: methods and versions that cklog does not know.

gzip   1f 8b  method:u8                   8 is deflate; 0 to 7 are reserved, and never were methods (RFC 1952)
lz4    184D2204:u32  flags:u8  sizes:u8   the version is in the two high bits of the flags, 1; 184C2102: legacy
       [content:u64] [dictionary:u32]     flags have 8 and 1 where these are there
       checksum:u8                        the second byte of XXH32 of all from the flags on
zstd   FD2FB528:u32                       FD2FB51E and FD2FB522 to FD2FB527: versions 0.1 to 0.7

Only the checksum of lz4 covers the version.
"""

from __future__ import annotations

from cklog.parsers.codecs.xxhash32 import xxh32
from cklog.parsers.codecs.zstd_frames import unknown_magic
from cklog.unknown_formats import UnknownFormat, is_later, require_known

HEAD_BYTES = 19
_GZIP, _DEFLATE = b"\x1f\x8b", 8
_LZ4, _LEGACY_LZ4, _LZ4_VERSION = bytes.fromhex("04224d18"), bytes.fromhex("02214c18"), 1


def require_known_head(codec: str, head: bytes) -> None:
    """Raise `UnknownFormat` where a stream of a codec begins as a later or another version of it does."""
    if codec == "gzip" and head[:2] == _GZIP and len(head) > 2:
        require_known("gzip: compression method", head[2], _DEFLATE)
    elif codec == "lz4" and head[:4] == _LEGACY_LZ4:
        raise UnknownFormat("lz4: a legacy frame")
    elif codec == "lz4" and head[:4] == _LZ4 and len(head) > 4:
        version = head[4] >> 6
        if is_later(version, _LZ4_VERSION, lambda one: _lz4_holds(bytes([one << 6 | head[4] & 0x3F]) + head[5:])):
            require_known("lz4: version of the frame", version, _LZ4_VERSION)
    elif codec == "zstd" and unknown_magic(magic := int.from_bytes(head[:4], "little")):
        raise UnknownFormat(f"zstd: a frame with the magic number {magic:08x}")


def _lz4_holds(descriptor: bytes) -> bool:
    """Return whether the checksum of what an lz4 frame says of itself holds; `descriptor` begins with its flags."""
    size = 2 + (8 if descriptor[0] & 8 else 0) + (4 if descriptor[0] & 1 else 0)
    return descriptor[size : size + 1] == bytes([xxh32([descriptor[:size]])[0] >> 8 & 0xFF])

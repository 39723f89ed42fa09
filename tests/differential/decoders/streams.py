"""Blocks of lz4-java, logs of RocksDB, Hadoop's checksum files, and which frames of Zstandard have checksums."""

from __future__ import annotations

import io
import struct

import lz4.block
import pyarrow as pa
import xxhash
import zstandard

from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.codecs.block_checksums import masked_crc32c
from cklog.parsers.codecs.record_log import check_record_log, joined_records
from cklog.parsers.codecs.zstd_frames import has_checksums
from cklog.parsers.spark.metadata_log import Damaged
from cklog.parsers.spark.state.files import _decompress_zstd
from cklog.parsers.spark.state.lz4_blocks import decoded
from tests.differential.mutations import Damage
from tests.differential.references.streams import Broken, hadoop_sums_hold, log_records, lz4_stream
from tests.differential.verdicts import Decoder, Outcome

_FRONT = struct.Struct("<8sBiiI")
_LOG_BLOCK = 32 << 10


def _text(damage: Damage, longest: int = 600) -> bytes:
    chance = damage.chance
    piece = chance.randbytes(chance.choice((1, 7, 30)))
    return (piece * 200)[: chance.choice((0, 1, 20, longest))] + chance.randbytes(chance.choice((0, 3, 30)))


def _lz4_block(plain: bytes, packed: bytes | None, level: int) -> bytes:
    method, body = (0x10, plain) if packed is None else (0x20, packed)
    summed = xxhash.xxh32_intdigest(plain, 0x9747B28C) & 0xFFFFFFF
    return _FRONT.pack(b"LZ4Block", method | level, len(body), len(plain), summed) + body


def _made_lz4(damage: Damage) -> bytes:
    chance = damage.chance
    out, level = b"", chance.choice((0, 5, 6))
    for _ in range(chance.choice((0, 1, 2, 3))):
        plain = _text(damage) or b"p"
        packed = None if chance.random() < 0.3 else damage.inside(lz4.block.compress(plain, store_size=False))
        out += _lz4_block(plain, packed, level)
    return out + _FRONT.pack(b"LZ4Block", 0x10 | level, 0, 0, 0)


def _with_right_lz4_sums(data: bytes) -> bytes:
    found, at = bytearray(data), 0
    while at + _FRONT.size <= len(data):
        magic, token, size, plain_size, _ = _FRONT.unpack_from(data, at)
        body = data[at + _FRONT.size : at + _FRONT.size + max(size, 0)]
        if magic != b"LZ4Block" or not 0 < plain_size < 1 << 22 or size <= 0:
            break
        try:
            plain = body if token & 0xF0 == 0x10 else lz4.block.decompress(body, uncompressed_size=plain_size)
        except (lz4.block.LZ4BlockError, ValueError):
            break
        struct.pack_into("<I", found, at + 17, xxhash.xxh32_intdigest(plain, 0x9747B28C) & 0xFFFFFFF)
        at += _FRONT.size + len(body)
    return bytes(found)


def _read_lz4(data: bytes) -> Outcome:
    try:
        return Outcome("value", b"".join(decoded([data])))
    except Damaged as reason:
        return Outcome("refused", why=str(reason))


def _refer_lz4(data: bytes) -> Outcome:
    try:
        return Outcome("value", lz4_stream(data))
    except (Broken, lz4.block.LZ4BlockError, ValueError) as reason:
        return Outcome("refused", why=f"{type(reason).__name__}: {reason}")


def _made_log(damage: Damage) -> bytes:
    """Write a log; a record that does not fit into its block goes on in the next."""
    chance = damage.chance
    recycled = chance.random() < 0.3
    head = 11 if recycled else 7
    out = b""
    for _ in range(chance.choice((1, 1, 2, 4))):
        body = chance.randbytes(chance.choice((0, 1, 50, 50, 300, 300, 40_000 if chance.random() < 0.05 else 9)))
        first = True
        while True:
            left = _LOG_BLOCK - len(out) % _LOG_BLOCK
            if left < head:
                out += bytes(left)
                continue
            part, body = body[: left - head], body[left - head :]
            kind = (1 if first else 4) if not body else (2 if first else 3)
            tail = bytes([kind + 4]) + b"\7\0\0\0" if recycled else bytes([kind])
            part = damage.inside(part, 0.4)
            out += struct.pack("<IH", masked_crc32c(tail + part), len(part)) + tail + part
            first = False
            if not body:
                break
    return out


def _with_right_log_sums(data: bytes) -> bytes:
    found, at = bytearray(data), 0
    while at + 7 <= len(data):
        left = _LOG_BLOCK - at % _LOG_BLOCK
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        head = 11 if kind in (5, 6, 7, 8, 11, 131) else 7
        if at + head + length > len(data) or head + length > left or (not kind and not length):
            break
        struct.pack_into("<I", found, at, masked_crc32c(data[at + 6 : at + head + length]))
        at += head + length
    return bytes(found)


def _read_log(data: bytes) -> Outcome:
    flaw = check_record_log(lambda at, size: data[at : at + size], len(data))
    return Outcome("value", joined_records(data)) if flaw is None else Outcome("refused", why=flaw.why)


def _refer_log(data: bytes) -> Outcome:
    try:
        return Outcome("value", b"".join(log_records(data)))
    except Broken as reason:
        return Outcome("refused", why=str(reason))


def _made_sums(damage: Damage) -> bytes:
    """Write a side file behind its file, with the length of that before both."""
    chance = damage.chance
    data = _text(damage, 3000)
    side = hadoop_crc.encode(data, chance.choice((1, 7, 512, 512, 4096)))
    return struct.pack(">I", len(data)) + data + side


def _parts(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:4], "big")
    return data[4 : 4 + size], data[4 + size :]


def _read_sums(data: bytes) -> Outcome:
    file, side = _parts(data)
    if not hadoop_crc.is_readable(side):
        return Outcome("refused", why="no header")
    pieces = [file[i : i + 37] for i in range(0, len(file), 37)]
    wrong = hadoop_crc.check(file, side)
    assert hadoop_crc.check_pieces(pieces, side) == wrong, "in pieces it is another"
    return Outcome("value", True) if wrong is None else Outcome("refused", why=wrong.why)


def _refer_sums(data: bytes) -> Outcome:
    file, side = _parts(data)
    if side[:4] != b"crc\0" or len(side) < 8:
        return Outcome("refused", why="no header")
    return Outcome("value", True) if hadoop_sums_hold(file, side) else Outcome("refused", why="a sum")


def _made_frames(damage: Damage) -> bytes:
    chance = damage.chance
    out = b""
    for _ in range(chance.choice((1, 1, 2))):
        if chance.random() < 0.2:
            size = chance.choice((0, 5))
            out += struct.pack("<II", 0x184D2A50 + chance.randrange(16), size) + bytes(size)
        packer = zstandard.ZstdCompressor(
            level=chance.choice((1, 3, 19)),
            write_checksum=chance.random() < 0.7,
            write_content_size=chance.random() < 0.5,
        )
        out += packer.compress(_text(damage))
    return out


def _read_frames(data: bytes) -> Outcome:
    """Decompress a file as those of Spark's state are, and say whether its frames have checksums."""
    try:
        plain = b"".join(_decompress_zstd(pa.BufferReader(data)))
    except Damaged as reason:
        return Outcome("refused", why=str(reason))
    return Outcome("value", (plain, has_checksums(io.BytesIO(data))))


def _refer_frames(data: bytes) -> Outcome:
    """Return the same by another library, which looks at the header of each frame by itself."""
    rest, summed, plain = data, True, b""
    try:
        while rest:
            if int.from_bytes(rest[:4], "little") & ~0xF == 0x184D2A50:
                size = int.from_bytes(rest[4:8], "little")
                if len(rest) < 8 + size:
                    raise zstandard.ZstdError("a skippable frame that is cut short")
                rest = rest[8 + size :]
                continue
            found = zstandard.get_frame_parameters(rest)
            summed = summed and found.has_checksum
            unpacker = zstandard.ZstdDecompressor().decompressobj()
            plain += unpacker.decompress(rest)
            if not unpacker.eof:
                raise zstandard.ZstdError("a frame that is cut short")
            rest = unpacker.unused_data
        return Outcome("value", (plain, summed))
    except zstandard.ZstdError as error:
        return Outcome("refused", why=str(error))


DECODERS = (
    Decoder(
        name="lz4-blocks",
        reference="a reader by lz4-java's description, with the libraries lz4 and xxhash",
        make=_made_lz4,
        read=_read_lz4,
        refer=_refer_lz4,
        repair=_with_right_lz4_sums,
    ),
    Decoder(
        name="record-logs",
        reference="a reader by RocksDB's description, with a CRC-32C of its own",
        make=_made_log,
        read=_read_log,
        refer=_refer_log,
        repair=_with_right_log_sums,
    ),
    Decoder(
        name="hadoop-sums",
        reference="the definition, with zlib's CRC-32",
        make=_made_sums,
        read=_read_sums,
        refer=_refer_sums,
    ),
    Decoder(
        name="zstd-frames",
        reference="zstandard",
        make=_made_frames,
        read=_read_frames,
        refer=_refer_frames,
    ),
)

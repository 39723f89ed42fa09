"""State files that no checksum file proves, or one refutes: what their streams can prove, and what is said then."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
import xxhash

from cklog.parsers.codecs import snappy_frames
from cklog.parsers.codecs.hadoop_crc import encode
from tests.builders.spark import Memory
from tests.builders.spark_state import HDFS, by_ids, checkpoint, deltas, memory, operator
from tests.reading.spark import said


@pytest.mark.parametrize("checksum", [True, False])
def test_a_flipped_bit_of_a_zstd_stream_is_seen_or_it_is_said_that_it_may_be_there(checksum: bool) -> None:
    plain = b"".join(b"\0\0\0\1%c\0\0\0\1v" % i for i in range(200)) + b"\xff" * 4
    literal = bytearray(zstd_frame(plain, checksum))
    root = memory(checkpoint(HDFS, 2, codec="zstd"), operator(), deltas(range(1, 3)))
    root.files.update({path: bytes(literal) for path in root.files if path.endswith(".delta")})
    assert [id for _, id, _ in said(root.plan())] == ([] if checksum else ["unjudged-state"])
    literal[20] ^= 1
    root.files["state/0/1/2.delta"] = bytes(literal)
    assert (root.plan().committed, root.plan().fails) == ((0, True) if checksum else (1, False))


def zstd_frame(plain: bytes, checksum: bool) -> bytes:
    """One frame of one raw block (RFC 8878), with its checksum or without."""
    head = b"\x28\xb5\x2f\xfd" + bytes([0x60 | checksum << 2]) + (len(plain) - 256).to_bytes(2, "little")
    block = (len(plain) << 3 | 1).to_bytes(3, "little") + plain
    return head + block + (xxhash.xxh64_intdigest(plain) & 0xFFFFFFFF).to_bytes(4, "little") * checksum


def framed(plain: bytes, size: int) -> bytes:
    """A stream as snappy-java writes it, in blocks of so many plain bytes."""
    parts = [pa.Codec("snappy").compress(plain[at : at + size], asbytes=True) for at in range(0, len(plain), size)]
    return snappy_frames.MAGIC + b"\0\0\0\1" * 2 + b"".join(struct.pack(">I", len(part)) + part for part in parts)


@pytest.mark.parametrize("size", [7, 1000])
def test_a_snappy_stream_is_read_to_its_end_mark(size: int) -> None:
    """Cut anywhere, between two blocks too; nothing in it proves its bytes."""
    plain = b"".join(b"\0\0\0\1%c\0\0\0\1v" % i for i in range(20)) + b"\xff" * 4
    whole = framed(plain, size)
    root = memory(checkpoint(HDFS, 2, codec="snappy"), operator(), deltas(range(1, 3)))
    root.files.update({path: whole for path in root.files if path.endswith(".delta")})
    assert (root.plan().fails, said(root.plan())) == (False, [("warning", "unjudged-state", "state/0/0/1.delta")])
    for cut in range(8, len(whole)):
        root.files["state/0/1/2.delta"] = whole[:cut]
        plan = root.plan()
        assert (plan.committed, plan.fails) == (0, True), cut
        assert ("error", "corrupt-file", "state/0/1/2.delta") in said(plan)


CLASS = "org.apache.spark.io.{}CompressionCodec"


@pytest.mark.parametrize("codec", ["", "lz4", "snappy", "lzf", "zstd", CLASS.format("LZ4"), "com.example.OwnCodec"])
def test_a_delta_full_of_zeros_is_found_whatever_its_codec(codec: str) -> None:
    root = memory(checkpoint(HDFS, 2, codec=codec), operator(), deltas(range(1, 3)))
    root.files["state/0/1/2.delta"] = bytes(700)
    assert (root.plan().committed, root.plan().fails) == (0, True)
    assert ("error", "corrupt-file", "state/0/1/2.delta") in said(root.plan())


def test_a_file_that_cannot_be_read_twice_stays_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checksum has refuted it: the second read, which looks for an unknown version, decides nothing more."""
    root, path = by_ids(), "state/0/0/4_i4.changelog"
    root.files["state/0/0/.4_i4.changelog.crc"] = encode(root.files[path])
    root.files[path] = root.files[path][:-1] + b"?"
    reads: list[str] = []
    read = Memory.read

    def refuse_second(self: Memory, name: str, limit: int | None = None) -> bytes:
        reads.append(name)
        if name == path and reads.count(name) > 1:
            raise PermissionError(13, "Permission denied", name)
        return read(self, name, limit)

    monkeypatch.setattr(Memory, "read", refuse_second)
    plan = root.plan()
    assert reads.count(path) == 2
    assert (plan.committed, plan.unjudged) == (2, "")
    assert said(plan) == [("error", "checksum-mismatch", path)]

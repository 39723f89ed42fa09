"""Compressed streams, pickles, Java's streams and LevelDB of versions that came after those that cklog knows.

The newest numbers are those of RFC 1952 (gzip), RFC 8878 and Zstandard's early versions, LZ4's frame format, PKWARE's
APPNOTE (zip), snappy-java's SnappyCodec, Python's pickle module, Java's serialisation protocol, and LevelDB's log and
table formats.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import crc32c
import pyarrow as pa
import pytest
import xxhash

from cklog.parsers.codecs.byte_stream import ByteStream
from cklog.parsers.codecs.snappy_frames import unframed
from cklog.parsers.codecs.streams import Gunzip, open_stream
from cklog.parsers.codecs.zip_archives import BadArchive, read_member
from cklog.parsers.codecs.zstd_frames import has_checksums
from cklog.unknown_formats import UnknownFormat
from tests.builders.checkmate import START, framed, message, put_log, put_snapshot
from tests.builders.connect import java_map, key
from tests.builders.native import checkpoint, line, zstd
from tests.builders.patent import export, usual
from tests.conftest import SAMPLES
from tests.reading.unknown_formats import answer, later, require_damaged, require_unknown

TEXT = b"orders of the day, " * 40


def _at(place: int, value: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:place] + bytes([value]) + data[place + 1 :]


def _frame(codec: str) -> bytes:
    packed: bytes = pa.compress(TEXT, codec=codec, asbytes=True)
    return packed


STREAMS: dict[str, tuple[str, list[Callable[[bytes], bytes]]]] = {
    "gzip-method": ("gzip", [_at(2, number) for number in later(8)]),
    "zstd-magic": ("zstd", [_at(0, number) for number in (0x1E, 0x22, 0x27, *later(0x28))]),
    "lz4-version": ("lz4", [_at(4, 0x80 | 0x24), _at(4, 0x80 | 0x20)]),
    "lz4-legacy": ("lz4", [lambda data: bytes.fromhex("02214c18") + data[4:]]),
}


def _read_all(codec: str, data: bytes) -> bytes:
    file = pa.BufferReader(data)
    with Gunzip(file) if codec == "gzip" else open_stream(file, codec) as stream:
        found = b""
        while part := stream.read(1 << 16):
            found += part
        return found


def _packed(codec: str) -> bytes:
    return gzip.compress(TEXT) if codec == "gzip" else _frame(codec)


@pytest.mark.parametrize("row", STREAMS)
def test_a_stream_of_another_version_is_not_known(row: str) -> None:
    codec, changes = STREAMS[row]
    packed = _packed(codec)
    assert _read_all(codec, packed) == TEXT
    for change in changes:
        for begins in (b"", packed) if codec in ("gzip", "zstd") else (b"",):  # the first frame, or the second
            with pytest.raises(UnknownFormat):
                _read_all(codec, begins + change(packed))


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4"])
def test_a_damaged_beginning_of_a_stream_is_damage(codec: str) -> None:
    packed = _packed(codec)
    flipped = [(4, packed[4] | 0x80)] if codec == "lz4" else []  # its checksum holds without that bit
    numbers = {"gzip": [(2, 0), (2, 7), (1, 0x8A)], "zstd": [(0, 0x1F), (2, 0x2E)], "lz4": [(4, 0x24), (1, 0x20)]}
    numbers[codec] += flipped
    for place, value in numbers[codec]:
        with pytest.raises(OSError, match=r".") as raised:
            _read_all(codec, _at(place, value)(packed))
        assert not isinstance(raised.value, UnknownFormat), (place, value)


@pytest.mark.parametrize("place", [8, 12], ids=["version", "compatible"])
def test_a_snappy_stream_of_a_later_version_is_not_known(place: int) -> None:
    block = pa.compress(TEXT, codec="snappy", asbytes=True)
    head = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    stream = head + struct.pack(">i", len(block)) + block
    assert b"".join(unframed(ByteStream([stream]), 1 << 20)) == TEXT
    for number in later(1):
        later_one = stream[:place] + struct.pack(">i", number) + stream[place + 4 :]
        with pytest.raises(UnknownFormat):
            b"".join(unframed(ByteStream([later_one]), 1 << 20))


def _zip(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return made.getvalue()


@pytest.mark.parametrize("where", ["both", "local"])
@pytest.mark.parametrize(("field", "newest"), [("method", 8), ("version", 63)])
def test_a_zip_archive_of_a_later_version_is_not_known(field: str, newest: int, where: str) -> None:
    data = _zip(metadata=TEXT)
    assert read_member(data, "metadata") == TEXT
    central = data.index(b"PK\x01\x02")
    for number in [9, 12, 14, 99] if field == "method" else later(newest):
        changed = bytearray(data)
        for start in (6 if field == "version" else 10, 4 if field == "version" else 8)[where == "local" :]:
            at = start if start in (4, 8) else central + start
            changed[at] = number
        with pytest.raises(UnknownFormat):
            read_member(bytes(changed), "metadata")
    with pytest.raises(BadArchive):
        read_member(data[:-30], "metadata")


def test_a_snapshot_of_spark_in_another_zip_is_not_called_damaged(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "spark-state-rocksdb", run)
    path = max(run.rglob("*.zip"))
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        for found in re.finditer(re.escape(mark), bytes(data)):
            data[found.start() + place] = 12  # bzip2
    path.write_bytes(bytes(data))
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    _, said = answer("recovery-line", run)
    name = str(path.relative_to(run))
    assert {row["id"] for row in said["findings"] if name in row["message"]} == {"unknown-version"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run/checkpoints").mkdir(parents=True)
    return tmp_path / "run"


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_run_folder_compressed_by_another_method_is_not_known(suffix: str, run: Path) -> None:
    (run / "checkpoints/a.jsonl").write_bytes(line(checkpoint("agg", 1, kind="local")))
    plain = b"".join(line(checkpoint("agg", n, kind="local")) for n in range(2, 5))
    packed = gzip.compress(plain) if suffix == "gz" else zstd(plain)
    file = run / f"checkpoints/b.jsonl.{suffix}"
    file.write_bytes(packed)
    intact = answer("recovery-line", run)
    assert intact[0] == 0
    place, number = (2, 9) if suffix == "gz" else (0, 0x29)
    for command, one in (("recovery-line", number), ("impact", 99), ("inspect", 255)):
        file.write_bytes(_at(place, one)(packed))
        require_unknown(file.name, command, run)


def _summed(data: bytes) -> bytes:
    """A frame of Zstandard of one segment and one plain block, with its checksum."""
    block = (len(data) << 3 | 1).to_bytes(3, "little") + data
    frame = bytes.fromhex("28b52ffd a4") + len(data).to_bytes(4, "little") + block
    return frame + xxhash.xxh64_digest(data)[:-5:-1]


def test_records_before_a_frame_of_another_version_are_read(run: Path) -> None:
    first, second = (_summed(line(checkpoint("agg", n, kind="local"))) for n in (1, 2))
    assert has_checksums(pa.BufferReader(first + second))
    (run / "checkpoints/a.jsonl.zst").write_bytes(first + _at(0, 0x29)(second))
    code, said = answer("recovery-line", run)
    assert (code, [row["checkpoint"] for row in said["result"]["line"]]) == (5, [1])
    assert [row["id"] for row in said["findings"] if "a.jsonl.zst" in row["message"]].count("unknown-version") == 1


@pytest.mark.parametrize(("method", "damaged"), [(9, True), (11, False)])
def test_a_checksum_makes_damage_of_a_flipped_bit_alone(method: int, damaged: bool, run: Path) -> None:
    import zlib

    (run / "checkpoints/a.jsonl").write_bytes(line(checkpoint("agg", 1, kind="local")))
    packed = gzip.compress(line(checkpoint("agg", 2, kind="local")))
    file = run / "checkpoints/b.jsonl.gz"
    file.write_bytes(packed)
    sums = b"crc\0" + (512).to_bytes(4, "big") + zlib.crc32(packed).to_bytes(4, "big")
    (run / "checkpoints/.b.jsonl.gz.crc").write_bytes(sums)
    assert answer("recovery-line", run)[0] == 0
    file.write_bytes(_at(2, method)(packed))
    (require_damaged if damaged else require_unknown)(file.name, "recovery-line", run)


def _dump(folder: Path) -> Path:
    for stamp in (1, 2):
        for worker in (1, 2):
            put_snapshot(folder, worker, "a", START + 100 * stamp + worker, sent={}, received={}, clock=stamp)
    return folder


@pytest.mark.parametrize("protocol", [6, *(pytest.param(one, marks=pytest.mark.slow) for one in later(6))])
def test_a_pickle_of_a_later_protocol_is_not_known(protocol: int, tmp_path: Path) -> None:
    folder = _dump(tmp_path / "dump")
    newest = max(folder.rglob("snapshot_1_*.bin"))
    newest.write_bytes(_at(1, protocol)(newest.read_bytes()))
    require_unknown(newest.name, "recovery-line", folder)


def test_an_opcode_that_its_protocol_does_not_have_is_damage(tmp_path: Path) -> None:
    """Each protocol lists its opcodes: another one contradicts the protocol that the pickle says it has."""
    folder = _dump(tmp_path / "dump")
    newest = max(folder.rglob("snapshot_1_*.bin"))
    newest.write_bytes(b"\x80\x04\xf0" + pickle.dumps({})[2:])
    require_damaged(newest.name, "recovery-line", folder)


@pytest.mark.parametrize("tag", [b"\0\3", b"\0\x09", b"\0\xff", b"\0\1"])
def test_a_log_of_another_codec_is_not_known(tag: bytes, tmp_path: Path) -> None:
    folder = _dump(tmp_path / "dump")
    log = put_log(folder, 1, "1_a_0", [0, 0])
    log.write_bytes(log.read_bytes() + tag + framed(message(2, 0))[2:])
    code, found = answer("inspect", folder)
    assert code == 5, found["findings"]
    ids = {row["id"] for row in found["findings"] if log.name in row["message"]}
    assert ids == {"unknown-version"}


OFFSETS = java_map([(key("orders", {"server": "shop"}), json.dumps({"pos": 4}).encode())])


@pytest.mark.parametrize(
    "changed",
    [
        *(OFFSETS[:2] + version.to_bytes(2, "big") + OFFSETS[4:] for version in (6, 9, 99, 255)),
        OFFSETS.replace(b"java.util.HashMap", b"java.util.TreeSet"),
        OFFSETS.replace(b"\0\x11java.util.HashMap", b"\0\x17java.util.LinkedHashMap"),
    ],
)
def test_a_java_stream_of_another_version_or_class_is_not_known(changed: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run/connect.offsets"
    file.parent.mkdir()
    file.write_bytes(OFFSETS)
    assert answer("recovery-line", file.parent)[0] == 0
    file.write_bytes(changed)
    require_unknown(file.name, "recovery-line", file.parent)


def test_a_java_class_one_bit_away_is_damage(tmp_path: Path) -> None:
    (tmp_path / "connect.offsets").write_bytes(OFFSETS.replace(b"HashMap", b"HashMaq"))
    require_damaged("connect.offsets", "recovery-line", tmp_path)


@pytest.mark.parametrize("form", [2, *(pytest.param(one, marks=pytest.mark.slow) for one in later(2))])
def test_an_index_entry_of_another_form_is_not_known(form: int, tmp_path: Path) -> None:
    pairs = dict(usual().pairs)
    pairs["5 INDEX"] = bytes([form]) + pairs["5 INDEX"][1:]
    require_unknown("window", "recovery-line", export(tmp_path / "run", "window", pairs))


def test_a_part_of_a_checkpoint_that_is_not_known_leaves_the_line_open(tmp_path: Path) -> None:
    pairs = {k.replace("5 INDEX", "5 COLUMNS"): value for k, value in usual().pairs.items()}
    require_unknown("window", "recovery-line", export(tmp_path / "run", "window", pairs))
    pairs = {k.replace("5 INDEX", "5 INDEY"): value for k, value in usual().pairs.items()}
    require_damaged("window", "recovery-line", export(tmp_path / "bit", "window", pairs))


@pytest.fixture
def leveldb(tmp_path: Path) -> Path:
    plyvel = pytest.importorskip("plyvel", reason="plyvel is not installed: no LevelDB can be made or read")
    folder = tmp_path / "store/window"
    folder.parent.mkdir()
    database = plyvel.DB(str(folder), create_if_missing=True)
    for name, value in usual().pairs.items():
        database.put(name.encode(), value)
    database.compact_range()
    database.close()
    assert answer("recovery-line", folder.parent)[0] == 0
    return folder


def _masked(data: bytes) -> bytes:
    crc: int = crc32c.crc32c(data)
    return ((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("block", ["index", "data"])
def test_a_block_of_leveldb_of_another_compression_is_not_known(leveldb: Path, block: str, mended: bool) -> None:
    """LevelDB knows 0 and 1, and since 1.23 Zstandard, which plyvel does not read."""
    table = next(path for path in sorted(leveldb.iterdir()) if path.suffix in (".ldb", ".sst"))
    data = table.read_bytes()
    numbers, at = [], len(data) - 48
    for _ in range(4):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        numbers.append(value)
    kind = numbers[2] + numbers[3]  # behind the index
    if block == "data":
        kind = _first_block_end(data)
    for number in (data[kind] ^ 6, 255):
        changed = bytearray(_at(kind, number)(data))
        if mended:
            start = numbers[2] if block == "index" else 0
            changed[kind + 1 : kind + 5] = _masked(bytes(changed[start : kind + 1]))
        table.write_bytes(bytes(changed))
        require_unknown("window", "recovery-line", leveldb.parent)
    if not mended:  # the checksum holds without one bit
        table.write_bytes(_at(kind, data[kind] ^ 64)(data))
        code, found = answer("recovery-line", leveldb.parent)
        assert (code, found["error"]["id"]) == (65, "corrupt-input")


def _first_block_end(data: bytes) -> int:
    """Where the first block's compression stands: behind the bytes whose checksum follows it."""
    return next(
        at for at in range(1, len(data) - 5) if data[at] in (0, 1) and _masked(data[: at + 1]) == data[at + 1 : at + 5]
    )


@pytest.mark.parametrize("magic", [0x88E241B785F4CFF7, 0x8242229663BF9564])
def test_a_table_of_rocksdb_is_not_known(leveldb: Path, magic: int) -> None:
    table = next(path for path in sorted(leveldb.iterdir()) if path.suffix in (".ldb", ".sst"))
    table.write_bytes(table.read_bytes()[:-8] + magic.to_bytes(8, "little"))
    require_unknown("window", "recovery-line", leveldb.parent)


@pytest.mark.parametrize("what", ["record", "tag", "comparator"])
def test_a_manifest_of_leveldb_of_a_later_version_is_not_known(leveldb: Path, what: str) -> None:
    manifest = max(leveldb.glob("MANIFEST-*"))
    data = manifest.read_bytes()
    length = int.from_bytes(data[4:6], "little")
    kind, body = data[6], data[7 : 7 + length]
    if what == "record":
        kind = 9
    elif what == "tag":
        body = body + b"\x63\x01"
    else:
        body = body.replace(b"leveldb.BytewiseComparator", b"leveldb.SignedIntComparato")
    head = _masked(bytes([kind]) + body) + len(body).to_bytes(2, "little") + bytes([kind])
    manifest.write_bytes(head + body + data[7 + length :])
    require_unknown("window", "recovery-line", leveldb.parent)

"""Numbers and names in a Spark checkpoint that a later version may write, each as it stands in the bytes.

What is known, by Spark's source: plans v1 and v2, commits v1 to v3, logs of sources and sinks v1; metadata of operators
v1 and v2, schemas v1 to v3, changelogs v1 to v4, snapshots of RocksDB v1; state checkpoint formats 1 and 2, layouts of
joins 1 to 4; checksums by CRC32C.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from cklog.model.verdict import DAMAGE
from cklog.parsers.codecs.hadoop_crc import encode as sidecar_bytes
from cklog.unknown_formats import is_one_bit_off
from tests.builders import spark_state
from tests.builders.rocksdb import table
from tests.builders.spark_state import ROCKS, changelog, checkpoint, operator, stream, zipped
from tests.conftest import SAMPLES
from tests.reading.unknown_answers import about, keeps_all, leaves_open, said

LATER = (9, 99, 255)
IDS = spark_state.by_ids().files
NEWEST = "state/0/0/4_i4.changelog"
SST = "000007-of-it.sst"


def rocks(snapshot: bytes = b"", more: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """Three batches of a query with RocksDB, one partition and a snapshot of the last one."""
    files = checkpoint(ROCKS, 3, partitions=1) | operator(partitions=1)
    del files["offsets/3"]
    files |= {f"state/0/0/{n}.changelog": stream(b"\xff" * 4) for n in (1, 2, 3)}
    del files["state/0/0/3.changelog"]
    return files | {"state/0/0/3.zip": snapshot or spark_state.snapshot()} | (more or {})


def written(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def side(name: str) -> str:
    folder, _, last = name.rpartition("/")
    return f"{folder}/.{last}.crc".removeprefix("/")


def texts() -> Iterator[tuple[str, dict[str, bytes], int]]:
    """Files that begin with a line of their version: name, the files of the query, the newest version."""
    yield "offsets/3", IDS, 2
    yield "commits/3", IDS, 3
    yield "sources/0/0", IDS, 1
    yield "state/0/_metadata/metadata", IDS, 2


def later(data: bytes, version: int) -> bytes:
    before, end, after = data.partition(b"\n")
    assert before.startswith(b"v")
    return b"v%d" % version + end + after


def _rows() -> list[object]:
    rows: list[object] = []
    for name, _, newest in texts():
        for version in (newest + 1, *LATER):
            for proof in ("none", "right", "old"):
                quick = version == newest + 1 and proof != "right"
                rows.append(pytest.param(name, version, proof, marks=() if quick else pytest.mark.slow))
    return rows


@pytest.mark.parametrize(("name", "version", "proof"), _rows())
def test_a_text_of_a_later_version(name: str, version: int, proof: str, tmp_path: Path) -> None:
    """Without a checksum, with a right one, and with that of the version before, which tells of one damaged bit."""
    files = dict(next(files for text, files, _ in texts() if text == name))
    old = files[name]
    files[name] = later(old, version)
    if proof != "none":
        files[side(name)] = sidecar_bytes(files[name] if proof == "right" else old)
    written(tmp_path, files)
    if proof == "old" and is_one_bit_off(later(old, version).decode(), [old.decode()]):
        _, answer = said("recovery-line", tmp_path)
        assert about(answer, name).keys() & DAMAGE
        assert "unknown-version" not in about(answer, name)
        return
    leaves_open(tmp_path, name, shown=proof == "old")
    keeps_all(tmp_path)


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("name", [name for name, _, _ in texts() if not name.startswith("sources")])
def test_a_version_that_never_was_is_damage(name: str, number: int, tmp_path: Path) -> None:
    written(tmp_path, IDS | {name: later(IDS[name], number)})
    _, answer = said("recovery-line", tmp_path)
    assert "unknown-version" not in about(answer, name)


@pytest.mark.parametrize("version", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (7, 99, 255))])
@pytest.mark.parametrize("old", [False, True])
def test_a_log_of_files_of_a_later_version(version: int, old: bool, tmp_path: Path) -> None:
    """What a file source has read; its checksum is right, or that of the version before."""
    for path in sorted((SAMPLES / "spark-state-rocksdb").rglob("*")):
        if path.is_file():
            written(tmp_path, {str(path.relative_to(SAMPLES / "spark-state-rocksdb")): path.read_bytes()})
    name = "ck/sources/0/7"
    data = (tmp_path / name).read_bytes()
    new = later(data, version)
    written(tmp_path, {name: new, side(name): sidecar_bytes(data if old else new)})
    leaves_open(tmp_path, name, shown=False)


@pytest.mark.parametrize("version", [5, 9, 10, 99, pytest.param(255, marks=pytest.mark.slow)])
@pytest.mark.parametrize("proof", ["none", "hadoop", "own"])
def test_a_changelog_of_a_later_version(version: int, proof: str, tmp_path: Path) -> None:
    """A checksum that disagrees, Hadoop's or the engine's own, is no reason to call it damaged."""
    head = b"v%d" % version
    data = stream(struct.pack(">H", len(head)) + head + b"\0\2[]" + b"\xff" * 4)
    files = IDS | {NEWEST: data}
    if proof == "hadoop":
        files[side(NEWEST)] = sidecar_bytes(changelog(3, []))
    elif proof == "own":
        said_of_it = {"algorithm": "CRC32C", "value": 7, "mainFileSize": len(data)}
        files[f"{NEWEST}.crc"] = json.dumps(said_of_it).encode()
    written(tmp_path, files)
    leaves_open(tmp_path, NEWEST, shown=proof == "hadoop")


@pytest.mark.parametrize("algorithm", ["XXH64", "CRC64"])
def test_a_checksum_by_an_algorithm_that_is_not_known(algorithm: str, tmp_path: Path) -> None:
    said_of_it = {"algorithm": algorithm, "value": 7, "mainFileSize": len(IDS[NEWEST])}
    written(tmp_path, IDS | {f"{NEWEST}.crc": json.dumps(said_of_it).encode()})
    leaves_open(tmp_path, NEWEST, shown=False)


def test_a_checksum_whose_algorithm_is_a_bit_off_is_damaged(tmp_path: Path) -> None:
    said_of_it = {"algorithm": "CRC32B", "value": 7, "mainFileSize": len(IDS[NEWEST])}
    written(tmp_path, IDS | {f"{NEWEST}.crc": json.dumps(said_of_it).encode()})
    _, answer = said("recovery-line", tmp_path)
    assert about(answer, NEWEST).get("checksum-mismatch") == "error"


@pytest.mark.parametrize("version", [2, pytest.param(99, marks=pytest.mark.slow)])
@pytest.mark.parametrize("old", [False, True])
def test_a_snapshot_of_a_later_version(version: int, old: bool, tmp_path: Path) -> None:
    data = zipped(b'v%d\n{"sstFiles":[]}' % version)
    written(tmp_path, rocks(data, {side("state/0/0/3.zip"): sidecar_bytes(b"other" if old else data)}))
    leaves_open(tmp_path, "state/0/0/3.zip", shown=False)


@pytest.mark.parametrize(
    ("at", "bytes_"),
    [
        (-12, struct.pack("<I", 8)),
        (-12, struct.pack("<I", 99)),
        (-53, b"\x05"),
        (-8, bytes.fromhex("6495bf6396224282")),
        (-8, bytes.fromhex("7378f1c5d0896792")),
    ],
    ids=["version 8", "version 99", "checksum 5", "plain table", "cuckoo table"],
)
def test_a_table_of_rocksdb_that_is_not_known(at: int, bytes_: bytes, tmp_path: Path) -> None:
    """Footer: the type of checksums, the version, the magic number; those of other tables are in RocksDB's source."""
    data = bytearray(table(tmp_path / "table"))
    data[len(data) + at : len(data) + at + len(bytes_)] = bytes_
    zip_ = spark_state.snapshot((SST, len(data)))
    written(tmp_path / "ck", rocks(zip_, {f"state/0/0/SSTs/{SST}": bytes(data)}))
    leaves_open(tmp_path / "ck", "state/0/0/3.zip", shown=False)


def test_a_table_whose_magic_number_is_a_bit_off_is_damaged(tmp_path: Path) -> None:
    data = bytearray(table(tmp_path / "table"))
    data[-1] ^= 1
    zip_ = spark_state.snapshot((SST, len(data)))
    written(tmp_path / "ck", rocks(zip_, {f"state/0/0/SSTs/{SST}": bytes(data)}))
    _, answer = said("recovery-line", tmp_path / "ck")
    found = {f["id"] for f in answer["findings"]}
    assert found & {"corrupt-file", "corrupt-snapshot", "corrupt-state-file"}
    assert "unknown-version" not in found


@pytest.mark.parametrize("version", [4, pytest.param(99, marks=pytest.mark.slow)])
@pytest.mark.parametrize("old", [False, True])
def test_a_schema_of_a_later_version(version: int, old: bool, tmp_path: Path) -> None:
    name = "state/0/0/_metadata/schema"
    head = b"v%d" % version
    data = struct.pack(">H", len(head)) + head + IDS[name][4:]
    files = IDS | {name: data}
    if old:
        files[side(name)] = sidecar_bytes(IDS[name])
    written(tmp_path, files)
    leaves_open(tmp_path, name, shown=old)


@pytest.mark.parametrize(
    ("setting", "number"),
    [
        ("stateStore.checkpointFormatVersion", "3"),
        ("join.stateFormatVersion", "5"),
        ("join.stateFormatVersion", "99"),
        ("join.stateFormatVersion", "9" * 5_000),
        ("join.stateFormatVersion", "0" * 5_000 + "5"),
    ],
    ids=["checkpoints", "joins", "far", "of many digits", "of many zeros"],
)
def test_state_that_is_laid_out_as_by_no_version_that_is_known(setting: str, number: str, tmp_path: Path) -> None:
    name = "offsets/3"
    said_in_it = b'"conf": {"spark.sql.streaming.%s": "%s", ' % (setting.encode(), number.encode())
    assert b'"conf": {' in IDS[name]
    written(tmp_path, IDS | {name: IDS[name].replace(b'"conf": {', said_in_it)})
    leaves_open(tmp_path, name, shown=False)


@pytest.mark.parametrize("provider", ["com.example.OwnStateStoreProvider", "org.example.RocksDBStateStoreProviderV2"])
def test_a_provider_that_is_not_known_leaves_the_state_unjudged(provider: str, tmp_path: Path) -> None:
    written(tmp_path, {name: data.replace(ROCKS.encode(), provider.encode()) for name, data in IDS.items()})
    code, answer = said("recovery-line", tmp_path)
    assert (code, answer["result"]["action"]) == (5, "undetermined")
    assert "unjudged-state" in {f["id"] for f in answer["findings"]}

"""Tables that a job writes to, and Parquet files, of versions that came after those that cklog knows.

The newest numbers are those of the specifications: Delta's PROTOCOL.md, Iceberg's spec, Hudi's HoodieTableVersion and
TimelineLayoutVersion, Paimon's Snapshot, and parquet.thrift.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders.lakes.avro import container
from tests.builders.lakes.hudi_tables import COMMIT
from tests.builders.native import checkpoint, write
from tests.conftest import SAMPLES
from tests.differential.thrift import I32, STRUCT, get, put, read_struct, write_struct
from tests.reading.unknown_formats import answer, later, require_damaged, require_unknown, require_warning

MAP = "file:///srv/cklog-sample/tables"
SAMPLE = {
    "delta": "spark-delta-restored",
    "iceberg": "spark-iceberg-expired",
    "hudi": "spark-hudi",
    "paimon": "spark-paimon-twice",
}
PLACE = {
    "delta": "_delta_log/00000000000000000006.json",
    "iceberg": "metadata/v8.metadata.json",
    "hudi": ".hoodie/hoodie.properties",
    "paimon": "snapshot/snapshot-4",
}


class Table:
    """A sample's table in a folder of its own, and the question that rests on it."""

    def __init__(self, kind: str, folder: Path) -> None:
        shutil.copytree(SAMPLES / "tables" / SAMPLE[kind], folder / SAMPLE[kind])
        self.path = folder / SAMPLE[kind] / "table"
        self.place = PLACE[kind]
        run = folder / SAMPLE[kind] / "ck"
        self.question = ("recovery-line", run, "--sink", f"orders={self.path}", "--map", f"{MAP}={folder}")
        self.impact = ("impact", run, "--sink", f"orders={self.path}", "--map", f"{MAP}={folder}")

    def change(self, change: Callable[[bytes], bytes], place: str = "") -> None:
        """Change a file of the table."""
        path = self.path / (place or self.place)
        path.write_bytes(change(path.read_bytes()))


def _appended(action: Any) -> Callable[[bytes], bytes]:
    return lambda data: data.rstrip(b"\n") + b"\n" + json.dumps(action).encode() + b"\n"


def _member(name: str, value: Any) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps(json.loads(data) | {name: value}).encode()


def _property(name: str, value: Any) -> Callable[[bytes], bytes]:
    return lambda data: re.sub(rf"{re.escape(name)}=.*".encode(), f"{name}={value}".encode(), data)


def _protocol(**members: Any) -> Callable[[bytes], bytes]:
    return _appended({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7} | members})


def _operation(name: str) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        found = json.loads(data)
        found["snapshots"][-1]["summary"]["operation"] = name
        return json.dumps(found).encode()

    return change


def _type(name: str) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        found = json.loads(data)
        found["schemas"][-1]["fields"][-1]["type"] = name
        return json.dumps(found).encode()

    return change


NUMBERS: dict[str, tuple[str, int, Callable[[int], Callable[[bytes], bytes]]]] = {
    "delta-reader": ("delta", 3, lambda n: _protocol(minReaderVersion=n)),
    "delta-writer": ("delta", 7, lambda n: _protocol(minWriterVersion=n)),
    "iceberg-format": ("iceberg", 3, lambda n: _member("format-version", n)),
    "hudi-table": ("hudi", 9, lambda n: _property("hoodie.table.version", n)),
    "hudi-layout": ("hudi", 2, lambda n: _property("hoodie.timeline.layout.version", n)),
    "paimon-snapshot": ("paimon", 3, lambda n: _member("version", n)),
}
"""(format of the table, newest number, what gives its file another one)."""

NAMES = {
    "delta-feature": ("delta", _protocol(readerFeatures=["deletionVectors", "v9"], writerFeatures=["deletionVectors"])),
    "delta-action": ("delta", _appended({"lease": {"until": 7}})),
    "iceberg-operation": ("iceberg", _operation("merge")),
    "iceberg-type": ("iceberg", _type("variant")),
    "paimon-kind": ("paimon", _member("commitKind", "PATCH")),
}


@pytest.mark.parametrize("row", NUMBERS)
def test_a_table_of_the_next_version_is_not_known(row: str, tmp_path: Path) -> None:
    kind, newest, changed = NUMBERS[row]
    table = Table(kind, tmp_path)
    table.change(changed(newest + 1))
    require_unknown(table.place, *table.question)


@pytest.mark.parametrize("row", NUMBERS)
def test_nothing_is_judged_by_what_else_a_table_of_a_later_version_holds(row: str, tmp_path: Path) -> None:
    kind, _, changed = NUMBERS[row]
    table = Table(kind, tmp_path)
    table.change(changed(99))
    code, line = answer(*table.question)
    assert (code, line["verdict"], line["result"]["action"]) == (5, "indeterminate", "undetermined")
    assert line["result"]["details"]["sinks"] == []
    assert {f["effect"] for f in line["findings"] if f["severity"] == "error"} == {"unknown"}
    assert {f["id"] for f in line["findings"] if str(table.path) in f["message"]} == {"unknown-version"}
    code, impact = answer(*table.impact)
    assert (code, impact["result"]["action"]) == (5, "undetermined")
    rows = [row for row in impact["result"]["intervals"] if row["why"].startswith("table-")]
    assert [(row["sink"], row["fate"], row["to"]) for row in rows] == [("orders", "unknown", None)]
    assert {row["guarantee"] for row in impact["result"]["guarantees"] if row["sink"] == "orders"} == {"none"}


@pytest.mark.slow
@pytest.mark.parametrize("row", NUMBERS)
def test_no_later_version_of_a_table_is_known(row: str, tmp_path: Path) -> None:
    kind, newest, changed = NUMBERS[row]
    for number in later(newest):
        table = Table(kind, tmp_path / str(number))
        table.change(changed(number))
        require_unknown(table.place, *table.question)
        assert answer(*table.impact)[0] == 5


@pytest.mark.parametrize("row", NAMES)
def test_a_table_with_an_unknown_name_is_not_known(row: str, tmp_path: Path) -> None:
    kind, changed = NAMES[row]
    table = Table(kind, tmp_path)
    table.change(changed)
    require_unknown(table.place, *table.question)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("delta", _protocol(minReaderVersion=-1)),
        ("delta", _protocol(readerFeatures=["v2Checkpoinu"])),
        ("delta", _appended({"tyn": {"appId": "a", "version": 9}})),
        ("iceberg", _member("format-version", 0)),
        ("iceberg", _operation("appene")),
        ("hudi", _property("hoodie.table.version", -6)),
        ("paimon", _member("version", 0)),
        ("paimon", _member("commitKind", "APPENE")),
    ],
)
def test_nonsense_and_a_flipped_bit_are_damage(kind: str, changed: Callable[[bytes], bytes], tmp_path: Path) -> None:
    table = Table(kind, tmp_path)
    table.change(changed)
    require_damaged(table.place, *table.question)


def test_a_feature_for_writers_alone_changes_no_answer(tmp_path: Path) -> None:
    table = Table("delta", tmp_path)
    intact, _ = answer(*table.question)
    table.change(_protocol(writerFeatures=["v9"]))
    require_warning(table.place, intact, *table.question)


@pytest.mark.parametrize(
    "changed",
    [
        lambda data: b"Obj\2" + data[4:],
        lambda data: data.replace(b"\x0edeflate", b"\x08lzma"),
        lambda data: data.replace(b'"long"', b'"int9"'),
    ],
    ids=["version", "codec", "type"],
)
def test_metadata_of_hudi_in_a_later_avro_are_not_known(changed: Callable[[bytes], bytes], tmp_path: Path) -> None:
    table = Table("hudi", tmp_path)
    newest = max((table.path / ".hoodie").glob("*.commit"))
    told = json.loads(newest.read_bytes())
    told = {field["name"]: told.get(field["name"]) for field in COMMIT["fields"]} | {"version": 1}
    intact = container(COMMIT, [told], "deflate")
    newest.write_bytes(intact)
    code, _ = answer(*table.question)
    assert code != 5
    assert changed(intact) != intact
    newest.write_bytes(changed(intact))
    require_unknown(newest.name, *table.question)


def test_metadata_of_hudi_of_a_later_version_or_action_are_not_known(tmp_path: Path) -> None:
    table = Table("hudi", tmp_path / "version")
    newest = max((table.path / ".hoodie").glob("*.commit"))
    told = json.loads(newest.read_bytes())
    told = {field["name"]: told.get(field["name"]) for field in COMMIT["fields"]} | {"version": 2}
    newest.write_bytes(container(COMMIT, [told]))
    require_unknown(newest.name, *table.question)
    table = Table("hudi", tmp_path / "action")
    newest = max((table.path / ".hoodie").glob("*.commit"))
    newest.rename(newest.with_suffix(".mergecommit"))
    require_unknown("mergecommit", *table.question)


def test_compressed_metadata_of_iceberg_by_another_method_are_not_known(tmp_path: Path) -> None:
    table = Table("iceberg", tmp_path)
    plain = table.path / table.place
    packed = gzip.compress(plain.read_bytes())
    plain.unlink()
    (table.path / "metadata/v8.gz.metadata.json").write_bytes(packed[:2] + b"\x09" + packed[3:])
    require_unknown("v8.gz.metadata.json", *table.question)


def test_a_tag_of_paimon_of_a_later_version_changes_no_answer(tmp_path: Path) -> None:
    table = Table("paimon", tmp_path)
    intact, _ = answer(*table.question)
    (table.path / "tag").mkdir()
    tagged = json.loads((table.path / "snapshot/snapshot-2").read_bytes()) | {"version": 4}
    (table.path / "tag/tag-v1").write_text(json.dumps(tagged))
    require_warning("tag/tag-v1", intact, *table.question)


def _checkpoint_of(table: Table) -> Path:
    """Write a checkpoint of a Delta table's last version, of what the commits of the sample come to."""
    rows: list[dict[str, Any]] = []
    for path in sorted((table.path / "_delta_log").glob("*.json")):
        for line in path.read_text().splitlines():
            rows += [{k: v for k, v in json.loads(line).items() if k in ("txn", "metaData", "protocol")}]
    txn = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
    names = [("id", pa.string()), ("configuration", pa.map_(pa.string(), pa.string()))]
    protocol = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
    schema = pa.schema([("txn", txn), ("metaData", pa.struct(names)), ("protocol", protocol)])
    kept = [row for row in rows if row]
    for row in kept:
        if "metaData" in row:
            row["metaData"] = {"id": row["metaData"]["id"], "configuration": {}}
    to = table.path / "_delta_log/00000000000000000006.checkpoint.parquet"
    pq.write_table(pa.Table.from_pylist(kept, schema), to, compression="snappy")
    return to


def test_a_checkpoint_of_delta_of_a_later_parquet_counts_where_commits_are_gone(tmp_path: Path) -> None:
    table = Table("delta", tmp_path)
    intact, _ = answer(*table.question)
    found = _checkpoint_of(table)
    assert answer(*table.question)[0] == intact
    found.write_bytes(_with_footer(found.read_bytes(), lambda footer: put(footer, 1, 3)))
    require_warning(found.name, intact, *table.question)
    for path in (table.path / "_delta_log").glob("0*[0-5].json"):
        path.unlink()
    require_unknown(found.name, *table.question)


def _with_footer(data: bytes, change: Callable[[list[Any]], None]) -> bytes:
    """Change the footer of a Parquet file, which no checksum covers."""
    length = int.from_bytes(data[-8:-4], "little")
    footer, _ = read_struct(data, len(data) - 8 - length)
    change(footer)
    made = write_struct(footer)
    return data[: -8 - length] + made + len(made).to_bytes(4, "little") + data[-4:]


def _columns(footer: list[Any]) -> list[list[Any]]:
    return [get(column, 3) for group in get(footer, 4)[1] for column in get(group, 1)[1]]


def _every_column(number: int, value: Any) -> Callable[[list[Any]], None]:
    def change(footer: list[Any]) -> None:
        for about in _columns(footer):
            put(about, number, value)

    return change


def _every_element(number: int, value: Any, kind: int = I32) -> Callable[[list[Any]], None]:
    def change(footer: list[Any]) -> None:
        for element in get(footer, 2)[1][1:]:
            put(element, number, value, kind)

    return change


FOOTERS: dict[str, tuple[int, Callable[[int], Callable[[list[Any]], None]]]] = {
    "version": (2, lambda n: lambda footer: put(footer, 1, n)),
    "type": (7, lambda n: _every_element(1, n)),
    "repetition": (2, lambda n: _every_element(3, n)),
    "converted": (21, lambda n: _every_element(6, n)),
    "logical": (18, lambda n: _every_element(10, [[n, STRUCT, []]], STRUCT)),
    "column-type": (7, lambda n: _every_column(1, n)),
    "encoding": (9, lambda n: _every_column(2, (I32, [n]))),
    "codec": (7, lambda n: _every_column(4, n)),
}
"""Fields of parquet.thrift with their newest numbers."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    write(folder, "checkpoints", [checkpoint("agg", n, time=1000 * n, kind="local") for n in range(1, 4)], "old.jsonl")
    rows = [checkpoint("agg", n, time=1000 * n, kind="local") for n in range(4, 6)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "checkpoints/part.parquet", compression="snappy")
    assert answer("recovery-line", folder)[0] == 0
    return folder


def _try_footers(run: Path, row: str, numbers: list[int]) -> None:
    file = run / "checkpoints/part.parquet"
    intact = file.read_bytes()
    for number in numbers:
        file.write_bytes(_with_footer(intact, FOOTERS[row][1](number)))
        require_unknown("checkpoints/part.parquet", "recovery-line", run)


@pytest.mark.parametrize("row", FOOTERS)
def test_a_parquet_file_with_the_next_number_is_not_known(row: str, run: Path) -> None:
    _try_footers(run, row, [FOOTERS[row][0] + 1])


@pytest.mark.slow
@pytest.mark.parametrize("row", FOOTERS)
def test_no_later_number_of_parquet_is_known(row: str, run: Path) -> None:
    _try_footers(run, row, later(FOOTERS[row][0]))


@pytest.mark.parametrize("row", ["type", "codec", "column-type"])
def test_a_negative_number_of_parquet_is_damage(row: str, run: Path) -> None:
    file = run / "checkpoints/part.parquet"
    file.write_bytes(_with_footer(file.read_bytes(), FOOTERS[row][1](-1)))
    require_damaged("checkpoints/part.parquet", "recovery-line", run)


@pytest.mark.parametrize("mark", [b"PARE", b"PAR2", b"PAR9"])
def test_another_mark_of_parquet_is_not_known(mark: bytes, run: Path) -> None:
    file = run / "checkpoints/part.parquet"
    file.write_bytes(file.read_bytes()[:-4] + mark)
    require_unknown("checkpoints/part.parquet", "recovery-line", run)


def test_a_codec_that_arrow_does_not_read_is_not_known(run: Path) -> None:
    file = run / "checkpoints/part.parquet"
    file.write_bytes(_with_footer(file.read_bytes(), _every_column(4, 3)))  # LZO
    require_unknown("checkpoints/part.parquet", "recovery-line", run)


@pytest.mark.parametrize(("field", "newest"), [("type", 3), ("encoding", 9)])
def test_a_page_of_a_later_kind_is_not_known(field: str, newest: int, run: Path) -> None:
    file = run / "checkpoints/part.parquet"
    data = file.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer, _ = read_struct(data, len(data) - 8 - length)
    for about in sorted(_columns(footer), key=lambda about: -get(about, 9)):
        at = get(about, 9)
        header, end = read_struct(data, at)
        put(header if field == "type" else get(header, 5), 1 if field == "type" else 2, newest + 1)
        made = write_struct(header)
        if len(made) == end - at:
            data = data[:at] + made + data[end:]
    assert data != file.read_bytes()
    file.write_bytes(data)
    require_unknown("checkpoints/part.parquet", "recovery-line", run)


def test_a_checksum_does_not_make_damage_of_a_later_version(run: Path) -> None:
    """The file's own `.crc` is that of the file before the number was changed, by two bits; one bit is damage."""
    file = run / "checkpoints/part.parquet"
    intact = file.read_bytes()
    (file.parent / ".part.parquet.crc").write_bytes(_hadoop_sums(intact))
    assert answer("recovery-line", run)[0] == 0
    file.write_bytes(_with_footer(intact, FOOTERS["version"][1](3)))
    require_damaged("checkpoints/part.parquet", "recovery-line", run)
    changed = _with_footer(intact, FOOTERS["version"][1](4))
    file.write_bytes(changed)
    require_unknown("checkpoints/part.parquet", "recovery-line", run)
    (file.parent / ".part.parquet.crc").write_bytes(_hadoop_sums(changed))
    require_unknown("checkpoints/part.parquet", "recovery-line", run)


def _hadoop_sums(data: bytes) -> bytes:
    import zlib

    sums = (zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512))
    return b"crc\0" + (512).to_bytes(4, "big") + b"".join(one.to_bytes(4, "big") for one in sums)

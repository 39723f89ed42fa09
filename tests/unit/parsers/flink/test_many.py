"""Many small metadata files read as one batch: the rows, damage and counts of each read alone."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Scan, Scanned, Split
from cklog.model.options import SPLIT_BYTES
from cklog.parsers.flink import metadata
from cklog.parsers.flink.parser import Flink
from cklog.runs.snapshots.verdicts import WITH_PATH
from cklog.storage import Root
from tests.builders import flink as fb

_FILES = 400
_DAMAGED = {7: "cut", 8: "longer", 100: "flipped", 399: "empty", 250: "future"}


def _root(folder: Path) -> tuple[Split, ...]:
    """Write checkpoints, some of which are damaged and one large, and return their splits."""
    draw = random.Random(5)
    for number in range(_FILES):
        names = range(4000) if number == 50 else range(draw.randint(0, 9))
        files = b"".join(fb.utf(f"{n:06}.sst") + fb.absolute(f"file:/x/shared/{n}", n).data for n in names)
        empty = fb.incremental(fb.inline(b"meta")).data
        end = len(fb.i32(0, 0) + fb.utf("id"))
        keyed = fb.Built(empty[:-end] + fb.i32(len(names)) + files + fb.i32(0) + fb.utf("id"))
        operator = fb.operator(6, [fb.subtask(6, keyed=keyed)], uid="count", name="Count")
        data = fb.metadata(6, [operator], checkpoint=number + 1).data
        how = _DAMAGED.get(number)
        data = {
            "cut": data[:-9],
            "longer": data + b"\\0",
            "flipped": bytes([data[0] ^ 1]) + data[1:],
            "empty": b"",
            "future": data[:4] + fb.i32(99) + data[8:],
        }.get(how or "", data)
        place = folder / ("0" * 31 + "1") / f"chk-{number + 1}"
        place.mkdir(parents=True)
        (place / "_metadata").write_bytes(data)
    return tuple(Flink(Root(str(folder))).splits("snapshots", SPLIT_BYTES))


def _scanned(splits: tuple[Split, ...], batches: list[int]) -> Scanned:
    def kernel(batch: pa.RecordBatch) -> pa.RecordBatch:
        batches.append(batch.num_rows)
        return batch

    return LocalEngine().run(Scan(splits, "snapshots", tuple(WITH_PATH.names), kernel, WITH_PATH, None))


def _by_file(found: Scanned) -> dict[str, list[dict[str, Any]]]:
    """The rows of each file, in their order."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in found.table.to_pylist():
        rows.setdefault(row["_path"], []).append(row)
    return rows


def test_many_files_are_what_each_is_alone(tmp_path: Path) -> None:
    splits = _root(tmp_path)
    assert {split.together for split in splits} == {metadata.TOGETHER}
    many, one = list[int](), list[int]()
    found = _scanned(splits, many)
    alone = _scanned(tuple(replace(split, together="") for split in splits), one)
    assert len(many) <= 8 < len(one)
    assert found.damage == alone.damage
    assert len(found.damage) == len(_DAMAGED)
    assert found.records == alone.records
    assert _by_file(found) == _by_file(alone)
    assert len(_by_file(found)) == _FILES - len(_DAMAGED)


def test_a_file_that_changed_since_it_was_listed_is_read_alone(tmp_path: Path) -> None:
    """One is longer now, of which only what was listed is read, and one is cut."""
    splits = _root(tmp_path)
    with Path(splits[0].uri).open("ab") as file:
        file.write(b"more")
    Path(splits[1].uri).write_bytes(Path(splits[1].uri).read_bytes()[:-1])
    found = _scanned(splits, [])
    assert found.records[splits[0].path] > 0
    (cut,) = [damage for damage in found.damage if damage.path == splits[1].path]
    assert cut.id == "unreadable-file"

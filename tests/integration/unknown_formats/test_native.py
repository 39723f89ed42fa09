"""Run folders of a later version, with later words in their records, and in files that are not known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders.native import checkpoint, line, write
from tests.conftest import SAMPLES
from tests.reading.unknown_formats import answer, later, require_damaged, require_unknown


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    write(folder, "checkpoints", [checkpoint("agg", n, kind="local") for n in range(1, 4)])
    return folder


@pytest.mark.parametrize("version", [2, *(pytest.param(one, marks=pytest.mark.slow) for one in later(2))])
def test_a_run_folder_of_a_later_version_is_not_known(version: int, run: Path) -> None:
    (run / "job.json").write_text(json.dumps({"version": 1, "operators": [{"name": "agg"}]}))
    assert answer("recovery-line", run)[0] == 0
    (run / "job.json").write_text(json.dumps({"version": version, "operators": [{"name": "agg", "layout": []}]}))
    require_unknown("job.json", "recovery-line", run)


def test_a_version_of_the_job_itself_is_no_version_of_the_folder(run: Path) -> None:
    (run / "job.json").write_text(json.dumps({"version": "2.4.1", "operators": [{"name": "agg"}]}))
    assert answer("recovery-line", run)[0] == 0


def test_a_kind_of_checkpoint_that_is_not_known_leaves_the_line_open(run: Path) -> None:
    with (run / "checkpoints/part.jsonl").open("ab") as file:
        file.write(line(checkpoint("agg", 4, kind="unaligned")))
    require_unknown("checkpoints/part.jsonl", "recovery-line", run)


def test_a_kind_one_bit_away_is_damage(run: Path) -> None:
    with (run / "checkpoints/part.jsonl").open("ab") as file:
        file.write(line(checkpoint("agg", 4, kind="locam")))
    require_damaged("checkpoints/part.jsonl", "recovery-line", run)


@pytest.mark.parametrize(("kind", "damaged"), [("unaligned", False), ("locam", True)])
def test_a_kind_in_a_parquet_file_is_told_as_in_lines(kind: str, damaged: bool, run: Path) -> None:
    rows = [checkpoint("agg", 4, kind="local"), checkpoint("agg", 5, kind=kind)]
    pq.write_table(pa.Table.from_pylist(rows), run / "checkpoints/more.parquet")
    (require_damaged if damaged else require_unknown)("checkpoints/more.parquet", "recovery-line", run)


WORDS = {
    "raw-events": ("events/route.jsonl", b'"event":"send"', b'"event":"barrier"'),
    "cec-aggregate": ("outputs/agg1/part-00000.jsonl", b'"type":"result"', b'"type":"retract"'),
}


@pytest.mark.parametrize("sample", WORDS)
def test_a_word_of_a_later_version_leaves_the_answer_open(sample: str, tmp_path: Path) -> None:
    name, old, new = WORDS[sample]
    shutil.copytree(SAMPLES / sample, tmp_path / "run")
    file = tmp_path / "run" / name
    lines = file.read_bytes().splitlines(keepends=True)
    found = max(i for i, one in enumerate(lines) if old in one)
    record = json.loads(lines[found].replace(old, new))
    lines[found] = line({key: value for key, value in record.items() if key != "crc32c"})
    file.write_bytes(b"".join(lines))
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    require_unknown(name, "recovery-line", tmp_path / "run")


def _of_version_4(path: Path) -> None:
    """Let a Parquet file say that its version is 4, two bits from 2: field 1 of its footer."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert data[start] == 0x15
    path.write_bytes(data[: start + 1] + b"\x08" + data[start + 2 :])


@pytest.mark.parametrize("table", ["checkpoints", "channels"])
def test_a_table_in_a_later_parquet_leaves_the_line_open(table: str, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "uncoordinated-join-parquet", tmp_path / "run")
    for path in sorted((tmp_path / "run" / table).glob("*.parquet"))[:1]:
        _of_version_4(path)
        require_unknown(f"{table}/{path.name}", "recovery-line", tmp_path / "run")


def test_a_queue_in_a_later_parquet_is_not_called_damaged(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "cec-aggregate-parquet", tmp_path / "run")
    _of_version_4(tmp_path / "run/outputs/agg1/part-00000.parquet")
    require_unknown("outputs/agg1/part-00000.parquet", "recovery-line", tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("table", ["checkpoints", "channels", "events"])
def test_every_parquet_file_of_a_run_may_be_of_a_later_version(table: str, tmp_path: Path) -> None:
    """Of events the line is found without, and what was lost is not."""
    for path in sorted((SAMPLES / "uncoordinated-join-parquet" / table).glob("*.parquet")):
        run = tmp_path / path.stem
        shutil.copytree(SAMPLES / "uncoordinated-join-parquet", run)
        _of_version_4(run / table / path.name)
        for command in ("impact",) if table == "events" else ("recovery-line", "impact", "inspect"):
            require_unknown(f"{table}/{path.name}", command, run)

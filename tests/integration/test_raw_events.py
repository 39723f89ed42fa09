"""The sample of raw events on both engines, as Parquet too, and with every file damaged."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.engine.scan import Engine
from cklog.model.question import Question
from cklog.model.schemas import EVENTS
from cklog.render.formats import render
from cklog.run import Options, Run, open_run
from tests.conftest import SAMPLES
from tests.oracles.folder_damage import injure

SAMPLE = SAMPLES / "raw-events"


def answer(folder: Path, split: int = 1 << 26) -> str:
    with open_run(str(folder), Options(split_bytes=split)) as run:
        return render(run.recovery_line(Question(explain=True)), "json")


def result(text: str) -> Any:
    found = json.loads(text)
    return found["result"], [{**f, "where": None} for f in found["findings"]]


@pytest.mark.spark
def test_spark_and_this_process_read_the_same(spark: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    local = answer(SAMPLE)
    monkeypatch.setattr(Run, "engine_for", lambda _run, _size: spark)
    assert answer(SAMPLE, split=5000) == local


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("shuffled", [False, True])
def test_parquet_files_of_any_number_and_order_give_the_same_line(tmp_path: Path, files: int, shuffled: bool) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SAMPLE, copy, ignore=shutil.ignore_patterns("events"))
    rows = [json.loads(line) for path in sorted((SAMPLE / "events").glob("*.jsonl")) for line in path.open()]
    if shuffled:
        random.Random(3).shuffle(rows)
    (copy / "events").mkdir()
    for i in range(files):
        table = pa.Table.from_pylist([{f.name: r.get(f.name) for f in EVENTS} for r in rows[i::files]], schema=EVENTS)
        pq.write_table(table, copy / "events" / f"part-{i}.parquet", row_group_size=50)
    assert result(answer(copy, split=1000)) == result(answer(SAMPLE))


def test_the_order_of_files_serves_where_no_event_is_numbered(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SAMPLE, copy, ignore=shutil.ignore_patterns("events"))
    (copy / "events").mkdir()
    for path in sorted((SAMPLE / "events").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.open()]
        for i in range(0, len(lines), 10):  # log-2 comes before log-10
            kept = [{k: v for k, v in row.items() if k not in ("lsn", "crc32c")} for row in lines[i : i + 10]]
            text = "".join(json.dumps(row) + "\n" for row in kept)
            (copy / "events" / f"{path.stem}-{i // 10}.jsonl").write_text(text, encoding="utf-8")
    assert result(answer(copy)) == result(answer(SAMPLE))


@pytest.mark.slow
def test_damage_never_makes_the_line_newer_or_goes_unsaid(tmp_path: Path) -> None:
    injure("raw-events", tmp_path, seed=7, rounds=6)


@pytest.mark.slow
def test_much_damage_does_no_more(tmp_path: Path) -> None:
    injure("raw-events", tmp_path, seed=11, rounds=60)

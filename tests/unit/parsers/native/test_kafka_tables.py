"""A run whose tables are Kafka partitions: the same answers as from JSON lines, and damage that costs only itself."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Damage, Engine
from cklog.graphs.selection import GraphQuestion
from cklog.model.question import InspectQuestion, Question
from cklog.model.schemas import TABLES
from cklog.model.verdict import Answer
from cklog.parsers.kafka import table as kafka_table
from cklog.parsers.kafka.batches import header
from cklog.parsers.kafka.table import own_place
from cklog.parsers.native.parser import Native
from cklog.parsers.tables.records import NotARecord
from cklog.run import Options, Run, open_run
from cklog.storage import Root
from tests.builders import kafka as kb
from tests.builders.kafka import Log, Row, batch
from tests.conftest import SAMPLES
from tests.examples import examples
from tests.program import cklog
from tests.reading.tables import scan_whole

RUNS = ["domino-cycle", "uncoordinated-join", "raw-events"]
PLACES = ("checkpoints", "channels", "events")


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def partition(folder: Path, lines: Sequence[bytes], chance: random.Random, largest: int = 9) -> list[Log]:
    """Lines as a partition: batches of any codec, in segments, with transactions that failed in between."""
    log = Log(interval=500)
    made, offset = [log], 0
    rest = list(lines)
    while rest:
        if len(log.data) > 9000:
            log = Log(base=offset, interval=500)
            made.append(log)
        count = chance.randrange(1, largest)
        rows, rest = [Row(line) for line in rest[:count]], rest[count:]
        codec = chance.choice(sorted(kb.CODECS))
        kind = chance.random()
        if kind < 0.2:  # a try that was aborted, and again with success
            log.add(batch(offset, rows, codec, kb.TRANSACTIONAL, 5))
            log.add(kb.marker(offset + len(rows), kb.ABORT, 5))
            offset += len(rows) + 1
        flags, producer = (kb.TRANSACTIONAL, 6) if kind < 0.4 else (0, -1)
        log.add(batch(offset, rows, codec, flags, producer))
        offset += len(rows)
        if producer >= 0:
            log.add(kb.marker(offset, kb.COMMIT, producer))
            offset += 1
    for each in made:
        each.write(folder)
    return made


def as_kafka(sample: str, folder: Path, seed: int = 1, places: Sequence[str] = PLACES) -> Path:
    """A sample with each of its files as a partition of one topic of the place."""
    chance = random.Random(seed)
    for place in PLACES:
        for i, path in enumerate(sorted((SAMPLES / sample / place).glob("*.jsonl"))):
            if place in places:
                partition(folder / place / f"{place[:2]}-{i}", lines_of(path), chance)
            else:
                (folder / place).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / place / path.name)
    shutil.copyfile(SAMPLES / sample / "job.json", folder / "job.json")
    return folder


ASKED: dict[str, Callable[[Run], Answer[Any]]] = {
    "line": lambda run: run.recovery_line(Question(explain=True)),
    "replay": lambda run: run.replay(Question()),
    "inspect": lambda run: run.inspect(InspectQuestion(metrics=True)),
    "graph": lambda run: run.graph(Question(), GraphQuestion()),
}


def told(folder: Path, question: str, **options: Any) -> Answer[Any]:
    with open_run(str(folder), Options(**options)) as run:
        return ASKED[question](run)


def same_but_for_inputs(a: Answer[Any], b: Answer[Any]) -> None:
    assert (a.verdict, a.exit_code) == (b.verdict, b.exit_code)
    assert a.findings == b.findings
    left, right = a.result, b.result
    if isinstance(left, dict):
        left, right = [{name: value for name, value in result.items() if name != "formats"} for result in (left, right)]
    assert left == right


@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize("sample", RUNS)
def test_the_same_run_has_the_same_answers(tmp_path: Path, sample: str, question: str) -> None:
    folder = as_kafka(sample, tmp_path)
    found = told(folder, question)
    if question == "inspect":
        assert {row.format for row in found.inputs if row.path != "job.json"} == {"kafka"}
    same_but_for_inputs(found, told(SAMPLES / sample, question))


@pytest.mark.quarter
@pytest.mark.spark
@pytest.mark.parametrize("sample", RUNS)
def test_spark_reads_the_same(tmp_path: Path, sample: str, spark: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "engine_for", lambda self, size: spark)
    same_but_for_inputs(told(as_kafka(sample, tmp_path), "line"), told(SAMPLES / sample, "line"))


@given(st.sampled_from(RUNS), st.integers(0, 1 << 20), st.integers(400, 9000), st.sets(st.sampled_from(PLACES)))
@settings(max_examples=examples(12))
def test_nothing_depends_on_batches_segments_and_splits(sample: str, seed: int, step: int, places: set[str]) -> None:
    with TemporaryDirectory() as name:
        folder = as_kafka(sample, Path(name), seed, sorted(places))
        found = told(folder, "line", split_bytes=step)
        assert found.inputs == told(folder, "line").inputs
    same_but_for_inputs(found, told(SAMPLES / sample, "line"))


def unnumbered(path: Path) -> list[bytes]:
    """Events without their local numbers: the order of the log is all there is."""
    rows = [json.loads(line) for line in lines_of(path)]
    return [json.dumps({k: v for k, v in row.items() if k not in ("lsn", "crc32c")}).encode() for row in rows]


@pytest.mark.parametrize("largest", [2, 9, 400])
def test_events_without_numbers_are_in_the_order_of_the_log(tmp_path: Path, largest: int) -> None:
    for kind in ("lines", "kafka"):
        (tmp_path / kind / "events").mkdir(parents=True)
        shutil.copyfile(SAMPLES / "raw-events" / "job.json", tmp_path / kind / "job.json")
    for i, path in enumerate(sorted((SAMPLES / "raw-events" / "events").glob("*.jsonl"))):
        lines = unnumbered(path)
        (tmp_path / "lines" / "events" / path.name).write_bytes(b"".join(line + b"\n" for line in lines))
        partition(tmp_path / "kafka" / "events" / f"ev-{i}", lines, random.Random(3), largest)
    found = told(tmp_path / "kafka", "line", split_bytes=700)
    same_but_for_inputs(found, told(tmp_path / "lines", "line"))
    assert any(entry.checkpoint for entry in found.result.line)


# Records one by one


def event(seq: int, **more: Any) -> dict[str, Any]:
    return {"event": "send", "operator": "a", "channel": "a/0->b/0", "seq": seq, **more}


def rows(*found: dict[str, Any]) -> list[Row]:
    return [Row(json.dumps(one).encode()) for one in found]


def written(folder: Path, *batches: bytes, place: str = "events/ev-0", base: int = 0) -> Log:
    log = Log(base=base)
    for one in batches:
        log.add(one)
    log.write(folder / place)
    return log


def scanned(folder: Path, table: str = "events", step: int = 1 << 20) -> tuple[list[dict[str, Any]], list[Damage]]:
    """All rows of a table, in order of their places, and the damage."""
    native = Native(Root(str(folder)))
    fields = [*TABLES[table], ("_path", pa.string()), ("_offset", pa.int64())]
    found = scan_whole(native, table, pa.schema(fields), step)
    order = sorted(found.table.to_pylist(), key=lambda row: (row["_path"], row["_offset"]))
    return order, list(found.damage)


def damages(found: Sequence[Damage]) -> list[tuple[str, int | None, int]]:
    return [(d.id, d.offset, d.count) for d in found]


FIRST = f"events/ev-0/{0:020}.log"


def test_events_take_the_bytes_of_their_batch_one_by_one(tmp_path: Path) -> None:
    log = written(tmp_path, batch(0, rows(*map(event, range(3)))), batch(3, rows(*map(event, range(3, 5)))))
    found, damage = scanned(tmp_path)
    assert damage == []
    second = log.starts[1]
    assert [(r["seq"], r["_path"], r["_offset"]) for r in found] == [
        *[(i, FIRST, i) for i in range(3)],
        *[(3 + i, FIRST, second + i) for i in range(2)],
    ]


def test_other_records_are_placed_at_their_batch(tmp_path: Path) -> None:
    messages = [{"channel": "a/0->b/0", "seq": i} for i in range(4)]
    log = written(tmp_path, batch(0, rows(*messages[:2])), batch(2, rows(*messages[2:])), place="channels/log-0")
    found, _ = scanned(tmp_path, "channels")
    assert [(r["seq"], r["_offset"]) for r in found] == [(0, 0), (1, 0), (2, log.starts[1]), (3, log.starts[1])]
    assert [row["bytes"] for row in found] == [None] * 4


def test_an_event_that_its_batch_has_no_byte_for_needs_a_number() -> None:
    head = header(batch(0, rows(event(0))))
    assert [own_place(event(0), head, nth) for nth in (0, 1, head.size - 1)] == [0, 1, head.size - 1]
    assert own_place(event(0, lsn=0), head, head.size + 5) == head.size - 1
    with pytest.raises(NotARecord, match=f"no place for it in the {head.size} bytes"):
        own_place(event(0), head, head.size)


def test_what_was_not_committed_does_not_count(tmp_path: Path) -> None:
    def of(offset: int, producer: int) -> bytes:
        return batch(offset, rows(event(offset)), flags=kb.TRANSACTIONAL, producer=producer)

    made = [of(0, 1), of(1, 2), kb.marker(2, kb.ABORT, 1), of(3, 1), kb.marker(4, kb.COMMIT, 1), of(5, 2)]
    log = written(tmp_path, *made, batch(6, rows(event(6))))
    found, damage = scanned(tmp_path)
    assert [row["seq"] for row in found] == [3, 6]
    assert damages(damage) == [("open-transaction", log.starts[i], 1) for i in (1, 5)]
    assert scanned(tmp_path, step=1) == (found, damage)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (Row(None), "a null value"),
        (Row(b"[1]"), "not a JSON object"),
        (Row(b"\xff"), "not UTF-8"),
        (Row(b'{"event":"send"}'), "no field operator"),
        (Row(b'{"event":"sent","operator":"a"}'), "event is"),
        (Row(b'{"event":"send","operator":"a","crc32c":"00000000"}'), "crc32c is 00000000"),
        (Row(b'{"type":"emit","ts":1}', headers=[("cec.type", b"emit")]), "no field event"),
    ],
)
def test_what_is_no_record_is_named(tmp_path: Path, row: Row, why: str) -> None:
    written(tmp_path, batch(0, [*rows(event(0)), row, *rows(event(2))]))
    found, damage = scanned(tmp_path)
    assert [row["seq"] for row in found] == [0, 2]
    assert damages(damage) == [("bad-record", 1, 1)]
    assert damage[0].detail.startswith("Kafka offset 1: ")
    assert why in damage[0].detail


@given(st.integers(0, 1 << 20), st.sampled_from(PLACES), st.booleans())
@settings(max_examples=examples(30))
def test_rows_at_once_are_rows_one_by_one(seed: int, place: str, spoilt: bool) -> None:
    """Also beside lines of several shapes, records that are none, and values of several lines."""
    chance = random.Random(seed)
    path = sorted((SAMPLES / "raw-events" / "events").glob("*.jsonl"))[0]
    if place != "events":
        path = sorted((SAMPLES / "uncoordinated-join" / place).glob("*.jsonl"))[0]
    lines = lines_of(path)
    if spoilt:
        for other in (b"[]", b"{}", b"{", b'{"seq":-1}', lines[0].replace(b",", b",\n"), b' {"seq":1}', b" ", b"\xff"):
            lines.insert(chance.randrange(len(lines)), other)
    with TemporaryDirectory() as name:
        partition(Path(name) / place / "t-0", lines, chance)
        at_once = scanned(Path(name), place)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kafka_table, "rows_at_once", lambda *_: None)
            one_by_one = scanned(Path(name), place)
    assert key(at_once[0]) == key(one_by_one[0])
    assert [d for d in at_once[1] if d.id != "bad-record"] == [d for d in one_by_one[1] if d.id != "bad-record"]
    assert damages(at_once[1]) == damages(one_by_one[1])
    assert len(at_once[0]) + sum(d.count for d in at_once[1]) == len(lines)


def key(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def two_segments(folder: Path, place: str = "events/ev-0") -> tuple[Log, Log]:
    one = written(folder, batch(0, rows(event(0))), batch(1, rows(event(1))), place=place)
    return one, written(folder, batch(2, rows(event(2))), place=place, base=2)


def of_table(folder: Path, table: str = "events") -> list[tuple[str, str, str]]:
    return [(f.id, f.severity, f.where[0].path) for f in Native(Root(str(folder))).findings(table)]


def test_a_gap_between_segments_is_a_loss_of_events(tmp_path: Path) -> None:
    two_segments(tmp_path)
    assert of_table(tmp_path) == []
    three = written(tmp_path, batch(7, rows(event(7))), base=7)
    assert of_table(tmp_path) == [("missing-events", "error", f"events/ev-0/{three.base:020}.log")]
    shutil.copytree(tmp_path / "events" / "ev-0", tmp_path / "channels" / "log-0")
    assert of_table(tmp_path, "channels") == [("offset-jump", "warning", f"channels/log-0/{7:020}.log")]


def test_a_gap_inside_a_segment_is_a_loss_of_events(tmp_path: Path) -> None:
    log = written(tmp_path, batch(0, rows(event(0))), batch(3, rows(event(3))))
    found, damage = scanned(tmp_path)
    assert len(found) == 2
    assert damages(damage) == [("missing-events", log.starts[1], 2)]


def test_a_torn_tail_and_a_wrong_checksum_cost_their_batch(tmp_path: Path) -> None:
    log = written(tmp_path, *(batch(i, rows(event(i))) for i in range(4)))
    broken = bytearray(log.data[:-1])
    broken[log.starts[1] + 70] ^= 1
    (tmp_path / FIRST).write_bytes(broken)
    found, damage = scanned(tmp_path)
    assert [row["seq"] for row in found] == [0, 2]
    assert damages(damage) == [("corrupt-batch", log.starts[1], 1), ("torn-tail", log.starts[3], 1)]


def test_which_files_are_segments_of_a_table(tmp_path: Path) -> None:
    log, _ = two_segments(tmp_path, "events/deep/in-2/ev-0")
    for place in ("events", "events/ev", "events/_old/ev-0", "events/.tmp-0", "state/ev-0", "system/ev-0", "ev-0"):
        log.write(tmp_path / place)
    (tmp_path / "events/deep/in-2/ev-0" / f"{3:020}.log").write_bytes(b"")
    native = Native(Root(str(tmp_path)))
    deep = "events/deep/in-2/ev-0"
    assert [(row.path, row.format) for row in native.inputs("events", {f"{deep}/{2:020}.log": 1})] == [
        ("events/", "kafka")
    ]
    assert native.inputs("events", {f"{deep}/{2:020}.log": 1})[0].records == 1
    assert native.bytes_of("events") == sum(p.stat().st_size for p in (tmp_path / deep).glob("*.log"))
    assert len(scanned(tmp_path)[0]) == 3
    assert of_table(tmp_path) == []
    assert [native.has(table) for table in PLACES] == [False, False, True]


def test_a_segment_that_cannot_be_opened_was_not_read(tmp_path: Path) -> None:
    two_segments(tmp_path)
    native = Native(Root(str(tmp_path)))
    os.remove(tmp_path / FIRST)
    found = scan_whole(native, "events", pa.schema([TABLES["events"].field("seq")]), 1)
    assert found.table["seq"].to_pylist() == [2]
    assert [(d.id, d.path) for d in found.damage] == [("unreadable-file", FIRST)]
    assert native.findings("events") == ()


@pytest.mark.parametrize("place", [0, -1])
def test_only_the_last_segment_of_a_queue_may_hold_nothing(tmp_path: Path, place: int) -> None:
    """A log is rolled when there is a record for the next segment; one that was cut to 0 is no beginning of the log."""
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "cec-aggregate-kafka", folder)
    segments = sorted((folder / "outputs" / "agg1" / "agg1-out-0").glob("*.log"))
    segments[place].write_bytes(b"")
    answer = json.loads(cklog("inspect", folder, "--json").out)
    told = [f["id"] for f in answer["findings"] if f["subject"].endswith(segments[place].name)]
    assert ("empty-file" in told) == (place == 0)

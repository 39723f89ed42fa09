"""A line whose topic was deleted and created again: exports and impact say what the error says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.kafka_broker import TopicLog
from tests.program import cklog

PLANNED = 1_700_000_000_000
"""When the query planned its batches, in ms."""

EXPORTS = {
    "kafka-csv": "t,0,{}\n",
    "streams-csv": "t,0,{}\n",
    "kafka-get-offsets": "t:0:{}\n",
    "kafka-delete-records": '{{"partitions": [{{"topic": "t", "partition": 0, "offset": {}}}], "version": 1}}\n',
    "spark-offsets": '{{"t": {{"0": {}}}}}\n',
    "flink-offsets": "partition:0,offset:{}\n",
    "csv": "source,t-0,{},,,,\n",
    "kafka-to-offset": "--topic t:0 --to-offset {} ",
    "kcat": "-t t -p 0 -o {} ",
    "flink-sql": "'scan.startup.specific-offsets' = 'partition:0,offset:{}'",
}
"""What each format writes of an offset, as its tool takes it."""


def asked(folder: Path, time: int, records: int = 9) -> tuple[Path, ...]:
    """A query that has read t-0 up to offset 3, beside a log of so many records of a time."""
    head = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":%d,"conf":{}}\n' % PLANNED
    for n, offset in enumerate((2, 3)):
        for log, data in (
            ("offsets", head + b'{"t":{"0":%d}}' % offset),
            ("commits", b'v1\n{"nextBatchWatermarkMs":0}'),
        ):
            path = folder / "ck" / log / str(n)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    (folder / "ck/metadata").write_text('{"id":"q"}')
    topic = TopicLog()
    topic.data(records, time=time)
    topic.write(folder / "kafka" / "t-0")
    return folder / "ck", Path("--kafka"), folder / "kafka"


@pytest.mark.parametrize("form", EXPORTS)
@pytest.mark.parametrize(("time", "offset"), [(PLANNED + 1, 0), (PLANNED, 3)])
def test_every_export_starts_where_the_error_says(tmp_path: Path, form: str, time: int, offset: int) -> None:
    ended = cklog("replay", *asked(tmp_path, time), "--format", form)
    assert ended.code == (0 if offset else 3)
    assert EXPORTS[form].format(offset) in ended.out


@pytest.mark.parametrize("form", EXPORTS)
def test_every_export_starts_at_the_start_of_a_new_topic_that_is_still_shorter(tmp_path: Path, form: str) -> None:
    """None of its two records was read: tools that clamp offset 3 to the log's end would skip them."""
    ended = cklog("replay", *asked(tmp_path, PLANNED + 1, records=2), "--format", form)
    assert ended.code == 3
    assert EXPORTS[form].format(0) in ended.out


def test_what_a_reader_does_beyond_the_end_of_a_new_topic_is_not_known(tmp_path: Path) -> None:
    found = json.loads(cklog("impact", *asked(tmp_path, PLANNED + 1, records=2), "--json").out)["result"]
    rows = [row for row in found["intervals"] if row["why"] == "another-log"]
    assert [(row["fate"], row["from"], row["to"], row["count"]) for row in rows] == [("may-be-missing", 0, 2, 2)]


@pytest.mark.parametrize(("time", "lost"), [(PLANNED + 1, [("missing", 0, 3, 3)]), (PLANNED, [])])
def test_the_impact_counts_what_nobody_has_read(
    tmp_path: Path, time: int, lost: list[tuple[str, int, int, int]]
) -> None:
    found = json.loads(cklog("impact", *asked(tmp_path, time), "--json").out)["result"]
    rows = [row for row in found["intervals"] if row["why"] == "another-log"]
    assert [(row["fate"], row["from"], row["to"], row["count"]) for row in rows] == lost
    headline = cklog("impact", *asked(tmp_path, time)).out.splitlines()[0]
    assert headline.startswith("Missing: results of t-0 from 0 to 3" if lost else "No result is known")

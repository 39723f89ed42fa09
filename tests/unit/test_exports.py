"""Exports: exactly what each tool accepts, and a refusal where it would misread."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cklog.errors import UsageError
from cklog.exports import exports
from cklog.model import Answer, RecoveryLine, SourceOffset


def answer(*sources: tuple[str, Any, str]) -> Answer:
    rows = tuple(SourceOffset(name, offset, operator, 0) for name, offset, operator in sources)
    line = RecoveryLine(True, "uncoordinated", (), (), rows, (), (), (), False)
    return Answer("replay", "ok", 0, (), (), line)


PLAIN = answer(("t-10", 5, "src"), ("t-2", 42, "src"), ("a-b-0", 7, "src"))


def test_kafka_reset_offsets_takes_three_columns_without_a_header() -> None:
    assert exports()["kafka-csv"](PLAIN) == "a-b,0,7\nt,2,42\nt,10,5\n"


def test_kafka_delete_records_takes_version_1() -> None:
    told = json.loads(exports()["kafka-delete-records"](answer(("t-0", 50, "s"))))
    assert told == {"partitions": [{"topic": "t", "partition": 0, "offset": 50}], "version": 1}


def test_flink_takes_no_spaces_and_one_topic() -> None:
    two = answer(("t-1", 300, "s"), ("t-0", 42, "s"))
    assert exports()["flink-offsets"](two) == "partition:0,offset:42;partition:1,offset:300\n"
    with pytest.raises(UsageError, match="2 topics"):
        exports()["flink-offsets"](PLAIN)
    assert exports(topic="t")["flink-offsets"](PLAIN) == "partition:2,offset:42;partition:10,offset:5\n"


def test_a_source_at_its_start_is_earliest_where_there_is_a_word_for_it() -> None:
    fresh = answer(("t-0", None, "s"))
    assert exports()["spark-offsets"](fresh) == '{"t": {"0": -2}}\n'
    assert "-t t -p 0 -o beginning" in exports()["kcat"](fresh)
    for name in ("kafka-csv", "kafka-delete-records", "flink-offsets"):
        with pytest.raises(UsageError, match="has no word"):
            exports()[name](fresh)


@pytest.mark.parametrize("source", ["source/0", "no partition-x", "t,u-0", "t-١", "t-", "-0", "a" * 250 + "-0"])
def test_what_is_no_topic_partition_is_refused(source: str) -> None:
    with pytest.raises(UsageError, match="no Kafka topic-partition"):
        exports()["kafka-csv"](answer((source, 1, "s")))


@pytest.mark.parametrize("offset", [-1, -2, 1 << 63, {"logOffset": 3}, "5"])
def test_what_is_no_offset_is_refused(offset: Any) -> None:
    with pytest.raises(UsageError, match="no Kafka offset"):
        exports()["kafka-csv"](answer(("t-0", offset, "s")))


def test_readers_that_disagree_need_a_choice() -> None:
    both = answer(("t-0", 5, "a"), ("t-0", 9, "b"))
    with pytest.raises(UsageError, match="resumes at 5 for a/0 and at 9 for b/0"):
        exports()["kafka-csv"](both)
    assert exports(operator="b")["kafka-csv"](both) == "t,0,9\n"


def test_nothing_to_export_is_said() -> None:
    with pytest.raises(UsageError, match="no source offset"):
        exports()["kafka-csv"](answer())
    with pytest.raises(UsageError, match="no such topic"):
        exports(topic="u")["kafka-csv"](PLAIN)

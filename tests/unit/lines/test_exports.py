"""Exports: exactly what each tool accepts, and a refusal where it would misread.

The tools' own parsers are written again here, as strict as they are, and read what cklog wrote.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cklog.errors import NothingToWrite, UsageError
from cklog.lines.exports import export_steps, replay_formats
from cklog.model.lines import RecoveryLine, SourceOffset
from cklog.model.verdict import Answer, Verdict
from tests.conftest import SAMPLES
from tests.program import cklog
from tests.reading.offset_files import (
    Offsets,
    commands,
    delete_tool_reads,
    flink_reads,
    get_offsets_reads,
    group_tool_reads,
    spark_reads,
    streams_tool_reads,
)


def answer(*sources: tuple[Any, ...], committed: Any = None) -> Answer[Any]:
    """Sources as (name, offset, operator) or (name, offset, operator, end)."""
    rows = tuple(SourceOffset(s[0], s[1], s[2], 0, *s[3:]) for s in sources)
    details = {} if committed is None else {"committed_offsets": committed}
    line = RecoveryLine(True, "uncoordinated", (), (), rows, (), (), (), False, details=details)
    return Answer("replay", "ok", 0, (), (), line)


PLAIN = answer(("t-10", 5, "src"), ("t-2", 42, "src"), ("a-b-0", 7, "src"))

topics = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True).filter(lambda name: name not in (".", ".."))
partitions = st.integers(0, 999_999_999)
offsets = st.integers(0, (1 << 63) - 1)
plans = st.dictionaries(st.tuples(topics, partitions), offsets, min_size=1, max_size=8)


def answer_of(plan: Offsets, length: int | None = None) -> Answer[Any]:
    end = [] if length is None else [length]
    return answer(
        *((f"{t}-{p}", n, "s", *(min(n + more, (1 << 63) - 1) for more in end)) for (t, p), n in plan.items())
    )


@given(plans)
@example({("-t", 0): 0, ("-p", 3): 7})
def test_every_tool_reads_back_the_plan(plan: Offsets) -> None:
    found = answer_of(plan)
    forms = replay_formats()
    assert group_tool_reads(forms["kafka-csv"](found)) == plan
    assert streams_tool_reads(forms["streams-csv"](found)) == plan
    assert get_offsets_reads(forms["kafka-get-offsets"](found)) == plan
    assert delete_tool_reads(forms["kafka-delete-records"](found)) == plan
    assert spark_reads(forms["spark-offsets"](found)) == plan
    told = commands(forms["kafka-to-offset"](found))
    pairs = [c["--topic"].rsplit(":", 1) for c in told]
    assert {(t, int(p)): int(c["--to-offset"]) for (t, p), c in zip(pairs, told, strict=True)} == plan
    kcat = commands(forms["kcat"](found))
    assert {(c["-t"], int(c["-p"])): int(c["-o"]) for c in kcat} == plan


@given(topics, st.dictionaries(partitions, offsets, min_size=1, max_size=8), st.integers(0, 1000))
def test_flink_reads_back_a_bounded_scan(topic: str, plan: dict[int, int], length: int) -> None:
    found = answer_of({(topic, p): n for p, n in plan.items()}, length)
    assert flink_reads(replay_formats()["flink-offsets"](found).removesuffix("\n")) == plan
    options = dict(re.findall(r"'([^']*)' = '([^']*)'", replay_formats()["flink-sql"](found)))
    assert flink_reads(options["scan.startup.specific-offsets"]) == plan
    ends = flink_reads(options["scan.bounded.specific-offsets"])
    assert ends == {p: min(n + length, (1 << 63) - 1) for p, n in plan.items()}
    assert options["scan.startup.mode"] == options["scan.bounded.mode"] == "specific-offsets"


def test_kafka_reset_offsets_takes_three_columns_without_a_header() -> None:
    assert replay_formats()["kafka-csv"](PLAIN) == "a-b,0,7\nt,2,42\nt,10,5\n"
    assert replay_formats()["streams-csv"](PLAIN) == replay_formats()["kafka-csv"](PLAIN)
    assert replay_formats()["kafka-get-offsets"](PLAIN) == "a-b:0:7\nt:2:42\nt:10:5\n"


def test_to_offset_is_a_dry_run_unless_told_otherwise() -> None:
    (told,) = replay_formats(topic="a-b")["kafka-to-offset"](PLAIN).splitlines()
    assert told == (
        'kafka-consumer-groups.sh --bootstrap-server "$BOOTSTRAP_SERVERS" --group "$GROUP" --reset-offsets '
        '--topic a-b:0 --to-offset 7 "${MODE:---dry-run}"'
    )


def test_kafka_delete_records_takes_version_1() -> None:
    told = json.loads(replay_formats()["kafka-delete-records"](answer(("t-0", 50, "s"))))
    assert told == {"partitions": [{"topic": "t", "partition": 0, "offset": 50}], "version": 1}


def test_flink_takes_no_spaces_and_one_topic() -> None:
    two = answer(("t-1", 300, "s"), ("t-0", 42, "s"))
    assert replay_formats()["flink-offsets"](two) == "partition:0,offset:42;partition:1,offset:300\n"
    for name in ("flink-offsets", "flink-sql"):
        with pytest.raises(UsageError, match="2 topics"):
            replay_formats()[name](PLAIN)
    assert replay_formats(topic="t")["flink-offsets"](PLAIN) == "partition:2,offset:42;partition:10,offset:5\n"


def test_a_range_without_a_known_end_is_not_bounded() -> None:
    half = answer(("t-0", 5, "s", 9), ("t-1", 6, "s"))
    assert replay_formats()["flink-sql"](half) == (
        "'scan.startup.mode' = 'specific-offsets',\n"
        "'scan.startup.specific-offsets' = 'partition:0,offset:5;partition:1,offset:6'\n"
    )
    with pytest.raises(UsageError, match="where the replay of t-1 ends"):
        replay_formats()["spark-ending-offsets"](half)


def test_ends_are_exclusive() -> None:
    ranges = answer(("t-0", 5, "s", 9), ("t-1", 6, "s", 6), ("t-2", None, "s", 3), ("t-3", None, "s", 0))
    assert replay_formats()["spark-ending-offsets"](ranges) == '{"t": {"0": 9, "1": 6, "2": 3, "3": 0}}\n'
    assert replay_formats()["kcat"](ranges) == (
        'kcat -C -b "$BOOTSTRAP_SERVERS" -t t -p 0 -o 5 -c 4 -e\n'
        "# t-1: nothing to read before 6\n"
        'kcat -C -b "$BOOTSTRAP_SERVERS" -t t -p 2 -o beginning -e\n'
        "# t-3: nothing to read before 0\n"
    )
    with pytest.raises(UsageError, match=r"range \[5, 4\) ends before it begins"):
        replay_formats()["kcat"](answer(("t-0", 5, "s", 4)))


def test_a_source_at_its_start_is_earliest_where_there_is_a_word_for_it() -> None:
    fresh = answer(("t-0", None, "s"))
    assert replay_formats()["spark-offsets"](fresh) == '{"t": {"0": -2}}\n'
    assert "-t t -p 0 -o beginning" in replay_formats()["kcat"](fresh)
    assert "--topic t:0 --to-earliest " in replay_formats()["kafka-to-offset"](fresh)
    for name in ("kafka-csv", "streams-csv", "kafka-get-offsets", "kafka-delete-records", "flink-offsets", "flink-sql"):
        with pytest.raises(UsageError, match="has no word"):
            replay_formats()[name](fresh)


@pytest.mark.parametrize("verdict", ["unrecoverable", "indeterminate"])
def test_of_a_line_that_is_none_to_restart_from_only_what_can_be_said_is_written(verdict: Verdict) -> None:
    fresh = replace(answer(("t-0", None, "s")), verdict=verdict)
    assert replay_formats()["spark-offsets"](fresh) == '{"t": {"0": -2}}\n'
    for name in ("kafka-csv", "streams-csv", "kafka-get-offsets", "kafka-delete-records", "flink-offsets", "flink-sql"):
        with pytest.raises(NothingToWrite, match="has no word"):
            replay_formats()[name](fresh)
    with pytest.raises(NothingToWrite, match="nothing tells where"):
        replay_formats()["spark-ending-offsets"](fresh)
    known = replace(PLAIN, verdict=verdict)
    assert replay_formats()["kafka-csv"](known) == replay_formats()["kafka-csv"](PLAIN)
    with pytest.raises(UsageError, match="no such topic") as refused:
        replay_formats(topic="u")["kafka-csv"](known)
    assert not isinstance(refused.value, NothingToWrite)


SRC = {"operator": "src", "checkpoint": 1, "sources": {"t-0": 5}, "sent": {"src/0->sink/0": 2}, "status": "incomplete"}
SINK = {"operator": "sink", "checkpoint": 1, "received": {"src/0->sink/0": 2}}


@pytest.mark.parametrize("output", [False, True])
def test_what_cannot_be_written_of_a_run_has_the_exit_code_of_its_line(output: bool, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / "a.jsonl").write_text(f"{json.dumps(SRC)}\n{json.dumps(SINK)}\n{{torn")
    plan = tmp_path / "plan.csv"
    more = ("-o", plan) if output else ()
    line = cklog("replay", run)
    ended = cklog("replay", run, "--format", "kafka-csv", *more)
    assert (ended.code, ended.out) == (line.code, "") == (4, "")
    assert not plan.exists()
    told = ended.err.splitlines()
    assert told[0] == "nothing is written: t-0 resumes at its start, for which kafka-csv has no word"
    assert [one.split("]")[0] for one in told[1:]] == ["warning: [torn-tail"]
    assert cklog("replay", run, "--format", "kafka-csv", *more, "-q").err == ""
    assert cklog("replay", run, "--format", "kafka-csv", "--topic", "typo").code == 2


def test_a_run_without_a_source_has_the_exit_code_of_its_line() -> None:
    domino = SAMPLES / "domino-cycle"
    for name in replay_formats():
        if name != "csv":
            ended = cklog("replay", domino, "--format", name)
            assert (ended.code, ended.out) == (cklog("replay", domino).code, "")
            assert "the line has no source" in ended.err


@pytest.mark.parametrize(
    "source",
    ["source/0", "no partition-x", "t,u-0", "t-١", "t-", "-0", "a" * 250 + "-0", "t-00", "t-07", "..-0", "t'-0"],
)
def test_what_is_no_topic_partition_is_refused(source: str) -> None:
    with pytest.raises(UsageError, match="no Kafka topic-partition"):
        replay_formats()["kafka-csv"](answer((source, 1, "s")))


@pytest.mark.parametrize("offset", [-1, -2, 1 << 63, {"logOffset": 3}, "5", True, 5.0])
def test_what_is_no_offset_is_refused(offset: Any) -> None:
    for name in ("kafka-csv", "kcat", "spark-offsets"):
        with pytest.raises(UsageError, match="no Kafka offset"):
            replay_formats()[name](answer(("t-0", offset, "s")))
        with pytest.raises(UsageError, match="no Kafka offset"):
            replay_formats()[name](answer(("t-0", 0, "s", offset)))


def test_readers_that_disagree_need_a_choice() -> None:
    both = answer(("t-0", 5, "a"), ("t-0", 9, "b"))
    with pytest.raises(UsageError, match="resumes at 5 for a/0 and at 9 for b/0"):
        replay_formats()["kafka-csv"](both)
    assert replay_formats(operator="b")["kafka-csv"](both) == "t,0,9\n"


def test_readers_that_agree_on_the_start_go_to_the_later_end() -> None:
    both = [("t-0", 5, "a", 9), ("t-0", 5, "b", 12)]
    assert replay_formats()["spark-ending-offsets"](answer(*both)) == '{"t": {"0": 12}}\n'
    assert " -c " not in replay_formats()["kcat"](answer(*both, ("t-0", 5, "c")))
    fresh = answer(("t-0", None, "a", 9), ("t-0", None, "b", 3))
    assert replay_formats()["spark-ending-offsets"](fresh) == '{"t": {"0": 9}}\n'


def test_nothing_to_export_is_said() -> None:
    with pytest.raises(NothingToWrite, match="no source offset"):
        replay_formats()["kafka-csv"](answer())
    with pytest.raises(UsageError, match="no such topic"):
        replay_formats(topic="u")["kafka-csv"](PLAIN)


def committed(*rows: tuple[str, str, int, int]) -> Answer[Any]:
    names = ("group", "topic", "partition", "offset")
    return answer(("t-0", 5, "s"), committed=[dict(zip(names, row, strict=True)) for row in rows])


def test_rollback_gives_what_is_committed_and_not_the_plan() -> None:
    one = committed(("g", "t", 10, 8), ("g", "t", 2, 7), ("g", "u", 0, 1))
    assert replay_formats(rollback=True)["kafka-csv"](one) == "t,2,7\nt,10,8\nu,0,1\n"
    assert replay_formats(rollback=True, topic="u")["kafka-csv"](one) == "u,0,1\n"
    assert replay_formats(rollback=True)["csv"](one) == "topic,partition,offset\nt,2,7\nt,10,8\nu,0,1\n"
    assert replay_formats()["kafka-csv"](one) == "t,0,5\n"


def test_each_group_needs_a_rollback_of_its_own() -> None:
    two = committed(("g1", "t", 0, 8), ("g2", "t", 0, 7))
    with pytest.raises(UsageError, match="2 groups have committed") as refused:
        replay_formats(rollback=True)["kafka-csv"](two)
    assert "g1, g2" in refused.value.hint
    assert replay_formats("g2", rollback=True)["kafka-csv"](two) == "t,0,7\n"
    with pytest.raises(UsageError, match="no group g3"):
        replay_formats("g3", rollback=True)["kafka-csv"](two)


@pytest.mark.parametrize("found", [PLAIN, committed(), answer(("t-0", 5, "s"), committed=6)])
def test_rollback_without_committed_offsets_says_what_is_missing(found: Answer[Any]) -> None:
    with pytest.raises(UsageError, match="no committed offset was found"):
        replay_formats(rollback=True)["kafka-csv"](found)


def test_deleted_records_are_not_rolled_back() -> None:
    with pytest.raises(UsageError, match="do not come back"):
        replay_formats(rollback=True)["kafka-delete-records"](committed(("g", "t", 0, 1)))


@pytest.mark.parametrize("offset", [-1, "3", None])
def test_a_committed_offset_that_is_none_is_refused(offset: Any) -> None:
    with pytest.raises(UsageError, match="no Kafka offset"):
        replay_formats(rollback=True)["kafka-csv"](committed(("g", "t", 0, offset)))


def test_every_format_of_a_tool_has_its_steps() -> None:
    assert {name for name in replay_formats() if not export_steps(name)} == {"csv"}
    assert export_steps("table") == ()
    for name in ("kafka-csv", "kafka-to-offset", "streams-csv"):
        assert any("--export" in step for step in export_steps(name))
        assert any('"Error:"' in step for step in export_steps(name))

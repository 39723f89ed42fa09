"""Real checkpoint folders of killed queries: what a restart does, whole and damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cklog.errors import NotFound
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import plan_of
from cklog.storage import Root
from tests.builders.spark import REAL, SAMPLE, Memory, batch_time, needs_real, sample
from tests.reading.spark import said, shape

Damage = Callable[[Memory], object]


@needs_real
@pytest.mark.parametrize(
    ("folder", "committed", "kind", "start", "end", "sink"),
    [
        ("A_file_hdfs_parquetsink", 14, "file", {"logOffset": 14}, {"logOffset": 15}, "out"),
        ("B_rate_rocksdb_changelog", 14, "rate", 33, 34, "out"),
        ("C_transformWithState", 13, "rate", 60, 62, None),
        ("F_rocksdb_ckptformat_v2", 13, "rate", 24, 25, "out"),
        ("R_rocksdb_nochangelog_retain3", 13, "rate", 21, 22, "out"),
    ],
)
def test_a_killed_query_runs_its_planned_batch_again(
    folder: str, committed: int, kind: str, start: Any, end: Any, sink: str | None
) -> None:
    home = REAL / folder
    root = Root(str(home), (("file:///mnt/spark/prod1/run_" + folder[0], str(home)),))
    assert SparkCheckpoint.recognises(root)
    plan = plan_of(SparkCheckpoint(root))
    has = None if sink is None else False
    assert shape(plan) == (committed, committed + 1, [("source/0", kind, start, end, True, True)], sink, has)
    assert said(plan) == []
    assert not plan.fails
    assert plan.query_id == json.loads((home / "ck" / "metadata").read_text())["id"]


@needs_real
def test_the_checkpoint_folder_itself_is_enough_but_its_inputs_lie_outside() -> None:
    plan = plan_of(SparkCheckpoint(Root(str(REAL / "A_file_hdfs_parquetsink" / "ck"))))
    assert (plan.committed, plan.planned, plan.sink) == (14, 15, None)
    assert said(plan) == [("warning", "unchecked-input", "source/0")]
    assert any("sink is not known" in note for note in plan.notes)


def test_the_sample_reads_as_its_readme_says() -> None:
    home = "file:///srv/cklog-sample/wordcount"
    plan = plan_of(SparkCheckpoint(Root(str(SAMPLE), ((home, str(SAMPLE)),))))
    source = ("source/0", "file", {"logOffset": 5}, {"logOffset": 6}, True, True)
    assert shape(plan) == (5, 6, [source], "out", False)
    assert [file.path for file in plan.sources[0].files] == [f"{home}/in/minute-6.json"]
    assert said(plan) == []
    assert [batch.batch for batch in plan.batches] == list(range(7))


def removed(*paths: str) -> Damage:
    def damage(root: Memory) -> None:
        for path in paths:
            root.remove(path)

    return damage


def emptied(path: str) -> Damage:
    return lambda root: root.write(path, b"")


def halved(path: str) -> Damage:
    return lambda root: root.write(path, root.files[path][: len(root.files[path]) // 2])


def halved_beside_its_checksum(path: str) -> Damage:
    return lambda root: root.files.update({path: root.files[path][: len(root.files[path]) // 2]})


def copied(old: str, new: str) -> Damage:
    return lambda root: root.files.update({new: root.files[old]})


def rewritten(path: str, old: bytes, new: bytes) -> Damage:
    return lambda root: root.write(path, root.files[path].replace(old, new))


def all_below(folder: str) -> Damage:
    return lambda root: [root.files.pop(path) for path in list(root.files) if path.startswith(folder)]


def both(*damages: Damage) -> Damage:
    return lambda root: [damage(root) for damage in damages]


STATE_AFTER_6 = both(*(copied(f"ck/state/0/{p}/6.delta", f"ck/state/0/{p}/7.delta") for p in (0, 1)))
NONE: list[tuple[str, str, str]] = []

TABLE: list[tuple[str, Damage, int, int | None, bool, list[tuple[str, str, str]]]] = [
    # what, damage, committed, planned, restart fails, findings
    ("none", lambda root: None, 5, 6, False, NONE),
    ("offsets/o deleted", removed("ck/offsets/6"), 5, None, False, NONE),
    ("offsets/o empty", emptied("ck/offsets/6"), 5, 6, True, [("error", "empty-batch-file", "ck/offsets/6")]),
    ("offsets/o cut", halved("ck/offsets/6"), 5, 6, True, [("error", "torn-batch-file", "ck/offsets/6")]),
    (
        "offsets/o cut, .crc left",
        halved_beside_its_checksum("ck/offsets/6"),
        5,
        6,
        True,
        [("error", "torn-batch-file", "ck/offsets/6")],
    ),
    (
        "offsets/o without its source",
        rewritten("ck/offsets/6", b'\n{"logOffset":6}', b""),
        5,
        6,
        True,
        [("error", "torn-batch-file", "ck/offsets/6")],
    ),
    ("offsets/c missing", removed("ck/offsets/5"), 5, 6, True, [("error", "missing-batch-file", "ck/offsets/5")]),
    (
        "offsets/c-1 missing, nothing in flight",
        removed("ck/offsets/6", "ck/offsets/4"),
        5,
        None,
        True,
        [("error", "missing-batch-file", "ck/offsets/4")],
    ),
    ("oldest offsets missing", removed("ck/offsets/0", "ck/offsets/1"), 5, 6, False, NONE),
    ("old offsets missing", removed("ck/offsets/2"), 5, 6, False, [("warning", "batch-gap", "ck/offsets/2")]),
    ("old offsets empty", emptied("ck/offsets/2"), 5, 6, False, [("warning", "empty-batch-file", "ck/offsets/2")]),
    (
        "commits/c deleted",
        removed("ck/commits/5"),
        5,  # the sink's log and the state show that it is done
        6,
        False,
        [("warning", "missing-batch-file", "ck/commits/5")],
    ),
    (
        "commits/c empty",
        emptied("ck/commits/5"),
        5,
        6,
        True,
        [("error", "empty-batch-file", "ck/commits/5")],
    ),
    ("commits/c cut", halved("ck/commits/5"), 5, 6, True, [("error", "torn-batch-file", "ck/commits/5")]),
    (
        "all commits gone",
        all_below("ck/commits/"),
        5,  # the sink's log and the state show that it is done
        6,
        False,
        [("warning", "missing-batch-file", "ck/commits/0")],
    ),
    (
        "commits/c of a later release",
        rewritten("ck/commits/5", b"v1", b"v9"),
        5,  # whether that Spark goes on is not known: the answer is undetermined
        6,
        False,
        [("error", "unknown-version", "ck/commits/5")],
    ),
    ("old commit missing", removed("ck/commits/2"), 5, 6, False, [("warning", "batch-gap", "ck/commits/2")]),
    (
        "offsets rolled back, commits not",
        removed("ck/offsets/6", "ck/offsets/5"),
        5,
        None,
        True,
        [("error", "commit-ahead-of-offsets", "ck/commits/5")],
    ),
    (
        "offsets and commits gone",
        both(all_below("ck/offsets/"), all_below("ck/commits/")),
        -1,
        None,
        True,
        [("error", "missing-batch-file", "ck/offsets"), ("error", "sink-log-ahead", "out/_spark_metadata/5")],
    ),
    ("metadata missing", removed("ck/metadata"), 5, 6, True, [("error", "missing-metadata", "ck/metadata")]),
    ("metadata empty", emptied("ck/metadata"), 5, 6, True, [("error", "empty-batch-file", "ck/metadata")]),
    (
        "last file of the source's log missing",
        removed("ck/sources/0/6"),
        5,
        6,
        True,
        [("error", "missing-source-log", "ck/sources/0/6")],
    ),
    (
        "a file of the source's log missing",
        removed("ck/sources/0/3"),
        5,
        6,
        True,
        [("error", "missing-source-log", "ck/sources/0/3")],
    ),
    (
        "a file of the source's log cut",
        halved("ck/sources/0/2"),
        5,
        6,
        True,
        [("error", "torn-batch-file", "ck/sources/0/2")],
    ),
    (
        "last file of the sink's log missing",
        removed("out/_spark_metadata/5"),
        5,
        6,
        False,
        [("error", "sink-log-behind", "out/_spark_metadata")],
    ),
    (
        "a file of the sink's log missing",
        removed("out/_spark_metadata/3"),
        5,
        6,
        False,
        [("error", "sink-log-behind", "out/_spark_metadata/3")],
    ),
    (
        "the sink's log missing",
        all_below("out/_spark_metadata/"),
        5,
        6,
        False,
        [("error", "sink-log-behind", "out/_spark_metadata")],
    ),
    (
        "the sink has the batch in flight",
        both(copied("out/_spark_metadata/5", "out/_spark_metadata/6"), STATE_AFTER_6),
        5,
        6,
        False,
        [("info", "sink-log-ahead", "out/_spark_metadata/6")],
    ),
    (
        "the sink has the batch in flight, and its state is not there: batch 7 fails",
        copied("out/_spark_metadata/5", "out/_spark_metadata/6"),
        5,
        6,
        True,
        [("error", "sink-log-ahead", "out/_spark_metadata/6")],
    ),
    (
        "the sink has a batch that will be planned afresh",
        both(copied("out/_spark_metadata/5", "out/_spark_metadata/6"), removed("ck/offsets/6")),
        5,
        None,
        False,
        [("error", "sink-log-ahead", "out/_spark_metadata/6")],
    ),
    (
        "input file of the batch in flight deleted",
        removed("in/minute-6.json"),
        5,
        6,
        False,
        [("error", "missing-input-file", "source/0")],
    ),
    (
        "input file of the batch in flight empty",
        emptied("in/minute-6.json"),
        5,
        6,
        False,
        [("warning", "empty-input-file", "source/0")],
    ),
    ("input file of an old batch deleted", removed("in/minute-2.json"), 5, 6, False, NONE),
]


@pytest.mark.parametrize(
    ("damage", "committed", "planned", "fails", "findings"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_what_a_restart_does_is_said_beforehand(
    damage: Damage, committed: int, planned: int | None, fails: bool, findings: list[tuple[str, str, str]]
) -> None:
    """Each row was restarted for real, here or in the study of the format."""
    root = sample()
    damage(root)
    plan = root.plan()
    assert said(plan) == findings
    assert (plan.committed, plan.planned, plan.fails) == (committed, planned, fails)
    assert plan.fails == ("fails as the files are now" in plan.restart)


def test_where_a_batch_starts_is_unknown_without_the_offsets_before_it() -> None:
    root = sample()
    root.remove("ck/offsets/5")
    [source] = root.plan().sources
    assert (source.start, source.start_known, source.end) == (None, False, {"logOffset": 6})
    assert source.files == ()


def test_a_restart_skips_what_the_sink_has() -> None:
    root = sample()
    root.files["out/_spark_metadata/6"] = root.files["out/_spark_metadata/5"]
    STATE_AFTER_6(root)
    plan = root.plan()
    assert plan.sink_has_planned is True
    assert "has batch 6 already" in plan.restart


def test_a_deleted_file_that_left_its_checksum_is_missed() -> None:
    for path in ("ck/offsets/6", "ck/commits/5", "ck/sources/0/6"):
        root = sample()
        del root.files[path]
        assert path in {finding.subject for finding in root.plan().findings}


@pytest.mark.parametrize("batch", range(7))
def test_as_of_leaves_out_what_was_planned_later(batch: int) -> None:
    at_once, before = sample().plan(as_of=batch_time(batch)), sample().plan(as_of=batch_time(batch) - 1)
    assert (at_once.committed, at_once.planned) == (min(batch, 5), 6 if batch == 6 else None)
    assert (before.committed, before.planned) == (batch - 1, None)
    assert said(at_once) == said(before) == []


def test_going_back_names_what_must_go() -> None:
    plan = sample().plan(at=3)
    assert (plan.committed, plan.planned, plan.fails) == (3, None, False)
    assert plan.sources[0].start == {"logOffset": 3}
    assert "remove the offsets and commits 4 to 6" in plan.restart
    assert said(plan) == []


def test_going_back_to_a_damaged_batch_takes_the_one_before() -> None:
    root = sample()
    root.write("ck/commits/3", b"")
    plan = root.plan(at=3)
    assert plan.committed == 2
    assert ("error", "unreachable-batch", "ck/commits/3") in said(plan)


def test_a_batch_in_flight_is_no_target() -> None:
    plan = sample().plan(at=6)
    assert (plan.committed, plan.planned) == (5, 6)
    assert said(plan) == [("error", "unreachable-batch", "ck/commits/6")]
    with pytest.raises(NotFound):
        sample().plan(at=7)


OFFSETS = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}\n'
COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'


def kafka(*ends: bytes, commits: int) -> Memory:
    """A checkpoint of one Kafka source, as the source of Spark describes it."""
    files = {"metadata": b'{"id":"q"}', "sources/0/0": b'\0v1\n{"clicks":{"0":7,"1":-2}}'}
    files |= {f"offsets/{n}": OFFSETS + end for n, end in enumerate(ends)}
    files |= {f"commits/{n}": COMMIT for n in range(commits)}
    return Memory("memory", (), files)


def test_kafka_ranges_are_per_partition_and_the_first_batch_starts_where_the_source_did() -> None:
    first = kafka(b'{"clicks":{"1":4,"0":9}}', commits=0).plan()
    assert [(s.source, s.start, s.end) for s in first.sources] == [("clicks-0", 7, 9), ("clicks-1", -2, 4)]
    later = kafka(b'{"clicks":{"0":9}}', b'{"clicks":{"0":12,"1":3}}', commits=1).plan()
    assert [(s.source, s.start, s.end) for s in later.sources] == [("clicks-0", 9, 12), ("clicks-1", None, 3)]
    assert said(first) == said(later) == []


def test_a_source_that_goes_back_is_an_error() -> None:
    plan = kafka(b'{"clicks":{"0":33}}', b'{"clicks":{"0":3}}', commits=1).plan()
    assert said(plan) == [("error", "offset-went-back", "offsets/1")]


def test_sources_by_name_and_sources_without_data_are_read() -> None:
    root = kafka(b"-\n5", b"-\n6", commits=1)
    assert [(s.source, s.start, s.end) for s in root.plan().sources] == [("source/0", None, None), ("source/1", 5, 6)]
    for n in (0, 1):
        root.files[f"offsets/{n}"] = OFFSETS.replace(b"v1", b"v2") + b"clicks:%d\nviews:-" % (n + 5)
    assert [(s.source, s.start, s.end) for s in root.plan().sources] == [
        ("source/clicks", 5, 6),
        ("source/views", None, None),
    ]


def test_only_one_checkpoint_at_or_below_the_root_is_recognised() -> None:
    one = sample()
    assert SparkCheckpoint.recognises(one)
    two = one.with_files({**one.files, "other/metadata": b"{}", "other/offsets/0": b"v1"})
    assert not SparkCheckpoint.recognises(two)
    with pytest.raises(NotFound):
        SparkCheckpoint(two)
    assert not SparkCheckpoint.recognises(one.with_files({"checkpoints/a.jsonl": b"", "state/a.jsonl": b""}))

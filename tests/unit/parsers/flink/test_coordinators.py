"""What the coordinators of sources keep: partitions that readers have, splits that no reader has, and nothing."""

from __future__ import annotations

from typing import Any

import pytest

from cklog.engine.scan import Split
from cklog.parsers.flink.metadata import READER, rows
from cklog.parsers.flink.rows import FIELDS
from tests.builders import flink as fb
from tests.builders.sinks.flink_source import iceberg_enumerator

Cells = dict[str, Any]


def enumerated(version: int, data: bytes, framing: int = 1) -> list[Cells]:
    built = fb.metadata(6, [fb.operator(6, coordinator=fb.coordinator(version, data, framing))])
    found = [dict(zip(FIELDS, row, strict=True)) for row in rows(Split("", "", READER, 0, 0, 0), built.data)]
    told = [
        {k: v for k, v in f.items() if v is not None} for f in found if f["entry"] in ("enumerator", "source", "unread")
    ]
    assert all(0 < f.pop("_offset") < len(built.data) and f.pop("operator") for f in told)
    return told


def known(topic: str, partition: int, status: int | None = None) -> bytes:
    return fb.utf(topic) + fb.i32(partition) + (b"" if status is None else fb.i32(status))


def test_partitions_of_enumerators() -> None:
    both = [
        {"entry": "enumerator", "name": f"q-{i}", "kind": kind} for i, kind in enumerate(("assigned", "unassigned"))
    ]
    assert enumerated(1, fb.i32(1) + known("q", 0)) == both[:1]
    listed = fb.i32(2) + known("q", 0, 0) + known("q", 1, 1)
    assert enumerated(2, listed + b"\1") == both
    assert enumerated(2, listed + b"\0") == [*both, {"entry": "enumerator", "kind": "discovering"}]
    splits = [fb.blob(fb.kafka_split("q", i, 5 + i)) + fb.i32(i) for i in range(2)]
    assert enumerated(3, fb.i32(2, 0) + b"".join(splits) + b"\1") == [both[0] | {"offset": 5}, both[1] | {"offset": 6}]
    assert enumerated(2, listed + b"\1" + b"assignments of readers", framing=0)[0]["kind"] == "unknown-enumerator"


def test_old_coordinators_say_more_behind_it() -> None:
    framed = fb.coordinator(1, fb.i32(1) + known("q", 0), framing=0) + b"assignments of readers"
    built = fb.metadata(6, [fb.operator(6, coordinator=framed)])
    found = [row[0] for row in rows(Split("", "", READER, 0, 0, 0), built.data)]
    assert found == ["operator", "handle", "enumerator", "snapshot"]


def test_splits_that_no_reader_has() -> None:
    (found,) = enumerated(1, fb.i32(1) + fb.number_split("1", 0, 4))
    assert found == {"entry": "source", "name": "1", "kind": "number-sequence", "offset": 0, "stop": 5}
    assert enumerated(1, fb.i32(0)) == []


def test_snapshots_up_to_which_a_table_was_looked_through() -> None:
    waiting = ((b"a split", "UNASSIGNED"), (b"", "COMPLETED"))
    snapshot = -8_000_000_000_000_000_001
    found = {"entry": "enumerator", "kind": "iceberg"}
    for version in (1, 2):
        assert enumerated(version, iceberg_enumerator(snapshot, waiting, version)) == [found | {"offset": snapshot}]
        assert enumerated(version, iceberg_enumerator(None, (), version)) == [found]
    bounded = b"\0" + fb.i32(3, 0) + fb.i32(0)
    assert enumerated(2, bounded) == [found]


@pytest.mark.parametrize(
    ("version", "data", "framing", "kind"),
    [
        (2, fb.i32(1) + known("q", 0, 2) + b"\1", 1, "unknown-enumerator"),
        (2, iceberg_enumerator(7, ((b"", "LOST"),)), 1, "unknown-enumerator"),
        (2, iceberg_enumerator(7) + b"\0", 1, "unknown-enumerator"),
        (3, iceberg_enumerator(7), 1, "later-version"),
        (2, fb.i32(1) + known("q", 0, 0), 1, "unknown-enumerator"),
        (1, fb.i32(0), 2, "unknown-coordinator"),
    ],
)
def test_other_coordinators_are_unread(version: int, data: bytes, framing: int, kind: str) -> None:
    (found,) = enumerated(version, data, framing)
    assert (found["entry"], found["kind"]) == ("unread", kind)


def source_kinds(enumerator: int, split: int, element: bytes, data: bytes = b"?") -> list[Cells]:
    """The kinds of rows that are told of a source, by the versions of its enumerator and of a reader's split."""
    state, places = fb.operator_state({"SourceReaderState": [fb.versioned(split, element)]})
    reader = fb.subtask(6, managed=fb.states(fb.inline(state), places))
    built = fb.metadata(6, [fb.operator(6, [reader], parallelism=1, coordinator=fb.coordinator(enumerator, data))])
    found = [dict(zip(FIELDS, row, strict=True)) for row in rows(Split("", "", READER, 0, 0, 0), built.data)]
    return [{"kind": f["kind"], "subtask": f["subtask"]} for f in found if f["entry"] in ("source", "unread")]


@pytest.mark.parametrize("version", [4, 9, 255])
def test_an_enumerator_of_a_later_version_is_known_by_the_splits_of_its_readers(version: int) -> None:
    kafka, numbers = fb.kafka_split("q", 0, 7), fb.number_split("1", 0, 4)
    for split, element, kind in ((0, kafka, "kafka"), (1, numbers, "number-sequence")):
        assert source_kinds(version, split, element) == [
            {"kind": kind, "subtask": 0},
            {"kind": "later-version", "subtask": None},
        ]
    assert source_kinds(3, 0, kafka)[1]["kind"] == "unknown-enumerator"


@pytest.mark.parametrize("version", [4, 9, 255])
def test_an_enumerator_of_a_class_that_nothing_shows_is_of_no_later_version(version: int) -> None:
    (found,) = enumerated(version, b"?")
    assert found["kind"] == "unknown-enumerator"
    assert f"serializer version {version}" in found["detail"]
    assert [row["kind"] for row in source_kinds(version, 6, b"somebody's own")] == [
        "unknown-split",
        "unknown-enumerator",
    ]


@pytest.mark.parametrize(("version", "kind"), [(1, "later-version"), (9, "later-version"), (1 << 20, "unknown-split")])
def test_a_split_of_a_later_version_is_known_by_the_enumerator(version: int, kind: str) -> None:
    listed = fb.i32(1) + known("q", 0, 0) + b"\1"
    assert source_kinds(2, version, b"?", listed)[-1] == {"kind": kind, "subtask": 0}


@pytest.mark.parametrize("version", [0, 1, 2, 9])
def test_an_enumerator_of_no_bytes_holds_nothing(version: int) -> None:
    assert enumerated(version, b"") == []
    assert enumerated(version, b"", framing=0) == []
    for state in (b"", fb.i32(1, version, 0)):
        built = fb.metadata(6, [fb.operator(6, coordinator=state)])
        assert [row[0] for row in rows(Split("", "", READER, 0, 0, 0), built.data)] == [
            "operator",
            "handle",
            "snapshot",
        ]

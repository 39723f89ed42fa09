"""What metadata says twice, and what it can prove wrong: key groups, operator ids, subtasks, names of classes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.engine.scan import Split
from cklog.parsers.flink.derived import key_groups
from cklog.parsers.flink.java import Malformed
from cklog.parsers.flink.metadata import READER, rows
from tests.builders import flink as fb
from tests.builders.flink import Built
from tests.reading.flink import of, said, scanned


@given(st.integers(1, 32768), st.data())
def test_every_key_group_belongs_to_the_subtask_that_its_number_says(most: int, data: st.DataObject) -> None:
    """Flink sends a key of group g to subtask g * parallelism // most; ranges are the groups that a subtask gets."""
    parallelism = data.draw(st.integers(1, min(most, 300)))
    ranges = [key_groups(subtask, parallelism, most) for subtask in range(parallelism)]
    owners = [subtask for subtask, (first, count) in enumerate(ranges) for _ in range(count)]
    assert owners == [group * parallelism // most for group in range(most)]
    assert [first for first, _ in ranges] == [sum(count for _, count in ranges[:i]) for i in range(parallelism)]


def of_keyed(keyed: Built, index: int = 1) -> bytes:
    return fb.metadata(6, [fb.operator(6, [fb.subtask(6, index, keyed=keyed)])]).data


def refused(data: bytes) -> str:
    """Why a file is damaged; "" if it is not."""
    damage = ""
    try:
        for _ in rows(Split("", "", READER, 0, 0, 0), data):
            pass
    except Malformed as reason:
        damage = f"{reason.why} at {reason.at}"
        assert reason.at in range(len(data)), damage  # noqa: PT017
    return damage


def flipped(data: bytes, start: int, size: int) -> Iterator[bytes]:
    """The bytes with each single bit of a stretch flipped."""
    for bit in range(8 * size):
        wrong = bytearray(data)
        wrong[start + bit // 8] ^= 1 << bit % 8
        yield bytes(wrong)


ITS = struct.pack(">ii", 32, 32)
"""The key groups of subtask 1 of 4, of 128."""


@pytest.mark.parametrize(
    "keyed",
    [
        *(fb.key_groups(kind, fb.empty()) for kind in (3, 7, 12)),
        *(fb.incremental(fb.empty(), second=second) for second in (False, True)),
        *(fb.changelog([], [], second=second) for second in (False, True)),
        fb.changes_inlined([b"x"]),
        *(fb.changes([], second=second) for second in (False, True)),
    ],
    ids=["3", "7", "12", "5", "11", "8", "14", "9", "10", "13"],
)
@pytest.mark.parametrize("raw", [False, True])
def test_any_flipped_bit_of_a_key_group_range_is_damage(keyed: Built, raw: bool) -> None:
    made = fb.subtask(6, 1, keyed=None if raw else keyed, raw_keyed=keyed if raw else None)
    data = fb.metadata(6, [fb.operator(6, [made])]).data
    assert refused(data) == ""
    for wrong in flipped(data, data.index(ITS), len(ITS)):
        assert "key groups" in refused(wrong)


def test_state_of_a_job_with_another_parallelism_may_be_nested() -> None:
    """A changelog keeps the files that it was restored from: those whose key groups are partly the subtask's."""
    for first, count, fits in (
        (0, 64, True),
        (63, 1, True),
        (32, 96, True),
        (0, 32, False),
        (64, 9, False),
        (40, 0, False),
    ):
        inner = fb.incremental(fb.empty()).data.replace(fb.ITS_GROUPS, fb.i32(first, count))
        assert (refused(of_keyed(fb.changelog([Built(inner)], []))) == "") == fits
        assert refused(of_keyed(Built(inner))) != ""


def test_the_id_of_an_operator_follows_from_its_uid() -> None:
    data = fb.metadata(6, [fb.operator(6, name="", uid="orders")]).data
    start = data.index(b"orders")
    assert refused(data) == ""
    for wrong in (*flipped(data, start + 6, 16), *flipped(data, start, 6)):
        assert refused(wrong) != ""
    for version in (4, 6):  # before version 5 uids are not stored, and not every operator has one
        assert refused(fb.metadata(version, [fb.operator(version, id=b"?" * 16)]).data) == ""


def test_a_subtask_comes_once() -> None:
    for again in (fb.subtask(6, 2), fb.finished(2)):
        assert refused(fb.metadata(6, [fb.operator(6, [fb.subtask(6, 2), again])]).data).startswith(
            "subtask 2 a second time"
        )


def test_no_operator_has_more_key_groups_than_there_can_be() -> None:
    good = fb.metadata(6, [fb.operator(6)]).data
    assert refused(good.replace(fb.i32(4, 128), fb.i32(4, 32768))) == ""
    assert "32769 key groups" in refused(good.replace(fb.i32(4, 128), fb.i32(4, 32769)))


def test_channels_are_of_the_subtask_that_holds_them() -> None:
    data = fb.metadata(6, [fb.operator(6, [fb.subtask(6, 1, inputs=[fb.channel(1, 5, 6, 7, fb.null())])])]).data
    for wrong in flipped(data, data.index(fb.i32(1, 5, 6)), 4):
        assert "beside the state of subtask 1" in refused(wrong)


@pytest.mark.parametrize("name", ["Checkpoint", "Savepoint"])
@pytest.mark.parametrize(
    "text",
    [
        b"org.apache.flink.runtime.checkpoint.CheckpointProperties",
        b"Lorg/apache/flink/runtime/checkpoint/SnapshotType;",
        b"discardCancelled",
        b"checkpointType",
        b"java.lang.Enum",
        b"NATIVE",
    ],
)
def test_names_in_properties_are_such_as_java_has(name: str, text: bytes) -> None:
    good = fb.metadata(6, properties=fb.properties((), name)).data
    assert refused(good) == ""
    for wrong in (b"7" + text[1:], text[:-2] + b"\n" + text[-1:]):
        why = refused(good.replace(text, wrong))
        assert "that no compiler takes" in why or "whose name is" in why or "whose class is" in why


def test_a_kind_that_there_is_none_of_is_not_told(tmp_path: Path) -> None:
    """One flipped bit of the name is still a string: it is not printed as what the snapshot is."""
    for wrong in ("checkpoint", "Chunkpoint"):
        (tmp_path / "_metadata").write_bytes(fb.metadata(6, properties=fb.properties((), wrong)).data)
        found = said(tmp_path / "_metadata")
        kind = "unknown-properties" if wrong == "checkpoint" else "unknown-version"
        assert [row["kind"] for row in found if "kind" in row] == [kind]
        assert "name" not in found[-1]


def test_inlined_channel_state_counts_its_own_bytes(tmp_path: Path) -> None:
    """Channels may share what is inlined (Flink 1.17): each has its own part of it."""
    shared = fb.inline(b"x" * 336)
    outputs = [fb.channel(2, 0, number, 64, shared) for number in range(5)]
    inputs = [fb.merged_channels(3, [(0, 0, 10), (0, 1, 20)], shared)]
    (tmp_path / "_metadata").write_bytes(
        fb.metadata(6, [fb.operator(6, [fb.subtask(6, outputs=outputs, inputs=inputs)])]).data
    )
    found, damage = scanned(tmp_path / "_metadata")
    assert not damage
    assert [h["bytes"] for h in of(found, "handle", kind="output-channel")] == [64] * 5
    assert [h["bytes"] for h in of(found, "handle", kind="input-channel")] == [30]
    assert [c["bytes"] for c in of(found, "channel")] == [10, 20, *[64] * 5]

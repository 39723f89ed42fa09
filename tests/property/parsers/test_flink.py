"""What is written as `_metadata` is what is read, however it is nested; and nothing is read of a part of it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Damage, reader_of
from cklog.inputs.snapshots import COLUMNS
from cklog.parsers.flink import handles as flink_handles
from cklog.parsers.flink.derived import operator_id
from tests.builders import flink as fb
from tests.builders.flink import Built
from tests.examples import examples
from tests.reading.flink import said, scanned, split_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
uris = st.builds("file:/mnt/{}/{}".format, st.sampled_from(["shared", "job/taskowned/x", "b"]), texts)
sizes = st.integers(0, 2**62)
streams = st.one_of(
    st.builds(fb.null),
    st.builds(fb.empty),
    st.builds(fb.inline, st.binary(max_size=30), texts),
    st.builds(fb.absolute, uris, sizes),
    st.builds(fb.relative, st.uuids().map(str), sizes),
    st.builds(fb.segment, uris, sizes, sizes, st.integers(0, 1)),
)
handles = streams | st.builds(fb.wrapped, streams)
files = st.lists(handles, max_size=4)
lists = st.dictionaries(texts, st.tuples(st.integers(0, 2), st.lists(st.integers(0, 99), max_size=3)), max_size=3)
operator_states = st.none() | st.builds(fb.states, handles, lists, st.booleans())
plain_keyed = st.one_of(
    st.builds(fb.null),
    st.builds(fb.key_groups, st.sampled_from([3, 7, 12]), handles),
    st.builds(fb.incremental, handles, files, files, texts, st.booleans(), st.sampled_from([*fb.LOCAL_NAMES])),
    st.builds(fb.changes_inlined, st.lists(st.binary(max_size=9), max_size=3)),
    st.builds(fb.changes, files, st.booleans()),
)
keyed = st.recursive(
    plain_keyed,
    lambda inner: st.builds(fb.changelog, st.lists(inner, max_size=2), st.lists(inner, max_size=2), st.booleans()),
    max_leaves=6,
)
numbers = st.integers(0, 2**31 - 1)


def channels(version: int, side: int) -> st.SearchStrategy[list[Built]]:
    """Handles of channels: `side` 1 input, 2 output."""
    single = st.builds(fb.channel, st.just(side if version >= 6 else None), numbers, numbers, sizes, handles)
    if version < 6:
        return st.lists(single, max_size=3)
    several = st.lists(st.tuples(numbers, numbers, st.integers(0, 2**60)), max_size=3)
    return st.lists(single | st.builds(fb.merged_channels, st.just(side + 2), several, handles), max_size=3)


@st.composite
def operators(draw: st.DrawFn, version: int) -> Built:
    parallelism = draw(st.integers(1, 4))
    made: list[Built] = []
    for index in draw(st.permutations(range(parallelism))):
        kind = draw(st.sampled_from(["absent", "finished", "there"]))
        if kind == "finished" and version >= 3:
            made.append(fb.finished(index))
        elif kind == "there":
            made.append(
                fb.subtask(
                    version,
                    index,
                    managed=draw(operator_states),
                    raw=draw(operator_states),
                    keyed=draw(keyed),
                    raw_keyed=draw(keyed),
                    inputs=draw(channels(version, 1)) if version >= 3 else (),
                    outputs=draw(channels(version, 2)) if version >= 3 else (),
                    older=draw(st.none() | sizes),
                )
            )
    whole = version >= 3 and draw(st.integers(0, 9)) == 0
    uid = draw(texts)
    id = None if uid and version >= 5 else draw(st.binary(min_size=16, max_size=16))
    return fb.operator(version, None if whole else made, id, draw(texts), uid, parallelism)


@st.composite
def files_of_metadata(draw: st.DrawFn) -> Built:
    version = draw(st.integers(2, 7))
    settings_on = draw(st.sets(st.sampled_from(fb.SETTINGS)))
    properties = draw(
        st.none()
        | st.builds(
            fb.properties,
            st.just(sorted(settings_on)),
            st.sampled_from(["Checkpoint", "Savepoint", "Suspend Savepoint"]),
            st.sampled_from(["NATIVE", "CANONICAL", "FORWARD_BACKWARD"]),
        )
    )
    return fb.metadata(
        version,
        draw(st.lists(operators(version), max_size=3)),
        draw(st.lists(st.builds(fb.master, texts, st.binary(max_size=9)), max_size=2)),
        draw(sizes),
        properties,
    )


def read_back(built: Built) -> list[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "_metadata"
        path.write_bytes(built.data)
        return said(path)


@given(files_of_metadata())
@settings(max_examples=examples(300))
def test_what_is_written_is_what_is_read(built: Built) -> None:
    found = read_back(built)
    for one in found:
        if one["entry"] == "unread":
            one.pop("detail")
        if one["entry"] == "snapshot":
            one.pop("file", None)
    expected = [{name: cell for name, cell in one.items() if cell not in (None, "")} for one in built.says]
    assert [{name: cell for name, cell in one.items() if cell != ""} for one in found] == expected


@given(files_of_metadata(), st.data())
@settings(max_examples=examples(100))
def test_a_part_of_a_file_is_damage_and_no_row(built: Built, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(built.data) - 1))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "_metadata"
        path.write_bytes(built.data[:cut])
        found, damage = scanned(path)
        assert not found
        assert [d.id for d in damage] == ["corrupt-metadata"]
        path.write_bytes(built.data + b"\0")
        found, damage = scanned(path)
        assert (found, [d.offset for d in damage]) == ([], [len(built.data)])


@given(files_of_metadata(), st.data())
@settings(max_examples=examples(150))
def test_wrong_bytes_are_rows_or_damage_and_never_an_error(built: Built, data: st.DataObject) -> None:
    wrong = bytearray(built.data)
    for _ in range(data.draw(st.integers(1, 4))):
        wrong[data.draw(st.integers(0, len(wrong) - 1))] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "_metadata"
        path.write_bytes(wrong)
        found, damage = scanned(path)
        assert bool(found) != bool(damage)
        assert all(d.offset is not None and 0 <= d.offset <= len(wrong) for d in damage)


alike = st.builds(
    lambda uri, count, size: [fb.absolute(f"{uri}{i:03}", size) for i in range(count)],
    uris,
    st.integers(1, 40),
    sizes | st.just(-1),
)


@given(st.lists(alike | files, max_size=6), st.data())
@settings(max_examples=examples(150))
def test_files_read_at_once_are_those_read_one_by_one(runs: list[list[Built]], data: st.DataObject) -> None:
    """In order, with their offsets, and with the same damage at the same byte."""
    shared = [one for run in runs for one in run]
    wrong = bytearray(fb.metadata(6, [fb.operator(6, [fb.subtask(6, keyed=fb.incremental(fb.empty(), shared))])]).data)
    for _ in range(data.draw(st.integers(0, 2))):
        wrong[data.draw(st.integers(0, len(wrong) - 1))] = data.draw(st.sampled_from([0, 2, 0x7F, 0x80, 0xFF]))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "_metadata"
        path.write_bytes(wrong)
        at_once = scanned(path)
        patch.setattr(flink_handles, "_AT_ONCE", 0)
        assert at_once == scanned(path)


@given(files_of_metadata())
@settings(max_examples=examples(50))
def test_every_row_is_where_it_says(built: Built) -> None:
    """A reader that is started at the offset of a row's operator finds its id there, behind its names."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "_metadata"
        path.write_bytes(built.data)
        found, _ = scanned(path)
    places = [one["_offset"] for one in found[:-1]]
    assert all(0 <= place < len(built.data) for place in places)
    for one in found:
        if one["entry"] == "operator":
            names = b"".join(map(fb.utf, (one.get("name", ""), one.get("uid", ""))))
            skipped = len(names) if built.data[7] >= 5 else 0
            start = one["_offset"] + skipped
            assert built.data[start : start + 16].hex() == one["operator"]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_operator_id_is_murmur3_of_its_uid(uid: str) -> None:
    mmh3 = pytest.importorskip("mmh3", reason="mmh3 is not installed: the second opinion on MurmurHash3")
    assert operator_id(uid) == mmh3.hash_bytes(uid.encode(), 0, True).hex()


def test_rows_that_are_smaller_than_usual_are_not_held(tmp_path: Path) -> None:
    """Four bytes a row: the file is decoded twice, and comes in several batches."""
    count = 30_000
    one = fb.operator(6, [fb.finished(i) for i in range(count)], parallelism=count)
    built = fb.metadata(6, [Built(one.data.replace(fb.i32(count, 128), fb.i32(count, count)), one.says)])
    path = tmp_path / "_metadata"
    path.write_bytes(built.data)
    found, damage = scanned(path)
    assert not damage
    assert [one["subtask"] for one in found if one["entry"] == "finished"] == list(range(count))
    path.write_bytes(built.data[:-1])
    found, damage = scanned(path)
    assert (found, len(damage)) == ([], 1)


def small_things() -> dict[str, Built]:
    """Files of 256 kB that consist of the smallest of everything."""
    count, size = 1 << 15, 1 << 18
    ends = fb.operator(6, [Built(fb.i32(-i - 1)) for i in range(count)])
    ends = Built(ends.data.replace(fb.i32(4, 128), fb.i32(count, count)))
    empties = Built(b"\0\0\x10" * (size // 3))
    tree = fb.incremental(fb.null(), [fb.null()]).data.replace(fb.i32(1) + fb.utf("000000.blob") + b"\0", b"?")
    tree = tree.replace(b"?", fb.i32(size // 3) + empties.data)
    folders = b"".join(b"\0\0\2" + fb.i64(5) + fb.utf(f"{i:x}/") for i in range(size // 18))
    many = fb.versioned(2, fb.utf("p") + fb.i32(0, 0, 0, size // 11) + (fb.utf("t") + fb.i64(1)) * (size // 11))
    known = fb.i32(size // 11) + (fb.utf("q") + fb.i32(0, 0)) * (size // 11) + b"\1"
    channels = [(0, 0, 0)] * (size // 36)
    return {
        "finished instances": fb.metadata(6, [ends]),
        "empty files": of_keyed(Built(tree)),
        "folders": of_keyed(Built(tree.replace(fb.i32(size // 3) + empties.data, fb.i32(size // 18) + folders))),
        "versions": listing("SourceReaderState", [fb.versioned(i, b"") for i in range(size // 20)]),
        "transactions": listing("writer_raw_states", [many]),
        "partitions": fb.metadata(6, [fb.operator(6, coordinator=fb.coordinator(2, known))]),
        "channels": fb.metadata(
            6, [fb.operator(6, [fb.subtask(6, inputs=[fb.merged_channels(3, channels, fb.null())])])]
        ),
    }


def of_keyed(keyed: Built) -> Built:
    return fb.metadata(6, [fb.operator(6, [fb.subtask(6, keyed=keyed)])])


def listing(name: str, elements: list[bytes]) -> Built:
    data, places = fb.operator_state({name: elements})
    return fb.metadata(6, [fb.operator(6, [fb.subtask(6, managed=fb.states(fb.inline(data), places))])])


@pytest.mark.slow
def test_small_things_in_great_number_do_not_fill_the_memory(tmp_path: Path) -> None:
    read_back(fb.metadata(6))  # what is imported at the first use is not counted
    path = tmp_path / "_metadata"
    for name, built in small_things().items():
        path.write_bytes(built.data)
        split, count = split_of(path), 0
        tracemalloc.start()
        for batch in reader_of(split)(split, "snapshots", (*COLUMNS, "_path", "_offset")):
            assert not isinstance(batch, Damage), name
            count += batch.num_rows
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * len(built.data) + (4 << 20), name
        assert count > 5_000 or name == "versions"

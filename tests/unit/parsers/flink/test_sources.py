"""What sources and sinks keep in a Flink checkpoint: splits, enumerators, transactions, and what is not understood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.budgets import Budgets
from cklog.engine.scan import Split
from cklog.parsers.flink import elements as flink_elements
from cklog.parsers.flink.contents import candidates
from cklog.parsers.flink.java import Cursor
from cklog.parsers.flink.layouts import fitting
from cklog.parsers.flink.metadata import READER
from tests.builders import flink as fb
from tests.builders.flink import Built
from tests.reading.flink import of, said, scanned

READERS, WRITERS, COMMITTERS = "SourceReaderState", "writer_raw_states", "streaming_committer_raw_states"
SKIP = ("entry", "operator", "subtask")
Cells = dict[str, Any]
Store = Callable[[Path, bytes], Built]

ORDERS = fb.kafka_split("orders", 3, 812)
WRITER = fb.utf("sink") + fb.i32(0, 2, 1) + fb.i32(2) + fb.utf("sink-0-7") + fb.i64(7) + fb.utf("sink-0-8") + fb.i64(8)


def kept(
    folder: Path,
    lists: dict[str, Sequence[bytes]],
    store: Store = lambda _, data: fb.inline(data),
    **how: Any,
) -> list[Cells]:
    """What is told of operator state that holds these lists, its bytes stored by `store`."""
    data, places = fb.operator_state(lists, **how)
    found = said(written(folder, store(folder, data), places))
    return [
        {k: v for k, v in r.items() if k not in SKIP}
        for r in found
        if r["entry"] in ("source", "transaction", "unread")
    ]


def written(folder: Path, stream: Built, places: dict[str, tuple[int, list[int]]]) -> Path:
    path = folder / "_metadata"
    managed = fb.states(stream, places)
    path.write_bytes(fb.metadata(6, [fb.operator(6, [fb.subtask(6, 1, managed=managed)])]).data)
    return path


def split(version: int, data: bytes, folder: Path) -> Cells:
    (found,) = kept(folder, {READERS: [fb.versioned(version, data)]})
    return found


@pytest.mark.parametrize(
    ("version", "data", "told"),
    [
        (0, ORDERS, {"name": "orders-3", "kind": "kafka", "offset": 812}),
        (0, fb.kafka_split("a.b_c-d", 0, -1, 9), {"name": "a.b_c-d-0", "kind": "kafka", "offset": -1, "stop": 9}),
        (0, fb.kafka_split("o", 1, -2, -3), {"name": "o-1", "kind": "kafka", "offset": -2, "stop": -3}),
        (0, fb.kafka_split("o", 1, fb.NONE), {"name": "o-1", "kind": "kafka", "offset": fb.NONE}),
        (
            1,
            fb.dynamic_split(1, "eu", ORDERS),
            {"name": "orders-3", "kind": "dynamic-kafka", "offset": 812, "detail": "eu"},
        ),
        (
            2,
            fb.dynamic_split(2, "eu", ORDERS),
            {"name": "orders-3", "kind": "dynamic-kafka", "offset": 812, "detail": "eu"},
        ),
        (
            2,
            fb.dynamic_split(2, "", ORDERS, 99),
            {"name": "orders-3", "kind": "dynamic-kafka", "offset": 812, "detail": ""},
        ),
        (1, fb.number_split("2", 5, 9), {"name": "2", "kind": "number-sequence", "offset": 5, "stop": 10}),
        (1, fb.number_split("1", 0, 2**63 - 1), {"name": "1", "kind": "number-sequence", "offset": 0}),
    ],
)
def test_splits_by_what_their_bytes_fit(tmp_path: Path, version: int, data: bytes, told: Cells) -> None:
    assert split(version, data, tmp_path) == told


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, ORDERS + b"\0"),
        (0, ORDERS[:-1]),
        (0, fb.kafka_split("no topic", 0, 1)),
        (0, fb.kafka_split("..", 0, 1)),
        (0, fb.kafka_split("", 0, 1)),
        (0, fb.kafka_split("t" * 250, 0, 1)),
        (0, fb.kafka_split("t", -1, 1)),
        (0, fb.kafka_split("t", 0, -4)),
        (2, fb.dynamic_split(1, "eu", ORDERS)),
        (1, fb.number_split("2", 9, 5)),
        (1, fb.number_split("", 5, 9)),
        (1, b"whatever a file source keeps"),
    ],
)
def test_other_splits_are_unread(tmp_path: Path, version: int, data: bytes) -> None:
    found = split(version, data, tmp_path)
    assert found["kind"] == "unknown-split"
    assert f"1 element of SourceReaderState, of serializer version {version}" in found["detail"]


@pytest.mark.parametrize(("version", "data", "fits"), [(1, ORDERS, 0), (3, fb.dynamic_split(2, "eu", ORDERS), 2)])
def test_a_split_that_fits_an_earlier_version_is_of_a_later_one(
    tmp_path: Path, version: int, data: bytes, fits: int
) -> None:
    found = split(version, data, tmp_path)
    assert found["kind"] == "later-version"
    assert f"serializer version {version}, though the bytes fit version {fits}" in found["detail"]


def test_unknown_splits_are_counted_beside_the_known(tmp_path: Path) -> None:
    elements = [fb.versioned(0, ORDERS), fb.versioned(5, b"?"), fb.versioned(0, b"!"), fb.versioned(5, b"")]
    found = kept(tmp_path, {READERS: elements})
    assert [(f["kind"], f.get("offset")) for f in found] == [
        ("kafka", 812),
        ("later-version", None),
        ("unknown-split", None),
    ]
    assert ["1 element of" in f["detail"] for f in found[1:]] == [False, True]


def test_versions_without_end_are_told_as_others(tmp_path: Path) -> None:
    found = kept(tmp_path, {READERS: [fb.versioned(-i, b"") for i in range(100)]})
    assert len(found) == 9
    assert "92 elements of SourceReaderState, of other serializer versions" in found[-1]["detail"]


topics = st.text("abz09._-", min_size=1, max_size=20).filter(lambda t: t not in (".", ".."))
positions = st.integers(-3, 2**63 - 1) | st.just(fb.NONE)


@given(topics, st.integers(0, 2**31 - 1), positions, positions)
def test_every_kafka_split_is_read(topic: str, partition: int, start: int, stop: int) -> None:
    data = fb.kafka_split(topic, partition, start, stop)
    found = fitting(flink_elements.LAYOUTS[READERS][0], 0, Cursor(data))
    assert found is not None
    expected = {
        "name": f"{topic}-{partition}",
        "kind": "kafka",
        "offset": start,
        "stop": None if stop == fb.NONE else stop,
    }
    assert [*found] == [(0, "source", expected)]


@given(st.integers(0, 3), st.binary(max_size=60))
def test_any_bytes_fit_or_do_not(version: int, data: bytes) -> None:
    for layouts, _ in flink_elements.LAYOUTS.values():
        found = fitting(layouts, version, Cursor(data))
        assert found is None or len([*found]) < 10
    fitting(flink_elements.ENUMERATORS, version, Cursor(data))


# Where the bytes are


def test_state_in_a_file_beside_the_metadata(tmp_path: Path) -> None:
    def beside(folder: Path, data: bytes) -> Built:
        (folder / "77-88").write_bytes(data)
        return fb.relative("77-88", len(data))

    def moved(folder: Path, data: bytes) -> Built:
        (folder / "77-88").write_bytes(data)
        return fb.absolute("s3://elsewhere/chk-8/77-88", len(data))

    def inside(folder: Path, data: bytes) -> Built:
        (folder / "77-88").write_bytes(b"???" + data + b"???")
        return fb.segment("hdfs://elsewhere/77-88", 3, len(data), 0)

    for store in (beside, moved, inside):
        (found,) = kept(tmp_path, {READERS: [fb.versioned(0, ORDERS)]}, store)
        assert found == {"name": "orders-3", "kind": "kafka", "offset": 812}


def test_state_of_a_missing_file_is_told_with_its_name(tmp_path: Path) -> None:
    for stream, name in ((fb.relative("77-88", 99), "77-88"), (fb.absolute("s3://b/c", 99), "s3://b/c")):
        (found,) = kept(tmp_path, {READERS: [fb.versioned(0, ORDERS)]}, lambda *_, stream=stream: stream)
        assert (found["kind"], found["file"]) == ("source-state-elsewhere", name)
    (found,) = kept(tmp_path, {READERS: [fb.versioned(0, ORDERS)]}, lambda *_: fb.relative("../../etc/passwd", 99))
    assert found["kind"] == "source-state-elsewhere"


def test_why_state_is_not_read_is_true(tmp_path: Path) -> None:
    """Missing, not looked at and not readable are told apart, with the places that were looked at."""

    def told(stream: Built) -> str:
        (found,) = kept(tmp_path, {READERS: [fb.versioned(0, ORDERS)]}, lambda *_: stream)
        return str(found["detail"])

    assert told(fb.relative("77", 99)) == "77 is missing: there is no 77"
    assert told(fb.relative("../77", 99)) == "../77 leads out of the snapshot's folder, and was not looked at"
    outside = "s3://b/c lies outside PATH, and there is no c: say where it is with --map OLD=NEW"
    assert told(fb.absolute("s3://b/c", 99)) == outside
    (tmp_path / "folder").mkdir()
    assert told(fb.relative("folder", 99)).startswith("folder cannot be read: ")
    assert told(fb.absolute(f"file:{tmp_path}/c", 99)) == f"file:{tmp_path}/c is missing: there is no c"


def test_a_map_says_where_state_is(tmp_path: Path) -> None:
    """Where a map says that a file is, no other place is looked at: not the metadata's folder, nor the job's."""
    maps = (("file:///mnt/a", "/now"), ("s3://b", "s3://c"))
    split = Split(f"/r/{JOB}/chk-1/_metadata", f"{JOB}/chk-1/_metadata", READER, 0, 9, 9, maps)
    assert candidates(split, f"file:/mnt/a/{JOB}/taskowned/7").uris == [f"/now/{JOB}/taskowned/7"]
    assert candidates(split, f"s3://b/{JOB}/7").uris == [f"s3://c/{JOB}/7"]
    assert candidates(split, f"s3://b/{JOB}/7?endpoint_override=http://elsewhere").uris == []
    assert candidates(split, "file:/mnt/a/../7").uris == [f"/r/{JOB}/chk-1/7"]
    assert candidates(split, "file:/mnt/b/7").uris == [f"/r/{JOB}/chk-1/7"]
    assert candidates(split, "77").uris == [f"/r/{JOB}/chk-1/77"]


def test_state_files_are_read_up_to_a_limit_for_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two subtasks finds nothing left; a handle's size alone costs nothing."""
    data, places = fb.operator_state({READERS: [fb.versioned(0, ORDERS)]})
    monkeypatch.setattr("cklog.budgets._in_force", Budgets(16 * (2 * len(data) - 1)))
    (tmp_path / "77").write_bytes(data)
    managed = fb.states(fb.relative("77", 1 << 60), places)
    path = tmp_path / "_metadata"
    path.write_bytes(fb.metadata(6, [fb.operator(6, [fb.subtask(6, i, managed=managed) for i in range(2)])]).data)
    found = [r for r in said(path) if r["entry"] in ("source", "unread")]
    assert [(r["subtask"], r["kind"]) for r in found] == [(0, "kafka"), (1, "source-state-elsewhere")]


JOB = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("path", "stored", "expected"),
    [
        ("chk-1/_metadata", "77", ["/r/chk-1/77"]),
        ("chk-1/_metadata", "../77", []),
        ("chk-1/_metadata", "file:/x/77", ["/r/chk-1/77"]),
        (f"{JOB}/chk-1/_metadata", f"file:/x/{JOB}/shared/7", [f"/r/{JOB}/chk-1/7", f"/r/{JOB}/shared/7"]),
        (f"{JOB}/chk-1/_metadata", f"file:/x/{JOB}/../7", [f"/r/{JOB}/chk-1/7"]),
        (f"{JOB}/chk-1/_metadata", f"file:/x/{JOB}//7", [f"/r/{JOB}/chk-1/7"]),
        (f"{JOB}/chk-1/_metadata", f"/x/{JOB}", [f"/r/{JOB}/chk-1/{JOB}"]),
        (f"{JOB}/chk-1/_metadata", f"/x/{'ab' * 16}/shared/7", [f"/r/{JOB}/chk-1/7"]),
    ],
)
def test_a_stored_name_never_leads_out_of_the_job_s_folder(path: str, stored: str, expected: list[str]) -> None:
    assert candidates(Split(f"/r/{path}", path, READER, 0, 9, 9), stored).uris == expected


@pytest.mark.parametrize("stored", ["77?endpoint_override=http://elsewhere", "s3://b/7?7", "7#7", f"s3://b/{JOB}/7?7"])
def test_a_stored_name_never_says_with_whom_to_speak(stored: str) -> None:
    path = f"{JOB}/chk-1/_metadata"
    for uri in candidates(Split(f"s3://b/r/{path}?region=x", path, READER, 0, 9, 9), stored).uris:
        assert uri == f"s3://b/r/{JOB}/chk-1/elsewhere?region=x"
    assert candidates(Split(f"/r/{path}", path, READER, 0, 9, 9), stored).uris != []


def test_compressed_state_is_unread(tmp_path: Path) -> None:
    (found,) = kept(tmp_path, {READERS: [fb.versioned(0, ORDERS)]}, compressed=True)
    assert found["kind"] == "compressed-operator-state"
    (found,) = kept(tmp_path, {READERS: [fb.versioned(0, ORDERS)]}, version=5)
    assert found["kind"] == "kafka"


def test_the_source_before_kafka_source_is_unread(tmp_path: Path) -> None:
    found = kept(tmp_path, {"topic-partition-offset-states": [b"1", b"2"], "a state of the user's": [b"x"]})
    assert [f["kind"] for f in found] == ["legacy-kafka-consumer"]


def test_empty_lists_say_nothing_and_open_nothing(tmp_path: Path) -> None:
    assert kept(tmp_path, {READERS: [], WRITERS: []}, lambda *_: fb.relative("not there", 9)) == []


def test_elements_that_cannot_be_are_unread_and_cost_only_themselves(tmp_path: Path) -> None:
    data, places = fb.operator_state({READERS: [fb.versioned(0, ORDERS)] * 2})
    first, second = places[READERS][1]
    for wrong in ([first, 10**9], [-1, first], [first, first], [second, first], [first + 1, second]):
        found = said(written(tmp_path, fb.inline(data), {READERS: (0, wrong)}))
        assert len(of(found, "source")) == 1
        assert [u["kind"] for u in of(found, "unread")] == ["corrupt-source-state"]


def test_a_file_that_is_shorter_than_its_handle_says(tmp_path: Path) -> None:
    def cut(folder: Path, data: bytes) -> Built:
        (folder / "77").write_bytes(data[:-1])
        return fb.relative("77", len(data))

    found = kept(tmp_path, {READERS: [fb.versioned(0, ORDERS)] * 2}, cut)
    assert [f["kind"] for f in found] == ["kafka", "corrupt-source-state"]


# Transactions


def test_transactions_of_a_writer(tmp_path: Path) -> None:
    assert kept(tmp_path, {WRITERS: [fb.versioned(2, WRITER)]}) == [
        {"name": "sink", "kind": "prefix"},
        {"name": "sink-0-7", "kind": "open", "checkpoint": 7},
        {"name": "sink-0-8", "kind": "open", "checkpoint": 8},
    ]
    assert kept(tmp_path, {WRITERS: [fb.versioned(1, fb.utf("sink"))]}) == [{"name": "sink", "kind": "prefix"}]
    for version, data in ((2, WRITER[:-1]), (2, WRITER + b"\0"), (1, fb.utf(""))):
        assert [f["kind"] for f in kept(tmp_path, {WRITERS: [fb.versioned(version, data)]})] == ["unknown-writer"]
    assert [f["kind"] for f in kept(tmp_path, {WRITERS: [fb.versioned(3, WRITER)]})] == ["later-version"]


@pytest.mark.parametrize("versions", [(0, 0), (0, 1), (1, 1), (1, 2)])
def test_transactions_to_be_committed(tmp_path: Path, versions: tuple[int, int]) -> None:
    both = [fb.committable("sink-0-7", 4001, 2), fb.committable("sink-0-8", 4002, 0)]
    found = kept(tmp_path, {COMMITTERS: [fb.versioned(2, fb.collector(7, both, versions))]})
    assert found == [
        {"name": "sink-0-7", "kind": "pending", "checkpoint": 7, "detail": "producer 4001 epoch 2"},
        {"name": "sink-0-8", "kind": "pending", "checkpoint": 7, "detail": "producer 4002 epoch 0"},
    ]


def test_committables_before_flink_1_15_have_no_checkpoint(tmp_path: Path) -> None:
    old = fb.COLLECTOR + fb.listed(1, [fb.committable("sink-0-7", 4001, -1)])
    (found,) = kept(tmp_path, {COMMITTERS: [fb.versioned(1, old)]})
    assert found == {"name": "sink-0-7", "kind": "pending", "detail": "producer 4001 epoch -1"}


def test_requests_have_ends(tmp_path: Path) -> None:
    for fate, kind in enumerate(("pending", "pending", "failed", "committed")):
        data = fb.collector(7, [fb.committable("t", 1, 1)], fate=fate)
        assert [f["kind"] for f in kept(tmp_path, {COMMITTERS: [fb.versioned(2, data)]})] == [kind]


def test_other_committables_are_unread(tmp_path: Path) -> None:
    good = fb.collector(7, [fb.committable("t", 1, 1)])
    odd = fb.collector(7, [b"a file to be renamed"])
    for version, data in (
        (2, odd),
        (2, good[:-1]),
        (2, good + b"\0"),
        (1, good),
        (2, b"\0\0\0\0" + good[4:]),
    ):
        found = kept(tmp_path, {COMMITTERS: [fb.versioned(version, data)]})
        assert [f["kind"] for f in found] == ["unknown-committable"]
    assert kept(tmp_path, {COMMITTERS: [fb.versioned(2, fb.collector(7, []))]}) == []


def test_what_is_wrong_in_operator_state_is_no_damage_of_the_metadata(tmp_path: Path) -> None:
    data, places = fb.operator_state({READERS: [fb.versioned(0, ORDERS)], WRITERS: [fb.versioned(2, WRITER)]})
    for at in range(len(data)):
        path = written(tmp_path, fb.inline(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]), places)
        found, damage = scanned(path)
        assert {d.id for d in damage} <= {"unknown-version"}
        assert damage or found[-1]["entry"] == "snapshot"

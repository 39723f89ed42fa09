"""Numbers and names in Flink's snapshots that a later version may write, each as it stands in the bytes.

What is known, by Flink's source: handles of the types 0 to 17; `_metadata` 1 to 7; state of the versions 1 to 6, with
serializers' own 2, 3 and 1; data in flight 0; Kafka's splits 0 and enumerators 1 to 3; collectors of committables 1 and
2; files of sinks 1 and 2, their buckets 2 and 3. Elements of lists name no class: of a class that nothing shows, by
other state or by bytes that fit an earlier version, no version is a later one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import flink as fb
from tests.builders.flink import Built
from tests.builders.flink_folders import OLD
from tests.builders.sinks import flink as sinks
from tests.reading.flink_folders import asked, ids, restored
from tests.reading.unknown_answers import keeps_all, leaves_open, said

NEWEST = f"{OLD}/chk-7/_metadata"
LATER = (9, 99, 255)
SPLIT = fb.kafka_split("orders", 3, 812)
KNOWN = fb.utf("orders") + fb.i32(3)
PLACE = sinks.place("/out/part-0", "/out/.part-0.inprogress.1", 1135)
WRITER = fb.utf("sink") + fb.i32(0, 1, 0, 0)

Operators = list[Built]


def job(root: Path, operators: Operators, version: int = 6, properties: Built | None = None) -> Path:
    """A job with a sound checkpoint 6 and a newer one of these operators."""
    older = root / OLD / "chk-6"
    older.mkdir(parents=True, exist_ok=True)
    (older / "_metadata").write_bytes(fb.metadata(6, one(keyed=fb.key_groups(3, fb.empty())), checkpoint=6).data)
    data = fb.metadata(version, operators, checkpoint=7, properties=properties).data
    return written(root, data)


def written(root: Path, data: bytes) -> Path:
    folder = root / OLD / "chk-7"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_metadata").write_bytes(data)
    return root


def one(**state: Built) -> Operators:
    return [fb.operator(6, [fb.subtask(6, **state)], parallelism=1)]  # type: ignore[arg-type]


def listed(name: str, version: int, element: bytes, state: int = 6, coordinator: bytes | None = None) -> Operators:
    data, places = fb.operator_state({name: [fb.versioned(version, element)]}, state)
    managed = fb.states(fb.inline(data), places)
    return [fb.operator(6, [fb.subtask(6, managed=managed)], parallelism=1, coordinator=coordinator)]


def enumerator(version: int) -> bytes:
    status = fb.i32(0) if version > 1 else b""
    return fb.coordinator(version, fb.i32(1) + KNOWN + status + (b"\1" if version > 1 else b""))


def keyed_head(version: int = 6, snapshot: int = 2, kind: int = 0, simple: int = 3) -> bytes:
    """Keyed state up to its key groups: a value by key, of Flink's simple serializers."""

    def serializer() -> bytes:
        return fb.i32(snapshot) + fb.simple_serializer("Long")[:-4] + fb.i32(simple)

    options = fb.i32(1) + fb.utf("KEYED_STATE_TYPE") + fb.utf("VALUE")
    roles = b"".join(fb.utf(role) + serializer() for role in ("NAMESPACE_SERIALIZER", "VALUE_SERIALIZER"))
    state = fb.utf("count") + fb.i32(kind) + options + fb.i32(2) + roles
    return fb.i32(version) + b"\0" + serializer() + struct.pack(">H", 1) + state


def heap(data: bytes, groups: int = 128) -> tuple[bytes, tuple[int, ...]]:
    """Keyed state of the heap: behind its head each key group with its number, its state and how many entries."""
    places = [len(data) + 10 * number for number in range(groups)]
    entries = b"".join(fb.i32(number) + struct.pack(">Hi", 0, 0) for number in range(groups))
    return data + entries, tuple(places)


def grouped(stream: Built, places: tuple[int, ...]) -> Built:
    return Built(b"\x03" + fb.i32(0) + fb.offsets(places)) + stream


def in_heap(data: bytes) -> Operators:
    data, places = heap(data)
    return one(keyed=grouped(fb.inline(data), places))


def scoped(scope: int) -> Built:
    return Built(
        fb.segment("file:/a", 0, 2, 0).data.replace(fb.i32(0) + fb.utf("file:/a"), fb.i32(scope) + fb.utf("file:/a"))
    )


def odd(kind: int, stream: Built) -> Built:
    """A handle with another byte for its type."""
    return Built(bytes([kind]) + stream.data[1:])


FIELDS: dict[str, tuple[int, Callable[[int], Operators]]] = {
    "a stream handle": (18, lambda n: one(keyed=fb.key_groups(3, odd(n, fb.empty())))),
    "a handle of operator state": (18, lambda n: one(managed=odd(n, fb.states(fb.empty())))),
    "a handle of raw operator state": (18, lambda n: one(raw=odd(n, fb.states(fb.empty())))),
    "a handle of keyed state": (18, lambda n: one(keyed=odd(n, fb.key_groups(3, fb.empty())))),
    "a materialized handle": (18, lambda n: one(keyed=fb.changelog([odd(n, fb.null())], []))),
    "a changing handle": (18, lambda n: one(keyed=fb.changelog([], [odd(n, fb.null())]))),
    "a file of an increment": (18, lambda n: one(keyed=fb.changes([odd(n, fb.empty())]))),
    "a file of a tree": (18, lambda n: one(keyed=fb.incremental(fb.null(), [odd(n, fb.empty())]))),
    "channels": (18, lambda n: one(inputs=[odd(n, fb.channel(1, 0, 0, 9, fb.empty()))])),  # type: ignore[arg-type]
    "the mode of a list": (3, lambda n: one(managed=fb.states(fb.empty(), {"s": (n, [])}))),
    "the scope of a segment": (2, lambda n: one(keyed=fb.key_groups(3, scoped(n)))),
    "operator state": (7, lambda n: listed("SourceReaderState", 0, SPLIT, n)),
    "keyed state": (7, lambda n: in_heap(keyed_head(n))),
    "the snapshot of a serializer": (3, lambda n: in_heap(keyed_head(snapshot=n))),
    "the kind of a state": (4, lambda n: in_heap(keyed_head(kind=n))),
    "a simple serializer": (4, lambda n: in_heap(keyed_head(simple=n))),
    "data in flight": (1, lambda n: one(inputs=[fb.channel(1, 0, 0, 9, fb.inline(fb.i32(n) + b"bytes"))])),  # type: ignore[arg-type]
    "a split of Kafka": (1, lambda n: listed("SourceReaderState", n, SPLIT, coordinator=enumerator(2))),
    "an enumerator": (4, lambda n: listed("SourceReaderState", 0, SPLIT, coordinator=enumerator(n))),
    "a bucket of files": (4, lambda n: listed("writer_raw_states", n, sinks.file_bucket(None))),
    "a collector": (3, lambda n: listed("streaming_committer_raw_states", n, fb.collector(7, []))),
    "a checkpoint in a collector": (
        2,
        lambda n: listed("streaming_committer_raw_states", 2, fb.COLLECTOR + fb.listed(n, [fb.i64(7) + fb.i32(1)])),
    ),
    "the fate of a committable": (
        4,
        lambda n: listed("streaming_committer_raw_states", 2, fb.collector(7, [fb.committable("t", 1, 1)], fate=n)),
    ),
    "a committable of files": (
        3,
        lambda n: listed("streaming_committer_raw_states", 2, sinks.collected(7, [(n, sinks.file_committable(None))])),
    ),
    "a pending file": (
        3,
        lambda n: listed(
            "streaming_committer_raw_states",
            2,
            sinks.collected(7, [(2, sinks.file_committable(renumbered(sinks.pending_file(PLACE), n)))]),
        ),
    ),
    "the place of a file": (
        2,
        lambda n: listed(
            "streaming_committer_raw_states",
            2,
            sinks.collected(7, [(2, sinks.file_committable(sinks.pending_file(PLACE, of=n)))]),
        ),
    ),
}
"""By what it is: the first number that no version has, and a job with any such number."""


def renumbered(versioned: bytes, version: int) -> bytes:
    return fb.i32(version) + versioned[4:]


QUICK = ("a stream handle", "a materialized handle", "keyed state", "a split of Kafka", "a collector")
"""What is asked of by default besides the first number that no version has."""


def _rows() -> list[object]:
    rows: list[object] = []
    for field, (first, _) in FIELDS.items():
        top = 127 if first == 18 or field.startswith("the mode") else 255
        for number in sorted({first, *(n for n in LATER if first < n <= top)}):
            quick = number == first or (field in QUICK and number == 99)
            rows.append(pytest.param(field, number, marks=() if quick else pytest.mark.slow))
    return rows


@pytest.mark.parametrize(("field", "number"), _rows())
def test_a_later_number_leaves_the_line_open(field: str, number: int, tmp_path: Path) -> None:
    job(tmp_path, FIELDS[field][1](number))
    leaves_open(tmp_path, NEWEST, shown=False)


OWN = {
    "a split": lambda n: listed("SourceReaderState", n, b"somebody's own"),
    "an enumerator": lambda n: listed("SourceReaderState", n, b"own", coordinator=fb.coordinator(n, b"own")),
    "a writer": lambda n: listed("writer_raw_states", n, b"somebody's own"),
    "a committable": lambda n: listed(
        "streaming_committer_raw_states", 2, sinks.collected(7, [(n, b"somebody's own")])
    ),
}


@pytest.mark.parametrize("version", [0, 4, 9, 200])
@pytest.mark.parametrize("what", OWN)
def test_state_of_a_class_that_cklog_does_not_know_leaves_its_snapshot_known(
    what: str, version: int, tmp_path: Path
) -> None:
    """Of such a class cklog knows no version: the position, or what a sink commits, is unknown, whatever it is."""
    answer = asked("recovery-line", job(tmp_path, OWN[what](version)))
    of_source = what in ("a split", "an enumerator")
    assert (answer["exit"], answer["result"]["line"][0]["checkpoint"]) == (5 if of_source else 0, 7)
    assert {f["id"] for f in answer["findings"]} >= {"unread-state"}
    assert "unknown-version" not in ids(answer)
    [run] = answer["result"]["runs"]
    assert "in the findings can be restored" in json.dumps(run["unchecked"])
    assert [source["offset"] for source in answer["result"]["sources"]] == ["unknown"] * of_source


ALONE = {
    "a split of Kafka": lambda n: listed("SourceReaderState", n, SPLIT),
    "a writer of Kafka": lambda n: listed("writer_raw_states", n, fb.utf("a-prefix")),
    "a committable of Kafka": lambda n: listed(
        "streaming_committer_raw_states", 2, sinks.collected(7, [(n, fb.committable("an-id", 7, 3))])
    ),
}


@pytest.mark.parametrize("version", [3, 9, 200])
@pytest.mark.parametrize("what", ALONE)
def test_what_fits_an_earlier_version_of_a_known_class_is_of_a_later_one(
    what: str, version: int, tmp_path: Path
) -> None:
    """Alone in its operator: no other state shows whose it is."""
    answer = asked("recovery-line", job(tmp_path, ALONE[what](version)))
    assert (answer["exit"], answer["result"]["action"]) == (5, "undetermined")
    [found] = [f for f in answer["findings"] if f["id"] == "unknown-version"]
    assert f"serializer version {version}, though the bytes fit version" in found["message"]


@pytest.mark.parametrize("version", [1, 9])
def test_a_later_version_of_a_known_source_leaves_its_snapshot_the_newest(version: int, tmp_path: Path) -> None:
    answer = asked("recovery-line", job(tmp_path, FIELDS["a split of Kafka"][1](version)))
    assert (answer["exit"], answer["result"]["line"][0]["checkpoint"]) == (5, 7)
    assert answer["result"]["action"] == "undetermined"
    assert [source["offset"] for source in answer["result"]["sources"]] == ["unknown"]
    [found] = [f for f in answer["findings"] if f["id"] == "unknown-version"]
    assert (found["severity"], found["effect"]) == ("error", "unknown")
    assert "where the source resumes is unknown" in found["message"]
    keeps_all(tmp_path, "--jobs-stopped", "--keep", "1")


@pytest.mark.parametrize("version", [8, 9, 99, 255])
def test_metadata_of_a_later_version(version: int, tmp_path: Path) -> None:
    job(tmp_path, one(keyed=fb.key_groups(3, fb.empty())))
    data = (tmp_path / NEWEST).read_bytes()
    written(tmp_path, data[:4] + fb.i32(version) + data[8:])
    leaves_open(tmp_path, NEWEST)
    keeps_all(tmp_path, "--jobs-stopped", "--keep", "1")


@pytest.mark.parametrize("version", [6, 99])
def test_properties_that_a_later_java_wrote(version: int, tmp_path: Path) -> None:
    job(tmp_path, one(keyed=fb.key_groups(3, fb.empty())), properties=fb.properties())
    data = (tmp_path / NEWEST).read_bytes()
    assert data.count(b"\xac\xed\0\5") == 1
    written(tmp_path, data.replace(b"\xac\xed\0\5", b"\xac\xed" + struct.pack(">H", version)))
    leaves_open(tmp_path, NEWEST, shown=False)


@pytest.mark.parametrize("name", ["Region Checkpoint", "Detached Savepoint"])
def test_a_kind_of_snapshot_that_is_not_known(name: str, tmp_path: Path) -> None:
    job(tmp_path, one(keyed=fb.key_groups(3, fb.empty())), properties=fb.properties((), name))
    leaves_open(tmp_path, NEWEST, shown=False)


@pytest.mark.parametrize(("option", "value"), [("VALUE", "TREE"), ("KEYED_STATE_TYPE", None)])
def test_a_kind_of_state_that_is_not_known(option: str, value: str | None, tmp_path: Path) -> None:
    """In another file than the metadata; without its option a state is damaged."""
    data = keyed_head().replace(fb.utf(option), fb.utf(value or "KEYED_STATE_TYPO"))
    data, places = heap(data)
    job(tmp_path, one(keyed=grouped(fb.relative("state", len(data)), places)))
    (tmp_path / OLD / "chk-7/state").write_bytes(data)
    if value is not None:
        leaves_open(tmp_path, f"{OLD}/chk-7/state", shown=False)
    else:
        assert "corrupt-file" in ids(asked("recovery-line", tmp_path))


@pytest.mark.parametrize("fields", [{"version": 7}, {"version": 99}, {"snapshot": 3}, {"kind": 4}, {"simple": 4}])
def test_a_file_of_state_of_a_later_version(fields: dict[str, int], tmp_path: Path) -> None:
    data, places = heap(keyed_head(**fields))
    job(tmp_path, one(keyed=grouped(fb.relative("state", len(data)), places)))
    (tmp_path / OLD / "chk-7/state").write_bytes(data)
    leaves_open(tmp_path, f"{OLD}/chk-7/state", shown=fields == {"version": 7})
    keeps_all(tmp_path, "--jobs-stopped", "--keep", "1")


@pytest.mark.parametrize("version", [-1, 0])
def test_a_number_that_never_was_is_damage(version: int, tmp_path: Path) -> None:
    data, places = heap(keyed_head(version))
    job(tmp_path, one(keyed=grouped(fb.relative("state", len(data)), places)))
    (tmp_path / OLD / "chk-7/state").write_bytes(data)
    answer = asked("recovery-line", tmp_path)
    assert "corrupt-file" in ids(answer)
    assert "unknown-version" not in ids(answer)


def test_an_older_checkpoint_of_a_later_version_is_a_warning(tmp_path: Path) -> None:
    job(tmp_path, one(keyed=fb.key_groups(3, fb.empty())))
    older = tmp_path / OLD / "chk-6/_metadata"
    older.write_bytes(older.read_bytes().replace(fb.MAGIC + fb.i32(6), fb.MAGIC + fb.i32(99)))
    code, answer = said("recovery-line", tmp_path)
    assert code == 0
    assert {(f["id"], f["severity"]) for f in answer["findings"] if f["subject"] == f"{OLD}/chk-6/_metadata"} == {
        ("unknown-version", "warning")
    }


# Key groups inside the metadata


def test_inlined_key_groups_that_are_right(tmp_path: Path) -> None:
    job(tmp_path, in_heap(keyed_head()))
    assert restored(asked("recovery-line", tmp_path))
    assert asked("recovery-line", tmp_path)["exit"] == 0


@pytest.mark.parametrize("group", [0, 1, 64, 127])
@pytest.mark.parametrize("bit", [0, 5, 30])
def test_no_flipped_bit_of_an_inlined_key_group_s_number_is_restored(group: int, bit: int, tmp_path: Path) -> None:
    """Flink 1.20.5 fails to restore it: another key group than the handle says begins there."""
    data, places = heap(keyed_head())
    at = places[group]
    wrong = data[:at] + fb.i32(group ^ 1 << bit) + data[at + 4 :]
    job(tmp_path, one(keyed=grouped(fb.inline(wrong), places)))
    answer = asked("recovery-line", tmp_path)
    assert answer["exit"] == 3
    assert {f["id"] for f in answer["findings"] if f["subject"] == NEWEST} == {"corrupt-metadata"}


def test_an_inlined_key_group_begins_inside_its_state(tmp_path: Path) -> None:
    data, places = heap(keyed_head())
    job(tmp_path, one(keyed=grouped(fb.inline(data[:-10]), places)))
    assert asked("recovery-line", tmp_path)["exit"] == 3

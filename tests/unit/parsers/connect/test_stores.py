"""Topics, exports and files of offsets: the newest entry that counts, and what is said of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cklog.inputs.connectors import RecordFate, StoredOffsets
from cklog.parsers.connect.entries import NotAnEntry, is_compact, key_of, offset_of
from cklog.parsers.connect.parser import Connect
from cklog.parsers.connect.records import source_of
from cklog.storage import Root
from tests.builders.connect import Topic, change, compact, entry, java_map, key
from tests.builders.kafka import Row

P = {"server": "s"}


def all_count(folder: str, producer: int, offset: int) -> RecordFate:
    return "counts"


def stored(root: Path) -> StoredOffsets:
    return Connect(Root(str(root))).offsets(all_count)


def newest(root: Path) -> dict[str, object]:
    return {one.connector: one.offset for one in stored(root).entries}


def ids(root: Path) -> list[str]:
    return sorted(finding.id for finding in stored(root).findings)


def test_the_newest_record_of_a_key_holds_and_a_tombstone_deletes(tmp_path: Path) -> None:
    log = Topic().add(entry("a", P, {"pos": 1}), entry("b", P, {"pos": 1}))
    log.add(entry("a", P, {"pos": 2})).add(entry("b", P, None))
    log.write(tmp_path / "connect-offsets-0")
    assert newest(tmp_path) == {"a": {"pos": 2}, "b": None}
    assert [(one.number, one.older) for one in stored(tmp_path).entries] == [(2, 1), (3, 1)]


def test_a_key_written_by_hand_with_spaces_deletes_nothing(tmp_path: Path) -> None:
    """Workers compare keys byte by byte: the well-known tombstone that has no effect."""
    log = Topic().add(entry("a", P, {"pos": 7})).add(Row(None, b'["a", {"server": "s"}]'))
    log.write(tmp_path / "connect-offsets-0")
    assert newest(tmp_path) == {"a": {"pos": 7}}
    assert ids(tmp_path) == ["foreign-offset-key"]


def test_one_key_in_two_partitions_of_the_topic_is_not_guessed_at(tmp_path: Path) -> None:
    Topic().add(entry("a", P, {"pos": 7})).write(tmp_path / "connect-offsets-0")
    Topic().add(entry("a", P, {"pos": 8})).write(tmp_path / "connect-offsets-1")
    assert ids(tmp_path) == ["ambiguous-offset"]
    assert [one.ambiguous for one in stored(tmp_path).entries] == [True]


def test_records_that_are_none_are_told_and_the_others_read(tmp_path: Path) -> None:
    log = Topic().add(Row(b"{}", b"no json"), Row(b"{}", b'["a"]'), entry("b", P, {"n": 1}), Row(b"[1]", key("c", P)))
    log.write(tmp_path / "connect-offsets-0")
    found = stored(tmp_path)
    assert {one.connector: (one.offset, one.ambiguous) for one in found.entries} == {
        "b": ({"n": 1}, False),
        "c": (None, True),
    }
    (finding,) = found.findings
    assert (finding.id, "3 records" in finding.message) == ("bad-record", True)


EXPORTS = {
    "kcat": "".join(
        json.dumps({"topic": "t", "partition": 0, "offset": n, "ts": 5, "key": k, "payload": v}) + "\n"
        for n, k, v in ((9, '["a",{}]', '{"n":9}'), (4, '["a",{}]', '{"n":4}'), (10, '["b",{}]', None))
    ),
    "console": '["a",{}]\t{"n":4}\n["a",{}]\t{"n":9}\n["b",{}]\tnull\n',
    "stamped": (
        'CreateTime:5\tPartition:0\tOffset:9\tNO_HEADERS\t["a",{}]\t{"n":9}\n'
        'CreateTime:5\tPartition:0\tOffset:4\tNO_HEADERS\t["a",{}]\t{"n":4}\n'
        'CreateTime:5\tPartition:0\tOffset:10\tNO_HEADERS\t["b",{}]\tnull\n'
    ),
    "by hand": (
        '{"key": ["a",{}], "value": {"n":4}}\r\n\n{"key": ["a",{}], "value": {"n":9}}\n{"key":["b",{}],"value":null}'
    ),
}


@pytest.mark.parametrize("form", EXPORTS)
def test_exports_of_every_tool_tell_the_same(form: str, tmp_path: Path) -> None:
    (tmp_path / "connect-offsets.txt").write_text(EXPORTS[form])
    assert newest(tmp_path) == {"a": {"n": 9}, "b": None}
    assert ids(tmp_path) == []


def test_a_torn_last_line_of_an_export_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "connect-offsets.jsonl").write_text('{"key": ["a",{}], "value": {"n":4}}\n{"key": ["a",{}], "val')
    assert newest(tmp_path) == {"a": {"n": 4}}
    assert ids(tmp_path) == ["bad-record"], "an export is cut short by a tool, and the topic has the rest"


def test_an_export_whose_first_line_is_damaged_is_one_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "connect-offsets.jsonl").write_text('{"key": ["b",{}], "val\n{"key": ["a",{}], "value": {"n":4}}\n')
    assert newest(tmp_path) == {"a": {"n": 4}}
    assert ids(tmp_path) == ["bad-record"]
    assert Connect.runs_below(Root(str(tmp_path))) == [""]


@pytest.mark.parametrize(
    ("data", "found"), [(java_map([(key("a", P), b"{}")])[:-9], ["cut-offsets-file"]), (b"", ["cut-offsets-file"])]
)
def test_a_file_that_is_cut_short_is_no_file_to_a_worker(data: bytes, found: list[str], tmp_path: Path) -> None:
    (tmp_path / "connect.offsets").write_bytes(data)
    assert (newest(tmp_path), ids(tmp_path)) == ({}, found)


def test_a_file_that_is_something_else_is_no_store_of_offsets(tmp_path: Path) -> None:
    (tmp_path / "connect.offsets").write_bytes(b"\xac\xed\x00\x05\x73\x72\x00\x01X")
    assert ids(tmp_path) == ["corrupt-offsets-file"]
    (tmp_path / "connect.offsets").write_bytes(java_map([(key("a", P), b"{}")]) + b"!")
    assert (newest(tmp_path), ids(tmp_path)) == ({"a": {}}, ["corrupt-file"])


def test_what_is_found_below_a_folder(tmp_path: Path) -> None:
    """A broker's own data folder stays one of Kafka; a copy of its topic is one of Connect."""
    Topic().add(entry("a", P, {})).write(tmp_path / "copy" / "my_connect_offsets-3")
    Topic().add(entry("a", P, {})).write(tmp_path / "broker" / "connect-offsets-0")
    (tmp_path / "broker" / "meta.properties").write_text("version=1\n")
    Topic().add(Row(b"v", b"k")).write(tmp_path / "data" / "orders-0")
    (tmp_path / "offsets.txt").write_text("my notes\n")
    (tmp_path / "worker").mkdir()
    (tmp_path / "worker" / "connect.offsets").write_bytes(java_map([]))
    assert Connect.runs_below(Root(str(tmp_path))) == ["copy", "worker"]


def test_a_topic_of_another_name_is_known_by_its_keys(tmp_path: Path) -> None:
    Topic().add(entry("a", P, {"n": 1})).write(tmp_path / "positions-0")
    Topic().add(Row(b"v", b"k")).write(tmp_path / "orders-0")
    assert Connect(Root(str(tmp_path))).topics() == ("positions",)
    assert newest(tmp_path) == {"a": {"n": 1}}


def test_source_blocks_are_found_under_schemas_and_lines_of_kcat() -> None:
    row = change({"file": "b.1", "pos": 4}, 1)
    assert row.value is not None
    assert source_of(row.value) == {"file": "b.1", "pos": 4}
    assert source_of(compact({"key": None, "payload": row.value.decode()})) == {"file": "b.1", "pos": 4}
    assert [source_of(value) for value in (b"\0\0\0\0\1avro", b"{}", b'"text"', b'{"id": 7}')] == [None] * 4


@pytest.mark.parametrize("data", [b"", b"\xff", b"NaN", b"[" * 9000, b'{"a":' * 600, b"1" * 5000])
def test_values_that_are_no_maps_are_refused(data: bytes) -> None:
    with pytest.raises(NotAnEntry):
        offset_of(data)
    with pytest.raises(NotAnEntry):
        key_of(data)


def test_a_compact_key_may_hold_spaces_in_names() -> None:
    assert is_compact(compact(["a b", {"x": 'q" \\'}]))
    assert not is_compact(b'["a",\n{}]')


@pytest.mark.parametrize(
    ("left", "id"),
    [
        (b'{"topic": "connect-offsets", "partition": 0, "off', "bad-record"),
        (b"\0" * 99, "bad-record"),
        (b"", "empty-file"),
    ],
)
def test_an_export_of_which_nothing_can_be_read_is_told(tmp_path: Path, left: bytes, id: str) -> None:
    """What is called so is an export: whatever it held is missing in the answer, which says so."""
    (tmp_path / "connect-offsets.jsonl").write_bytes(left)
    assert Connect.recognises(Root(str(tmp_path)))
    assert ids(tmp_path) == [id]


@pytest.mark.parametrize("name", ["offsets.txt", "connect-offset-flush.json", "kafka-connect-offsets-readme.txt"])
def test_other_files_with_offsets_in_their_names_are_none(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("the offsets of last week are in the wiki\n")
    assert not Connect.recognises(Root(str(tmp_path)))

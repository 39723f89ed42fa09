"""Stores of connectors' offsets: the compaction of a topic, and files that are anything."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cklog.parsers.connect.java_map import NotThisMap, read_map
from cklog.unknown_formats import UnknownFormat
from tests.builders.connect import Topic, entry, java_map, key
from tests.builders.kafka import ABORT, COMMIT
from tests.examples import examples
from tests.program import cklog

PAIRS = st.lists(st.tuples(st.none() | st.binary(max_size=30), st.none() | st.binary(max_size=60)), max_size=12)


def ended(data: bytes) -> tuple[int, int]:
    """How many pairs were read, none where it was refused, and at which byte that was."""
    try:
        found = read_map(data)
    except NotThisMap as refused:
        return 0, refused.at
    except UnknownFormat:
        return 0, 0
    return len(found.pairs), found.end


@given(PAIRS)
def test_every_map_is_read_as_it_was_written(pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    found = read_map(java_map(pairs))
    assert [(pair.key, pair.value) for pair in found.pairs] == pairs


@given(PAIRS, st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4), st.data())
def test_a_map_with_changed_bytes_is_read_or_refused(
    pairs: list[tuple[bytes | None, bytes | None]], changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Never anything else, and never more bytes than there are."""
    whole = bytearray(java_map(pairs))
    for at, byte in changes:
        whole[at % len(whole)] = byte
    cut = data.draw(st.integers(0, len(whole)))
    for given_bytes in (bytes(whole), bytes(whole[:cut])):
        count, end = ended(given_bytes)
        assert 0 <= end <= len(given_bytes)
        assert count * 2 <= len(given_bytes)


@given(st.binary(max_size=200))
@example(b"\xac\xed\x00\x05\x73\x72")
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert 0 <= ended(data)[1] <= len(data)


OPERATION = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 99), st.sampled_from(["plain", "commit", "abort"]))


@settings(max_examples=examples(60))
@given(st.lists(OPERATION, min_size=1, max_size=25), st.integers(1, 3))
def test_the_newest_of_each_key_is_what_a_dictionary_holds(
    operations: list[tuple[int, int | None, str]], partitions: int
) -> None:
    """Records go through a dictionary one by one: a worker does no more. Keys keep to their partition."""
    logs = [Topic() for _ in range(partitions)]
    held: dict[str, int | None] = {}
    for who, value, fate in operations:
        name = f"c{who}"
        log = logs[who % partitions]
        offset = None if value is None else {"n": value}
        if fate == "plain":
            log.add(entry(name, {"p": who}, offset))
        else:
            log.add(entry(name, {"p": who}, offset), producer=9).ended(9, COMMIT if fate == "commit" else ABORT)
        if fate != "abort":
            held[name] = value
    with tempfile.TemporaryDirectory() as folder:
        for number, log in enumerate(logs):
            (log if log.data else log.add(entry("c9", {}, None))).write(Path(folder) / f"connect-offsets-{number}")
        found = json.loads(cklog("recovery-line", folder, "--json").out)["result"]["details"]["connectors"]
    stored = {one["connector"]: one["stored"]["offset"] for one in found if one["connector"] != "c9"}
    assert stored == {name: None if value is None else {"n": value} for name, value in held.items()}


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_store_with_changed_bytes_ends_in_a_documented_way(changes: list[tuple[int, int]]) -> None:
    """Whatever a byte becomes: an answer with a documented code, and no traceback."""
    log = Topic().add(entry("a", {"server": "s"}, {"file": "b.000001", "pos": 4}), entry("b", {}, {"lsn": 7}))
    file = java_map([(key("a", {}), b'{"scn":"5"}'), (key("b", {}), None)])
    text = b'{"key": ["a",{}], "value": {"sec": 4, "ord": 1}}\n["b",{}]\t{"n":9}\n'
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, data in (
            ("connect-offsets-0/" + "0" * 20 + ".log", log.data),
            ("connect.offsets", file),
            ("offsets.txt", text),
        ):
            changed = bytearray(data)
            for at, byte in changes:
                changed[at % len(changed)] = byte
            (folder / place).parent.mkdir(exist_ok=True)
            (folder / place).write_bytes(bytes(changed))
        for command in ("recovery-line", "inspect", "replay"):
            ended = cklog(command, folder, "--json")
            assert ended.code in (0, 3, 4, 5, 65, 66), ended.err
            assert "Traceback" not in ended.err

"""Many batches decoded at once are as decoded one by one, whatever the bytes, and so are headers."""

from __future__ import annotations

import itertools
import struct
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Damage, Split
from cklog.inputs.record_batches import BATCHES
from cklog.parsers.kafka import decode as kafka_decode
from cklog.parsers.kafka import headers
from cklog.parsers.kafka import legacy as kafka_legacy
from cklog.parsers.kafka.batches import KafkaRecord, header, records
from cklog.parsers.kafka.decode import Decoded, decode
from cklog.parsers.kafka.headers import read, read_unchecked
from cklog.parsers.kafka.joined import HeaderAndBytes
from cklog.parsers.kafka.payloads import BadBatch
from cklog.parsers.kafka.segment import Segment
from tests.builders import kafka as kb
from tests.builders.kafka import CODECS, Row
from tests.examples import examples

COLUMNS = (*BATCHES.names, "_path", "_offset")

maybe_bytes = st.none() | st.binary(max_size=200)
rows = st.builds(
    Row,
    value=maybe_bytes,
    key=maybe_bytes,
    time=st.integers(-(1 << 40), 1 << 50),
    headers=st.lists(st.tuples(st.text(max_size=3), maybe_bytes), max_size=3),
)
flags = st.sampled_from([0, kb.LOG_APPEND_TIME, kb.TRANSACTIONAL])


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A batch of any codec, some of its offsets taken by compaction."""
    held = draw(st.lists(rows, max_size=5))
    deltas = sorted(draw(st.sets(st.integers(0, 300), min_size=len(held), max_size=len(held))))
    spaced = [replace(row, delta=delta) for row, delta in zip(held, deltas, strict=True)]
    return kb.batch(draw(st.integers(0, 1 << 40)), spaced, draw(st.sampled_from(list(CODECS))), draw(flags))


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A message of format 0 or 1, or a wrapper around some."""
    magic, codec = draw(st.sampled_from([0, 1])), draw(st.sampled_from(["none", "gzip", "snappy", "xerial", "lz4"]))
    held = draw(st.lists(rows, min_size=1, max_size=1 if codec == "none" else 5))
    return kb.messages(draw(st.integers(0, 1 << 40)), held, magic, codec, draw(st.booleans()))


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """A batch with a payload, a number of records and offsets that nobody wrote, or some bytes changed."""
    payload = draw(st.binary(max_size=60) | st.lists(st.sampled_from(_PIECES), max_size=30).map(b"".join))
    count, last = draw(st.integers(0, 40)), draw(st.integers(0, 1 << 31))
    made = bytearray(draw(batches()) if draw(st.booleans()) else kb.batch(7, [], payload=payload, count=count))
    made[23:27] = struct.pack(">i", min(last, (1 << 31) - 1)) if draw(st.booleans()) else made[23:27]
    made[27:35] = struct.pack(">q", draw(st.integers(-(1 << 63), (1 << 63) - 1)))
    for at, byte in draw(st.lists(st.tuples(st.integers(61, 400), st.integers(0, 255)), max_size=3)):
        if at < len(made):
            made[at] = byte
    return bytes(made)


_PIECES = [
    bytes.fromhex(piece)
    for piece in ("0c000000010100", "0c000002010100", "10000000026102", "00", "01", "80", "ff", "ffffffff0f", "7f")
] + [kb.encoded(Row(b"v", b"k", 3, (("h", b"x"), ("é", None))), 4, 0), b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x02"]


def one_by_one(given_batches: list[HeaderAndBytes]) -> tuple[list[tuple[int, KafkaRecord]], dict[int, str]]:
    """Records with the place of their batch, and why batches do not decode."""
    found: list[tuple[int, KafkaRecord]] = []
    faults: dict[int, str] = {}
    for i, (head, data) in enumerate(given_batches):
        decoder = records if head.magic == 2 else kafka_legacy.records
        try:
            found += [(i, record) for record in decoder(head, bytes(data))]
        except BadBatch as reason:
            found = [one for one in found if one[0] != i]
            faults[i] = str(reason)
    return found, faults


def as_records(found: Decoded) -> list[tuple[int, tuple[Any, ...]]]:
    """What `one_by_one` gives, out of the arrays; headers by their number only."""
    names = ("offset", "timestamp", "key", "value", "headers", "size")
    return [(row["batch"], tuple(row[name] for name in names)) for row in found.to_table().to_pylist()]


def same(packed: list[bytes]) -> None:
    """Both decoders agree on these batches; a header that is none is left out."""
    made: list[HeaderAndBytes] = []
    for one in packed:
        try:
            made.append((header(one) if one[16] == 2 else kafka_legacy.header(one), one))
        except BadBatch:
            continue
    expected, faults = one_by_one(made)
    found = decode(made)
    assert {fault.batch: fault.reason for fault in found.faults} == faults
    counted = [(i, (*r[:4], len(r.headers), r.size)) for i, r in expected]
    assert as_records(found) == counted
    assert found.faults == tuple(sorted(found.faults))


@given(st.lists(st.one_of(batches(), messages(), hostile()), max_size=8), st.sampled_from([1, 3, 32]))
@settings(max_examples=examples(400))
def test_many_at_once_are_the_records_one_by_one(packed: list[bytes], side_by_side: int) -> None:
    with patch.object(kafka_decode, "_SIDE_BY_SIDE", side_by_side):
        same(packed)


@given(st.lists(hostile(), min_size=1, max_size=40))
@settings(max_examples=examples(300))
def test_hostile_batches_are_faults_for_the_same_reason(packed: list[bytes]) -> None:
    same(packed)


@given(rows, st.integers(60, 70), st.binary(min_size=1, max_size=2))
@settings(max_examples=examples(50))
@example(Row(b"v"), 65, b"\xff")
def test_more_headers_than_are_followed_at_once(row: Row, count: int, name: bytes) -> None:
    many = replace(row, headers=[("n" * len(name), b"x")] * count)
    good = kb.batch(0, [row, many, row])
    spoilt = good.replace(kb.sized(b"n" * len(name)), kb.sized(name))
    same([good, spoilt, good])


# Headers


damage_of = st.lists(
    st.tuples(
        st.sampled_from(["set", "cut", "insert", "zero", "end", "swap"]),
        st.integers(0, 1 << 16),
        st.binary(max_size=40),
    ),
    max_size=4,
)


def damaged(log: bytearray, wounds: list[tuple[str, int, bytes]]) -> bytes:
    for kind, where, what in wounds:
        at = where % max(len(log), 1)
        if kind == "set":
            log[at : at + 1] = what[:1] or b"\0"
        elif kind == "cut":
            del log[at : at + len(what)]
        elif kind == "insert":
            log[at:at] = what
        elif kind == "zero":
            log[at : at + len(what)] = bytes(len(log[at : at + len(what)]))
        elif kind == "end":
            log = log[:at]
        else:
            log = log[at:] + log[:at]
    return bytes(log)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """A segment: batches of all formats, markers, gaps, offsets that go backwards, and wounds."""
    log, offset = bytearray(), 0
    for one in draw(st.lists(st.one_of(batches(), messages(), st.sampled_from([0, 1, 2, 7])), max_size=12)):
        if isinstance(one, int):
            log += kb.marker(offset, one, producer=one)
            offset += 1 + draw(st.sampled_from([0, 0, 0, 5, -2]))
        else:
            log += struct.pack(">q", max(offset, 0)) + one[8:]
            offset = max(offset, 0) + 1 + (struct.unpack_from(">i", one, 23)[0] if one[16] == 2 else 0)
    return damaged(log, draw(damage_of))


Answer = tuple[list[dict[str, Any]], list[Damage]]


def both(
    folder: Path, data: bytes, check: bool, start: int = 0, end: int | None = None, window: int = 1 << 20
) -> list[Answer]:
    """Rows and damage of a segment by runs over windows of so many bytes, and by the careful walk alone."""
    path = folder / f"{0:020}.log"
    path.write_bytes(data)
    reader = read if check else read_unchecked
    split = Split(str(path), path.name, "", start, len(data) if end is None else end, len(data))
    answers: list[Answer] = []
    for runs in (headers._read_run, _no_run):
        with patch.object(headers, "_read_run", runs), patch.object(headers, "WINDOW_BYTES", window):
            found = list(reader(split, "batches", COLUMNS))
        table = [row for one in found if not isinstance(one, Damage) for row in one.to_pylist()]
        answers.append((table, sorted((one for one in found if isinstance(one, Damage)), key=str)))
    return answers


def _no_run(segment: Segment, start: int, end: int, most: int, check: bool) -> headers._Run:
    nothing = headers.Heads(np.empty(0, np.int64), np.empty(0, headers.FIELDS), np.empty(0, np.int8))
    return headers._Run(nothing, start, False)


@given(logs(), st.booleans(), st.sampled_from([1, 61, 100, 200, 1 << 20]))
@settings(max_examples=examples(400))
def test_runs_give_the_rows_and_the_damage_of_the_careful_walk(data: bytes, check: bool, window: int) -> None:
    with TemporaryDirectory() as name:
        fast, careful = both(Path(name), data, check, window=window)
    assert fast == careful


@given(logs(), st.integers(1, 12))
@settings(max_examples=examples(200))
def test_splits_at_batches_give_the_rows_of_the_whole(data: bytes, every: int) -> None:
    with TemporaryDirectory() as name:
        whole, _ = both(Path(name), data, True)
        cuts = sorted({0, len(data), *(row["at"] for row in whole[0][::every])})
        table: list[dict[str, Any]] = []
        damage: list[Damage] = []
        for start, end in itertools.pairwise(cuts):
            rows_, bad = both(Path(name), data, True, start, end)[0]
            table += rows_
            damage += bad
    assert (table, sorted(damage, key=str)) == whole

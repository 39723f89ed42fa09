"""`decode` against a strict reader of one line at a time: never another answer, at most none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import crc32c
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cklog.parsers.jsonl import template
from cklog.parsers.jsonl.columns import Fields, decode, decode_mixed
from cklog.parsers.jsonl.template import LineTemplate, template_of
from cklog.parsers.jsonl.walk import NUMBER
from cklog.parsers.jsonl.words import Deviates
from tests.loop_forms import EVERY_FORM, forced

FIELDS: Fields = (("channel", "string"), ("seq", "int64"))
TYPES: dict[str, Any] = {"string": str, "int64": int}


class Refused(Exception):
    """Not a record of the wanted fields."""


def strictly(block: bytes) -> list[dict[str, Any]]:
    """The wanted fields of every line, or `Refused`."""
    if not block.endswith(b"\n"):
        raise Refused
    return [one(text) for text in block[:-1].split(b"\n")]


def one(text: bytes) -> dict[str, Any]:
    try:
        pairs = json.loads(text.decode(), object_pairs_hook=tuple)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Refused from error
    record = dict(pairs)
    if not text.lstrip(b" \t\r").startswith(b"{") or len(record) < len(pairs):
        raise Refused
    if pairs and pairs[-1][0] == "crc32c":
        payload, _, claimed = text.rpartition(b',"crc32c":"')
        if claimed != b'%08x"}' % crc32c.crc32c(payload):
            raise Refused
    for name, kind in FIELDS:
        value: Any = record.get(name)
        if value is None:
            continue
        if type(value) is not TYPES[kind] or (kind == "int64" and not fits(value)):
            raise Refused
    return {name: record.get(name) for name in ("channel", "seq", "state")}


def fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def agrees(block: bytes) -> bool:
    """Whether `decode` or `decode_mixed` gave an answer; any answer equals the strict reader's."""
    found = [read(block, (*FIELDS, ("state", "json"), ("_offset", "int64"))) for read in (decode, decode_mixed)]
    for batch in found:
        if batch is None:
            continue
        rows = batch.to_pylist()
        offsets = [row.pop("_offset") for row in rows]
        for row in rows:
            row["state"] = None if row["state"] is None else json.loads(row["state"], object_pairs_hook=tuple)
        assert rows == strictly(block)
        assert offsets == [0, *(at + 1 for at, byte in enumerate(block[:-1]) if byte == ord("\n"))]
    return any(batch is not None for batch in found)


integers = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 10**6)
names = st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cc", "Cs"]), max_size=20)
records = st.tuples(names, integers, integers, names)


@st.composite
def blocks(draw: st.DrawFn) -> bytes:
    """Lines as one writer makes them: its spacing, its order of members, with checksums or without."""
    order = draw(st.permutations(["channel", "seq", "time", "note", "state"]))
    comma, colon = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    checked = comma == "," and draw(st.booleans())
    nested = draw(st.booleans())
    lines = []
    for channel, seq, time, note in draw(st.lists(records, min_size=1, max_size=6)):
        record = {"channel": channel, "seq": seq, "time": time, "note": note}
        record["state"] = {"seq": time, "of": [note, {"deep": None}]} if nested else None
        members = {name: record[name] for name in order}
        text = json.dumps(members, separators=(comma, colon), ensure_ascii=False).encode()
        if checked:
            text = text[:-1] + b',"crc32c":"%08x"}' % crc32c.crc32c(text[:-1])
        lines.append(text + b"\n")
    return b"".join(lines)


@pytest.fixture(params=EVERY_FORM, scope="module")
def form(request: pytest.FixtureRequest) -> Iterator[str]:
    """Passes over words, and the loop in both its forms."""
    yield from forced(request.param)


@given(blocks())
def test_a_block_of_one_shape_is_decoded(form: str, block: bytes) -> None:
    assert agrees(block)


@given(st.lists(st.tuples(st.booleans(), names, integers), min_size=1, max_size=8))
def test_lines_of_two_shapes_are_decoded_in_their_order(lines: list[tuple[bool, str, int]]) -> None:
    """As a log of events has them: sends with a channel, checkpoints without."""
    records = [
        {"event": "send", "channel": name, "seq": seq} if sends else {"event": "checkpoint", "seq": seq}
        for sends, name, seq in lines
    ]
    assert agrees("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode())


@given(blocks(), st.data())
def test_a_changed_byte_never_changes_the_answer_unseen(form: str, block: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(block) - 1))
    byte = data.draw(st.integers(0, 255) | st.sampled_from(b'"\\{}[]:,-0123456789.eE \n\r\t\x00\x7f\x80'))
    agrees(block[:at] + bytes([byte]) + block[at + 1 :])


@pytest.mark.quarter
@pytest.mark.parametrize("rest", range(4))
def test_no_byte_at_any_place_changes_the_answer_unseen(rest: int) -> None:
    """Every single change of a block that holds each kind of member, with and without checksums."""
    plain = b'{"channel":"a/0->b","seq":10,"time":-7}\n{"channel":"c","seq":2345678901,"time":5}\n'
    checked = b"".join(text[:-1] + b',"crc32c":"%08x"}\n' % crc32c.crc32c(text[:-1]) for text in plain.splitlines())
    for block in (plain, checked):
        assert agrees(block)
        for at in range(len(block)):
            for byte in range(rest, 256, 4):
                agrees(block[:at] + bytes([byte]) + block[at + 1 :])


pieces = st.sampled_from([b'"', b"{", b"}", b",", b":", b"\n", b"0", b"-", b"\\", b" ", b"\x00", b'"seq":1', b"1" * 30])


def test_space_before_a_line_is_json() -> None:
    agrees(b' {"channel": "", "seq": 0, "time": 0, "note": "", "state": null}\n')


@given(blocks(), pieces, st.data())
def test_bytes_put_in_or_cut_out_never_change_the_answer_unseen(
    form: str, block: bytes, piece: bytes, data: st.DataObject
) -> None:
    low = data.draw(st.integers(0, len(block)))
    high = data.draw(st.integers(low, min(len(block), low + 12)))
    agrees(block[:low] + piece + block[high:])


@given(st.lists(blocks(), min_size=2, max_size=3).map(b"".join))
def test_blocks_of_two_writers_never_change_the_answer_unseen(block: bytes) -> None:
    agrees(block)


@given(st.binary(max_size=80))
@example(b'{"channel":"","seq":0}\n{"channel":"","seq":0}')
@example(b'{"channel":"\xef\xbb\xbf","seq":0}\n')
@example(b'\xef\xbb\xbf{"channel":"","seq":0}\n')
@example(b'{"\xff":1,"channel":"","seq":0}\n')
def test_any_bytes_at_all_are_answered(form: str, block: bytes) -> None:
    agrees(block)


@given(st.lists(st.binary(max_size=3) | st.sampled_from([b"ab", b"ba"]), max_size=30), st.booleans())
def test_texts_are_numbered_as_they_first_come(texts: list[bytes], compiled: bool) -> None:
    """In either form of the loop, against a dictionary."""
    numbers: dict[bytes, int] = {}
    expected = [numbers.setdefault(text, len(numbers)) for text in texts]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - np.array([len(text) for text in texts], np.int64)
    raw = np.frombuffer(b"".join(texts), np.uint8)
    table = np.full(1 << (2 * len(texts)).bit_length(), -1, np.int32)
    code, first = np.zeros(len(texts), np.int32), np.zeros(len(texts), np.int32)
    for _ in forced("compiled" if compiled else "plain"):
        assert NUMBER(len(texts), raw, starts, ends, table, code, first) == len(numbers)
    assert code.tolist() == expected
    assert [texts[i] for i in first[: len(numbers)].tolist()] == list(numbers)


def test_texts_that_all_collide_are_given_up_soon() -> None:
    """Of any texts that were found to fall on one place of the table, so many that each is compared with all others."""
    texts = [bytes(range(1, 21))] * 40 + [bytes([k, 0]) for k in range(200)]
    raw = np.frombuffer(b"".join(texts), np.uint8)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - np.array([len(text) for text in texts], np.int64)
    full = np.zeros(256, np.int32)  # as if one text had taken every place
    code, first = np.zeros(len(texts), np.int32), np.zeros(len(texts), np.int32)
    assert NUMBER.interpreted((raw, starts, ends, full, code, first)) == -1


def template_or_not(line: bytes) -> LineTemplate | None:
    try:
        return template_of(line)
    except Deviates:
        return None


values = st.integers(-12, 12) | st.sampled_from(["", "a", "\u00e9", '"', None, True, 1.5, 10**30, [1, "b"], {"c": 0}])
lines = st.dictionaries(st.sampled_from("abc"), values, max_size=3).map(lambda o: json.dumps(o, ensure_ascii=False))


@given(lines, lines, st.sampled_from(["", " ", "x"]))
def test_a_template_does_not_depend_on_the_one_before(one: str, other: str, end: str) -> None:
    template_or_not(f"{one}\n".encode())
    kept = template_or_not(f"{other}{end}\n".encode())
    template._LAST.template = None
    assert kept == template_or_not(f"{other}{end}\n".encode())

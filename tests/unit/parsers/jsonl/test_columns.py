"""The vectorised decoder on blocks that a writer makes, and on what no template covers."""

from __future__ import annotations

import json
from collections.abc import Callable

import crc32c
import pyarrow as pa
import pytest

from cklog.parsers.jsonl.columns import Fields, decode, decode_mixed
from tests.loop_forms import FORMS, forced

Decoder = Callable[..., pa.RecordBatch | None]
FIELDS: Fields = (("channel", "string"), ("seq", "int64"))


def line(channel: str, seq: object, **more: object) -> bytes:
    record = {"channel": channel, "seq": seq, **more}
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def sealed(payload: bytes) -> bytes:
    """A line with the checksum of all before it."""
    return payload[:-2] + b',"crc32c":"%08x"}\n' % crc32c.crc32c(payload[:-2])


GOOD = line("a/0->b/1", 41, time=1795226310693) + line("a/1->b/0", 7, time=1795226310694)


def test_gives_the_wanted_columns_in_the_wanted_order() -> None:
    batch = decode(GOOD, (("seq", "int64"), ("channel", "string")))
    assert batch is not None
    assert batch.schema.names == ["seq", "channel"]
    assert batch.to_pydict() == {"seq": [41, 7], "channel": ["a/0->b/1", "a/1->b/0"]}


def test_reads_a_view_as_it_reads_bytes() -> None:
    assert decode(memoryview(GOOD), FIELDS) == decode(GOOD, FIELDS)


def test_reads_the_spacing_of_json_dumps() -> None:
    text = "".join(json.dumps({"channel": c, "seq": i}) + "\n" for i, c in enumerate("abba"))
    batch = decode(text.encode(), FIELDS)
    assert batch is not None
    assert batch.to_pydict() == {"channel": list("abba"), "seq": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    "numbers",
    [
        [0, 1, 9, 10, 99999999, 100000000, 9999999999999999, 10**16, 10**18 - 1, 10**18],
        [2**63 - 1, -(2**63), -1, -99999999, -(10**16)],
    ],
)
def test_reads_every_integer_of_64_bits(numbers: list[int]) -> None:
    batch = decode(b"".join(line("a", n) for n in numbers), FIELDS)
    assert batch is not None
    assert batch["seq"].to_pylist() == numbers


def test_reads_strings_of_any_width_up_to_its_limit() -> None:
    names = ["", "x" * 7, "x" * 8, "x" * 9, "é" * 12, "x" * 16, "x" * 40, "y" * 240]
    batch = decode(b"".join(line(name, 1) for name in names), FIELDS)
    assert batch is not None
    assert batch["channel"].to_pylist() == names


def test_tells_apart_names_that_differ_in_two_words() -> None:
    names = [f"pipeline{i:08}stage-no{j:08}" for i in range(60) for j in range(60)]
    batch = decode(b"".join(line(name, 1) for name in names), FIELDS)
    assert batch is not None
    assert batch["channel"].to_pylist() == names


@pytest.mark.parametrize(
    "second",
    [
        b'{"channel":"b","seq":01}\n',
        b'{"channel":"b","seq":-}\n',
        b'{"channel":"b","seq":-0}\n',
        b'{"channel":"b","seq":}\n',
        b'{"channel":"b","seq":1.0}\n',
        b'{"channel":"b","seq":1e3}\n',
        b'{"channel":"b","seq":9223372036854775808}\n',
        b'{"channel":"b","seq":-9223372036854775809}\n',
        b'{"channel":"b","seq":123456789012345678901234567890}\n',
        b'{"channel":"b","seq":null}\n',
        b'{"channel":"b","seq":"1"}\n',
        b'{"channel":"b\\n","seq":1}\n',
        b'{"channel":"b\x01","seq":1}\n',
        b'{"channel":"b\x00","seq":1}\n',
        b'{"channel":"b\xff","seq":1}\n',
        b'{"channel":"b\xed\xa0\x80","seq":1}\n',
        b'{"channel":"b","seq":1}\r\n',
        b'{"channel":"b","seq":1} \n',
        b' {"channel":"b","seq":1}\n',
        b'{"channel":"b", "seq":1}\n',
        b'{"channel":"b","seq":1}}\n',
        b'{"channel":"b","seq":1}',
        b'{"channel":"b","seq":1,"more":2}\n',
        b'{"seq":1,"channel":"b"}\n',
        b'{"channel":"b"}\n',
        b'{"channel":"b\n","seq":1}\n',
        b"\n",
        b"\n\n\n",
    ],
)
def test_leaves_to_the_slower_reader_what_is_not_of_the_first_lines_shape(second: bytes) -> None:
    first = b'{"channel":"a","seq":5}\n'
    assert decode(first, FIELDS) is not None
    assert decode(first + second, FIELDS) is None
    assert decode(second + first, FIELDS) is None
    assert decode(first + second + first, FIELDS) is None


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b'{"channel":"a","seq":5',
        b'{"channel":"a","seq":5,"seq":6}\n',
        b'{"channel":"a","seq":{"seq":5}}\n',
        b'{"channel":"a","seq":[5]}\n',
        b'{"channel":"a","seq":true}\n',
        b'{"channel":"a","seq":5,"_offset":6}\n',
        b"x" * 100_000,
    ],
)
def test_knows_no_other_shapes(block: bytes) -> None:
    assert decode(block, FIELDS) is None


def test_a_member_that_no_line_has_is_a_column_of_nulls() -> None:
    batch = decode(b'{"channel":null,"seq":5}\n{"channel":null,"seq":6}\n', (*FIELDS, ("bytes", "int64")))
    assert batch is not None
    assert batch.to_pylist() == [{"seq": n, "channel": None, "bytes": None} for n in (5, 6)]


def test_passes_over_nested_members_and_says_where_lines_begin() -> None:
    block = b'{"state":{"sum":1,"of":["x",true]},"seq":5}\n{"state":{"sum":22,"of":["yy",true]},"seq":6}\n'
    batch = decode(block, (("_offset", "int64"), ("seq", "int64")))
    assert batch is not None
    assert batch.to_pydict() == {"_offset": [0, block.find(b"\n") + 1], "seq": [5, 6]}


@pytest.mark.parametrize("state", ["7", '"x"', "[]", '{"a": [1, "b"], "c": {}}', '{"sum":1,"n":[true,null]}'])
def test_gives_the_json_text_of_any_member(state: str) -> None:
    lines = [f'{{"seq":{n},"state":{state},"more":"é"}}\n' for n in (1, 22)]
    batch = decode("".join(lines).encode(), (("state", "json"), ("seq", "int64")))
    assert batch is not None
    assert batch.to_pydict() == {"state": [state, state], "seq": [1, 22]}


@pytest.mark.parametrize(
    "states", [("7", "22"), ('"x"', '"yyy"'), ('{"sum":1}', '{"sum":22}'), ('{"a":"x","b":1}', '{"a":"yy","b":333}')]
)
@pytest.mark.parametrize("behind", ["", ',"more":"z"'])
def test_gives_the_json_text_of_each_line(states: tuple[str, str], behind: str) -> None:
    lines = [f'{{"seq":{n},"state":{state}{behind}}}\n' for n, state in enumerate(states)]
    batch = decode("".join(lines).encode(), (("state", "json"), ("seq", "int64")))
    assert batch is not None
    assert batch.to_pydict() == {"state": list(states), "seq": [0, 1]}


def test_a_null_state_is_none() -> None:
    batch = decode(b'{"seq":1,"state":null}\n', (("state", "json"), ("none", "json")))
    assert batch is not None
    assert batch.to_pylist() == [{"state": None, "none": None}]


def test_wants_the_type_of_every_field() -> None:
    assert decode(GOOD, (("seq", "string"),)) is None
    assert decode(GOOD, (("channel", "int64"),)) is None


def test_holds_lines_against_their_checksum() -> None:
    block = b"".join(sealed(line("ab" * i, 10**i)) for i in range(12))
    batch = decode(block, FIELDS)
    assert batch is not None
    assert batch["seq"].to_pylist() == [10**i for i in range(12)]
    assert decode(block.replace(b'"seq":1000,', b'"seq":1001,'), FIELDS) is None


@pytest.mark.parametrize(
    "block",
    [
        sealed(line("a", 1)).replace(b',"crc32c":"', b', "crc32c":"'),
        sealed(line("a", 1)).upper().replace(b"CRC32C", b"crc32c"),
        sealed(line("a", 1)).replace(b'"}', b'0"}'),
        sealed(line("a", 1)).replace(b'"}', b'","z":1}'),
        sealed(line("a", 1)).replace(b'"}', b'" }'),
        line("a", 1, crc32c=5),
        line("a", 1, crc32c=""),
    ],
)
def test_a_checksum_of_another_form_is_for_the_slower_reader(block: bytes) -> None:
    assert decode(block, FIELDS) is None


def test_blocks_do_not_leak_into_each_other() -> None:
    """Memory is kept between blocks: a long block before must not change a short one after it."""
    first = decode(GOOD, FIELDS)
    decode(line("z" * 99, 10**18) * 500, FIELDS)
    assert decode(GOOD, FIELDS) == first
    assert decode(GOOD[:-1], FIELDS) is None


@pytest.mark.parametrize("decoder", [decode, decode_mixed])
def test_leaves_lines_with_a_damaged_name_to_the_reader_that_can_say_why(decoder: Decoder) -> None:
    known = {"channel", "seq", "time", "crc32c"}
    other = b'{"checkpoint":1}\n'
    blocks = {"good": GOOD, "damaged": GOOD.replace(b"time", b"tile"), "unlike": GOOD.replace(b"time", b"colour")}
    sealed_block = b"".join(map(sealed, blocks["damaged"].splitlines(keepends=True)))
    for name, block in {**blocks, "sealed": sealed_block}.items():
        text = block if decoder is decode else block + other
        assert (decoder(text, FIELDS, known) is None) == (name == "damaged"), name
        assert decoder(text, FIELDS) is not None
    assert decode(b'{"channel":"a","seq":1,"state":{"n":1,"n":2}}\n', FIELDS) is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("long", [{"channel": "b" * 300}, {"k" * 300: 1}], ids=["text", "name"])
def test_long_texts_and_names_are_read_or_left_to_the_slower_reader(form: str, long: dict[str, str | int]) -> None:
    """Passes over words leave them, as each costs all lines; the loop reads them."""
    lines = line("a", 5, **{"k" * 300: 2} if "channel" not in long else {}) + line(**{"channel": "a", "seq": 6, **long})  # type: ignore[arg-type]
    for _ in forced(form):
        batch = decode(lines, FIELDS)
        if form == "plain":
            assert batch is None
        else:
            assert batch is not None
            assert batch.to_pydict() == {"channel": ["a", long.get("channel", "a")], "seq": [5, 6]}


@pytest.mark.parametrize("name", ["a", "a/0->b/0", "x" * 40])
def test_zeros_at_the_end_of_a_string_are_not_passed_over(name: str) -> None:
    """JSON has no control characters; beside the same string without them, they look as what lies behind a string."""
    block = b"".join(line(one, 7) for one in (name, name + "\0\0", name)).replace(rb"\u0000", b"\0")
    assert decode(block, FIELDS) is None
    assert decode(block.replace(b"\0", b""), FIELDS) is not None

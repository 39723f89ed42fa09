"""Plain pickles are read as Python reads them; nothing else is, and nothing is ever run or held beyond its bytes."""

from __future__ import annotations

import collections
import datetime
import pathlib
import pickle
import tracemalloc
from pickletools import opcodes
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.errors import OverBudget
from cklog.parsers.pickles.machine import skipped_kind
from cklog.parsers.pickles.restricted import SKIPPED, CutShort, Refused, load, load_from
from tests.examples import examples
from tests.oracles.pickle_by_genops import Read, by_genops

LIST, DICT = skipped_kind(list), skipped_kind(dict)
SMALL = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=300)
LEAVES = st.none() | st.booleans() | SMALL | st.floats(allow_nan=False) | TEXT
KEYS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=6)
OLD = st.recursive(
    LEAVES | st.integers(-(2**600), 2**600),
    lambda v: st.lists(v, max_size=9) | st.dictionaries(KEYS, v, max_size=9) | st.lists(LEAVES).map(tuple),
    max_leaves=60,
)
NEW = st.recursive(
    LEAVES | st.integers(-(2**600), 2**600) | st.binary(max_size=300),
    lambda v: (
        st.lists(v, max_size=9)
        | st.dictionaries(KEYS, v, max_size=9)
        | st.frozensets(KEYS, max_size=5)
        | st.sets(KEYS, max_size=5)
    ),
    max_leaves=60,
)


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down: 1 == True == 1.0 does not do."""
    return type(a) is type(b) and repr(a) == repr(b) if not isinstance(a, set | frozenset) else a == b


def refused_at(data: bytes, keys: frozenset[str] | None = None) -> int:
    """The offset at which reading stopped, by a refusal or because all was read."""
    try:
        load(data, keys)
    except Refused as refused:
        return refused.offset
    except OverBudget:
        return 0
    return len(data)


@given(OLD, st.integers(0, 5))
def test_what_every_protocol_can_write_is_read_as_python_reads_it(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert same(load(data), pickle.loads(data))


@given(NEW, st.sampled_from([4, 5]))
def test_bytes_and_sets_of_the_new_protocols(value: Any, protocol: int) -> None:
    assert load(pickle.dumps(value, protocol)) == value
    assert load(pickle.dumps(bytearray(b"abc"), 5)) == bytearray(b"abc")


@given(st.lists(NEW, min_size=1, max_size=5))
def test_joined_pickles_are_told_apart(values: list[Any]) -> None:
    data, at = b"".join(pickle.dumps(v) for v in values), 0
    for value in values:
        found, at = load_from(data, at)
        assert found == value
    assert at == len(data)


@given(NEW, st.data())
def test_a_cut_pickle_is_cut_short(value: Any, data: st.DataObject) -> None:
    whole = pickle.dumps(value)
    with pytest.raises(CutShort):
        load(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert 0 <= refused_at(data) <= len(data)


@given(NEW, st.integers(0, 5), st.data())
def test_changed_bytes_are_read_or_refused(value: Any, protocol: int, data: st.DataObject) -> None:
    broken = bytearray(pickle.dumps([value, {"a": {1, 2}}], protocol))
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    keys = data.draw(st.sampled_from([None, frozenset({"a"})]))
    assert 0 <= refused_at(bytes(broken), keys) <= len(broken)


def read_by_us(data: bytes, start: int, keys: frozenset[str] | None) -> Read:
    try:
        value, end = load_from(data, start, keys)
    except CutShort as cut:
        return Read("cut", cut.offset)
    except Refused as refused:
        return Read("refused", refused.offset, why=refused.why)
    except OverBudget as error:
        return Read("over budget", start, why=error.what)
    return Read("value", end, value)


def agree(data: bytes, start: int = 0, keys: frozenset[str] | None = None) -> Read:
    """The same value and end, or the same refusal of the same opcode, as by Python's own list of opcodes."""
    ours, theirs = read_by_us(data, start, keys), by_genops(data, start, keys)
    assert (ours.how, ours.at, repr(ours.value)) == (theirs.how, theirs.at, repr(theirs.value))
    assert theirs.why in ours.why
    return ours


WANTED = st.sampled_from([None, frozenset({"a"}), frozenset({"a", "b"})])


@given(OLD, st.integers(0, 5), st.binary(max_size=3), st.data())
@settings(max_examples=examples(200))
def test_changed_and_cut_pickles_end_as_by_genops(
    value: Any, protocol: int, before: bytes, data: st.DataObject
) -> None:
    broken = bytearray(before + pickle.dumps([value, {"a": [1], "b": (2,)}], protocol))
    for _ in range(data.draw(st.integers(0, 4))):
        broken[data.draw(st.integers(len(before), len(broken) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(len(before), len(broken)) | st.just(len(broken)))
    agree(bytes(broken[:end]), len(before), data.draw(WANTED))


ARGUMENTS = [b"", b"\0", b"\1", b"\2ab", b"\3\xed\xa0\x80", b"5\n", b"00\n", b"1L\n", b"-1.5\n", b"a\nb\n", b"'a'\n"]
LENGTHS = [b"\1\0\0\0x", b"\xff" * 4, b"\2" + bytes(7) + b"ab", b"\xff" * 8]
CODES = [op.code.encode("latin-1") for op in opcodes]
SOUP = st.lists(st.tuples(st.sampled_from(CODES), st.sampled_from(ARGUMENTS + LENGTHS)).map(b"".join), max_size=12)
FITTING = "28 5d 7d 8f 29 4e 4b01 8c016194 8c0162 65 75 90 74 85 86 91 61 73 6c 64 94 6800 7100 8a0105 430178 88 2e"
PLAIN = st.lists(st.sampled_from([bytes.fromhex(code) for code in FITTING.split()]), max_size=30)


@given((PLAIN | SOUP).map(b"".join), WANTED)
@settings(max_examples=examples(1000))
def test_any_opcodes_end_as_by_genops(data: bytes, keys: frozenset[str] | None) -> None:
    agree(data, 0, keys)
    agree(data + b".", 0, keys)


@pytest.mark.parametrize("case", [op.name for op in opcodes])
def test_every_opcode_is_done_or_refused_as_by_genops(case: str) -> None:
    """Behind two texts, a container of each kind, or nothing, with arguments of every size, whole and cut."""
    code = next(op.code.encode("latin-1") for op in opcodes if op.name == case)
    below = [b"", b"\x8c\x01m\x8c\x01n", b"](NN", b"}(K\x01N", b"\x8f(N", b"(NN", b"NNN", b"N\x94"]
    for front in below:
        for behind in (b"", b"\x01", b"\x01\x00", b"a\nb\n", b"1\n", bytes(8), b"\x01" + bytes(7) + b"x.", b"\xff" * 9):
            agree(front + code + behind)
            agree(front + code + behind + b".")


def test_skipped_containers_are_read_and_not_kept() -> None:
    value = {"state": {"k": [1, {"a": {2}}]}, "a": {"b": 1, "c": [2]}, "n": 5, "t": (1, 2)}
    for protocol in range(4, 6):
        found = load(pickle.dumps(value, protocol), frozenset({"a"}))
        assert found == {"state": DICT, "a": {"b": 1, "c": LIST}, "n": 5, "t": (1, 2)}
    assert load(pickle.dumps({"s": {"k": {1: 2}}, "a": {"b": 1}}, 0), frozenset({"a"})) == {"s": DICT, "a": {"b": 1}}


class Made:
    """An object whose pickle calls a function."""

    def __reduce__(self) -> Any:
        return print, ("built",)


OBJECTS = {
    "a class": pickle.dumps(collections.OrderedDict(a=1)),
    "a date": pickle.dumps(datetime.date(2026, 1, 1)),
    "a call, protocol 0": pickle.dumps(Made(), 0),
    "a call, protocol 4": pickle.dumps(Made(), 4),
    "a set, protocol 2": pickle.dumps({1}, 2),
    "a path": pickle.dumps(pathlib.PurePosixPath("/a/b"), 5),
    "an instance": b"(Nios\nsystem\n.",
    "an object": b"(cos\nsystem\nNo.",
    "with keywords": b"cos\nsystem\n)}\x92.",
    "registered": b"\x82\x01)R.",
    "registered, 2 bytes": b"\x83\x01\x00)R.",
    "registered, 4 bytes": b"\x84\x01\x00\x00\x00)R.",
}


@pytest.mark.parametrize("case", OBJECTS)
def test_objects_are_passed_over_and_never_built(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = OBJECTS[case]
    assert load(data) is SKIPPED
    assert agree(data).how == "value"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("protocol", range(6))
def test_what_stands_around_an_object_is_read(protocol: int) -> None:
    value = {"n": 7, "made": [Made(), {"in": 1}], "text": "x"}
    found = load(pickle.dumps(value, protocol))
    assert found == {"n": 7, "made": [SKIPPED, {"in": 1}], "text": "x"}


class Pair(tuple[Any, Any]):
    """A tuple of a class of its own."""


def in_itself(make: Any) -> Any:
    """A tuple that holds a list that holds the tuple: its pickle begins it, finds it made, and drops what it began."""
    made = make(([], 2**70))
    made[0].append(made)
    return made


PAYLOADS = {
    "a long number in a tuple": (2**70, 1),
    "a long number in a tuple in a tuple": ((2**127, 1, 2, 3), 1, 2, 3),
    "keys that are long numbers": {2**70 + i: i for i in range(300)},
    "members that are long numbers": {2**70, -(2**90)},
    "a tuple in itself": in_itself(tuple),
    "a tuple of four in itself": in_itself(lambda items: (*items, 3, 4)),
    "an object in itself": in_itself(Pair),
}


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("case", PAYLOADS)
def test_whatever_a_message_carries_it_is_read_over(case: str, protocol: int) -> None:
    """Under a key that nobody asked for, alone and in a tuple, and in what is asked for behind it."""
    for carried in (PAYLOADS[case], (PAYLOADS[case],), [{1: PAYLOADS[case]}]):
        data = pickle.dumps({"m": {"carried": carried, "n": 7}}, protocol)
        assert load(data, frozenset({"m"}))["m"]["n"] == 7
        assert agree(data).how == "value"


REFUSED = {
    "reduce of a value": (b"NNR.", "no class"),
    "state of a dict": (b"}}b.", "no class"),
    "an object of a value": (b"NN\x81.", "no class"),
    "with keywords of a value": (b"NNN\x92.", "no class"),
    "persid": (b"Pabc\n.", "PERSID abc"),
    "binpersid": (b"N\x51.", "BINPERSID"),
    "buffer": (b"\x97.", "NEXT_BUFFER"),
    "readonly buffer": (b"N\x98.", "READONLY_BUFFER"),
    "old string": (b"U\x01a.", "SHORT_BINSTRING"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_everything_else_is_refused_by_name(case: str) -> None:
    data, name = REFUSED[case]
    with pytest.raises(Refused, match=name) as refused:
        load(data)
    assert data[refused.value.offset :]


def test_the_offset_of_a_refusal_is_that_of_the_opcode() -> None:
    data = b"\x80\x04]\x94" + b"Pabc\n" + b"."
    with pytest.raises(Refused, match="PERSID abc is refused at byte 4"):
        load(data)
    with pytest.raises(Refused) as refused:
        load_from(b"12345" + data, 5)
    assert refused.value.offset == 9


BOMBS = {
    "memo far away": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "put far away": b"Np999999999\n.",
    "long of 2 GB": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "bytes of 8 EB": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "text of 4 GB": b"\x80\x04X\xff\xff\xff\xff.",
    "digits": b"I" + b"9" * 100_000 + b"\n.",
    "long number": b"\x80\x02\x8b\x00\x10\x01\x00" + b"\x01" * 0x11000 + b".",
    "lists in lists": b"\x80\x04" + b"]" * 2_000_000 + b"." + b"e" * 10,
    "marks": b"(" * 1_000_000 + b".",
    "sets": b"\x80\x04]" + b"\x8fa" * 1_000_000 + b".",
    "a hash without end": b"\x80\x04}N\x85" + b"2\x86" * 60 + b"Ns.",
    "tuples in tuples": b"\x80\x04)" + b"K\x01\x86" * 400_000 + b".",
    "keys of one hash": b"\x80\x04}"
    + b"".join(pickle.dumps(i * (2**61 - 1), 2)[2:-1] + b"Ns" for i in range(1, 60_000))
    + b".",
    "no end": b"\x80\x04" + b"N" * 1_000_000,
    "nothing": b"",
    "two values": b"NN.",
    "no key": b"}Ns.",
    "pairs for a list": b"](NNu.",
    "unhashable": b"}]Ns.",
    "text that is not UTF-8": b"\x80\x04\x8c\x02\xff\xfe.",
}


@pytest.mark.parametrize("case", [case for case in BOMBS if len(BOMBS[case]) < 200_000])
def test_bombs_end_as_by_genops(case: str) -> None:
    assert agree(BOMBS[case]).how != "value"


@pytest.mark.parametrize("case", BOMBS)
def test_bombs_are_refused_in_memory_of_their_own_size(case: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises((Refused, OverBudget)):
            load(BOMBS[case])
        assert tracemalloc.get_traced_memory()[1] < 200_000 + 24 * len(BOMBS[case])
    finally:
        tracemalloc.stop()


def test_a_large_state_costs_nothing_when_it_is_skipped() -> None:
    data = pickle.dumps({"local_state_data": {i: {"n": i, "s": [str(i)]} for i in range(50_000)}, "sent": {"a": 1}})
    tracemalloc.start()
    try:
        assert load(data, frozenset({"sent"})) == {"local_state_data": DICT, "sent": {"a": 1}}
        assert tracemalloc.get_traced_memory()[1] < 8 * len(data)
    finally:
        tracemalloc.stop()


def test_what_is_refused_is_named_with_its_own_argument() -> None:
    """And not with what lies on the stack, where STACK_GLOBAL alone has its argument."""
    two = b"\x80\x04\x8c\x01a\x8c\x01b"
    with pytest.raises(Refused, match=r"PERSID abc is refused"):
        load(two + b"Pabc\n.")


def test_items_that_wait_under_no_container_are_in_nothing_skipped() -> None:
    """Behind the first mark lies no container: an object that is skipped there is a neighbour, and not their holder."""
    opaque = b"cdecimal\nDecimal\n(V1\ntR"
    assert load(b"(" + opaque + b"(I1\nI2\ntl.", frozenset({"a"})) == [SKIPPED, (1, 2)]
    assert load(b"(" + opaque + b"(I1\nI2\ntl.") == [SKIPPED, (1, 2)]


@pytest.mark.parametrize("protocol", range(2, 6))
def test_values_under_other_keys_are_skipped_one_by_one_or_many(protocol: int) -> None:
    """A single item is set without a mark, several behind one."""
    keys = frozenset({"a"})
    assert load(pickle.dumps({"b": [2]}, protocol), keys) == {"b": LIST}
    assert load(pickle.dumps({"a": [1]}, protocol), keys) == {"a": [1]}
    assert load(pickle.dumps({"a": [1], "b": [2], "c": {}}, protocol), keys) == {"a": [1], "b": LIST, "c": DICT}

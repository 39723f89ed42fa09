"""What a serializer says of itself at the head of a state: how far it can be followed, by Flink's layout."""

from __future__ import annotations

import pytest

from cklog.parsers.flink.java import Cursor, Malformed, UnknownVersion
from cklog.parsers.flink.state_heads import _read_serializer
from tests.builders import flink as fb

SIMPLE = "org.apache.flink.api.common.typeutils.base.LongSerializer$LongSerializerSnapshot"
COMPOSED, NESTED = 911_108, 1_333_245
OWN = fb.utf("org.example.Own") + fb.i32(1) + b"its own"


def simple(version: int = 3) -> bytes:
    return fb.utf(SIMPLE) + fb.i32(version)


def composed(*inside: bytes, of: int = NESTED) -> bytes:
    head = fb.utf("org.apache.flink.api.java.typeutils.runtime.TupleSerializerSnapshot") + fb.i32(2)
    return head + fb.i32(COMPOSED, 1, of, 1, len(inside)) + b"".join(inside)


def ends(data: bytes) -> bool:
    """Whether its end was found, which is then that of the bytes."""
    cursor = Cursor(data)
    found = _read_serializer(cursor)
    assert not found or cursor.at == cursor.end
    return found


@pytest.mark.parametrize(("version", "known"), [(1, False), (2, False), (3, True)])
def test_of_simple_serializers_the_newest_version_is_followed(version: int, known: bool) -> None:
    assert ends(simple(version)) is known


@pytest.mark.parametrize("version", [-1, 0, 1 << 30])
def test_a_simple_serializer_of_no_version_that_there_is(version: int) -> None:
    with pytest.raises(Malformed):
        ends(simple(version))


@pytest.mark.parametrize("version", [4, 9, 255])
def test_serializers_of_later_versions(version: int) -> None:
    nested = composed(simple()).replace(fb.i32(NESTED, 1), fb.i32(NESTED, version))
    for data in (simple(version), nested):
        with pytest.raises(UnknownVersion):
            ends(data)


def test_composed_ones_are_followed_into_all_that_they_hold() -> None:
    assert ends(composed())
    assert ends(composed(simple(), composed(simple()), simple()))
    assert not ends(composed(OWN, simple()))
    assert not ends(composed(simple(), OWN))
    assert not ends(composed(simple(), of=NESTED + 1))
    assert not ends(OWN)


def test_what_is_nested_is_followed_to_a_depth() -> None:
    """As deep as no type nests: 16 serializers in one another, and one that holds none."""
    found = simple()
    for _ in range(16):
        found = composed(found)
    assert ends(found)
    assert not ends(composed(found))


def test_a_composed_one_takes_eight_bytes_to_be_told_from_somebody_s_own() -> None:
    own = fb.utf("org.example.Own") + fb.i32(1)
    assert not ends(own + fb.i32(COMPOSED) + b"own")
    with pytest.raises(Malformed):
        ends(own + fb.i32(COMPOSED, 1))

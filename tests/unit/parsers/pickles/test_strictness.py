"""Pickles that Python itself refuses, or reads as another value: none of them has a value here."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from cklog.parsers.pickles.restricted import SKIPPED, CutShort, Refused, load


class Made:
    """An object of a class that is not imported."""


REFUSED = {
    "a protocol to come": b"\x80\x06N.",
    "too few values for a tuple": b"N\x87.",
    "values beyond a mark": b"N(N\x860.",
    "a list beyond a mark": b"](Na0.",
    "what is remembered beyond a mark": b"N(\x940.",
    "a class whose name is no text": b"K\x01K\x02\x93.",
    "a class without a name": b"c\nname\n.",
    "arguments that are no tuple": b"cm\nn\n]R.",
    "names of arguments that are no dict": b"cm\nn\n)]\x92.",
    "an object of no class": b"(NNo.",
    "an object of nothing": b"(o.",
    "a call of a tuple that holds an object": b"cm\nn\n\x85)R.",
    "a call of a frozenset that holds an object": b"(cm\nn\n\x91)R.",
    "items for a tuple that holds an object": b"cm\nn\n\x85Na.",
    "pairs for a tuple that holds an object": b"cm\nn\n\x85NNs.",
    "members for a tuple that holds an object": b"cm\nn\n\x85(N\x90.",
    "arguments in a frozenset that holds an object": b"cm\nn\n(cm\nn\n\x91R.",
    "arguments that are a class": b"cm\nn\ncm\nn\nR.",
    "an extension code of 0": b"\x82\x00.",
    "a number in octal": b"I010\n.",
    "a number with a space": b"I8 \n.",
    "a long number with an underscore": b"L1_0L\n.",
    "a fraction with a space": b"F 1.5\n.",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_python_refuses_or_reads_otherwise_is_refused(what: str) -> None:
    with pytest.raises(Refused):
        load(REFUSED[what])


def test_a_frame_that_is_longer_than_the_pickle_is_cut_short() -> None:
    data = pickle.dumps(["text"] * 9, 4)
    assert data[2] == 0x95
    with pytest.raises(CutShort):
        load(data[:3] + (len(data) - 10).to_bytes(8, "little") + data[11:])


@pytest.mark.parametrize("protocol", range(4, 6))
def test_plain_values_after_an_object_are_kept(protocol: int) -> None:
    """What follows an object in a list is none of its own, be it in a tuple."""
    value: list[Any] = [Made(), ("a", frozenset({1}), (), 4)]
    assert load(pickle.dumps(value, protocol)) == [SKIPPED, ("a", frozenset({1}), (), 4)]

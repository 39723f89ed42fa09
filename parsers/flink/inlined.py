"""State that stands inside the metadata, held against its handle: what the metadata says twice has to agree.

Zeros are what a power cut leaves of a page that lay inside such state, with all that is around it whole: no state that
begins with a version is nothing but zeros. Operator state tells the names of its lists, and so does its handle; a
restore looks lists up by their names, and passes over others without a word.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from cklog.inputs.snapshots import StateForm
from cklog.parsers.flink.contents import ByteStretch
from cklog.parsers.flink.java import Cursor, Malformed, Unknown, UnknownVersion
from cklog.parsers.flink.state_heads import (
    check_groups,
    named_manifest,
    operator_states,
    read_channels_version,
    read_keyed_head,
)

_PROVING_BYTES = 32
"""Zeros that prove something: what begins with a version and says what serializes it is longer."""


def check_inlined(
    data: bytes,
    piece: ByteStretch,
    form: StateForm | None,
    lists: AbstractSet[str] = frozenset(),
    manifests: Collection[int] = (),
    groups: Sequence[int] = (),
) -> None:
    """Refuse a piece of state that stands in the metadata (`data`) and cannot be what its handle says.

    Parameters
    ----------
    lists : of operator state the names of its lists, by its handle
    manifests : of a CURRENT the numbers of the MANIFESTs beside it
    groups : of keyed state the first key group, and where each begins (0: nowhere)

    Raises
    ------
    Malformed : it cannot be that
    UnknownVersion : it is of a later version
    """
    if piece.at is None or form is None or form == "options":  # a restore does without options
        return
    size = piece.bytes or 0
    held = data[piece.at : piece.at + size]
    if size >= _PROVING_BYTES and not any(held):
        raise Malformed(piece.at, f"{size} bytes of state in the metadata are all zeros")
    if form == "current" and manifests:
        named_manifest(held, manifests, piece.at)
    cursor = Cursor(data, piece.at, piece.at + size)
    if form == "operator-state":
        _check_lists(cursor, lists)
    if form in ("keyed-state", "keyed-meta"):
        _check_keyed(cursor, groups)
    if form == "channels":
        with suppress(Malformed):
            read_channels_version(cursor)


def _check_lists(cursor: Cursor, lists: AbstractSet[str]) -> None:
    """Refuse operator state that names other lists than its handle does, as far as its head can be read."""
    at = cursor.at
    try:
        names, whole = operator_states(cursor)
    except UnknownVersion:
        raise
    except (Malformed, Unknown):
        return  # what its head says is not known, and proves nothing of the handle
    odd = names ^ lists if whole else names - lists
    if odd:
        raise Malformed(at, f"operator state and its handle do not name the same lists: {min(odd)!r:.99}")


def _check_keyed(cursor: Cursor, groups: Sequence[int]) -> None:
    """Refuse keyed state that has other key groups than its handle says; what its head says proves nothing of that."""
    start, end = cursor.at, cursor.end
    with suppress(Malformed):
        read_keyed_head(Cursor(cursor.data, start, end))
    first, *offsets = groups or (0,)
    places = [(first + i, start + at) for i, at in enumerate(offsets) if at]
    for group, at in places:
        if not start <= at < end:
            raise Malformed(start, f"key group {group} would begin at byte {at - start} of {end - start}")
    with suppress(Unknown):
        check_groups(lambda at, count: cursor.data[at : min(at + count, end)], places)

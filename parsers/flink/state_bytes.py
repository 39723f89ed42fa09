"""Whether the bytes that a handle names can be what was written: cheaply, by what a valid stream begins and ends with.

    operator-state  a head (`cklog.parsers.flink.state_heads`), then elements
    keyed-meta      a head
    keyed-state     a head; then key groups, at the offsets of the handle
    changes         compressed:bool, which no size counts; at each offset behind it
                    n:i32 (count:i32 group:i32 (length:i32 bytes)*count)*n
    channels        0:i32 (length:i32 buffer)*
    sst, manifest   `cklog.parsers.codecs`; current = "MANIFEST-", the number of one beside it
                    and a line feed; options = text

Flink writes no checksums: of its own streams every header is read, and key groups at some offsets or at all of them. A
stretch that is found damaged is looked at in some more places, so that it can be said if it is zeros. RocksDB does not
read its options when it is opened: no restore fails for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import reading
from cklog.inputs.snapshots import ContentCheck, StateStretch
from cklog.local_files import is_local
from cklog.parsers.codecs.record_log import check_record_log
from cklog.parsers.codecs.sst import Read, check_sst
from cklog.parsers.codecs.zeros import tell_zeros
from cklog.parsers.flink.java import Cursor, Malformed, Unknown, UnknownVersion
from cklog.parsers.flink.state_heads import (
    HEAD_BYTES,
    check_groups,
    named_manifest,
    read_channels_version,
    read_keyed_head,
    read_operator_head,
)
from cklog.progress import Stage, stage
from cklog.storage import open_file

_TEXT_BYTES = 68 << 10

_OPTIONS_BYTES = 1 << 20
_WITHOUT_SUMS = "Flink writes no checksums of it"
_READERS = 8
"""Files that are read side by side: far away, what takes time is to open them."""

_AT_ONCE = 64

_FEW = 32
"""Files of this machine that one thread reads as soon as several are started."""

_GROUPS_LOOKED_AT = 8
_CHANGE_BYTES = 13
_WHOLE_BYTES = 64 << 20
"""Bytes of a changelog's file that are read at the most, to follow its increments to their ends."""

_MOST_GROUPS = 1 << 15


def check_states(uris: Sequence[str], stretches: Sequence[StateStretch], thorough: bool) -> list[ContentCheck]:
    """Check stretches of files, each at its URI, several side by side; in their order."""
    if len(stretches) <= _FEW and all(map(is_local, uris)):
        return [check_state(uri, stretch, thorough) for uri, stretch in zip(uris, stretches, strict=True)]
    step = min(_AT_ONCE, -(-len(stretches) // _READERS) or 1)
    parts = [range(at, min(at + step, len(stretches))) for at in range(0, len(stretches), step)]
    if len(parts) <= _READERS:
        return _check_parts(uris, stretches, thorough, parts)
    with stage("looking into state files", "files", len(stretches)) as told:
        return _check_parts(uris, stretches, thorough, parts, told)


def _check_parts(
    uris: Sequence[str],
    stretches: Sequence[StateStretch],
    thorough: bool,
    parts: Sequence[range],
    told: Stage | None = None,
) -> list[ContentCheck]:
    """Check stretches of files, several parts of them side by side."""
    found: list[ContentCheck] = []
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and most checkpoints need no second part

    with ThreadPoolExecutor(_READERS) as readers:
        for some in readers.map(lambda part: [check_state(uris[i], stretches[i], thorough) for i in part], parts):
            found += some
            if told is not None:
                told.advance(len(some))
    return found


def check_state(uri: str, stretch: StateStretch, thorough: bool) -> ContentCheck:
    """Check a stretch of the file at a URI, or all of it that can be checked (`thorough`)."""
    try:
        with reading(stretch.path), open_file(uri) as file:
            size = max(file.size() - stretch.start, 0)
            size = size if stretch.bytes is None else min(size, stretch.bytes + (stretch.form == "changes"))
            return _check(file, stretch, size, thorough)
    except (OSError, ValueError, *ARROW_ERRORS) as error:
        return ContentCheck(unread=(error.strerror if isinstance(error, OSError) else None) or type(error).__name__)


def _check(file: Any, stretch: StateStretch, size: int, thorough: bool) -> ContentCheck:
    """Check `size` bytes of an open file."""

    def read(at: int, count: int) -> bytes:
        data: bytes = file.read_at(max(min(count, size - at), 0), stretch.start + at)
        return data

    check = _CHECKS.get(stretch.form)
    if check is None:
        return ContentCheck(unproved="its layout is not known")
    try:
        return ContentCheck(unproved=check(read, size, stretch, thorough))
    except Malformed as flaw:
        why = tell_zeros(read, size) or flaw.why
        return ContentCheck(why, stretch.start + (0 if why is not flaw.why else flaw.at))
    except UnknownVersion as reason:
        return ContentCheck(unknown=reason.why, at=stretch.start + reason.at)
    except Unknown as reason:
        return ContentCheck(unproved=str(reason))


def _check_table(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    found = check_sst(read, size, thorough)
    if found.flaw is not None:
        raise Malformed(found.flaw.at, found.flaw.why)
    if found.unknown is not None:
        raise UnknownVersion(found.unknown.at, found.unknown.why)
    return found.unchecked


def _check_manifest(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    found = check_record_log(read, size)
    if found is not None and found.unknown:
        raise UnknownVersion(found.at, found.why)
    if found is not None:
        raise Malformed(found.at, found.why)
    return ""


def _check_current(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    named_manifest(read(0, _TEXT_BYTES), stretch.offsets)
    return ""


def _check_options(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    for at in range(0, min(size, _OPTIONS_BYTES), _TEXT_BYTES):
        zero = read(at, _TEXT_BYTES).find(b"\0")
        if zero >= 0:
            raise Malformed(at + zero, "there is a zero in its text")
    return ""


def _check_operator_state(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    read_operator_head(Cursor(read(0, HEAD_BYTES)))
    return "" if not thorough else _WITHOUT_SUMS


def _check_keyed_head(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    read_keyed_head(Cursor(read(0, HEAD_BYTES)))
    return "" if not thorough else _WITHOUT_SUMS


def _check_keyed_state(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    _check_keyed_head(read, size, stretch, thorough)
    first, *offsets = stretch.offsets or (0,)
    places = [(first + i, at) for i, at in enumerate(offsets) if at]
    for group, at in places:
        if not 0 < at <= size:
            raise Malformed(size, f"key group {group} would begin at byte {at} of {size}")
    if not thorough and len(places) > _GROUPS_LOOKED_AT:
        step = (len(places) - 1) / (_GROUPS_LOOKED_AT - 1)
        places = [places[round(i * step)] for i in range(_GROUPS_LOOKED_AT)]
    check_groups(read, places)
    return "" if not thorough else _WITHOUT_SUMS


def _check_changes(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    if Cursor(read(0, 1)).flag("whether changes are compressed"):
        return "changes are compressed"
    for offset in stretch.offsets:
        at = offset + 1
        if not 0 < at < size:
            raise Malformed(size, f"an increment would begin at byte {at} of {size}")
        if not thorough or size > _WHOLE_BYTES:
            _read_group_of_changes(Cursor(read(at, _CHANGE_BYTES)), at, True)
            continue
        cursor = Cursor(read(at, size - at))
        groups = _read_group_of_changes(cursor, at, True) - 1
        _skip_changes(cursor, at)
        for _ in range(groups):
            _read_group_of_changes(cursor, at, False)
            _skip_changes(cursor, at)
    return "" if not thorough else _WITHOUT_SUMS


def _read_group_of_changes(cursor: Cursor, start: int, first: bool) -> int:
    """Read which key group changes are of, and where it is the first of an increment how many groups that has.

    The cursor is left at the number of changes.
    """
    at = start + cursor.at
    groups = cursor.i32("the number of key groups") if first else 1
    place = cursor.at
    changes, group = cursor.i32("the number of changes"), cursor.i32("a key group")
    if not (0 < groups <= _MOST_GROUPS + 1 and changes > 0 and -1 <= group < _MOST_GROUPS):
        raise Malformed(at, f"no increment of a changelog: {changes} changes of key group {group}")
    cursor.at = place
    return groups


def _skip_changes(cursor: Cursor, start: int) -> None:
    """Pass over the changes of one key group."""
    try:
        changes = cursor.i32("the number of changes")
        cursor.i32("a key group")
        for _ in range(changes):
            cursor.blob("a change")
    except Malformed as flaw:
        raise Malformed(start + flaw.at, flaw.why) from None


def _check_channels(read: Read, size: int, stretch: StateStretch, thorough: bool) -> str:
    cursor = Cursor(read(0, 8))
    read_channels_version(cursor)
    if size > 8 and not 0 < (length := cursor.i32("the length of a buffer")) <= size - 8:
        raise Malformed(4, f"a buffer of {length} bytes where {size - 8} are left")
    return "" if not thorough else _WITHOUT_SUMS


_CHECKS: Mapping[str, Callable[[Read, int, StateStretch, bool], str]] = {
    "operator-state": _check_operator_state,
    "keyed-meta": _check_keyed_head,
    "keyed-state": _check_keyed_state,
    "changes": _check_changes,
    "channels": _check_channels,
    "sst": _check_table,
    "manifest": _check_manifest,
    "current": _check_current,
    "options": _check_options,
}

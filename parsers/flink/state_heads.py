"""What a stream of Flink's state says of itself before its state: a version, the states, and how they are serialized.

    operator    version:i32 [compressed:bool, from 6 on] n:u16 STATE*n n:u16 STATE*n    (lists, then broadcast; 5 and 6)
    keyed       version:i32 [compressed:bool, from 4 on] [2:i32 SERIALIZER n:u16 STATE*n, 6]
    groups      then at each offset of the handle (0: none) a key group, as the heap has it (group:i32 …), as a full
                snapshot has it (state:u16 length:i32 key, which begins with the group), or compressed
    STATE       utf name  kind:i32  n:i32 (utf option  utf value)*n  n:i32 (utf role  2:i32 SERIALIZER)*n
    SERIALIZER  utf class  version:i32 …, which is nothing of Flink's simple ones; of those that are made of others
                911108:i32 2:i32 … 1333245:i32 1:i32 n:i32 SERIALIZER*n

What a class says of itself is its own affair: where such bytes begin, reading ends. There are no checksums, but what
these versions can say is little, and Flink restores nothing where a word of it is another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from cklog.parsers.flink.java import Cursor, Malformed, Unknown, wrong_name, wrong_number

KNOWN_BYTES = 4 << 10
"""No state that begins behind so many bytes is looked at: what is read of a stream is bounded."""

HEAD_BYTES = KNOWN_BYTES + (192 << 10)
"""What of a stream is read: a state's two names and two classes are of 64 KiB at the most, and hardly ever of 1."""

_VERSIONS = range(1, 7)
_OPERATOR_COMPRESSIBLE, _KEYED_COMPRESSIBLE = 6, 4
_OPERATOR_STATES_NAMED, _KEYED_STATES_NAMED = 5, 6
_SERIALIZER_VERSION = 2
_LIST, _BROADCAST, _QUEUE = 1, 2, 3  # and 0, a value by key
_CHANNELS_VERSION = 0
_MODE, _MODES = "OPERATOR_STATE_DISTRIBUTION_MODE", {"SPLIT_DISTRIBUTE", "UNION", "BROADCAST"}
_TYPE, _TYPES = "KEYED_STATE_TYPE", {"UNKNOWN", "VALUE", "LIST", "REDUCING", "FOLDING", "AGGREGATING", "MAP"}
_MOST, _MOST_NESTED = 16, 1 << 10
_DEEPEST = 16
_COMPOSED, _NESTED, _NESTED_VERSION = 911_108, 1_333_245, 1
_ROLES = ("KEY_SERIALIZER", "NAMESPACE_SERIALIZER", "VALUE_SERIALIZER")
_CURRENT = re.compile(rb"MANIFEST-([0-9]{1,20})\n")
_CLASS = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*")
_SIMPLE = re.compile(
    r"org\.apache\.flink\.(?:api\.common\.typeutils\.base\.(?:array\.)?|runtime\.state\.)"
    r"(?!Enum)(\w+Serializer)\$\1Snapshot"
)
_SIMPLE_VERSION = 3


def read_operator_head(cursor: Cursor) -> None:
    """Read what operator state begins with, as far as it is known; raises `Malformed` where it cannot be so."""
    operator_states(cursor)


def operator_states(cursor: Cursor) -> tuple[set[str], bool]:
    """Read the same, and return the names of the states that it tells, and whether these are all of them."""
    version = _read_version(cursor, "operator state")
    names: set[str] = set()
    if version >= _OPERATOR_COMPRESSIBLE:
        cursor.flag("whether the state is compressed")
    if version < _OPERATOR_STATES_NAMED:
        if cursor.u16("the number of states") and not cursor.utf("the name of a state"):
            raise Malformed(cursor.at, "a state without a name")
        return names, False
    for kind in (_LIST, _BROADCAST):
        if not _read_states(cursor, range(kind, kind + 1), (_MODE, _MODES), names):
            return names, False
    return names, True


def read_keyed_head(cursor: Cursor) -> None:
    """Read what keyed state begins with, as `read_operator_head` does."""
    version = _read_version(cursor, "keyed state")
    if version >= _KEYED_COMPRESSIBLE:
        cursor.flag("whether the state is compressed")
    if version < _KEYED_STATES_NAMED:
        return
    if _read_versioned_serializer(cursor):
        _read_states(cursor, range(_QUEUE + 1), (_TYPE, _TYPES), set())


def read_channels_version(cursor: Cursor) -> None:
    """Read the version of data in flight, of which there is one."""
    version = cursor.i32("a version")
    if version != _CHANNELS_VERSION:
        raise wrong_number(cursor.at - 4, version, _CHANNELS_VERSION, f"data in flight of version {version}")


def named_manifest(data: bytes, beside: Collection[int], at: int = 0) -> None:
    """Refuse a CURRENT, which is at byte `at`, that names no MANIFEST, or none of those `beside` it (if any are known).

    >>> named_manifest(b"MANIFEST-000005\\n", [5])
    """
    found = _CURRENT.fullmatch(data)
    if not found:
        raise Malformed(at, "it does not name a MANIFEST")
    if beside and int(found[1]) not in beside:
        raise Malformed(at, f"it names MANIFEST {int(found[1])}, and beside it is {', '.join(map(str, beside))}")


def check_groups(read: Callable[[int, int], bytes], groups: Sequence[tuple[int, int]]) -> None:
    """Refuse keyed state with a key group, given with its offset, that does not begin there: all have one layout.

    Raises `Unknown` where that layout is not known.
    """
    found = {key: read(key[1], _GROUP_BYTES) for key in groups}
    for (group, at), data in found.items():
        if group and not any(data):
            raise Malformed(at, f"there are zeros where key group {group} begins")
    telling = [(group, data) for (group, _), data in found.items() if group]  # of 0 its zeros prove nothing
    if not telling:
        return
    fits, count = max(
        ((fits, sum(fits(group, data) for group, data in telling)) for fits in _LAYOUTS), key=lambda one: one[1]
    )
    if not count:
        raise Unknown("its key groups are laid out in no known way")
    for (group, at), data in found.items():
        if not fits(group, data):
            raise Malformed(at, f"key group {group} does not begin there")


def _is_of_heap(group: int, data: bytes) -> bool:
    return int.from_bytes(data[:4], "big") == group


def _is_of_full(group: int, data: bytes) -> bool:
    key = data[6:]
    its = len(key) > 1 and group in (key[0] & 127, (key[0] & 127) << 8 | key[1])
    return its and int.from_bytes(data[2:6], "big") > 0


def _is_compressed(group: int, data: bytes) -> bool:
    return data.startswith(_SNAPPY)


_LAYOUTS = (_is_of_heap, _is_of_full, _is_compressed)
_GROUP_BYTES = 14
_SNAPPY = (b"\x82SNAPP", b"\xff\x06\x00\x00sNaPpY")


def _read_version(cursor: Cursor, what: str) -> int:
    """Read the version that a stream of Flink's begins with."""
    version = cursor.i32("a version")
    if version in _VERSIONS:
        return version
    raise wrong_number(cursor.at - 4, version, _VERSIONS[-1], f"{what} of version {version}")


def _read_states(cursor: Cursor, kinds: range, option: tuple[str, set[str]], names: set[str]) -> bool:
    """Read states of some kinds, and add their names; return whether what follows them can be read."""
    for _ in range(cursor.u16("the number of states")):
        if cursor.at > KNOWN_BYTES or not _read_state(cursor, kinds, *option, names):
            return False
    return True


def _read_state(cursor: Cursor, kinds: range, option: str, values: set[str], names: set[str]) -> bool:
    """Read one state, and add its name; return whether its end was found."""
    at = cursor.at
    name = cursor.utf("the name of a state")
    if not name:
        raise Malformed(at, "a state without a name")
    names.add(name)
    at = cursor.at
    kind = cursor.i32("the kind of a state")
    if kind not in kinds:
        raise wrong_number(at, kind, _QUEUE, f"a state of kind {kind}")
    at = cursor.at
    options = dict(_read_option(cursor) for _ in range(_read_few(cursor, "options")))
    if kind != _QUEUE and (value := options.get(option, "")) not in values:
        if option not in options:
            raise Malformed(at, f"a state without its {option}")
        raise wrong_name(at, value, values, f"a state whose {option} is {value!r:.99}")
    for _ in range(_read_few(cursor, "serializers")):
        at = cursor.at
        if (role := cursor.utf("the role of a serializer")) not in _ROLES:
            raise wrong_name(at, role, _ROLES, f"a serializer of neither keys nor namespaces nor values: {role!r:.99}")
        if not _read_versioned_serializer(cursor):
            return False
    return True


def _read_option(cursor: Cursor) -> tuple[str, str]:
    return cursor.utf("an option"), cursor.utf("the value of an option")


def _read_few(cursor: Cursor, what: str, most: int = _MOST) -> int:
    """Read a number of things of which there are never many."""
    at = cursor.at
    count = cursor.i32(f"the number of {what}")
    if not 0 <= count <= most:
        raise Malformed(at, f"{count} {what}, where there are {most} at the most")
    return count


def _read_versioned_serializer(cursor: Cursor) -> bool:
    """Read what a serializer says of itself, behind the version of how that is said."""
    at = cursor.at
    version = cursor.i32("the version of a serializer's snapshot")
    if version != _SERIALIZER_VERSION:
        raise wrong_number(at, version, _SERIALIZER_VERSION, f"a serializer's snapshot of version {version}")
    return _read_serializer(cursor)


def _read_serializer(cursor: Cursor, depth: int = 0) -> bool:
    """Read what a serializer says of itself; return whether its end was found."""
    at = cursor.at
    name = cursor.utf("the class of a serializer")
    if not _CLASS.fullmatch(name):
        raise Malformed(at, "the class of a serializer has no name that a class can have")
    at = cursor.at
    version = cursor.i32("the version of a serializer")
    if _SIMPLE.fullmatch(name):
        if not 0 < version <= _SIMPLE_VERSION:
            raise wrong_number(at, version, _SIMPLE_VERSION, f"a simple serializer of version {version}")
        return version == _SIMPLE_VERSION
    here = cursor.at
    if cursor.end - here < 8 or cursor.i32() != _COMPOSED:
        return False
    cursor.i32("the version of a composed serializer")
    if cursor.i32("what a composed serializer is made of") != _NESTED or depth == _DEEPEST:
        return False
    at = cursor.at
    version = cursor.i32("the version of what a serializer is made of")
    if version != _NESTED_VERSION:
        raise wrong_number(at, version, _NESTED_VERSION, f"a list of serializers of version {version}")
    return all(_read_serializer(cursor, depth + 1) for _ in range(_read_few(cursor, "serializers", _MOST_NESTED)))

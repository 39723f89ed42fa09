"""Pickles, against Python's own `pickle` with classes that do nothing in place of those that a pickle names.

Where cklog refuses, `pickletools` says beforehand whether a memo index is so large that `pickle` would fill memory.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import random
from typing import Any

from cklog.errors import OverBudget
from cklog.parsers.pickles.restricted import Refused, Skipped, load
from tests.differential.mutations import Damage
from tests.differential.verdicts import Decoder, Excuse, Outcome

_STANDS = "⟨object⟩"
_MOST_MEMO = 1 << 16
_DEEPEST = 200


def _take(*_: Any) -> None:
    """Take anything, and do nothing."""


class _Named(type):
    """What a pickle names may be an object as well: so a class takes what its objects take."""

    def __setitem__(cls, *_: Any) -> None: ...


class Stand(tuple[()], metaclass=_Named):
    """What stands for a class that a pickle names, and for its objects: it takes everything and does nothing.

    A real class may make a tuple, which a later REDUCE takes for arguments: so its objects are tuples, too.
    """

    append = extend = add = __setstate__ = staticmethod(_take)

    def __new__(cls, *_: Any, **__: Any) -> Stand:
        return tuple.__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, *_: Any, **__: Any) -> Stand:
        return self

    def __setitem__(self, *_: Any) -> None: ...

    __hash__ = object.__hash__


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return Stand

    def persistent_load(self, _: Any) -> Any:
        raise pickle.UnpicklingError("a persistent id")


class Sample:
    """An object with a state, as jobs keep them."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __reduce__(self) -> Any:
        return Sample, (self.held,)


class Plain:
    """An object that is pickled by its members."""


def _value(chance: random.Random, depth: int) -> Any:
    kind = chance.choice(("leaf", "leaf", "list", "dict", "tuple", "set", "frozenset", "object")) if depth else "leaf"
    if kind == "list":
        return [_value(chance, depth - 1) for _ in range(chance.choice((0, 1, 2, 5)))]
    if kind == "dict":
        return {_leaf(chance): _value(chance, depth - 1) for _ in range(chance.choice((0, 1, 2, 5)))}
    if kind == "tuple":
        return tuple(_value(chance, depth - 1) for _ in range(chance.choice((0, 1, 2, 3, 4))))
    if kind in ("set", "frozenset"):
        found = [chance.randrange(400) for _ in range(chance.choice((0, 1, 3)))]  # others have another order each time
        return {*found} if kind == "set" else frozenset(found)
    if kind == "object":
        made = Plain()
        made.__dict__["held"] = _value(chance, depth - 1)
        return chance.choice((made, Sample(_value(chance, depth - 1))))
    return _leaf(chance)


def _leaf(chance: random.Random) -> Any:
    return chance.choice(
        (
            None,
            True,
            False,
            0,
            -1,
            255,
            65535,
            -(2**31),
            2**70,
            -(2**2050),
            1.5,
            -0.0,
            "",
            "word",
            "naïve",
            "x" * 300,
            b"",
            b"bytes",
            b"y" * 300,
            f"name{chance.randrange(9)}",
        )
    )


def _made(damage: Damage) -> bytes:
    chance = damage.chance
    value = _value(chance, 3)
    if chance.random() < 0.3:
        value = [value, value, bytearray(b"more")]
    return pickle.dumps(value, protocol=chance.choice((0, 1, 2, 3, 4, 5)))


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value as something that can be printed and compared; sets by their members in one order."""
    if depth > _DEEPEST:
        return "⟨deep⟩"
    if isinstance(value, Skipped) or value is Stand or isinstance(value, Stand):
        return _STANDS
    if isinstance(value, dict):
        return ("dict", [(_plain(k, depth + 1), _plain(v, depth + 1)) for k, v in value.items()])
    if isinstance(value, set | frozenset):
        return (type(value).__name__, sorted(repr(_plain(one, depth + 1)) for one in value))
    if isinstance(value, list | tuple):
        return (type(value).__name__, [_plain(one, depth + 1) for one in value])
    return value


def _with_objects(value: Any) -> Any:
    """Return a value in which everything that may be an object's, or holds one, is as unknown as objects are."""
    if value == _STANDS:
        return _STANDS
    if isinstance(value, tuple) and isinstance(value[1], list):
        held = [_with_objects(one) for one in value[1]]
        if value[0] == "dict" and any(key == _STANDS for key, _ in held):
            return _STANDS  # how many of its keys are equal nobody can tell
        if value[0] in ("set", "frozenset"):  # whose members are texts by now
            return _STANDS if any(_STANDS in one for one in held) else (value[0], held)
        return _STANDS if value[0] == "tuple" and _STANDS in held else (value[0], held)
    if isinstance(value, tuple):
        return tuple(_with_objects(one) for one in value)
    return value


def _equal(ours: Any, theirs: Any) -> bool:
    return ours == theirs or repr(ours) == repr(theirs)


def _read(data: bytes) -> Outcome:
    try:
        return Outcome("value", repr(_with_objects(_plain(load(data)))))
    except OverBudget as reason:
        return Outcome("limit", why=reason.what)
    except Refused as reason:
        return Outcome("refused", why=reason.why)


def _has_large_index(data: bytes) -> bool:
    """Return whether a pickle puts something at so large an index of the memo that memory would be filled."""
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if "PUT" in opcode.name and isinstance(argument, int) and argument > _MOST_MEMO:
                return True
    except Exception:  # what is behind it nobody reads
        return False
    return False


def _refer(data: bytes) -> Outcome:
    if (b"r" in data or b"p" in data) and _has_large_index(data):
        return Outcome("limit", why="a memo index that would fill memory")
    file = io.BufferedReader(io.BytesIO(data), max(len(data), 1))  # as of a file that is opened
    try:
        value = _Unpickler(file).load()
        if file.tell() != len(data):
            return Outcome("refused", why="something follows")
        return Outcome("value", repr(_with_objects(_plain(value))))
    except Exception as error:
        return Outcome("refused", why=f"{type(error).__name__}: {error}")


EXCUSES = (
    Excuse(
        "extension codes",
        "which class a code is for stands in a registry of the process that wrote the pickle, and not in the pickle",
        lambda data, ours, theirs: theirs.why.startswith("ValueError: unregistered extension code"),
    ),
)

DECODERS = (
    Decoder(
        name="pickles",
        reference="pickle",
        make=_made,
        read=_read,
        refer=_refer,
        excuses=EXCUSES,
        equal=_equal,
        memory=2 << 30,  # the reference fills a memo as long as the greatest number that is given to an object
    ),
)

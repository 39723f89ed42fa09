"""What the names of an object's members show: that one is damaged or misspelt, or the record is another table's."""

from __future__ import annotations

import functools
from collections.abc import Collection, Container

from cklog.unknown_formats import is_one_bit_apart

_TAG = "event"
"""The member that all records of `events/` and `system/` have, and none of another table."""


def damaged_name(names: Collection[str], known: Collection[str]) -> str:
    """Return which of an object's member names is one bit away from a `known` one that is absent; "" for none.

    >>> damaged_name(["operator", "kinl"], {"operator", "kind"})
    'no member kind, but kinl, one bit away from it'
    """
    strange = [name for name in names if name not in known]
    if not strange or not known:
        return ""
    absent = sorted(name for name in known if name not in names)
    pairs = ((name, other) for name in strange for other in absent)
    found = next(((name, other) for name, other in pairs if is_one_bit_apart(name, other)), None)
    return f"no member {found[1]}, but {found[0]}, one bit away from it" if found else ""


def find_misspelling(names: Collection[str], known: Collection[str]) -> str:
    """Return which of an object's member names is perhaps meant for a `known` one that is absent; "" for none.

    A name is if it differs in case and separators alone, in one letter (left out, added, another, or two in the wrong
    order), or in two of eight or more. Names of three letters and fewer are too short to tell.

    >>> find_misspelling(["operator", "recieved"], {"operator", "received"})
    'unknown member recieved: did you mean received?'
    >>> find_misspelling(["failureTime"], {"failure_time"})
    'unknown member failureTime: did you mean failure_time?'
    >>> find_misspelling(["operator", "colour"], {"operator", "received"})
    ''
    """
    strange = [name for name in names if name not in known]
    absent = sorted(name for name in known if name not in names) if strange else []
    pairs = ((name, other) for name in strange for other in absent)
    found = next(((name, other) for name, other in pairs if _alike(name, other)), None)
    return f"unknown member {found[0]}: did you mean {found[1]}?" if found else ""


@functools.lru_cache(1 << 12)
def _alike(name: str, other: str) -> bool:
    if min(len(name), len(other)) < 4 or abs(len(name) - len(other)) > 2:
        return False
    if _plain(name) == _plain(other):
        return True
    return _distance(name, other) <= (2 if len(other) >= 8 else 1)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _distance(name: str, other: str) -> int:
    """Return by how many letters two names differ; two neighbours in the wrong order are one.

    >>> _distance("recieved", "received"), _distance("chanels", "channels"), _distance("bytes", "state")
    (1, 1, 4)
    """
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(name, 1):
        row = [i]
        for j, one in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != one))
            if i > 1 and j > 1 and (letter, name[i - 2]) == (other[j - 2], one):
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def misplaced(names: Container[str], known: Collection[str]) -> str:
    """Say that an object with these members is another table's record than one that may have the `known` ones; "": no.

    Events name operators, checkpoints, channels and numbers as the records of other tables do: a file of them that lies
    in the wrong place would be taken for those.

    >>> misplaced(["event", "channel", "seq"], ["channel", "seq"]), misplaced(["event"], ["event"])
    ('an event, which belongs into another table', '')
    """
    wrong = known and _TAG in names and _TAG not in known
    return "an event, which belongs into another table" if wrong else ""

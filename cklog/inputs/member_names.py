"""What the names of an object's members tell of it: that one is damaged, or that it is another table's record."""

from __future__ import annotations

from collections.abc import Collection, Container

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
    pairs = ((name, other) for name in strange for other in absent if len(name) == len(other))
    found = next(((name, other) for name, other in pairs if _one_bit_apart(name, other)), None)
    return f"no member {found[1]}, but {found[0]}, one bit away from it" if found else ""


def _one_bit_apart(name: str, other: str) -> bool:
    differing = [ord(one) ^ ord(two) for one, two in zip(name, other, strict=True) if one != two]
    return len(differing) == 1 and differing[0].bit_count() == 1


def misplaced(names: Container[str], known: Collection[str]) -> str:
    """Say that an object with these members is another table's record than one that may have the `known` ones; "": no.

    Events name operators, checkpoints, channels and numbers as the records of other tables do: a file of them that lies
    in the wrong place would be taken for those.

    >>> misplaced(["event", "channel", "seq"], ["channel", "seq"]), misplaced(["event"], ["event"])
    ('an event, which belongs into another table', '')
    """
    wrong = known and _TAG in names and _TAG not in known
    return "an event, which belongs into another table" if wrong else ""

"""The variables that a checkpoint record lists, each in base or delta form (design section 3, `variables`)."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

FORMS = ("base", "delta")


class Variable(NamedTuple):
    """`parent` None of a delta: the checkpoint before it; `bytes` None: not known."""

    name: str
    form: str
    parent: int | None
    bytes: int | None


class NoVariables(Exception):
    """Why what stands for a record's variables says nothing of them."""


def variables_of(text: str) -> list[Variable]:
    """The variables of a record from the JSON text of its member.

    >>> variables_of('[{"name":"left","form":"delta","parent":3,"bytes":10}]')
    [Variable(name='left', form='delta', parent=3, bytes=10)]

    Raises
    ------
    NoVariables : the text is no list of objects with names of their own, or a member is what it cannot be
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise NoVariables("not JSON") from None
    if not isinstance(found, list):
        raise NoVariables("not a list")
    variables = [_variable(entry) for entry in found]
    if len({variable.name for variable in variables}) < len(variables):
        raise NoVariables("two of them have one name")
    return variables


def _variable(entry: Any) -> Variable:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise NoVariables("one of them has no name")
    name, form = entry["name"], entry.get("form") or "base"
    if form not in FORMS:
        raise NoVariables("a form is neither base nor delta")
    if any("\ud800" <= c <= "\udfff" for c in name):
        raise NoVariables("a name holds half a surrogate pair")
    return Variable(name, form, _count(entry, "parent"), _count(entry, "bytes"))


def _count(entry: dict[str, Any], member: str) -> int | None:
    value = entry.get(member)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise NoVariables(f"{member} is no number of 63 bits")
    return value

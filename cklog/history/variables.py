"""The variables that a checkpoint record lists, each in base or delta form (`docs/run-folder.md`, `variables`)."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import true_rows
from cklog.arrays.types import Ints, Mask
from cklog.budgets import check_json
from cklog.model.values import is_integer

FORMS = ("base", "delta")


class Variable(NamedTuple):
    """A variable of a checkpoint.

    `form` is base or delta; `parent` the checkpoint that a delta stands on, None for the one before. `bytes` is None
    where not known.
    """

    name: str
    form: str
    parent: int | None
    bytes: int | None


class NoVariables(Exception):
    """The text that should list a record's variables does not; the message says why."""


class ListedVariables(NamedTuple):
    """The variables of all records that list some, in the order of the records; shape (variables,) each.

    `owner` is the record of each, rising, and `delta` says whether its form is that. `wrong` tells of a record whose
    list cannot be read, why.
    """

    owner: Ints
    store: pa.Array
    delta: Mask
    parent: pa.Array
    bytes: pa.Array
    wrong: dict[int, str]


def listed_variables(column: pa.ChunkedArray) -> ListedVariables:
    """Read the variables of all records, from the member `variables` of each; null where it lists none."""
    rows = np.flatnonzero(true_rows(pc.is_valid(column)))
    owners: list[int] = []
    entries: list[Variable] = []
    wrong: dict[int, str] = {}
    for row, text in zip(rows.tolist(), column.take(pa.array(rows)).to_pylist(), strict=True):
        try:
            found = variables_of(text)
        except NoVariables as reason:
            wrong[row] = f"does not say what its variables are: {reason}"
            continue
        owners += [row] * len(found)
        entries += found
    return ListedVariables(
        owner=np.array(owners, np.int64),
        store=pa.array([entry.name for entry in entries], pa.string()).dictionary_encode(),
        delta=np.array([entry.form == "delta" for entry in entries], np.bool_),
        parent=pa.array([entry.parent for entry in entries], pa.int64()),
        bytes=pa.array([entry.bytes for entry in entries], pa.int64()),
        wrong=wrong,
    )


def variables_of(text: str) -> list[Variable]:
    """Read the variables of a record from the JSON text of its member `variables`.

    >>> variables_of('[{"name":"left","form":"delta","parent":3,"bytes":10}]')
    [Variable(name='left', form='delta', parent=3, bytes=10)]

    Raises
    ------
    NoVariables : the text is no list of objects with names of their own, or a member is what it cannot be
    """
    check_json(text)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise NoVariables("not JSON") from None
    if not isinstance(found, list):
        raise NoVariables("not a list")
    variables = [_checked_variable(entry) for entry in found]
    if len({variable.name for variable in variables}) < len(variables):
        raise NoVariables("two of them have one name")
    return variables


def _checked_variable(entry: Any) -> Variable:
    """Return one entry of the list as a variable, if it is one."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise NoVariables("one of them has no name")
    name, form = entry["name"], entry.get("form") or "base"
    if form not in FORMS:
        raise NoVariables("a form is neither base nor delta")
    if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
        raise NoVariables("a name holds half a surrogate pair")
    return Variable(name, form, _optional_count(entry, "parent"), _optional_count(entry, "bytes"))


def _optional_count(entry: dict[str, Any], member: str) -> int | None:
    """Return a member that is a number from 0 up, or None if it is not there."""
    value = entry.get(member)
    if value is None:
        return None
    if not is_integer(value) or not 0 <= value < 1 << 63:
        raise NoVariables(f"{member} is no number of 63 bits")
    return value

"""One JSON line or one Parquet row against a table of `cklog.model`: what is a record, and what is not.

A record has every required field, of the right type (a JSON `5.0`, `true` or `"5"` is no integer), integers that
fit 64 bits, no negative count, and only words that the table knows where it lists them. Unknown fields are
kept out and ignored; `null` is an absent field.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import map_rows
from cklog.budgets import check_json
from cklog.errors import first_line
from cklog.inputs.member_names import damaged_name, misplaced
from cklog.model.schemas import CHOICES, TABLES

_CHECKSUM = re.compile(rb',\s*"crc32c"\s*:\s*"([0-9a-fA-F]{8})"\s*\}\s*$')
BIGGEST = (1 << 63) - 1
"""No number reaches this: the next one would not fit 64 bits."""

NOT_NEGATIVE = frozenset(
    {
        "subtask",
        "checkpoint",
        "seq",
        "bytes",
        "protocol_bytes",
        "parent",
        "round",
        "index",
        "lsn",
        "open_windows",
        "input",
        "tuples",
        "pos",
    }
)
"""Integer fields that count something; `time` may lie before 1970."""

PSEUDO = {"_path": pa.string(), "_offset": pa.int64()}
"""Columns that every table has: where a record was read."""

SPELT = frozenset({"checkpoints", "channels", "events"})
"""Tables whose records are looked through for misspelt members."""

UNSEALED = "no crc32c, in a file whose bytes cannot be trusted"
"""Why a line that may be whole is none."""


class NotARecord(Exception):
    """Why a line is skipped."""


def strict_json(line: bytes, required: bool = False, known: Collection[str] = ()) -> dict[str, Any]:
    """Return the object on a line, its checksum verified if it carries one; `required`: it must.

    Members that nobody knows are ignored by readers, and so would be one whose name is damaged. So of a line without a
    checksum none may be one bit away from a member of `known` that is absent.

    >>> strict_json(b'{"channel":"a/0->b/0","seq":1}')
    {'channel': 'a/0->b/0', 'seq': 1}
    >>> strict_json(b'{"seq":1,"crc32c":"00000000"}')
    Traceback (most recent call last):
        ...
    cklog.parsers.tables.records.NotARecord: crc32c is 00000000, the line's bytes give 3e8f26fb

    Raises
    ------
    NotARecord
        no JSON object in UTF-8, a name twice in an object, an integer beyond 64 bits, a wrong or missing checksum, or a
        damaged name.
    """
    check_json(line)
    try:
        found = _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise NotARecord(f"not UTF-8 at byte {error.start} of the line") from None
    except (ValueError, RecursionError) as error:
        raise NotARecord(f"not JSON: {first_line(error)}") from None
    if not isinstance(found, dict):
        raise NotARecord("not a JSON object")
    if "crc32c" in found:
        _verify_checksum(line)
        del found["crc32c"]
    elif required:
        raise NotARecord(UNSEALED)
    elif why := damaged_name(found, known):
        raise NotARecord(why)
    if why := misplaced(found, known):
        raise NotARecord(why)
    return found


def _verify_checksum(line: bytes) -> None:
    import crc32c  # slow to import, and most lines have no checksum

    at = _CHECKSUM.search(line)
    if at is None:
        raise NotARecord("crc32c is not the last member, or not 8 hex digits")
    computed = crc32c.crc32c(line[: at.start()])
    if computed != int(at.group(1), 16):
        raise NotARecord(f"crc32c is {at.group(1).decode()}, the line's bytes give {computed:08x}")


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _parse_integer(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("an integer beyond 64 bits")
    return int(digits)


def object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members; one that is there twice would hide the other: `ValueError`."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"member {json.dumps(twice)} is there twice")
    return found


_DECODER = json.JSONDecoder(
    parse_int=_parse_integer, parse_constant=_refuse_constant, object_pairs_hook=object_of_pairs
)


def as_record(found: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """Take the fields of `schema` out of a JSON object, each of the right type.

    >>> from cklog.model.schemas import MESSAGES
    >>> as_record({"channel": "a/0->b/0", "seq": 7, "colour": "red"}, MESSAGES)
    {'channel': 'a/0->b/0', 'seq': 7, 'time': None, 'bytes': None, 'protocol_bytes': None}

    Raises
    ------
    NotARecord
        names the field and what it holds.
    """
    record: dict[str, Any] = {}
    for name, member, kind, required, shared in _rules(schema):
        value = found.get(member)
        if value is None or (shared and (kind == "map") != isinstance(value, dict)):
            if required:
                raise NotARecord(f"no field {name}")
            record[name] = None
        else:
            record[name] = _CONVERTERS[kind](name, value)
    missing = missing_of(record)
    if missing:
        raise NotARecord(missing)
    return record


class _FieldRule(NamedTuple):
    """How a column is filled: from which `member`, by which entry of `_CONVERTERS`, and whether it must be there.

    Two columns share a member that has two types: `input` is a number, or an object of numbers.
    """

    name: str
    member: str
    kind: str
    required: bool
    shared: bool


_SCHEMAS = 64
_RULES: dict[int, tuple[pa.Schema, tuple[_FieldRule, ...]]] = {}
"""Each schema is held here, so that its identity is not given to another."""


def _rules(schema: pa.Schema) -> tuple[_FieldRule, ...]:
    """Return the rules of a schema, found by its identity: hashing a schema costs more than reading a record."""
    known, rules = _RULES.get(id(schema), (None, ()))
    if known is not schema:
        if len(_RULES) > _SCHEMAS:
            _RULES.clear()
        rules = _make_rules(schema)
        _RULES[id(schema)] = schema, rules
    return rules


def _make_rules(schema: pa.Schema) -> tuple[_FieldRule, ...]:
    members = [member_of(field) for field in schema]
    return tuple(
        _FieldRule(
            name=field.name,
            member=member,
            kind=_kind_of_field(field),
            required=not field.nullable,
            shared=members.count(member) > 1,
        )
        for field, member in zip(schema, members, strict=True)
    )


@functools.cache
def members_of(table: str) -> frozenset[str]:
    """Return the members that records of a table may have, their checksum among them.

    >>> sorted(members_of("state"))
    ['bytes', 'crc32c', 'operator', 'subtask', 'time']
    """
    return frozenset({"crc32c", *(member_of(field) for field in TABLES[table])})


def member_of(field: pa.Field) -> str:
    """Return the JSON member that a column is read from: its own name, unless two columns share one."""
    return str((field.metadata or {}).get(b"member", field.name.encode()).decode())


def _kind_of_field(field: pa.Field) -> str:
    if (field.metadata or {}).get(b"holds") == b"json":
        return "json"
    kinds = {"int64": pa.types.is_int64, "float64": pa.types.is_float64, "map": pa.types.is_map}
    return next((kind for kind, fits in kinds.items() if fits(field.type)), "word" if is_listed(field) else "text")


def is_listed(field: pa.Field) -> bool:
    """Return whether a column holds only the words that its name stands for."""
    return field.name in CHOICES and (field.metadata or {}).get(b"words") != b"any"


FOOTPRINTS = ("open", "check")
"""Types of output records that hold a window's state."""


def missing_of(record: dict[str, Any]) -> str:
    """Return what a record of an output queue lacks for its type; empty for records of other tables.

    >>> missing_of({"type": "open", "window": "w1", "open_windows": None})
    'no field open_windows in a record of type open'
    """
    kind = record.get("type")
    if kind in (*FOOTPRINTS, "result") and record.get("window", "") is None:
        return f"no field window in a record of type {kind}"
    if kind in FOOTPRINTS and record.get("open_windows", 0) is None:
        return f"no field open_windows in a record of type {kind}"
    return ""


def _as_real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotARecord(f"{name} is {_shortened(value)}, not a number")
    if not -BIGGEST < value < BIGGEST:
        raise NotARecord(f"{name} is {_shortened(value)[:40]}, beyond 64 bits")
    return float(value)


def _as_watermarks(name: str, value: Any) -> list[tuple[str, int]]:
    if not isinstance(value, dict):
        raise NotARecord(f"{name} is {_shortened(value)}, not an object")
    return [(_as_text(name, key), _as_watermark(name, key, n)) for key, n in value.items()]


def _as_word(name: str, value: Any) -> str:
    if value not in CHOICES[name]:
        raise NotARecord(f"{name} is {_shortened(_as_text(name, value))}, not one of {', '.join(CHOICES[name])}")
    return str(value)


def json_text(value: Any) -> str:
    """Return any JSON value as the text that cklog keeps it in: the writer's order of members, no spaces."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise NotARecord(f"a value that JSON cannot hold: {first_line(error)}") from None


def _as_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise NotARecord(f"{name} is {_shortened(value)}, not a string")
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise NotARecord(f"{name} holds half a surrogate pair") from None
    return value


def _as_integer(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotARecord(f"{name} is {_shortened(value)}, not an integer")
    if not -BIGGEST <= value < BIGGEST:
        raise NotARecord(f"{name} is {value}, beyond 64 bits")
    if value < 0 and name in NOT_NEGATIVE:
        raise NotARecord(f"{name} is {value}, less than 0")
    return value


def _as_watermark(name: str, key: str, value: Any) -> int:
    number = _as_integer(f"{name} of {key}", value)
    if number < 0:
        raise NotARecord(f"{name} of {key} is {number}, less than 0")
    return number


_CONVERTERS: dict[str, Callable[[str, Any], Any]] = {
    "int64": _as_integer,
    "float64": _as_real,
    "map": _as_watermarks,
    "json": lambda _name, value: json_text(value),
    "word": _as_word,
    "text": _as_text,
}
"""(column, value of its member) → the value of the column; `NotARecord` if it is of another type."""


def _shortened(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 40 else text[:37] + "..."


def faults(batch: pa.RecordBatch, schema: pa.Schema, seen: Collection[str] = ()) -> Iterator[tuple[pa.Array, str]]:
    """Yield (rows at fault, why) by the rules of `as_record`, on whole columns of the right types.

    Rows at fault are a boolean array of shape (rows,), e.g. [False, True] with "seq is less than 0". Of the columns in
    `seen` no number is less than 0 or beyond 64 bits: whoever read them has looked.
    """
    for name in batch.schema.names:
        yield from _column_faults(name, batch.column(name), schema, name in seen)
    if "type" in batch.schema.names:
        kinds = None
        for name, lacking in (("window", (*FOOTPRINTS, "result")), ("open_windows", FOOTPRINTS)):
            if name in batch.schema.names and batch.column(name).null_count:
                kinds = batch.column("type").cast(pa.string()) if kinds is None else kinds
                needs = pc.is_in(kinds, value_set=pa.array(lacking, pa.string()))
                mask = pc.and_(needs, pc.is_null(batch.column(name)))
                if pc.any(mask).as_py():
                    yield mask, f"no field {name} in a record of type {' or '.join(lacking)}"


def _column_faults(name: str, array: pa.Array, schema: pa.Schema, seen: bool) -> Iterator[tuple[pa.Array, str]]:
    """Yield (rows at fault, why) for one column; `seen`: all its numbers are in range."""
    if array.null_count and name in schema.names and not schema.field(name).nullable:
        yield pc.is_null(array), f"no field {name}"
    if name in NOT_NEGATIVE and not seen and not are_small(array):
        span = pc.min_max(array).as_py()
        if (span["min"] or 0) < 0:
            yield pc.fill_null(pc.less(array, 0), False), f"{name} is less than 0"
        if (span["max"] or 0) >= BIGGEST:
            yield pc.fill_null(pc.greater_equal(array, BIGGEST), False), f"{name} is beyond 64 bits"
    if pa.types.is_floating(array.type):
        fits = pc.less(pc.abs(array), float(BIGGEST))  # false for what is not a number
        if array.null_count < len(array) and not pc.all(fits).as_py():
            yield pc.fill_null(pc.invert(fits), False), f"{name} is beyond 64 bits"
    if name in schema.names and is_listed(schema.field(name)):
        words = pa.array([*CHOICES[name], None], pa.string())
        if pa.types.is_dictionary(array.type) and pc.all(pc.is_in(array.dictionary, value_set=words)).as_py():
            return
        known = pc.is_in(array.cast(pa.string()), value_set=words)
        if not pc.all(known).as_py():
            yield pc.invert(known), f"{name} is not one of {', '.join(CHOICES[name])}"
    if pa.types.is_map(array.type) and len(array):
        row, inside = map_rows(array)
        negative = pc.fill_null(pc.less(array.items, 0), True).to_numpy(zero_copy_only=False) & inside
        if negative.any():
            bad = np.zeros(len(array), np.bool_)
            bad[row[negative]] = True
            yield pa.array(bad), f"{name} holds a watermark less than 0"


def are_small(array: pa.Array) -> bool:
    """Say whether no number is less than 0 or beyond 64 bits, if that can be told in one look: negatives are large."""
    if array.null_count or not pa.types.is_int64(array.type):
        return not len(array)
    return not len(array) or bool(array.to_numpy().view(np.uint64).max() < BIGGEST)


def batch_of_rows(rows: Iterable[Mapping[str, Any]], schema: pa.Schema, columns: tuple[str, ...]) -> pa.RecordBatch:
    """Return rows as columns of a schema, `_path` and `_offset` among them; what a row does not have is null."""
    rows = list(rows)
    fields = [pa.field(name, PSEUDO[name]) if name in PSEUDO else schema.field(name) for name in columns]
    arrays = [_array_of([row.get(field.name) for row in rows], field.type) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return a column; of one that no row has the nulls are made at once, for most columns of a few rows are such."""
    return pa.nulls(len(values), kind) if all(value is None for value in values) else pa.array(values, kind)

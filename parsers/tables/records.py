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
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from cklog.budgets import check_json
from cklog.errors import first_line
from cklog.inputs.member_names import damaged_name, misplaced
from cklog.model.schemas import CHOICES, TABLES
from cklog.unknown_formats import UnknownFormat, is_one_bit_off

_CHECKSUM = re.compile(rb',\s*"crc32c"\s*:\s*"([0-9a-fA-F]{8})"\s*\}\s*$')
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
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
    """Why a line is skipped; `id` is that of the damage."""

    id = "bad-record"


class UnknownWord(NotARecord, UnknownFormat):
    """A column of a few words holds another one, which a later version may have."""

    id = UnknownFormat.id


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
        why = f"{name} is {_shortened(_as_text(name, value))}, not one of {', '.join(CHOICES[name])}"
        raise UnknownWord(why) if is_another_word(name, value) else NotARecord(why)
    return str(value)


def is_another_word(name: str, value: str) -> bool:
    """Return whether a word that a column does not know is none of its words with one bit changed, and no bytes."""
    return _WORD.fullmatch(value) is not None and not is_one_bit_off(value, CHOICES[name])


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


def batch_of_rows(rows: Iterable[Mapping[str, Any]], schema: pa.Schema, columns: tuple[str, ...]) -> pa.RecordBatch:
    """Return rows as columns of a schema, `_path` and `_offset` among them; what a row does not have is null."""
    rows = list(rows)
    fields = [pa.field(name, PSEUDO[name]) if name in PSEUDO else schema.field(name) for name in columns]
    arrays = [_array_of([row.get(field.name) for row in rows], field.type) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return a column; of one that no row has the nulls are made at once, for most columns of a few rows are such."""
    return pa.nulls(len(values), kind) if all(value is None for value in values) else pa.array(values, kind)

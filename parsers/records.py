"""One JSON line or one Parquet row against a table of `cklog.model`: what is a record, and what is not.

A record has every required field, of the right type (a JSON `5.0`, `true` or `"5"` is no integer), integers that
fit 64 bits, no negative count, and only words that the table knows where it lists them. Unknown fields are
kept out and ignored; `null` is an absent field.
"""

from __future__ import annotations

import json
import re
from typing import Any

import crc32c
import pyarrow as pa

from cklog.model import CHOICES

_CHECKSUM = re.compile(rb',\s*"crc32c"\s*:\s*"([0-9a-fA-F]{8})"\s*\}\s*$')
BIGGEST = (1 << 63) - 1
"""No number reaches this: the next one would not fit 64 bits."""

NOT_NEGATIVE = frozenset({"subtask", "checkpoint", "seq", "bytes", "parent", "round", "lsn"})
"""Integer fields that count something; `time` may lie before 1970."""


class NotARecord(Exception):
    """Why a line is skipped."""


def strict_json(line: bytes, required: bool = False) -> dict[str, Any]:
    """The object on a line, its checksum verified if it carries one; `required`: it must.

    >>> strict_json(b'{"channel":"a/0->b/0","seq":1}')
    {'channel': 'a/0->b/0', 'seq': 1}
    >>> strict_json(b'{"seq":1,"crc32c":"00000000"}')
    Traceback (most recent call last):
        ...
    cklog.parsers.records.NotARecord: crc32c is 00000000, the line's bytes give 3e8f26fb
    """
    try:
        found = json.loads(line.decode("utf-8"), parse_int=_integer)
    except UnicodeDecodeError as error:
        raise NotARecord(f"not UTF-8 at byte {error.start} of the line") from None
    except (ValueError, RecursionError) as error:
        raise NotARecord(f"not JSON: {str(error).splitlines()[0]}") from None
    if not isinstance(found, dict):
        raise NotARecord("not a JSON object")
    if "crc32c" in found:
        _verify_checksum(line)
        del found["crc32c"]
    elif required:
        raise NotARecord("no crc32c, in a file whose bytes cannot be trusted")
    return found


def _verify_checksum(line: bytes) -> None:
    at = _CHECKSUM.search(line)
    if at is None:
        raise NotARecord("crc32c is not the last member, or not 8 hex digits")
    computed = crc32c.crc32c(line[: at.start()])
    if computed != int(at.group(1), 16):
        raise NotARecord(f"crc32c is {at.group(1).decode()}, the line's bytes give {computed:08x}")


def _integer(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("an integer beyond 64 bits")
    return int(digits)


def as_record(found: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """The fields of `schema` out of a JSON object, each of the right type.

    >>> from cklog.model import MESSAGES
    >>> as_record({"channel": "a/0->b/0", "seq": 7, "colour": "red"}, MESSAGES)
    {'channel': 'a/0->b/0', 'seq': 7, 'time': None, 'bytes': None}

    Raises
    ------
    NotARecord
        names the field and what it holds.
    """
    record: dict[str, Any] = {}
    for field in schema:
        value = found.get(field.name)
        if value is None:
            if not field.nullable:
                raise NotARecord(f"no field {field.name}")
            record[field.name] = None
        else:
            record[field.name] = _typed(field, value)
    return record


def _typed(field: pa.Field, value: Any) -> Any:
    if pa.types.is_int64(field.type):
        return _counted(field.name, value)
    if pa.types.is_float64(field.type):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotARecord(f"{field.name} is {_shown(value)}, not a number")
        return float(value)
    if pa.types.is_map(field.type):
        if not isinstance(value, dict):
            raise NotARecord(f"{field.name} is {_shown(value)}, not an object")
        return [(_text(field.name, key), _watermark(field.name, key, n)) for key, n in value.items()]
    text = _text(field.name, value)
    if text not in CHOICES.get(field.name, (text,)):
        raise NotARecord(f"{field.name} is {_shown(value)}, not one of {', '.join(CHOICES[field.name])}")
    return text


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise NotARecord(f"{name} is {_shown(value)}, not a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise NotARecord(f"{name} holds half a surrogate pair") from None
    return value


def _counted(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotARecord(f"{name} is {_shown(value)}, not an integer")
    if not -BIGGEST <= value < BIGGEST:
        raise NotARecord(f"{name} is {value}, beyond 64 bits")
    if value < 0 and name in NOT_NEGATIVE:
        raise NotARecord(f"{name} is {value}, less than 0")
    return value


def _watermark(name: str, key: str, value: Any) -> int:
    number = _counted(f"{name} of {key}", value)
    if number < 0:
        raise NotARecord(f"{name} of {key} is {number}, less than 0")
    return number


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 40 else text[:37] + "..."

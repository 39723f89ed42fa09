"""A record of a Kafka partition as a row of a table of a run folder (design section 3).

    record = the JSON object of the row as value,
             or, in an output queue, headers cec.type cec.window cec.ts cec.open_windows cec.input in UTF-8, and the
             state as value

A state that is no JSON becomes {"base64": "..."}. In an output queue `pos` is the record's own, else its Kafka offset;
`bytes` its own, else its size in the batch before compression.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from cklog.parsers.kafka.batches import Header, KafkaRecord
from cklog.parsers.tables.records import NotARecord, strict_json

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NUMBERS = ("cec.ts", "cec.open_windows")


def members(record: KafkaRecord, table: str) -> dict[str, Any]:
    """The members of a row, however it is encoded.

    Raises
    ------
    NotARecord : there is no object in the record
    """
    return _of_queue(record) if table == "outputs" else _of_value(record)


def own_place(found: dict[str, Any], head: Header, nth: int) -> int:
    """Where the `nth` event of a batch stands, in bytes behind the batch's beginning.

    The order of events without a number of their own is that of their places. A batch is one place; so its events are
    given its bytes, one after the other, which come before those of the next batch.

    Raises
    ------
    NotARecord : the batch has fewer bytes than events, and only its place tells the order of this one
    """
    if nth >= head.size and found.get("lsn") is None:
        raise NotARecord(f"no lsn, and no place for it in the {head.size} bytes of its batch")
    return min(nth, head.size - 1)


def _of_value(record: KafkaRecord) -> dict[str, Any]:
    if record.value is None:
        raise NotARecord("a null value")
    return strict_json(record.value)


def _of_queue(record: KafkaRecord) -> dict[str, Any]:
    headers = dict(record.headers)
    if "cec.type" in headers:
        found = _of_headers(headers) | {"state": _state(record.value)}
    elif record.value is None:
        raise NotARecord("a null value and no header cec.type")
    else:
        found = strict_json(record.value)
    for name, default in (("pos", record.offset), ("bytes", record.size)):
        if found.get(name) is None:
            found[name] = default
    return found


def _of_headers(headers: dict[str, bytes | None]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, raw in headers.items():
        if not name.startswith("cec.") or raw is None:
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise NotARecord(f"header {name} is not UTF-8") from None
        if name == "cec.input" and text.startswith("{"):
            found["input"] = strict_json(raw)
        elif name == "cec.input" or name in _NUMBERS:
            if not _INTEGER.fullmatch(text):
                raise NotARecord(f"header {name} is {text[:40]!r}, not an integer")
            found[name[4:]] = int(text)
        elif name in ("cec.type", "cec.window"):
            found[name[4:]] = text
    return found


def _state(value: bytes | None) -> Any:
    """The JSON value that bytes hold, or they themselves as {"base64": ...}."""
    if value is None:
        return None
    try:
        return json.loads(value.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {"base64": base64.b64encode(value).decode("ascii")}


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")

"""The topic of offsets as text, a record a line, as tools print it.

    kcat -J                         {"topic": …, "partition": 0, "offset": 7, "ts": …, "key": "[…]", "payload": "{…}"}
    kafka-console-consumer.sh       [CreateTime:… TAB] [Partition:0 TAB] [Offset:7 TAB] [NO_HEADERS TAB] key TAB value
      --property print.key=true     null in place of a deleted value; so with print.timestamp, .partition, .offset
    by hand                         {"key": […] or "[…]", "value": {…} or "{…}" or null}

Lines of a partition stand in its order; where they name their offset that decides. A last line without a line end is
read if it is whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cklog.engine.scan import Damage
from cklog.model.findings import Where
from cklog.model.values import is_integer
from cklog.parsers.codecs.hadoop_crc import EMPTY
from cklog.parsers.connect.entries import NotAnEntry, Written, json_value

_PREFIX = re.compile(rb"(?:(?:CreateTime|LogAppendTime|NoTimestampType):(?P<time>-?\d{1,18})|NO_TIMESTAMP)\t")
_PARTITION, _OFFSET = re.compile(rb"Partition:(\d{1,9})\t"), re.compile(rb"Offset:(\d{1,18})\t")
_OTHER = re.compile(rb"(?:Delivery:[^\t]{0,20}|NO_HEADERS)\t")


def written(path: str, data: bytes) -> Iterator[Written | Damage]:
    """Yield the records of an export, and lines that are none; what an export lacks may be in the topic."""
    if not data:
        yield Damage(path, "empty-file", None, EMPTY)
    at = 0
    lines = data.split(b"\n")
    for i, line in enumerate(lines):
        if line.strip():
            try:
                yield _record(path, line.rstrip(b"\r"), at, i)
            except NotAnEntry as reason:
                cut = ", and the file ends in it: the export was cut short" if i == len(lines) - 1 else ""
                yield Damage(path, "bad-record", at, f"{reason}{cut}")
        at += len(line) + 1


def _record(path: str, line: bytes, at: int, number: int) -> Written:
    return _of_json(path, line, at, number) if line.lstrip()[:1] == b"{" else _of_text(path, line, at, number)


def _of_json(path: str, line: bytes, at: int, number: int) -> Written:
    found = json_value(line)
    if "key" not in found or ("payload" not in found and "value" not in found):
        raise NotAnEntry("a line without a key and a payload")
    partition, offset, time = found.get("partition"), found.get("offset"), found.get("ts", found.get("timestamp"))
    topic = found.get("topic") if isinstance(found.get("topic"), str) else ""
    placed = is_integer(partition) and is_integer(offset)
    key = _bytes_of(found["key"])
    if key is None:
        raise NotAnEntry("a line whose key is null")
    return Written(
        part=f"{topic}-{partition}" if placed else topic,
        number=offset if placed else number,
        where=Where(path, at),
        key=key,
        value=_bytes_of(found["payload"] if "payload" in found else found["value"]),
        time=time if is_integer(time) and 0 <= time < 1 << 62 else None,
    )


def _bytes_of(value: Any) -> bytes | None:
    """Return what a key or value was written as: a text as it stands, anything else as a worker writes it."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _of_text(path: str, line: bytes, at: int, number: int) -> Written:
    time = partition = offset = None
    rest = line
    if stamp := _PREFIX.match(rest):
        time = int(stamp["time"]) if stamp["time"] else None
        rest = rest[stamp.end() :]
    if found := _PARTITION.match(rest):
        partition, rest = int(found[1]), rest[found.end() :]
    if found := _OFFSET.match(rest):
        offset, rest = int(found[1]), rest[found.end() :]
    while found := _OTHER.match(rest):
        rest = rest[found.end() :]
    key, tab, value = rest.partition(b"\t")
    if not tab:
        raise NotAnEntry("a line without a key, a tab and a value")
    placed = partition is not None and offset is not None
    return Written(
        part=f"-{partition}" if placed else "",
        number=number if offset is None or not placed else offset,
        where=Where(path, at),
        key=key,
        value=None if value == b"null" else value,
        time=time if time is not None and time >= 0 else None,
    )

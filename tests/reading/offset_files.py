"""The tools' own readers of what `cklog replay` exports, written again as strict as they are."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex

Offsets = dict[tuple[str, int], int]


def group_tool_reads(text: str) -> Offsets:
    """Kafka's own reader of --from-file: CSV rows without a header, numbers as Java reads them, the last row wins."""
    found = {}
    for row in csv.reader(io.StringIO(text), strict=True):
        assert len(row) == 3, "the tool fails on a blank line and on any other number of columns"
        assert re.fullmatch(r"\d{1,10}", row[1])
        assert re.fullmatch(r"\d{1,19}", row[2])
        found[row[0], int(row[1])] = int(row[2])
    return found


def streams_tool_reads(text: str) -> Offsets:
    """The application reset tool: lines, cut at each comma."""
    parts = [line.split(",") for line in text.splitlines()]
    assert all(len(row) == 3 and not set("\"' ") & set("".join(row)) for row in parts)
    return {(name, int(partition)): int(offset) for name, partition, offset in parts}


def get_offsets_reads(text: str) -> Offsets:
    parts = [line.rsplit(":", 2) for line in text.splitlines()]
    return {(name, int(partition)): int(offset) for name, partition, offset in parts}


def flink_reads(value: str) -> dict[int, int]:
    """The connector's parser: pairs cut at `;`, each exactly two, in this order, with nothing around them."""
    found = {}
    for pair in value.removesuffix(";").split(";"):
        partition, offset = pair.split(",")
        assert partition.startswith("partition:")
        assert offset.startswith("offset:")
        number = partition.removeprefix("partition:")
        assert number == number.strip()
        found[int(number)] = int(offset.removeprefix("offset:"))
    return found


def delete_tool_reads(text: str) -> Offsets:
    told = json.loads(text)
    assert told.keys() == {"partitions", "version"}
    assert told["version"] == 1
    pairs = [(row["topic"], row["partition"]) for row in told["partitions"]]
    assert len(set(pairs)) == len(pairs), "the tool refuses duplicates"
    return {(row["topic"], row["partition"]): row["offset"] for row in told["partitions"]}


def spark_reads(text: str) -> Offsets:
    return {(name, int(p)): n for name, held in json.loads(text).items() for p, n in held.items()}


_SWITCHES = ("-C", "-e", "--reset-offsets", "${MODE:---dry-run}")


def commands(text: str) -> list[dict[str, str]]:
    """Options by name of each command of a script, as a shell splits them.

    One that takes a word takes the next one, whatever that begins with: a topic may be called -t.
    """
    return [_options(line[1:]) for line in (shlex.split(line, comments=True) for line in text.splitlines()) if line]


def _options(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    waiting = iter(words)
    for word in waiting:
        found[word] = "" if word in _SWITCHES else next(waiting, "")
    return found

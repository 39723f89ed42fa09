"""Files of a queue: one counts as older than the last only if the numbers of their records say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.program import cklog

PART = "outputs/a/part-{}.jsonl"
NO_RECORD = b"\0" * 300 + b"\n"


def emits(first: int, end: int) -> bytes:
    """The records of a stateless operator, from number `first` to before `end`."""
    rows = ({"type": "emit", "ts": n, "open_windows": 0, "input": n, "pos": n, "bytes": 9} for n in range(first, end))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def told(root: Path, *parts: bytes) -> set[str]:
    """What the line of a run says whose queue has these files."""
    (root / "outputs/a").mkdir(parents=True)
    for number, part in enumerate(parts):
        (root / PART.format(number)).write_bytes(part)
    ended = cklog("recovery-line", root, "--json")
    found = {finding["id"] for finding in json.loads(ended.out)["findings"]}
    plan = json.loads(cklog("retention", root, "--json").out)["result"]
    if "repeated-records" in found:
        assert {row["fate"] for row in plan["rows"]} == {"KEEP"}
    return found


@pytest.mark.parametrize(
    ("parts", "in_order"),
    [
        ((emits(0, 5), emits(5, 9)), True),
        ((emits(0, 5), emits(0, 5)), False),
        ((emits(0, 5), emits(3, 9)), False),
        # of a file that nobody can read, missing numbers say that it lies in between
        ((NO_RECORD, emits(5, 9)), True),
        ((emits(0, 5), NO_RECORD, emits(7, 9)), True),
        # where none are missing it is one that was copied: the last one may be a copy of it, or of an older one
        ((NO_RECORD, emits(0, 9)), False),
        ((emits(0, 5), NO_RECORD, emits(5, 9)), False),
        ((emits(0, 5), emits(5, 9), NO_RECORD, emits(5, 9)), False),
        # what can be read of the end before may be older than all that the last file's own end tells
        ((emits(0, 4) + NO_RECORD, emits(0, 9)), False),
        ((emits(0, 4) + NO_RECORD, emits(6, 9)), True),
        # a torn last line is what every crash leaves
        ((emits(0, 5)[:-9], emits(4, 9)), True),
    ],
)
def test_the_numbers_of_records_say_which_file_is_older(
    tmp_path: Path, parts: tuple[bytes, ...], in_order: bool
) -> None:
    found = told(tmp_path, *parts)
    assert ("repeated-records" not in found) is in_order
    if NO_RECORD in parts and not in_order:  # newer records may have been in what nobody can read
        assert "bad-record" in found


def test_a_big_last_file_is_read_to_its_beginning_where_the_end_before_is_damaged(tmp_path: Path) -> None:
    """The last block of a file of many begins behind what can be read of the file before."""
    assert "repeated-records" in told(tmp_path, emits(0, 4) + NO_RECORD, emits(2, 200_000))

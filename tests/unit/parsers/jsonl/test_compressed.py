"""Compressed lines: nothing that a stream inflates to is believed before a checksum of its own held, or the line's."""

from __future__ import annotations

import base64
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from cklog.engine.scan import Damage, Split
from cklog.parsers.jsonl import stream
from cklog.parsers.jsonl.reader import READER, read
from cklog.parsers.results.lines import lines
from tests.builders.native import line, zstd

COLUMNS = ("operator", "checkpoint", "time", "_offset")


def plain(number: int) -> bytes:
    row = {"operator": "a", "checkpoint": number, "time": number * 1000, "sent": {"a/0->b/0": number * 7919 % 10007}}
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


ROWS = [plain(number) for number in range(1, 40)]
WRITTEN = {(number, number * 1000) for number in range(1, 40)}
CHECKED_ZSTD = base64.b85decode(
    "D77#BWV{J&2>=#WH5hPB+8zLL&kF?xsxD)%T-q{aVDqS|a6~)+DF7(|b(Uskr&X`}-=o=p$t0Vn7#bJ|0vZ&IWPz9f5mhnEA`vlxDkj26G#rY<f;"
    "gCfDHz2(8j-?daWsr1Sl{Y;C7*M8igakTCSJ9Ahkjo>S+0AdYui?nO10fg>W_$dyE|BSPU$qB6^%aU{CqAuJ3e;dna%Xfa=9hncP5o>ANJI>osmpF"
    "_H4GQj17Rvq(7L?yNAaUq3?G@tn>48dF=K&l=Zq*`~Sc1`}M8wlj`X7%gS@85s;wM`?VY3S;i3{1YY64Do&ygj)!^uy3g;Ye|~rU^Y!bWy<dO%{kn"
    "hi_?XwP`;2ZMNBib?*Plg6C$IbJukF{rwqJkRetowJk(8@OKvn^u#pNg"
)
"""The rows, by the program `zstd --check`."""


def found_in(path: Path, data: bytes) -> tuple[list[dict[str, Any]], list[Damage]]:
    """The records, with their offsets, and what is wrong."""
    path.write_bytes(data)
    split = Split(uri=str(path), path=path.name, reader=READER, start=0, end=len(data), size=len(data))
    rows: list[dict[str, Any]] = []
    damage: list[Damage] = []
    for item in read(split, "checkpoints", COLUMNS):
        damage.extend([item] if isinstance(item, Damage) else [])
        rows.extend([] if isinstance(item, Damage) else item.to_pylist())
    return rows, damage


def numbers(rows: list[dict[str, Any]]) -> set[tuple[int, int]]:
    return {(row["checkpoint"], row["time"]) for row in rows}


def injuries(data: bytes, rng: random.Random, count: int) -> list[bytes]:
    """The bytes with a block of zeros, cut, or with a bit flipped, at random places; all zeros of eight, too."""
    found = [data[:at] + bytes(8) + data[at + 8 :] for at in range(0, len(data), 8)]
    for _ in range(count):
        at, size = rng.randrange(len(data)), rng.choice((1, 2, 4, 16, 64, 512))
        end = min(at + size, len(data))
        found += [data[:at] + bytes(end - at) + data[end:], data[:at]]
        found.append(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
    return [one for one in found if one != data]


STREAMS = {
    ".jsonl.gz": gzip.compress(b"".join(ROWS), mtime=0),
    "-fast.jsonl.gz": gzip.compress(b"".join(ROWS), 1, mtime=0),
    "-stored.jsonl.gz": gzip.compress(b"".join(ROWS), 0, mtime=0),
    "-members.jsonl.gz": b"".join(gzip.compress(b"".join(ROWS[at : at + 10]), mtime=0) for at in range(0, 39, 10)),
    ".jsonl.zst": CHECKED_ZSTD,
}


@pytest.mark.quarter
@pytest.mark.parametrize("name", STREAMS)
def test_no_damage_makes_a_record_that_nobody_wrote(name: str, tmp_path: Path) -> None:
    """Of the undamaged stream all is read, and nothing is said."""
    path = tmp_path / f"part{name}"
    rows, damage = found_in(path, STREAMS[name])
    assert (numbers(rows), damage) == (WRITTEN, [])
    for data in injuries(STREAMS[name], random.Random(name), 150):
        rows, damage = found_in(path, data)
        assert numbers(rows) <= WRITTEN
        assert damage or numbers(rows) == WRITTEN, "what is not read is told"
        split = Split(uri=str(path), path=path.name, reader=READER, start=0, end=len(data), size=len(data))
        assert all((row["checkpoint"], row["time"]) in WRITTEN for row in lines(split))


@pytest.mark.parametrize("block_bytes", [8 << 20, 4000, 500])
def test_members_whose_checksum_held_are_believed_to_the_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    """And what is behind them is not, be it read with them or after them."""
    monkeypatch.setattr(stream, "BLOCK_BYTES", block_bytes)
    data = STREAMS["-members.jsonl.gz"]
    third = len(gzip.compress(b"".join(ROWS[:10]), mtime=0)) + len(gzip.compress(b"".join(ROWS[10:20]), mtime=0))
    for damaged in (data[: third + 60], data[: third + 40] + bytes(9) + data[third + 49 :]):
        rows, damage = found_in(tmp_path / "part.jsonl.gz", damaged)
        assert numbers(rows) == {(number, number * 1000) for number in range(1, 21)}
        assert {item.id for item in damage} <= {"torn-tail", "corrupt-file", "bad-record"}
        assert [row["_offset"] for row in rows] == [sum(map(len, ROWS[:i])) for i in range(20)]


def test_lines_with_a_checksum_of_their_own_need_none_of_the_stream(tmp_path: Path) -> None:
    sealed = [line({"operator": "a", "checkpoint": n, "time": n * 1000}) for n in range(1, 40)]
    data = gzip.compress(b"".join(sealed), 0, mtime=0)
    rows, damage = found_in(tmp_path / "part.jsonl.gz", data[:-1])
    assert (numbers(rows), [item.id for item in damage]) == (WRITTEN, ["torn-tail"])
    rows, damage = found_in(tmp_path / "part.jsonl.gz", data[:-9])  # the last newline
    assert numbers(rows) == WRITTEN
    mixed = gzip.compress(b"".join([*sealed[:5], *ROWS[5:]]), 0, mtime=0)
    rows, damage = found_in(tmp_path / "part.jsonl.gz", mixed[:-1])
    assert numbers(rows) == {(number, number * 1000) for number in range(1, 6)}
    assert {item.id: item.offset for item in damage[::-1]}["bad-record"] == sum(map(len, sealed[:5]))


def test_zeros_behind_a_member_may_be_one_that_is_gone(tmp_path: Path) -> None:
    member, path = gzip.compress(b"".join(ROWS), mtime=0), tmp_path / "part.jsonl.gz"
    for data, id in ((member + bytes(700), "torn-tail"), (member + bytes(700) + member, "corrupt-file")):
        rows, damage = found_in(path, data)
        assert (numbers(rows), [item.id for item in damage]) == (WRITTEN, [id])


def test_a_stream_without_a_checksum_is_said_to_have_none(tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl.zst"
    rows, damage = found_in(path, zstd(b"".join(ROWS)))
    assert (numbers(rows), [item.id for item in damage]) == (WRITTEN, ["unchecked-file"])
    for data in (CHECKED_ZSTD + zstd(b"".join(ROWS)), b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd(b"".join(ROWS))):
        assert [item.id for item in found_in(path, data)[1]] == ["unchecked-file"]
    sealed = zstd(b"".join(line({"operator": "a", "checkpoint": n, "time": n * 1000}) for n in range(1, 40)))
    assert found_in(path, sealed)[1] == []
    assert found_in(path, CHECKED_ZSTD + CHECKED_ZSTD)[1] == []

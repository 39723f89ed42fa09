"""What a plug-in gets that says which files are its own, and turns the bytes of one into records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cklog.engine.scan import Damage
from cklog.parsers.codecs.hadoop_crc import encode
from cklog.parsers.tables.records_parser import RecordsParser, reader
from cklog.storage import Root

COLUMNS = ("operator", "checkpoint", "_path", "_offset")


def rows(data: bytes, table: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Lines of OPERATOR NUMBER; the rest of a file behind "stop" cannot be read."""
    at = 0
    for line in data.decode().splitlines(keepends=True):
        operator, _, number = line.strip().partition(" ")
        if operator == "stop":
            raise ValueError("it stops there")
        yield at, {"operator": operator, "checkpoint": int(number)} if number else f"{operator} has no number"
        at += len(line)


class Lines(RecordsParser):
    """A plug-in for such lines."""

    name = "lines"
    reader = "tests.unit.parsers.tables.test_records_parser:read"

    @staticmethod
    def table_of(path: str) -> str | None:
        return "checkpoints" if path.endswith(".lines") else None


read = reader(rows)


def test_records_have_their_places_and_what_is_none_is_damage(tmp_path: Path) -> None:
    (tmp_path / "a.lines").write_text("op 1\nbad\nop 2\nop -3\n")
    (tmp_path / "b.lines").write_text("op 4\nstop\nop 5\n")
    (tmp_path / "empty.lines").write_text("")
    (tmp_path / "other").write_text("op 6\n")
    parser = Lines(Root(str(tmp_path)))
    found: list[tuple[Any, ...]] = []
    damage = []
    for split in parser.splits("checkpoints", 1):
        for one in read(split, "checkpoints", COLUMNS):
            if isinstance(one, Damage):
                damage.append((one.path, one.id, one.offset))
            else:
                found += [tuple(row[name] for name in COLUMNS) for row in one.to_pylist()]
    assert found == [("op", 1, "a.lines", 0), ("op", 2, "a.lines", 9), ("op", 4, "b.lines", 0)]
    assert damage[:2] == [("a.lines", "bad-record", 5), ("a.lines", "bad-record", 14)]
    assert [(path, id) for path, id, _ in damage[2:]] == [("b.lines", "corrupt-file")]
    assert [f.subject for f in parser.findings("checkpoints")] == ["empty.lines"]
    used = parser.inputs("checkpoints", {"a.lines": 2})
    assert [(one.path, one.bytes, one.records) for one in used] == [
        ("a.lines", 20, 2),
        ("b.lines", 15, 0),
        ("empty.lines", 0, 0),
    ]


def test_an_empty_file_whose_checksum_file_has_sums_is_a_mismatch(tmp_path: Path) -> None:
    for name, data in (("a", b"op 1\n"), ("b", b"")):
        (tmp_path / f"{name}.lines").write_bytes(b"")
        (tmp_path / f".{name}.lines.crc").write_bytes(encode(data))
    told = [(f.subject, f.id, f.severity) for f in Lines(Root(str(tmp_path))).findings("checkpoints")]
    assert told == [("a.lines", "checksum-mismatch", "error"), ("b.lines", "empty-file", "warning")]

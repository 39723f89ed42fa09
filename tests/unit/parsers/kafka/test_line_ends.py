"""Checkpoint files of brokers and of streams: lines and words end where Java ends them, and nowhere else."""

from __future__ import annotations

import pytest

from cklog.parsers.kafka.side_files import BadCheckpoint, offsets
from cklog.parsers.kafka.streams import read_entries


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\v\n"])
def test_what_java_takes_for_blanks_and_line_ends_is_read(end: str) -> None:
    assert offsets(f"0\n1\na 0 3{end}".encode()) == {("a", 0): 3}


@pytest.mark.parametrize("blank", ["\x1f", "\x85", "\u2028"])
def test_what_only_python_takes_for_a_blank_is_part_of_a_name(blank: str) -> None:
    assert offsets(f"0\n1\n{blank}a 0 3\n".encode()) == {(f"{blank}a", 0): 3}


def test_a_carriage_return_inside_an_entry_ends_its_line() -> None:
    with pytest.raises(BadCheckpoint):
        offsets(b"0\n1\na 0 \r4\n")
    entries, findings = read_entries("p", b"0\n1\na 0 \r4\n")
    assert entries is None
    assert [finding.id for finding in findings] == ["corrupt-file"]

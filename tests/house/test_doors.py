"""Doors: every room says in a few sentences what it is for, names its modules, and imports nothing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

OUTER = ("cklog", "commands", "parsers")
ROOMS = sorted(
    path.parent
    for folder in OUTER
    for path in (REPOSITORY / folder).rglob("__init__.py")
    if not any(parent.is_symlink() for parent in path.parents)
)
INNER = [room for room in ROOMS if room.name not in OUTER or room.parent != REPOSITORY]


def named(room: Path) -> set[str]:
    """What a door's list names: `name` or `one`, `two`, before the colon."""
    door = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    rows = re.findall(r"^[*-] ([^:\n]*):", door, flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("room", INNER, ids=lambda room: str(room.relative_to(REPOSITORY)))
def test_a_door_says_what_lies_behind_it_and_imports_nothing(room: Path) -> None:
    tree = ast.parse((room / "__init__.py").read_text(encoding="utf-8"))
    assert len(tree.body) == 1
    inside = {path.stem for path in room.glob("*.py")} - {"__init__"}
    inside |= {path.parent.name for path in room.glob("*/__init__.py")}
    assert {name for name in inside if not name.startswith("_")} == named(room)


def test_no_room_is_crowded_and_no_file_long() -> None:
    for room in ROOMS:
        assert len(list(room.glob("*.py"))) <= 21, room  # twenty, and the door
        for path in room.glob("*.py"):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path

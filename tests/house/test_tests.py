"""The tests themselves: folders that can be looked over, short files, and nothing taken from another test."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, SAMPLES

TESTS = REPOSITORY / "tests"
FOLDERS = sorted({path.parent for path in TESTS.rglob("*.py")})
MOST_FILES = 20
MOST_LINES = 400


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_a_folder_says_what_is_in_it_and_is_not_crowded(folder: Path) -> None:
    assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert len([path for path in folder.iterdir() if path.suffix == ".py"]) <= MOST_FILES


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_a_file_is_short_and_takes_nothing_from_a_test(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    found = {node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert not {module for module in found if module.startswith("tests.") and ".test_" in module}


def test_each_room_of_unit_tests_is_a_room_of_cklog() -> None:
    rooms = {path.relative_to(TESTS / "unit") for path in FOLDERS if TESTS / "unit" in path.parents}
    assert [room for room in sorted(rooms) if not (REPOSITORY / "cklog" / room).is_dir()] == []


def test_nothing_compiled_is_left_beside_the_samples() -> None:
    """By a script that is imported, here or by one that a test starts, in an environment that says nothing of it."""
    load = "from tests.conftest import sample_script; sample_script('make_spark_chain'); sample_script('make_meteor')"
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = os.pathsep.join(map(str, (REPOSITORY, SAMPLES)))
    before = {*SAMPLES.rglob("*.pyc")}
    subprocess.run([sys.executable, "-c", load], cwd=REPOSITORY, env=env | {"PYTHONPATH": path}, check=True)
    assert {*SAMPLES.rglob("*.pyc")} == before

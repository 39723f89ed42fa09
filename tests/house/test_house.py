"""The house itself: links, packages, import names, documentation of what a user can meet."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.source_tree import modules

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def _place(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("name", ["commands", "parsers"])
def test_the_linked_folders_are_the_real_ones(name: str) -> None:
    link = REPOSITORY / "cklog" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"
    assert link.resolve() == REPOSITORY / name


def test_every_package_ships() -> None:
    """What setuptools finds by pyproject.toml, through the links, is every folder with a module in it."""
    setuptools = pytest.importorskip("setuptools", reason="setuptools, which says what ships, is not installed")
    found = PROJECT["tool"]["setuptools"]["packages"]["find"]
    assert found["namespaces"] is False
    ships = setuptools.find_packages(str(REPOSITORY), include=found["include"])
    folders = {path.parent.relative_to(REPOSITORY).parts for path in modules()}
    here = {".".join(parts if parts[0] == "cklog" else ("cklog", *parts)) for parts in folders}
    assert set(ships) == here


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", [*modules(), *sorted((REPOSITORY / "tests").rglob("*.py"))], ids=_place)
def test_nothing_imports_the_bare_folders(path: Path) -> None:
    assert not {name for name in imports(path) if name.split(".")[0] in ("commands", "parsers")}


@pytest.mark.parametrize("path", sorted((REPOSITORY / "cklog").glob("**/*.py")), ids=_place)
def test_the_core_knows_no_format_and_no_command_line(path: Path) -> None:
    if path.resolve().parent.name in ("commands", "parsers") or path.name == "__main__.py":
        return
    wrong = ("cklog.parsers", "cklog.commands", "typer")
    assert not {name for name in imports(path) if name.startswith(wrong)}


@pytest.mark.parametrize(
    "words",
    [
        "recovery-line sample_logs/uncoordinated-join --explain",
        "recovery-line sample_logs/domino-cycle",
        "z-cycles sample_logs/domino-cycle",
        "retention sample_logs/domino-cycle",
        "runbook sample_logs/flink-orders",
    ],
)
def test_what_a_small_answer_does_not_need_is_not_imported(words: str) -> None:
    code = (
        "import sys\n"
        "from cklog.commands.app import main\n"
        f"sys.argv = ['cklog', *{words.split()}, '-o', sys.argv[1]]\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, os.devnull], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    loaded = set(told.stdout.split())
    assert not loaded & {"pyspark", "py4j", "pandas", "scipy", "networkx", "pydantic"}


def test_every_finding_is_documented() -> None:
    known = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", (REPOSITORY / "docs" / "findings.md").read_text()))
    made = set()
    for path in modules():
        text = path.read_text()
        made |= set(
            re.findall(
                r'(?:Finding|Damage|Damaged|Flaw|_finding|made)\(\s*(?:[a-z.]+path, )?"([a-z]+(?:-[a-z]+)+)"', text
            )
        )
    assert len(made) > 20
    assert made <= known


def _functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


def _drops_the_damage_of_a_scan(node: ast.AST) -> bool:
    """Whether it takes a scan's table alone, as in `engine.run(scan).table`."""
    taken = node.value if isinstance(node, ast.Attribute) and node.attr == "table" else None
    return isinstance(taken, ast.Call) and isinstance(taken.func, ast.Attribute) and taken.func.attr == "run"


def test_who_reads_takes_what_cannot_be_read_along() -> None:
    """The core: a scan's damage is looked at, and so is that of a reader called directly; rows may hold it instead."""
    in_rows = {"cklog/inputs/annotate.py"}  # its tables have rows for damage (`COUNTS`)
    for path in modules():
        place = _place(path)
        if not place.startswith("cklog/") or place in in_rows:
            continue
        dropped = [node for node in ast.walk(ast.parse(path.read_text())) if _drops_the_damage_of_a_scan(node)]
        assert not dropped, f"{place}: a scan of which the table alone is taken"
        for function in _functions(path):
            text = ast.unparse(function)
            reads = "reader_of(" in text and function.name != "reader_of"
            kept = "Damage" in text or "list(reader_of(" in text  # tested, or handed on with the rows
            assert not reads or kept, f"{place}: {function.name} reads and passes damage over"

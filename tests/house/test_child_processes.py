"""Child processes are started in one place, which keeps the working directory out of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import REPOSITORY
from tests.source_tree import modules

_ONLY_PLACE = "cklog/isolation.py"
_STARTS_PROCESSES = {"subprocess", "multiprocessing", "pty", "asyncio.subprocess", "concurrent.futures.process"}
_FUNCTIONS = ("system", "popen", "exec", "spawn", "posix_spawn", "fork")


def starts_of_processes(tree: ast.Module) -> Iterator[str]:
    """Yield what a module uses to start processes, outside of imports for type checkers."""
    typed = {id(node) for guard in ast.walk(tree) if _is_type_checking(guard) for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in typed:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in _STARTS_PROCESSES)
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or "", *(f"{node.module}.{name.name}" for name in node.names)}
            yield from names & _STARTS_PROCESSES
            yield from (name for name in names if name == "concurrent.futures.ProcessPoolExecutor")
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os" and node.attr.startswith(_FUNCTIONS):
            yield f"os.{node.attr}"


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_only_one_module_starts_processes() -> None:
    found = {
        path.relative_to(REPOSITORY).as_posix(): [*starts_of_processes(ast.parse(path.read_text()))]
        for path in modules()
    }
    assert found.pop(_ONLY_PLACE)
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source", ["import subprocess", "from subprocess import run", "import os\nos.system('x')", "os.execv('a', [])"]
)
def test_a_start_of_a_process_is_found(source: str) -> None:
    assert [*starts_of_processes(ast.parse(source))]

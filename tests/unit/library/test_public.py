"""What `cklog` offers: names that are there, documented and typed, and an import that costs nothing."""

from __future__ import annotations

import ast
import doctest
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import cklog
from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "library.md"


def test_every_public_name_is_there_and_documented() -> None:
    assert cklog.__all__ == sorted(set(cklog.__all__))
    assert set(cklog.__all__) <= set(dir(cklog))
    for name in cklog.__all__:
        found = getattr(cklog, name)
        if name != "__version__":
            assert inspect.getdoc(found), name
            assert found.__name__ == name


def test_what_mypy_sees_is_what_is_there() -> None:
    """Checkers read the imports under TYPE_CHECKING, programs the table below them: from the same modules."""
    tree = ast.parse(Path(cklog.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert set(seen) == set(cklog.__all__) - {"__version__"}
    for name, place in seen.items():
        module, _, attribute = place.rpartition(".")
        assert getattr(cklog, name) is getattr(sys.modules[module], attribute)


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(cklog, "nothing")  # noqa: B009


def test_an_import_loads_nothing_and_a_question_no_other_questions() -> None:
    code = """if True:
        import sys
        before = set(sys.modules)
        import cklog
        dir(cklog)
        first = set(sys.modules) - before
        run = cklog.open("sample_logs/uncoordinated-join")
        run.recovery_line().to_dict()
        import json
        print(json.dumps([sorted(first), sorted(sys.modules)]))
    """
    told = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    first, after = json.loads(told.stdout)
    assert set(first) <= {"cklog", "cklog.version"}
    assert "cklog.lines.search" in after
    for module in ("pyspark", "networkx", "typer", "rich", "cklog.graphs", "cklog.impact", "cklog.queues"):
        assert module not in after


def test_every_question_and_result_has_a_docstring() -> None:
    for kind in (cklog.CrashedRun, cklog.Result, cklog.GraphResult):
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_the_page_names_everything_and_its_examples_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in cklog.__all__ if f"`{name}`" not in text] == []
    questions = {n for n, f in inspect.getmembers(cklog.CrashedRun, inspect.isfunction) if not n.startswith("_")}
    assert [name for name in questions - {"close"} if f"`{name}`" not in text] == []
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(sys, "displayhook", sys.__displayhook__)
    ran = doctest.testfile(str(PAGE), module_relative=False)
    assert ran.attempted >= 10
    assert ran.failed == 0

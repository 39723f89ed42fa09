"""The table of parsers: what pyproject.toml, the code and the folders say of it is one thing."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cklog.inputs.offers import Format, KindName
from cklog.kinds.kind import Kind
from cklog.kinds.opening import KINDS, MARKS, PARSERS, parser_class
from tests.conftest import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_parser_in_the_folders_is_in_the_table_and_in_the_entry_points() -> None:
    found = set()
    for path in sorted((REPOSITORY / "parsers").rglob("*.py")):
        module = ".".join(("cklog", *path.relative_to(REPOSITORY).with_suffix("").parts))
        if "(Format" in path.read_text(encoding="utf-8"):
            classes = vars(importlib.import_module(module)).values()
            own = [c for c in classes if inspect.isclass(c) and c.__module__ == module and issubclass(c, Format)]
            found |= {f"{module}:{c.__name__}" for c in own if not inspect.isabstract(c)}
    assert found == set(PARSERS.values())
    assert dict(PARSERS) == PROJECT["entry-points"]["cklog.parsers"]
    assert set(MARKS) == set(PARSERS)


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_is_called_as_the_table_calls_it(name: str) -> None:
    assert parser_class(PARSERS[name]).name == name
    assert re.compile(MARKS[name])


def test_every_kind_has_one_class_that_answers() -> None:
    assert tuple(KINDS) == get_args(KindName)
    for name, value in KINDS.items():
        module, _, called = value.partition(":")
        found = getattr(importlib.import_module(module), called)
        assert issubclass(found, Kind)
        assert module == f"cklog.kinds.{name}"


_WORDS = st.sampled_from(["offset", "state/", "CURRENT", "jsonl", ".json", "log", ".", "a", "0" * 20, "chk-1", "/"])


@example(["offset", "a.json"])
@given(st.lists(st.lists(_WORDS, min_size=1, max_size=4).map("".join), max_size=5))
def test_a_mark_is_in_one_name(names: list[str]) -> None:
    """One that crosses names means a wrong format, and work that grows with the square of a flat folder's files."""
    for mark in MARKS.values():
        together = re.search(mark, "\n".join(names), re.MULTILINE) is not None
        assert together == any(re.search(mark, name, re.MULTILINE) for name in names)

"""Exceptions cross processes as pickles: what Spark's workers or a scan raises reaches the answer as it was."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import cklog

VALUES: dict[str, Any] = {"int": 7, "str": "text", "bool": True, "float": 1.5, "int | None": 7}
"""An argument for each annotation that the exceptions of the package have."""


def exception_classes() -> Iterator[type[BaseException]]:
    for found in pkgutil.walk_packages(cklog.__path__, "cklog."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for cls in vars(module).values():
            if inspect.isclass(cls) and issubclass(cls, BaseException) and cls.__module__ == module.__name__:
                yield cls


CLASSES = sorted(exception_classes(), key=lambda cls: f"{cls.__module__}.{cls.__qualname__}")


def example(cls: type[BaseException]) -> BaseException:
    """An exception of the class, with a value for every argument that its own `__init__` takes."""
    if not inspect.isfunction(cls.__init__):
        return cls("text")
    parameters = [*inspect.signature(cls.__init__).parameters.values()][1:]
    return cls(*(VALUES[str(parameter.annotation)] for parameter in parameters))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__qualname__}")
def test_a_pickled_exception_comes_back_as_it_was(cls: type[BaseException]) -> None:
    error = example(cls)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
    if isinstance(error, OSError):
        assert isinstance(again, OSError)
        assert (again.errno, again.strerror, again.filename) == (error.errno, error.strerror, error.filename)


def test_all_kinds_of_exceptions_are_looked_at() -> None:
    names = {cls.__name__ for cls in CLASSES}
    assert {"CklogError", "OverBudget", "UnknownFormat", "UnknownVersion", "UnknownTable", "CutSince"} <= names

"""Exceptions that say that something is of a later version: one type that all of them are."""

from __future__ import annotations

import importlib
import pkgutil

import cklog.parsers
from cklog.unknown_formats import UnknownFormat


def test_every_exception_of_a_parser_that_means_a_later_version_is_an_unknown_format() -> None:
    """So whoever asks for `UnknownFormat` first takes none of them for damage."""
    found = set()
    for module in pkgutil.walk_packages(cklog.parsers.__path__, "cklog.parsers."):
        for value in vars(importlib.import_module(module.name)).values():
            own = getattr(value, "__module__", "").startswith("cklog.parsers")
            if own and isinstance(value, type) and issubclass(value, Exception):
                means = getattr(value, "id", "") == UnknownFormat.id or "UnknownVersion" in value.__name__
                found |= {value} if means else set()
    assert len(found) >= 7
    assert {one for one in found if not issubclass(one, UnknownFormat)} == set()

"""The zip of `--ship`: a Python that has nothing else of cklog imports it from there, parsers beside it included."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cklog.engine.shipping import package_for_executors

ASKED = """
import sys
sys.path.insert(0, sys.argv[1])
import cklog.sweep.tasks, cklog.parsers.kafka.decode
from cklog.kinds.opening import known_parsers
from cklog.explanations.pages import all_pages
print(cklog.sweep.tasks.__file__.startswith(sys.argv[1]), cklog.parsers.kafka.decode.__file__.startswith(sys.argv[1]))
print("own" in known_parsers(), len(all_pages()) > 100)
import own_format.reading
print(own_format.reading.__file__.startswith(sys.argv[1]))
"""


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution beside cklog with a parser; returns its package."""
    place = tmp_path / "libraries"
    package, about = place / "own_format", place / "own_format-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").touch()
    (package / "reading.py").write_text("class Own: ...\n", encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-format\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[cklog.parsers]\nown = own_format.reading:Own\n", encoding="utf-8")
    monkeypatch.syspath_prepend(place)
    importlib.invalidate_caches()
    return package


def test_all_of_cklog_and_parsers_beside_it_are_imported_from_the_zip(beside: Path, tmp_path: Path) -> None:
    path, told = package_for_executors(str(tmp_path))
    assert told == []
    asked = subprocess.run(
        [sys.executable, "-P", "-c", ASKED, path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (asked.stdout.split(), asked.stderr) == (["True"] * 5, "")


def test_the_same_package_is_the_same_zip(tmp_path: Path) -> None:
    """Of a session that has one already: Connect takes none of the same name and other bytes."""
    first, _ = package_for_executors(str(tmp_path))
    bytes_of_first = Path(first).read_bytes()
    again, _ = package_for_executors(str(tmp_path))
    assert again == first
    assert Path(again).read_bytes() == bytes_of_first


def test_what_is_compiled_is_said_to_be_left_out(beside: Path, tmp_path: Path) -> None:
    (beside / "fast.so").touch()
    _, told = package_for_executors(str(tmp_path))
    assert told == ["--ship: own-format is not shipped: install it on every worker (own_format/fast.so)"]

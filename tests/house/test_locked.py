"""The locked versions (`.ci/locked/`) are those of pyproject.toml: nothing is missing, left over or out of bounds."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

requirements = pytest.importorskip("packaging.requirements", reason="packaging is not installed")

LOCKED = REPOSITORY / ".ci" / "locked"
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
WANTED = {
    "build.txt": PYPROJECT["build-system"]["requires"],
    "dev.txt": [*PROJECT["dependencies"], *EXTRAS["dev"], *EXTRAS["site"]],
    "runtime.txt": PROJECT["dependencies"],
}
HINT = "run .ci/lock and commit what it writes"


@dataclass(frozen=True)
class Pin:
    """One locked version of a package: where it is used, its files' checksums, and who asks for it."""

    name: str
    extras: frozenset[str]
    version: str
    marker: str
    hashes: int
    direct: bool


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def _pins(path: Path) -> list[Pin]:
    """Return the pins of a file that uv wrote."""
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pins = []
    for entry in re.split(r"\n(?=[A-Za-z0-9])", text.strip()):
        head, _, rest = entry.partition("\\\n")
        match = re.fullmatch(r"([\w.-]+)(?:\[([\w, -]+)\])?==(\S+)(?: ; (.*?))?\s*", head)
        assert match, f"{path.name}: {head!r} names no exact version; {HINT}"
        hashes = len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", rest))
        name, extras, version, marker = match.groups(default="")
        asked = frozenset(re.findall(r"[\w-]+", extras))
        pins.append(Pin(_name(name), asked, version, marker, hashes, direct="cklog (pyproject.toml)" in rest))
    return pins


@pytest.mark.parametrize("name", WANTED)
def test_what_pyproject_asks_for_is_locked(name: str) -> None:
    pins = _pins(LOCKED / name)
    wanted = [requirements.Requirement(text) for text in WANTED[name]]
    for one in wanted:
        found = [pin for pin in pins if pin.name == _name(one.name)]
        versions = [pin.version for pin in found]
        assert versions, f"{name} does not lock {one.name}; {HINT}"
        assert all(one.extras <= pin.extras for pin in found), f"{name} locks {one.name} without an extra; {HINT}"
        assert [one.specifier.contains(version, prereleases=True) for version in versions] == [True] * len(versions), (
            f"{name} locks {one.name} {versions}, pyproject.toml wants {one.specifier}; {HINT}"
        )
    if name != "build.txt":
        left = {pin.name for pin in pins if pin.direct} ^ {_name(one.name) for one in wanted}
        assert not left, f"{name} and pyproject.toml disagree about {sorted(left)}; {HINT}"


@pytest.mark.parametrize("name", WANTED)
def test_every_locked_version_has_checksums_and_no_server(name: str) -> None:
    pins = _pins(LOCKED / name)
    assert [pin.name for pin in pins if not pin.hashes] == []
    assert len({(pin.name, pin.marker) for pin in pins}) == len(pins)
    text = (LOCKED / name).read_text(encoding="utf-8")
    assert not re.search(r"://|--(?:extra-)?index-url|--find-links| @ ", text)


def test_the_locks_agree_on_versions() -> None:
    every = {(pin.name, pin.version, pin.marker) for pin in _pins(LOCKED / "dev.txt")}
    for name in ("build.txt", "runtime.txt"):
        assert {(pin.name, pin.version) for pin in _pins(LOCKED / name)} <= {(one[0], one[1]) for one in every}

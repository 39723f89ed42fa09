"""Builds by pip's own interface, without a network: equal bytes, and a refusal where git could not make links."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import REPOSITORY

pytest.importorskip("build", reason="build, which builds the distributions, is not installed")
SHIPPED = ["pyproject.toml", "README.md", "LICENSE", "docs/findings.md", "docs/json.md"]
FOLDERS = ["cklog", "commands", "parsers", ".ci"]
DATE = "1700000000"
BUILD = ["-m", "build", "--no-isolation", "--skip-dependency-check"]
PIP = ["-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--target", "installed"]


def _copy_tree(place: Path) -> Path:
    """Copy what a build reads, with its symbolic links, to `place`."""
    for name in FOLDERS:
        shutil.copytree(REPOSITORY / name, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in SHIPPED:
        (place / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, place / name)
    return place


def _tracked_links() -> list[str]:
    """Return the symbolic links under `cklog`, as they are on the disk."""
    found = [path for path in (REPOSITORY / "cklog").rglob("*") if path.is_symlink()]
    return sorted(path.relative_to(REPOSITORY).as_posix() for path in found)


def _as_text(link: Path) -> None:
    """Write a link as git does with `core.symlinks=false`: a file that holds where it leads."""
    target = os.readlink(link)
    link.unlink()
    link.write_text(target)


def _run(place: Path, words: list[str], umask: int = 0o022, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=place,
        env=os.environ | more,
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


def _backend() -> ModuleType:
    """Import the build backend, which is in no package."""
    spec = importlib.util.spec_from_file_location("cklog_backend", REPOSITORY / ".ci" / "cklog_backend.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _hooks(*names: str, into: Path) -> list[str]:
    """Return the words that call hooks of the build backend in the tree where they run."""
    into.mkdir(exist_ok=True)
    calls = "; ".join(f"cklog_backend.{name}({str(into)!r})" for name in names)
    return ["-c", f"import sys; sys.path.insert(0, '.ci'); import cklog_backend; {calls}"]


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_a_second_build_gives_the_same_bytes(tmp_path: Path) -> None:
    """Another path, umask, hash seed, time and an older build next to it: the same wheel and source distribution.

    The first wheel is built from the tree, the second from the source distribution.
    """
    first, second = _copy_tree(tmp_path / "first"), _copy_tree(tmp_path / "second" / "deeper")
    one, other = tmp_path / "one", tmp_path / "other"
    ran = [_run(first, _hooks("build_wheel", "build_sdist", into=one), PYTHONHASHSEED="1", SOURCE_DATE_EPOCH=DATE)]
    for path in second.rglob("*"):
        if not path.is_symlink():
            os.utime(path, (1, 1))
            path.chmod(0o700)
    stale = second / "build" / "lib" / "cklog"
    stale.mkdir(parents=True)
    (stale / "older.py").write_text("")
    egg = second / "cklog.egg-info"
    egg.mkdir()
    (egg / "SOURCES.txt").write_text("docs/json.md\n")
    env = {"PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": DATE}
    ran.append(_run(second, _hooks("build_sdist", into=other), umask=0o077, **env))
    (sdist,) = other.iterdir()
    with tarfile.open(sdist) as archive:
        assert {(member.mtime, member.uid, member.uname) for member in archive} == {(int(DATE), 0, "")}
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    ran.append(_run(unpacked, _hooks("build_wheel", into=other), umask=0o077, **env))
    assert [one.stderr[-2000:] for one in ran if one.returncode] == []
    assert len(_digests(one)) == 2
    assert _digests(one) == _digests(other)
    (wheel,) = one.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {info.external_attr >> 16 & 0o777 for info in archive.infolist()} <= {0o644, 0o664}
        assert archive.read("cklog/explanations/json.md") == (REPOSITORY / "docs" / "json.md").read_bytes()
    modules = {path.relative_to(REPOSITORY) for path in (REPOSITORY / "commands").rglob("*.py")}
    assert {f"cklog/{module.as_posix()}" for module in modules} <= {*names}
    assert {"cklog/report/assets/vendor/bom.cdx.json", "cklog/py.typed"} <= {*names}
    assert "cklog/older.py" not in names


@pytest.mark.parametrize("link", _tracked_links())
def test_a_build_without_a_symbolic_link_is_refused(tmp_path: Path, link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each link under `cklog` is one that the backend knows."""
    tree = _copy_tree(tmp_path)
    monkeypatch.chdir(tree)
    backend = _backend()
    assert backend.get_requires_for_build_wheel() == []
    _as_text(tree / link)
    with pytest.raises(SystemExit) as refused:
        backend.get_requires_for_build_wheel()
    kind = "document" if link.endswith(".md") else "directory"
    text = str(refused.value)
    assert text.startswith(f"cklog cannot be built here: {link} is not a {kind}, because this checkout has no symbolic")
    assert "core.symlinks=true" in text


@pytest.mark.quarter
@pytest.mark.parametrize(
    "words",
    [[*BUILD, "--sdist"], [*PIP, "."], [*PIP, "--editable", "."]],
    ids=["source distribution", "pip install .", "pip install -e ."],
)
def test_every_way_to_build_refuses_a_tree_without_links(tmp_path: Path, words: list[str]) -> None:
    tree = _copy_tree(tmp_path)
    for link in _tracked_links():
        _as_text(tree / link)
    ran = _run(tree, words)
    assert ran.returncode != 0
    (line,) = [line for line in (ran.stdout + ran.stderr).splitlines() if "cannot be built" in line]
    assert "cklog/commands is not a directory" in line
    assert "Traceback" not in ran.stdout + ran.stderr
    assert not (tree / "installed").exists()

"""Build cklog by setuptools, from a fresh copy of what ships, so that the same tree gives the same bytes.

`cklog/commands` and `cklog/parsers` are symbolic links. Where git could not make them (`core.symlinks=false`) they are
small text files, setuptools takes them for no packages, and a wheel without them would be built with exit 0.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setuptools import build_meta as _setuptools

LINKS = ("cklog/commands", "cklog/parsers", "cklog/explanations/findings.md", "cklog/explanations/json.md")
_BACKEND = ".ci/cklog_backend.py"
_SHIPPED = ("pyproject.toml", "README.md", "LICENSE", "cklog", _BACKEND)
_NO_DATE = "315532800"  # 1980-01-01, the earliest that a zip file can say

Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return what else a wheel needs to be built: nothing."""
    _refuse_missing_links()
    return []


get_requires_for_build_sdist = get_requires_for_build_editable = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the metadata of the wheel into `metadata_directory` and return their folder's name."""
    place = os.path.abspath(metadata_directory)
    with _copy_of_the_tree():
        return str(_setuptools.prepare_metadata_for_build_wheel(place, config_settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the wheel into `wheel_directory` and return its name."""
    place, metadata = os.path.abspath(wheel_directory), metadata_directory and os.path.abspath(metadata_directory)
    with _copy_of_the_tree():
        return str(_setuptools.build_wheel(place, config_settings, metadata))


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel that leads to this tree into `wheel_directory` and return its name."""
    _refuse_missing_links()
    return str(_setuptools.build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Build the source distribution into `sdist_directory` and return its name."""
    place = os.path.abspath(sdist_directory)
    with _copy_of_the_tree():
        name = str(_setuptools.build_sdist(place, config_settings))
        _drop_owners_and_times(Path(place, name), int(os.environ["SOURCE_DATE_EPOCH"]))
    return name


def _refuse_missing_links() -> None:
    for link in map(Path, LINKS):
        is_document = link.suffix == ".md"
        if is_document and link.is_file() and not _is_text_of_a_link(link):
            continue
        if link.is_dir() and not is_document:
            continue
        raise SystemExit(
            f"cklog cannot be built here: {link.as_posix()} is not a {'document' if is_document else 'directory'}, "
            "because this checkout has no symbolic links; clone it again with 'git clone -c core.symlinks=true', or "
            "install a wheel or a source distribution."
        )


def _is_text_of_a_link(path: Path) -> bool:
    """Whether a file holds a path that exists, as git writes a link where it can make none."""
    text = path.read_bytes()[:512]
    return b"\n" not in text and (path.parent / os.fsdecode(text)).is_file()


@contextmanager
def _copy_of_the_tree() -> Iterator[None]:
    """Work in a copy of what ships, links followed: no earlier build, umask or owner gets into what is built."""
    _refuse_missing_links()
    before, umask, date = os.getcwd(), os.umask(0o022), os.environ.get("SOURCE_DATE_EPOCH")
    try:
        with tempfile.TemporaryDirectory(prefix="cklog-build-") as copy:
            _copy_shipped(Path(before), Path(copy))
            os.environ["SOURCE_DATE_EPOCH"] = date or _NO_DATE
            os.chdir(copy)
            try:
                yield
            finally:
                os.chdir(before)
    finally:
        os.umask(umask)
        os.environ.pop("SOURCE_DATE_EPOCH", None)
        if date is not None:
            os.environ["SOURCE_DATE_EPOCH"] = date


def _copy_shipped(tree: Path, copy: Path) -> None:
    for name in _SHIPPED:
        source, target = tree / name, copy / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            skip = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(source, target, ignore=skip, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, target)
    (copy / "MANIFEST.in").write_text(f"include {_BACKEND}\n")
    for folder, _, names in os.walk(copy):  # copytree gives folders the mode of those they are made of
        os.chmod(folder, 0o755)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o644)


def _drop_owners_and_times(archive: Path, date: int) -> None:
    """Write a .tar.gz anew with its members sorted, and neither owners nor other times than `date`."""
    anew = archive.with_suffix(".anew")
    with (
        tarfile.open(archive) as old,
        open(anew, "wb") as file,
        gzip.GzipFile("", "wb", mtime=date, fileobj=file) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = date, 0, 0, "", ""
            member.pax_headers = {}
            member.mode = 0o755 if member.isdir() else 0o644
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    os.replace(anew, archive)

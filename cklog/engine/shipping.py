"""cklog as a zip for executors that lack it: the running package, and the parsers of other distributions beside it.

Libraries stay where they are: compiled ones cannot be imported from a zip.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cklog.version import __version__

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that the same package is the same zip."""

_COMPILED = (".so", ".pyd", ".dylib")


def ship(session: Any, folder: str, is_connect: bool) -> list[str]:
    """Put the running package on a session's executors; return what to tell of what was not shipped.

    `folder`: where the zip is made.
    """
    path, told = package_for_executors(folder)
    if is_connect:
        session.addArtifacts(path, pyfile=True)
    else:
        session.sparkContext.addPyFile(path)
    return told


def package_for_executors(folder: str) -> tuple[str, list[str]]:
    """Make the zip in `folder`, named after what is in it; return its path, and what could not be put into it."""
    contents = _contents_of("cklog")
    told = []
    for distribution, modules in _others_parsers():
        theirs = {name: data for module in modules for name, data in _contents_of(module).items()}
        compiled = [name for name in theirs if name.endswith(_COMPILED)]
        if compiled:
            told.append(f"--ship: {distribution.name} is not shipped: install it on every worker ({compiled[0]})")
            continue
        contents |= theirs
        about = f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
        for name in ("METADATA", "entry_points.txt"):  # by which cklog finds them there
            contents[f"{about}/{name}"] = (distribution.read_text(name) or "").encode()
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(f"{name}\0{len(contents[name])}\0".encode() + contents[name])
    path = os.path.join(folder, f"cklog-{__version__}-{digest.hexdigest()[:16]}.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), contents[name], zipfile.ZIP_DEFLATED)
    return path, told


def _others_parsers() -> list[tuple[Distribution, list[str]]]:
    """Return the distributions of parsers that are not cklog's own, each with the modules that hold them."""
    found: dict[str, tuple[Distribution, set[str]]] = {}
    for entry in entry_points(group="cklog.parsers"):
        module = entry.module.partition(".")[0]
        if entry.dist is not None and module != "cklog":
            found.setdefault(entry.dist.name, (entry.dist, set()))[1].add(module)
    return [(distribution, sorted(modules)) for _, (distribution, modules) in sorted(found.items())]


def _contents_of(module: str) -> dict[str, bytes]:
    """Return the files of a module, or of a package with all that is below it, by their names in the zip."""
    return {name: path.read_bytes() for name, path in _files_of(module)}


def _files_of(module: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return
    if not spec.submodule_search_locations:
        yield Path(spec.origin).name, Path(spec.origin)
        return
    for place in spec.submodule_search_locations:
        for folder, folders, names in os.walk(place, followlinks=True):  # in cklog's own tree rooms are links
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                path = Path(folder, name)
                yield f"{module}/{path.relative_to(place).as_posix()}", path

"""Files of this machine, opened: what is read is a regular file inside a directory that was listed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping

from cklog.destinations import note_read, watched
from cklog.local_files import NoFile, UnfollowedLink, os_name, text_name

_listed: dict[str, bool] = {}
"""Directories that this process has listed, by absolute name, and whether links are followed out of them."""

_real_places: set[str] = set()
"""The same directories, and those that `--map` names, with every link in their names followed."""


def note_listed(root: str, follow_links: bool, places: Iterable[str] = ()) -> None:
    """Remember that files below `root` are read from now on, and whether links may lead out of it.

    Links may lead to `places`, directories that an option names.
    """
    _listed[os.path.abspath(os_name(root))] = follow_links
    _real_places.update(os.path.realpath(os_name(place)) for place in (root, *places))


def listed_roots() -> dict[str, bool]:
    """Return what `note_listed` remembers, for another process that opens the same files."""
    return {text_name(root): follow for root, follow in _listed.items()}


def take_listed(roots: Mapping[str, bool]) -> None:
    """Remember what another process has listed; where its directories are, this machine says."""
    for root, follow_links in roots.items():
        if os.path.abspath(os_name(root)) not in _listed:
            note_listed(root, follow_links)


def open_regular(path: str) -> int:
    """Open a file of this machine for reading, and return its descriptor: what a listing saw may be something else now.

    A file that became a pipe, a device or a directory is refused, and so is one that a link has moved out of the
    directory that was listed. Both are checked on the descriptor, so that no change comes between check and read.

    Raises
    ------
    NoFile : it is no regular file
    UnfollowedLink : a link leads out of the directory that was listed
    OSError : it cannot be opened
    """
    name = os_name(path)
    if "\0" in name:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise NoFile(path, about.st_mode)
        if _listed:
            _require_inside(path, name, _place_of(handle, name))
        if watched():
            note_read((about.st_dev, about.st_ino), path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _place_of(handle: int, name: str) -> str:
    """Return where an open file is, with every link in its name followed."""
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    except OSError:  # a system without /proc
        return os.path.realpath(name)


def _require_inside(path: str, name: str, place: str) -> None:
    """Raise `UnfollowedLink` if a file below a directory that was listed is in truth at a place outside all of them."""
    if place == name:
        return
    roots = [_listed[above] for above in _ancestors(name) if above in _listed]
    if not roots or any(roots) or any(above in _real_places for above in _ancestors(place)):
        return
    raise UnfollowedLink(path)


def _ancestors(path: str) -> Iterator[str]:
    """Yield the directories that a path is in, the nearest first."""
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above

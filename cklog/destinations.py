"""Files and folders that a command writes to, compared with what it reads: output never replaces the input.

A place is known by device and inode, so that links, hard links, `..` and file systems that ignore
case change nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cklog.errors import OutputError

Identity = tuple[int, int]
"""Device and inode: what a file or folder is, by whatever name it is reached."""

_HINT = "name a file elsewhere, or add --overwrite"


class _Destinations:
    """What this process writes to, which it does for one command at a time."""

    def __init__(self) -> None:
        self.places: dict[Identity, str] = {}
        self.refused = ""


_current = _Destinations()


@contextmanager
def keep_input_from(option: str, path: str) -> Iterator[None]:
    """Refuse, until the end of the block, to read a folder that holds `path`, or `path` itself; nothing for "".

    `option` is what named the place, for the message.
    """
    before = _current.places, _current.refused
    if path:
        named = f"{option} {path}"
        _current.places = _current.places | dict.fromkeys(_identities(path), named)
    try:
        yield
    finally:
        _current.places, _current.refused = before


def watched() -> frozenset[Identity]:
    """Return the folders and the file that must not be read: few, and none if nothing is written."""
    return frozenset(_current.places)


def note_read(place: Identity, shown: str) -> None:
    """Refuse the destination if a folder or file that is about to be read holds it, or is it.

    Raises
    ------
    OutputError : it does; `require_unread` says so again, for callers that carry on
    """
    if named := _current.places.get(place):
        _current.refused = f"{named}: this would change the input: {shown} is read for the answer"
        require_unread()


def note_named(path: str) -> None:
    """Do the same for a path of the command line, which need not exist."""
    if _current.places:
        try:
            about = os.stat(path)
        except (OSError, ValueError):  # whoever reads it says so
            return
        note_read((about.st_dev, about.st_ino), path)


def require_unread() -> None:
    """Raise the error of a destination that turned out to be input.

    Raises
    ------
    OutputError : it is
    """
    if _current.refused:
        raise OutputError(_current.refused, _HINT)


def _identities(path: str) -> Iterator[Identity]:
    """Yield what a path is, if it exists, and every folder that it is in."""
    place = os.path.realpath(path)
    while True:
        try:
            about = os.stat(place)
        except OSError:
            pass  # a new file, in a folder that may be new as well
        else:
            yield about.st_dev, about.st_ino
        above = os.path.dirname(place)
        if above == place:
            return
        place = above

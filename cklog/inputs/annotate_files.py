"""Part files in a new folder, written beside their names first: a task that is tried again overwrites its own.

Where writing is refused, or fails, nothing of it stays: neither parts nor folders that were made for them.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyarrow import fs

from cklog.arrow_errors import ARROW_ERRORS
from cklog.destinations import require_unread
from cklog.errors import OutputError, first_line
from cklog.storage import file_system

DONE = "_SUCCESS"
"""An empty file that says that every part is there."""


_OURS = re.compile(r"part-[0-9]{5,}\.(parquet|jsonl)|\.part-[0-9]{5,}\.(parquet|jsonl)\.tmp|\.?_SUCCESS(\.tmp)?")


@contextmanager
def new_folder(target: str) -> Iterator[None]:
    """Make the folder; say in it that every part is there when all is done, or take away what was made.

    Raises
    ------
    OutputError : it is there and not empty, or cannot be made
    """
    require_unread()
    made = _prepare(target)
    try:
        yield
        with part(target, DONE):
            pass
    except BaseException:  # an interrupt, too, leaves nothing half done
        with contextlib.suppress(OSError, *ARROW_ERRORS):
            _clear(target, made)
        raise


def _prepare(target: str) -> list[str]:
    """Make the folder, and return the folders that were not there, the innermost first."""
    try:
        system, base = file_system(target)
        kind = system.get_file_info([base])[0].type
        if kind == fs.FileType.File or (kind == fs.FileType.Directory and system.get_file_info(fs.FileSelector(base))):
            raise OutputError(f"{target}: is there already", "results go into a new folder")
        made, place = [], base
        while place.strip("/") and system.get_file_info([place])[0].type == fs.FileType.NotFound:
            made.append(place)
            place = posixpath.dirname(place)
        system.create_dir(base, recursive=True)
        return made
    except (OSError, *ARROW_ERRORS) as error:
        raise OutputError(f"{target}: {first_line(error)}") from None


def _clear(target: str, made: list[str]) -> None:
    """Delete the parts in the folder, and the folders that were made and are empty now."""
    system, base = file_system(target)
    for found in system.get_file_info(fs.FileSelector(base)):
        if found.type == fs.FileType.File and _OURS.fullmatch(found.base_name):
            system.delete_file(found.path)
    for folder in made:
        if system.get_file_info(fs.FileSelector(folder)):
            return  # somebody else has put something there
        system.delete_dir(folder)


@contextmanager
def part(target: str, name: str) -> Iterator[Any]:
    """Return a part file to write; it gets its name when it is whole."""
    system, base = file_system(target)
    try:
        hidden, path = posixpath.join(base, f".{name}.tmp"), posixpath.join(base, name)
        with system.open_output_stream(hidden) as file:
            yield file
        system.move(hidden, path)
    except OSError as error:
        raise OutputError(f"{target}: {first_line(error)}") from None

"""Part files in a new folder, written beside their names first: a task that is tried again overwrites its own."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import fs

from cklog.errors import OutputError, first_line
from cklog.storage import file_system

DONE = "_SUCCESS"
"""An empty file that says that every part is there."""


def prepare(target: str) -> None:
    """Make the folder.

    Raises
    ------
    OutputError : it is there and not empty, or cannot be made
    """
    try:
        system, base = file_system(target)
        kind = system.get_file_info([base])[0].type
        if kind == fs.FileType.File or (kind == fs.FileType.Directory and system.get_file_info(fs.FileSelector(base))):
            raise OutputError(f"{target}: is there already", "results go into a new folder")
        system.create_dir(base, recursive=True)
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"{target}: {first_line(error)}") from None


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


def finish(target: str) -> None:
    """Say that every part is there."""
    with part(target, DONE):
        pass

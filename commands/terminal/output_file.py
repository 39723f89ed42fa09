"""The file of `-o`: written aside and put in place when all of it is there, so that a crash leaves the old one."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cklog.endings import tidied_at_end
from cklog.errors import OutputError


def require_place(path: str) -> None:
    """Refuse a file that surely cannot be written, before a long answer is computed for it.

    Raises
    ------
    OutputError : it is a directory, or in no directory
    """
    if os.path.isdir(path):
        raise OutputError(f"{path}: {os.strerror(errno.EISDIR)}")
    if not os.path.exists(path) and not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise OutputError(f"{path}: {os.strerror(errno.ENOENT)}")


def write_file(path: str, content: bytes) -> None:
    """Write a file as a whole, or leave what was there as it was.

    A link stays one, and what it leads to is replaced. What is no regular file, such as a pipe, is written to as it is.

    Raises
    ------
    OSError : it cannot be written; nothing has changed then
    """
    place = os.path.realpath(path)
    try:
        there = os.stat(path)  # a pipe of this process, such as /dev/stdout, has no other name
    except FileNotFoundError:
        mode = 0o666 & ~_umask()
    else:
        if not stat.S_ISREG(there.st_mode):
            with open(path, "wb") as file:
                file.write(content)
            return
        with open(place, "ab"):  # who may not write to a file shall not replace it
            mode = stat.S_IMODE(there.st_mode)
    with _aside(place) as (handle, aside):
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        os.replace(aside, place)


@contextmanager
def _aside(place: str) -> Iterator[tuple[int, str]]:
    """Make an empty file beside `place`; it is gone in the end, by that name, also after a signal."""
    handle, aside = tempfile.mkstemp(prefix=".cklog-", suffix=".part", dir=os.path.dirname(place))

    def tidy() -> None:
        with suppress(FileNotFoundError):
            os.unlink(aside)

    with tidied_at_end(tidy):
        try:
            yield handle, aside
        finally:
            tidy()


def _umask() -> int:
    """Return which permissions a new file does not get; asking means setting."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

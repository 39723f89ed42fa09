"""What is put away when the process is ended by a signal, which unwinds nothing for sure: folders, other processes.

Whoever makes such a thing says how it is put away; who takes the signals (`commands/interrupts.py`) has it done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_tidying: list[Callable[[], None]] = []


def tidy_at_end(tidy: Callable[[], None]) -> Callable[[], None]:
    """Have `tidy`, which must be short, called when a signal ends the process; return what takes that back.

    It is called from any thread, in the midst of anything, maybe twice, and maybe twice at a time.
    """
    _tidying.append(tidy)

    def take_back() -> None:
        with suppress(ValueError):  # it was taken back before
            _tidying.remove(tidy)

    return take_back


@contextmanager
def tidied_at_end(tidy: Callable[[], None]) -> Iterator[None]:
    """Have `tidy` called when a signal ends the process while what is inside is done: see `tidy_at_end`."""
    take_back = tidy_at_end(tidy)
    try:
        yield
    finally:
        take_back()


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Make a folder of this process's own, which is removed behind what is done inside, and when a signal ends that."""
    import shutil
    import tempfile
    from uuid import uuid4

    folder = f"{tempfile.gettempdir()}/cklog-{uuid4()}"  # named before it is made: a signal may come in between

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    with tidied_at_end(remove):
        try:
            os.mkdir(folder, 0o700)
            yield folder
        finally:
            remove()


def tidy_now() -> None:
    """Put everything away."""
    for tidy in [*_tidying]:
        with suppress(Exception):  # the process ends either way
            tidy()

"""A limit on the time of a piece of work, kept by the clock of the operating system.

The work is left where it stands, whatever it does: an exception that no handler of other errors catches is raised in
the midst of it. Only the first thread of a process can be told so. A call of the system that is never answered, as by a
mount that is dead, ends with its process only: whoever has others read for it ends them a little later.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TimeUp(BaseException):
    """The time is up. It is no `Exception`, so that nobody takes it for trouble with a file."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Do what is inside for so long at the most; 0, or in another thread than the first: for as long as it takes.

    Raises
    ------
    TimeUp : it is not done by then
    """
    if not seconds or sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # and again, where it was raised in what ignores exceptions
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: object) -> None:
    raise TimeUp

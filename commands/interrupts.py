"""Ctrl-C: the program ends soon, with its own exit code and in silence, whatever it is doing."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

_GRACE_SECONDS = 1.0
"""What is being done is unwound, as long as this takes no longer."""


def run_interruptibly(program: Callable[[], None]) -> None:
    """Run a program that ends its process, which Ctrl-C ends with `INTERRUPTED` and without another word.

    Python raises an exception in the main thread for it, once that is back in Python. This alone is not enough: a call
    of a library may take long, threads are waited for, and an exception that comes up in the midst of an import or of a
    callback is swallowed, or told as another error. So the signal also wakes a thread, which ends the process after a
    while. Outside of the main thread signals are somebody else's.
    """
    if threading.current_thread() is not threading.main_thread():
        program()
        return
    interrupt = _Interrupt()
    interrupt.watch()
    try:
        program()
    except KeyboardInterrupt:
        interrupt.came = True
    finally:
        interrupt.conclude()


class _Interrupt:
    """Whether there was a Ctrl-C, and what comes of it."""

    def __init__(self) -> None:
        self.came = self._raised = self._concluded = False

    def watch(self) -> None:
        """Have signals wake a thread, and raise an exception in this one."""
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        threading.Thread(target=self._end_after_grace, args=(woken,), daemon=True).start()
        signal.signal(signal.SIGINT, self._raise)
        # the last thing that is called: Python itself, being taken down, would let the signal kill what has answered
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)

    def conclude(self) -> None:
        """End the process if there was a Ctrl-C, however the program took it; one that comes now ends it at once."""
        self._concluded = True
        if self.came:
            _end()

    def _raise(self, _signal: int, _frame: FrameType | None) -> None:
        if self._raised or self._concluded:
            _end()
        self.came = self._raised = True
        _say_no_more()
        raise KeyboardInterrupt

    def _end_after_grace(self, woken: int) -> None:
        os.read(woken, 1)
        self.came = True
        _say_no_more()
        time.sleep(_GRACE_SECONDS)
        _end()


_first: list[Callable[[], None]] = []
"""What is done first when a Ctrl-C comes."""


@contextmanager
def at_interrupt(tidy: Callable[[], None]) -> Iterator[None]:
    """Call `tidy`, which must be short, when a Ctrl-C comes while what is inside is done: from any thread, maybe twice.

    Nothing else is sure to be unwound.
    """
    _first.append(tidy)
    try:
        yield
    finally:
        _first.remove(tidy)


def _say_no_more() -> None:
    """Let nothing more get to stderr: a traceback, or an error that the interrupt was taken for."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    for tidy in [*_first]:
        with suppress(Exception):  # the process ends either way
            tidy()


def _end() -> NoReturn:
    os._exit(INTERRUPTED)

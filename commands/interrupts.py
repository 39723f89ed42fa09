"""Ctrl-C and SIGTERM: the program ends soon, with their exit codes and in silence, whatever it is doing."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from cklog.endings import tidy_now

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""The exit codes after Ctrl-C, and after what ends a process politely: a shell's, a scheduler's, a supervisor's."""

_GRACE_SECONDS = 1.0
"""What is being done is unwound, as long as this takes no longer."""


def run_interruptibly(program: Callable[[], None]) -> None:
    """Run a program that ends its process, which Ctrl-C and SIGTERM end with `EXIT_CODES` and without another word.

    An exception is raised in the main thread for it, once that is back in Python. This alone is not enough: a call
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
        interrupt.came = interrupt.came or signal.SIGINT
    finally:
        interrupt.conclude()


class _Interrupt:
    """Which signal there was, if any (0: none), and what comes of it."""

    def __init__(self) -> None:
        self.came = 0
        self._raised = self._concluded = False

    def watch(self) -> None:
        """Have signals wake a thread, and raise an exception in this one."""
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        threading.Thread(target=self._end_after_grace, args=(woken,), daemon=True).start()
        for number in EXIT_CODES:
            signal.signal(number, self._raise)
            # the last thing that is called: Python itself, being taken down, would let a signal kill what has answered
            atexit.register(signal.signal, number, signal.SIG_IGN)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)

    def conclude(self) -> None:
        """End the process if there was a signal, however the program took it; one that comes now ends it at once."""
        self._concluded = True
        if self.came:
            _end(EXIT_CODES[signal.Signals(self.came)])

    def _raise(self, number: int, _frame: FrameType | None) -> None:
        self.came = self.came or number
        if self._raised or self._concluded:
            self.conclude()
        self._raised = True
        _say_no_more()
        raise KeyboardInterrupt

    def _end_after_grace(self, woken: int) -> None:
        number = os.read(woken, 1)[0]
        while number not in EXIT_CODES:  # of others that a library takes
            number = os.read(woken, 1)[0]
        self.came = self.came or number
        _say_no_more()
        time.sleep(_GRACE_SECONDS)
        self.conclude()


def _say_no_more() -> None:
    """Let nothing more get out, on stdout or stderr: a traceback, or an error that the interrupt was taken for."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    tidy_now()


def _end(code: int) -> NoReturn:
    tidy_now()  # what threads have made since
    os._exit(code)

"""How long a store is waited for, and what is said of one that does not give what it is asked for."""

from __future__ import annotations

import errno
import threading

from cklog.local_files import SelfExplained

TRIES = 3
"""So often a request is made that fails."""


class NotServed(SelfExplained):
    """An object that its store does not give: refused, gone, or no answer. Nothing is known of it."""

    def __str__(self) -> str:
        return str(self.strerror)


class Patience:
    """How long a store may cost time for nothing: requests that failed for good, all together.

    A store that hangs hangs at each of thousands of files: after some time nothing is asked of it any more.
    """

    def __init__(self, seconds: float) -> None:
        self._most, self._lost, self._lock = seconds, 0.0, threading.Lock()

    def require(self) -> None:
        """Raise `NotServed` if the store has cost too much already."""
        if self._lost >= self._most:
            what = f"the store failed for {self._lost:.0f} s in all, and is not asked any more (--store timeout=S)"
            raise NotServed(errno.ETIMEDOUT, what)

    def lose(self, seconds: float) -> None:
        """Count a request that failed for good."""
        with self._lock:
            self._lost += seconds

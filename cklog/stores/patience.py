"""How long a store is waited for, and what is said of one that does not give."""

from __future__ import annotations

import errno
import threading
import time

from cklog.local_files import SelfExplained

TRIES = 3
"""So often a request is made that fails."""

_LEAST_SHARE = 0.1
"""With less of the time left no request is started: it could not succeed."""


class NotServed(SelfExplained):
    """An object that its store does not give: refused, gone, or no answer. Nothing is known of it."""

    def __str__(self) -> str:
        return str(self.strerror)


def hint_of(error: OSError) -> str:
    """Return what to do about a place that cannot be reached."""
    if isinstance(error, NotServed):
        return "--store K=V says how the store is reached, and --store timeout=S how long a request may take"
    return "PATH is a folder, or a URI that pyarrow.fs opens (s3://, gs://, hdfs://, abfss://)"


class Patience:
    """How long a store may cost time for nothing: all requests that failed, together.

    A store that hangs hangs at each of thousands of files: after some time nothing is asked of it any more. Time that
    several requests lose at once is counted once.
    """

    def __init__(self, seconds: float) -> None:
        self._most, self._lost, self._lock = seconds, 0.0, threading.Lock()
        self._counted_until = 0.0

    def left(self) -> float:
        """Return the seconds that may still be lost.

        Raises
        ------
        NotServed : too many are lost already
        """
        left = self._most - self._lost
        if left < _LEAST_SHARE * self._most:
            what = f"the store failed for {self._lost:.2g} s in all, and is not asked any more (--store timeout=S)"
            raise NotServed(errno.ETIMEDOUT, what)
        return left

    def lose(self, began: float) -> None:
        """Count the time since `began`, of `time.monotonic`, as lost."""
        with self._lock:
            now = time.monotonic()
            self._lost += max(now - max(began, self._counted_until), 0.0)
            self._counted_until = now

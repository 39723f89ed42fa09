"""Deadlines: how long a request may still take, and work that is given up when the time is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Deadline:
    """A moment after which nobody waits any more.

    A socket's own timeout starts again with every byte that arrives: who sends one byte a second is never late.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left, more than 0.

        Raises
        ------
        TimeoutError : none are
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def allows(self, seconds: float) -> bool:
        """Return whether there is more time than this."""
        return self._end - time.monotonic() > seconds

    def renew(self, within: Deadline | None = None) -> None:
        """Start the time again, because enough has arrived; it ends no later than another deadline."""
        end = time.monotonic() + self.seconds
        self._end = end if within is None else min(end, within._end)

    def sooner(self, seconds: float) -> Deadline:
        """Return a deadline of its own after these seconds, at the latest when this one ends."""
        return Deadline(min(seconds, self.left()))


class OutOfTime(TimeoutError):
    """Work was given up: no answer of its own, which may be a TimeoutError as well."""


def run_within(work: Callable[[], T], seconds: float) -> T:
    """Run something that cannot be interrupted, such as a library's call, and stop waiting when the time is over.

    Raises
    ------
    OutOfTime : it takes longer; it goes on in a thread that does not keep the process alive
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again where the result is waited for
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    if errors:
        raise errors[0]
    raise OutOfTime

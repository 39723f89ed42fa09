"""What one question reads and plans, kept for the others that are asked meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

R = TypeVar("R")


class Kept:
    """Results by their keys, as long as a question is open, and none before and after."""

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] | None = None

    @contextmanager
    def meanwhile(self) -> Iterator[None]:
        """Keep results for the questions that are asked meanwhile, and forget them after the outermost of them."""
        before = self._results
        self._results = {} if before is None else before
        try:
            yield
        finally:
            self._results = before

    def once(self, key: Hashable, make: Callable[[], R]) -> R:
        """Return what is kept under a key, or make it.

        >>> kept, made = Kept(), []
        >>> with kept.meanwhile():
        ...     [kept.once("plan", lambda: made.append(1)) for _ in range(3)]
        [None, None, None]
        >>> kept.once("plan", lambda: made.append(1)), len(made)
        (None, 2)
        """
        if self._results is None:
            return make()
        if key not in self._results:
            self._results[key] = make()
        found: R = self._results[key]
        return found

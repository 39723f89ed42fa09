"""A cache of what one question reads and plans, for the questions that it asks in turn."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

R = TypeVar("R")


class QuestionCache:
    """Cache what one question reads and plans, by key, until the question is answered."""

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] | None = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Cache results, and drop them when the outermost question is answered."""
        before = self._results
        self._results = {} if before is None else before
        try:
            yield
        finally:
            self._results = before

    def get(self, key: Hashable, make: Callable[[], R]) -> R:
        """Return the cached result of a key, or make it.

        >>> cache, made = QuestionCache(), []
        >>> with cache.opened():
        ...     [cache.get("plan", lambda: made.append(1)) for _ in range(3)]
        [None, None, None]
        >>> cache.get("plan", lambda: made.append(1)), len(made)
        (None, 2)
        """
        if self._results is None:
            return make()
        if key not in self._results:
            self._results[key] = make()
        found: R = self._results[key]
        return found

"""Progress: what takes long says how far it is, to whoever watches. Nobody watches unless asked: then nothing is kept.

    with watched_by(observer):      # a bar, a log, a test
        run.recovery_line(question)

Work is told in *stages*, which may lie in one another. A stage is told of when it begins and when it ends; what is
done in between is a number that the observer looks up when it wants to: it is never called from the midst of reading.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol

Unit = Literal["bytes", "files", "splits", "snapshots", "stores", "runs"]
"""What is counted. Files without a total are those opened on the way."""


class Stage:
    """A piece of work under way: what it is, how much of it there is, and how much is done.

    Attributes
    ----------
    what : as people are told, such as "scanning channels"
    unit, total : what is counted, and how many of it there are; None: nobody knows
    splits, size : of a scan, its splits and their bytes
    by : the engine that does it, "" for this process
    """

    __slots__ = ("_done", "_ended", "_lock", "_probe", "_started", "by", "size", "splits", "total", "unit", "what")

    def __init__(
        self, what: str, unit: Unit, total: int | None, splits: int = 0, size: int | None = None, by: str = ""
    ) -> None:
        self.what, self.unit, self.total, self.splits, self.size, self.by = what, unit, total or None, splits, size, by
        self._done = 0
        self._probe: Callable[[], int] | None = None
        self._lock = threading.Lock()
        self._started, self._ended = time.monotonic(), 0.0

    @property
    def done(self) -> int:
        """How much is done so far; never more than there is."""
        done = self._done if self._probe is None else self._probe()
        return done if self.total is None else min(done, self.total)

    @property
    def seconds(self) -> float:
        """How long it has taken so far, or took."""
        return (self._ended or time.monotonic()) - self._started

    def advance(self, amount: int) -> None:
        """Say that so much more is done; any thread may."""
        with self._lock:
            self._done += amount

    def count_bytes(self, amount: int) -> None:
        """Note that bytes were read, where they are what is counted."""
        if self.unit == "bytes":
            self.advance(amount)

    def count_file(self) -> None:
        """Note that a file was opened, where that is what is counted."""
        if self.unit == "files" and self.total is None:
            self.advance(1)

    def probed_by(self, probe: Callable[[], int]) -> None:
        """Let `probe` say how much is done, where the work goes on elsewhere; an observer calls it from any thread."""
        self._probe = probe

    def end(self) -> None:
        """Note that it is over."""
        self._ended = time.monotonic()
        self._probe = None


class Observer(Protocol):
    """Who watches: told of every stage as it begins and ends, in the thread that does the work."""

    def begin(self, stage: Stage) -> None:
        """A stage begins, inside of those that have not ended."""

    def end(self, stage: Stage) -> None:
        """The stage that began last has ended, well or not."""


class _Portion:
    """A split of a stage's bytes: what is told of it while it is read, and all of it once it is."""

    __slots__ = ("_left", "_stage", "_token")

    def __init__(self, stage: Stage, size: int) -> None:
        self._stage, self._left = stage, size

    def __enter__(self) -> None:
        self._token = _current.set(self)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        self._stage.advance(self._left)

    def count_bytes(self, amount: int) -> None:
        """Count bytes of the split, as long as it has any left."""
        counted = min(amount, self._left)
        self._left -= counted
        self._stage.advance(counted)

    def count_file(self) -> None:
        """Note nothing: the bytes are counted."""


class _Unwatched:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_UNWATCHED = _Unwatched()
_observer: ContextVar[Observer | None] = ContextVar("_observer", default=None)
_current: ContextVar[Stage | _Portion | None] = ContextVar("_current", default=None)


@contextmanager
def watched_by(observer: Observer) -> Iterator[None]:
    """Tell an observer of everything that is done inside, in this thread and those that it starts for it."""
    before = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(before)


def is_watched() -> bool:
    """Return whether anybody wants to know: what costs something to find out need not be found out otherwise."""
    return _observer.get() is not None


@contextmanager
def stage(
    what: str, unit: Unit = "files", total: int | None = None, splits: int = 0, size: int | None = None, by: str = ""
) -> Iterator[Stage]:
    """Do a piece of work as a stage of its own."""
    made, observer = Stage(what, unit, total, splits, size, by), _observer.get()
    if observer is None:
        yield made
        return
    above = _current.set(made)
    observer.begin(made)
    try:
        yield made
    finally:
        made.end()
        _current.reset(above)
        observer.end(made)


@contextmanager
def working_on(stage: Stage) -> Iterator[None]:
    """Count what this thread does toward a stage that another one began."""
    before = _current.set(stage)
    try:
        yield
    finally:
        _current.reset(before)


def portion(size: int) -> AbstractContextManager[None]:
    """Read, inside, so many bytes of the stage at hand: what `count_bytes` is not told of counts when it is over."""
    above = _current.get()
    return _Portion(above, size) if isinstance(above, Stage) and above.unit == "bytes" else _UNWATCHED


def count_bytes(amount: int) -> None:
    """Say that so many more bytes of what is being read are done; readers of large files do, block by block."""
    above = _current.get()
    if above is not None:
        above.count_bytes(amount)


def count_file() -> None:
    """Say that a file was opened."""
    above = _current.get()
    if above is not None:
        above.count_file()

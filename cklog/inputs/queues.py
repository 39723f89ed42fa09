"""Output queues as parsers hand them over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol

from cklog.engine.scan import Damage, Split
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask


class Since(NamedTuple):
    """What follows `offset`, in the batch at byte `at` of `path`, up to before `end`: so many records and bytes.

    `first` is the first offset of the log; `by` says whether an input's number led to `offset`, or a time alone.
    `damage` is what cannot be read behind `offset`; what it held is not counted.
    """

    offset: int
    path: str
    at: int
    end: int
    first: int
    tuples: int
    bytes: int
    by: Literal["input", "time"]
    damage: tuple[Damage, ...] = ()


class Queue(Protocol):
    """One subtask's persisted output queue; the native parser has one (`cklog.parsers.native.output_queues`)."""

    @property
    def subtask(self) -> Subtask:
        """Whose queue it is."""

    @property
    def bytes(self) -> int:
        """Size of its files."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files in log order."""

    @property
    def by_pos(self) -> bool:
        """Whether record numbers, and not the files' order, say which record is later."""

    def findings(self) -> tuple[Finding, ...]:
        """Return what is wrong with its files as a whole."""

    def inputs(self) -> tuple[InputUsed, ...]:
        """Return its files as inputs of an answer."""

    def splits(self, step: int) -> Iterator[Split]:
        """Yield splits of about `step` bytes, from the head to the tail."""

    def tail(self) -> Iterator[Split]:
        """Yield splits from the tail to the head, small ones first."""

    def older(self, path: str) -> Split | None:
        """Return the end of the file before `path`; None: it is the first one, or the files are numbered themselves."""

    def since(self, ts: int | None, number: int | None, stamp: int | None) -> Since | None:
        """Return what follows time `ts` (ms) or record `number`, by indexes; None: the queue must be read back."""

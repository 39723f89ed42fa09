"""Micro-batches as values: what a parser of a batch log says, and `cklog.runs.batches.analyses` answers from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cklog.model.findings import Finding, InputUsed, Where

SourceKind = Literal["file", "rate", "kafka", "other"]
FoundSize = int | Literal["outside"] | None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that left an offsets or commits file. `offsets`: end per source, None if they cannot be read."""

    batch: int
    committed: bool
    planned: bool
    offsets: dict[str, Any] | None
    time: int | None
    watermark: int | None


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that the batch in flight reads; `size` in bytes, None if missing, "outside" if not looked at."""

    path: str
    size: FoundSize
    where: Where


@dataclass(frozen=True, slots=True)
class SourceRange:
    """From where to where a source is read by the batch in flight; with none in flight, `end` is None.

    `start` is the end of the last committed batch. A None is the source's beginning (start) or no data yet (end) if
    `start_known` / `end_known`, and otherwise unknown: the file that holds it is missing or damaged. Where commits are
    missing between the line and the batch in flight, this is more than a restart reads.
    """

    source: str
    kind: SourceKind
    start: Any
    end: Any
    start_known: bool = True
    end_known: bool = True
    files: tuple[InputFile, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Stored paths of input files that are no longer there."""
        return tuple(file.path for file in self.files if file.size is None)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The recovery plan. `committed` is the line: the last batch that is done, -1 for none.

    `planned` is the batch in flight, which a restart runs again with its stored range. `sink` is the folder of the
    file sink, None if none was found; `sink_has_planned` whether its log already lists the batch in flight.
    `fails`: a restart of the query stops with an error, as the files are now.

    `rolled_back` are newer committed batches whose state can no longer be loaded; `stores` a row for each operator's
    state stores; `unjudged` why nothing can be said of the state, "" if it was judged; `remove` the files below PATH
    that going back to `committed` removes, on a copy.
    """

    query_id: str | None
    committed: int
    planned: int | None
    batches: tuple[Batch, ...]
    sources: tuple[SourceRange, ...]
    sink: str | None
    sink_has_planned: bool | None
    fails: bool
    restart: str
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]
    rolled_back: tuple[int, ...] = ()
    stores: tuple[dict[str, Any], ...] = ()
    unjudged: str = ""
    remove: tuple[str, ...] = ()

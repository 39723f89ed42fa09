"""What a restart of a distributed run does to the results of its sinks, as values.

A sink gets again what comes of everything that is processed again. Whether its readers see that twice depends on the
sink: on a log of what counts, on transactions, on keys. Where evidence ends, an interval says what is known at least
and what is possible at the most, never a guess in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cklog.impact.model import GuaranteeClass

ResultFate = Literal["doubled", "may-be-doubled", "once", "skipped", "missing", "may-be-missing"]
"""doubled: readers have these results and get them again; may-be-doubled: they get them, perhaps again; once: they are
written again, and readers see one copy; skipped: the sink has them and drops them when they come again; missing:
readers lose them, or never get them."""


@dataclass(frozen=True, slots=True)
class OutputInterval:
    """Results of one sink for one kind of reader, and what becomes of them.

    `of` is what `from_` and `to` count: "batch", a channel, a source, a partition, a transaction. The interval is
    half-open and reaches to `to` at least, to `most` at the most; None: not known. `count` are the items of
    [from_, to). `why` is a word of `cklog.impact.sinks.view.WHY`; `names` are files, transactions or checkpoints that
    it is about. `readers` is empty where all readers see the same.
    """

    sink: str
    readers: str
    fate: ResultFate
    of: str
    from_: Any
    to: Any
    most: Any
    count: int | None
    why: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Again:
    """A stretch of a source or channel that is read again: from `from_` to `to` at least, to `most` at the most.

    `reader` is who reads it; `kept` whether it is still there: None, nobody looked.
    """

    source: str
    reader: str
    from_: Any
    to: Any
    most: Any
    kept: bool | None


@dataclass(frozen=True, slots=True)
class GuaranteeEvidence:
    """Evidence for a guarantee: whether it holds (None: not known); why, a word of `cklog.impact.sinks.view.PIECES`."""

    piece: Literal["input", "state", "output"]
    holds: bool | None
    because: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SinkGuarantee:
    """The strongest class that the evidence supports for a sink and its readers.

    `at_best` is what it is if all that is not known should hold. `missing` are the pieces that the next class, `next`,
    would need; None: there is no stronger one.
    """

    sink: str
    readers: str
    guarantee: GuaranteeClass
    at_best: GuaranteeClass
    next: GuaranteeClass | None
    missing: tuple[GuaranteeEvidence, ...]
    evidence: tuple[GuaranteeEvidence, ...]


@dataclass(frozen=True, slots=True)
class SinkTransaction:
    """A transaction of a sink. `fate`: committed (a restore commits it), aborted (it is, or times out), or visible.

    A visible one was, or may have been, committed by a newer checkpoint than the one that is restored: its results are
    there already. `producer` and `checkpoint` None: not told. `log` is the partition that holds its records
    [`from_`, `to`), if that is known.
    """

    sink: str
    transaction: str
    producer: str | None
    checkpoint: int | None
    fate: Literal["committed", "aborted", "visible"]
    log: str | None = None
    from_: int | None = None
    to: int | None = None
    records: int | None = None


@dataclass(frozen=True, slots=True)
class SinkImpact:
    """Which results of which sink may be doubled or missing after a restart from the line.

    `line` names what each unit restarts from; `fails`: as the files are now, a restart does not get that far. `notes`
    are words of `cklog.impact.sinks.view.NOTES`.
    """

    system: Literal["spark", "flink", "native", "kafka"]
    line: tuple[dict[str, Any], ...]
    intervals: tuple[OutputInterval, ...]
    guarantees: tuple[SinkGuarantee, ...]
    again: tuple[Again, ...]
    transactions: tuple[SinkTransaction, ...] = ()
    fails: bool = False
    notes: tuple[str, ...] = ()

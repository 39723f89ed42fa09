"""What a restart of a distributed run does to the results of its sinks, as values.

A sink gets again what comes of everything that is processed again. Whether its readers see that twice depends on the
sink: on a log of what counts, on transactions, on keys. Where evidence ends, an interval says what is known at least
and what is possible at the most, never a guess in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cklog.impact.model import GuaranteeClass
from cklog.model.actions import Action

ResultFate = Literal["doubled", "may-be-doubled", "once", "visible", "skipped", "missing", "may-be-missing", "unknown"]
"""doubled: readers have these results and get them again; may-be-doubled: they get them, perhaps again; once: they are
written again, and readers see one copy; visible: readers have one copy already, and nothing is written again; skipped:
the sink has them and drops them when they come again; missing: readers lose them, or never get them; unknown: they are
in a transaction without an end, which may be committed or aborted, or go to a table that was not read."""


PENDING = "pending"
"""What `OutputInterval.of` is of results that a checkpoint has for a sink and that nobody can count."""


@dataclass(frozen=True, slots=True)
class OutputInterval:
    """Results of one sink for one kind of reader, and what becomes of them.

    `readers` : "" where all readers see the same
    `of` : what `from_` and `to` count: "batch", a channel, a source, a partition, a transaction; or `PENDING`
    `from_`, `to`, `most` : a half-open interval, to `to` at least and to `most` at the most; None: not known
    `count` : the items of [from_, to)
    `why` : a word of `cklog.impact.sinks.view.WHY`
    `names` : files, transactions or checkpoints that it is about
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

    `reader` : the subtask that reads it
    `kept` : whether it is still there; None: nobody looked
    """

    source: str
    reader: str
    from_: Any
    to: Any
    most: Any
    kept: bool | None


@dataclass(frozen=True, slots=True)
class GuaranteeEvidence:
    """A piece of evidence for a guarantee.

    `holds` : None: not known
    `because` : a word of `cklog.impact.sinks.view.PIECES`
    `names` : what it is about
    """

    piece: Literal["input", "state", "output"]
    holds: bool | None
    because: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SinkGuarantee:
    """The strongest guarantee that the evidence supports for a sink and its readers.

    `at_best` : what it is if all that is not known should hold
    `next` : the next stronger one; None: there is none
    `missing` : the pieces that `next` would need
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
    """A transaction of a sink, and what a restore does with it.

    `producer`, `checkpoint` : None: not known
    `fate` : committed: the restore commits it; aborted: it is, or times out; visible: it was, or may have been,
        committed by a newer checkpoint than the one that is restored, and its results are there already; done: it was
        committed before, and belongs to the checkpoint; lost: it was aborted before, and no restore can commit it;
        unknown: whether a restore can commit it, or whether a producer or a coordinator ends it
    `log` : the partition that holds its records [`from_`, `to`), if that is known
    """

    sink: str
    transaction: str
    producer: str | None
    checkpoint: int | None
    fate: Literal["committed", "aborted", "visible", "done", "lost", "unknown"]
    log: str | None = None
    from_: int | None = None
    to: int | None = None
    records: int | None = None


@dataclass(frozen=True, slots=True)
class SinkImpact:
    """Which results of which sink may be doubled or missing after a restart from the line.

    `line` : what each unit restarts from
    `again` : what is read again
    `fails` : as the files are now, a restart does not get that far
    `action` : what to do about the line, as `recovery-line` says
    `notes` : words of `cklog.impact.sinks.view.NOTES`
    """

    system: Literal["spark", "flink", "native", "kafka"]
    line: tuple[dict[str, Any], ...]
    intervals: tuple[OutputInterval, ...]
    guarantees: tuple[SinkGuarantee, ...]
    again: tuple[Again, ...]
    transactions: tuple[SinkTransaction, ...] = ()
    fails: bool = False
    action: Action = "undetermined"
    notes: tuple[str, ...] = ()

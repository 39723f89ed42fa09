"""Each stored offset, judged: where its connector resumes, whether the source still has that, and what comes again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from cklog.inputs.connectors import StoredOffset
from cklog.model.findings import Finding
from cklog.model.wording import many
from cklog.runs.connectors.taken import Taken, newer, position_of
from cklog.source_positions.positions import (
    Offset,
    System,
    kafka_next,
    placed,
    system_of,
    unfinished_snapshot,
    words,
)
from cklog.source_positions.retained import Retained

BEGINS = "its beginning"


class Judged(NamedTuple):
    """A partition of a connector's source.

    `run` : the connector, with its store before it where several have one of that name
    `number` : of its partitions this one, from 0
    `retained` : None: nobody told where the source's log begins
    `taken` : what of it lies behind the position, by log
    """

    run: str
    number: int
    entry: StoredOffset
    retained: Retained | None = None
    taken: tuple[Taken, ...] = ()

    @property
    def name(self) -> str:
        """The partition as a subtask of the line."""
        return f"{self.run}/{self.number}"

    @property
    def label(self) -> str:
        """The partition of the source, as people read it."""
        return label_of(self.entry.partition)

    @property
    def offset(self) -> Offset | None:
        """The stored offset, with the place that its partition names where only both together have an order."""
        return None if self.entry.offset is None else placed(self.entry.partition, self.entry.offset)

    @property
    def system(self) -> System | None:
        """The kind of its source; None: no offset is stored."""
        return None if self.offset is None else system_of(self.offset)

    @property
    def next(self) -> Any:
        """Where the source goes on, for programs: the next offset of a partition of Kafka, else what is stored."""
        if self.offset is None or not self.resumes:
            return None
        following = kafka_next(self.offset)
        return dict(self.offset) if following is None else following

    @property
    def snapshot(self) -> str:
        """The kind of the snapshot that was not finished; "": none is open."""
        return "" if self.entry.offset is None else unfinished_snapshot(self.entry.offset)

    @property
    def resumes(self) -> bool:
        """Whether it goes on from an offset, as far as the stored one says."""
        return self.entry.offset is not None and not self.snapshot

    @property
    def gone(self) -> bool:
        """Whether the source no longer has what follows the position."""
        return self.resumes and self.retained is not None and self.retained.held is False

    @property
    def deleted(self) -> bool:
        """Whether somebody has deleted the offset, as when a connector is reset, or taken away for good."""
        return self.entry.offset is None and not self.entry.ambiguous

    @property
    def undecided(self) -> bool:
        """Whether it cannot be said where it resumes, or whether it can."""
        return self.entry.ambiguous or (self.resumes and self.retained is not None and self.retained.held is None)

    @property
    def again(self) -> int | None:
        """How many records come once more, at the most; None: nothing tells, or a snapshot brings them all."""
        if not self.resumes or self.gone:
            return None
        counts = [one.again for one in self.taken]
        return None if not counts or None in counts else sum(count for count in counts if count is not None)

    @property
    def position(self) -> str:
        """Where it resumes, in words."""
        if self.entry.ambiguous:
            return "unknown"
        if self.offset is None:
            return BEGINS
        return f"a new snapshot ({words(self.offset)})" if self.snapshot else words(self.offset)

    def planned(self) -> Mapping[str, Any] | None:
        """Return the offset that a plan stores: none where the source no longer has what follows the stored one."""
        return None if self.gone else self.entry.offset


def label_of(partition: Mapping[str, Any]) -> str:
    """Return a partition on one line.

    >>> label_of({"server": "shop", "database": "eu"}), label_of({})
    ('database=eu,server=shop', '-')
    """
    pairs = (f"{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in sorted(partition.items()))
    return ",".join(pairs) or "-"


def row_of(one: Judged) -> dict[str, Any]:
    """Return a partition as a row of an answer; both maps as they were stored, for programs."""
    entry = one.entry
    newest: Mapping[str, Any] | None = None
    for taken in one.taken:
        newest = newest if taken.newest is None else newer(newest, taken.newest)
    return {
        "connector": one.run,
        "number": one.number,
        "of": one.label,
        "system": one.system,
        "resumes": one.position,
        "snapshot": one.snapshot or None,
        "held": None if one.retained is None else one.retained.held,
        "again": one.again,
        "newest_taken": None if newest is None else words(position_of(newest)),
        "older": entry.older,
        "stored_time": entry.time,
        "store": entry.store,
        "stored": {
            "connector": entry.connector,
            "partition": dict(entry.partition),
            "offset": None if entry.offset is None else dict(entry.offset),
        },
        "planned": {"offset": None if (plan := one.planned()) is None else dict(plan)},
        "taken": [{"log": t.log, "again": t.again, "exact": t.exact} for t in one.taken],
    }


_GONE = (
    "A restart fails or resumes after a gap, depending on snapshot.mode. Restore the source's log, or delete the "
    "offset (--format connect-json) so that the connector takes a new snapshot, which has no events of deleted rows"
)
_GONE_IN_KAFKA = (
    "A restart fails or resumes at the log's first offset, depending on auto.offset.reset (default: earliest). "
    "Restore the source's log, or accept the gap and delete the offset (--format connect-json)"
)


def findings_of(judged: Iterable[Judged]) -> Iterator[Finding]:
    """Find what speaks of where partitions resume."""
    for one in judged:
        where, name = (one.entry.where,), one.run
        if one.deleted:
            then = "If the connector still runs, it starts over"
            message = f"{one.name} ({one.label}): its offset was deleted. {then}"
            yield Finding("deleted-offset", "info", name, message, where)
        if one.snapshot:
            message = (
                f"{one.name} ({one.label}) was taking a snapshot ({one.snapshot}) when its offset was stored. A "
                "restart takes the snapshot again from the start and produces every row again"
            )
            yield Finding("unfinished-snapshot", "warning", name, message, where)
        if one.gone and one.retained is not None:
            message = (
                f"{one.name} ({one.label}) resumes at {one.position}, which its source no longer has: "
                f"{one.retained.because}. {_GONE_IN_KAFKA if one.system == 'kafka' else _GONE}"
            )
            yield Finding("position-gone", "error", name, message, where, effect="data-lost")
        elif one.resumes and one.retained is not None and one.retained.held is None:
            message = f"{one.name} ({one.label}): whether its source has {one.position} is not known: "
            yield Finding("position-unknown", "error", name, message + one.retained.because, where, effect="unknown")
        if one.entry.pending is not None:
            message = (
                f"{one.name} ({one.label}): a transaction that would store a newer offset is open; its records do not "
                "count either, unless the worker that began it commits it"
            )
            yield Finding("pending-offset", "warning", name, message, where)
        yield from _taken_findings(one)


def _taken_findings(one: Judged) -> Iterator[Finding]:
    for taken in one.taken:
        subject = one.run
        if not one.resumes or one.gone:
            return
        if taken.again is None:
            message = (
                f"{taken.log}: cklog cannot tell how many of its records will be produced again: they have no source "
                f"position, or none that can be compared with {one.position}"
            )
            yield Finding("taken-unknown", "warning", subject, message)
        elif taken.again:
            most = "" if taken.exact else "at most "
            message = (
                f"{taken.log} already has {most}{many(taken.again, 'record')} past the position at which {one.name} "
                f"resumes ({one.position}). These records will be produced again, with the same source block. "
                "Consumers that do not deduplicate by key will see them twice"
            )
            yield Finding("taken-again", "warning", subject, message)

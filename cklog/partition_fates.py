"""How the transactions of a partition ended: by the first marker of their producer behind their data.

A producer has one transaction at a time in a partition. The epoch is no part of the match: newer brokers raise it when
a transaction ends. A transaction without a marker is open, and a reader of committed data stops before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from cklog.partition_runs import Run
from cklog.partitions import Transaction, Transactions

Place = tuple[int, int]
"""A segment's number in its log, and a byte in it."""


@dataclass
class _Fates:
    """The transactions of a log, run by run."""

    running: dict[int, Transaction] = field(default_factory=dict)
    committed: int = 0
    aborted: list[Transaction] = field(default_factory=list)
    doubtful: list[Transaction] = field(default_factory=list)

    def data(self, run: Run) -> None:
        """More data of a transaction, or the first of one."""
        known = self.running.get(run.producer)
        found = known or Transaction(run.producer, run.first, None, "open", 0, 0, run.first_time)
        times = [time for time in (found.time, run.first_time) if time is not None]
        self.running[run.producer] = replace(
            found,
            first=min(found.first, run.first),
            records=found.records + run.records,
            bytes=found.bytes + run.bytes,
            time=min(times, default=None),
        )

    def marker(self, run: Run) -> None:
        """The end of a transaction; one without data in this log, or whose data is gone, is none."""
        known = self.running.pop(run.producer, None)
        if known is None:
            return
        ended = replace(known, end=run.next, fate="commit" if run.ends == "commit" else "abort")
        if ended.doubt:
            self.doubtful.append(ended)
        if ended.fate == "abort":
            self.aborted.append(ended)
        else:
            self.committed += 1

    def damage(self) -> None:
        """Bytes that cannot be read may have held a marker of any producer."""
        self.running = {producer: replace(found, doubt=True) for producer, found in self.running.items()}


def transactions(runs: Sequence[tuple[Place, Run]], damage: Iterable[Place]) -> Transactions:
    """The transactions of a log.

    Parameters
    ----------
    runs : rows of `cklog.partition_runs`, each with the place where it begins
    damage : places of bytes that cannot be read

    Notes
    -----
    A run of data may reach over the markers of other producers, never over one of its own: so the place where a run
    begins decides its order. It may not reach over damage either.
    """
    fates = _Fates()
    events: list[tuple[Place, int, Run | None]] = [(place, 1, run) for place, run in runs]
    events += [(place, 0, None) for place in damage]
    for _, _, run in sorted(events, key=lambda event: event[:2]):
        if run is None:
            fates.damage()
        elif run.is_data:
            fates.data(run)
        elif run.ends:
            fates.marker(run)
    open_ = sorted(fates.running.values(), key=lambda found: (found.first, found.producer))
    doubtful = [*fates.doubtful, *(found for found in open_ if found.doubt)]
    by_first = sorted(fates.aborted, key=lambda found: (found.first, found.producer))
    return Transactions(fates.committed, tuple(by_first), tuple(open_), tuple(doubtful))

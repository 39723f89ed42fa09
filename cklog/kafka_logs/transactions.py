"""How the transactions of a partition ended: by the first marker of their producer behind their data.

A producer has one transaction at a time in a partition. The epoch is no part of the match: newer brokers raise it when
a transaction ends. A transaction without a marker is open, and a reader of committed data stops before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cklog.inputs.partitions import PartitionTransactions, ProducerTransaction, TransactionFate
from cklog.kafka_logs.kernel import BatchRun

BatchPlace = tuple[int, int]
"""A segment's number in its log, and a byte in it."""


@dataclass(slots=True)
class _Running:
    """A transaction that has not ended yet."""

    first: int
    time: int | None
    records: int = 0
    bytes: int = 0
    doubt: bool = False

    def told(self, producer: int, end: int | None, fate: TransactionFate) -> ProducerTransaction:
        return ProducerTransaction(producer, self.first, end, fate, self.records, self.bytes, self.time, self.doubt)


@dataclass
class _Fates:
    """The transactions of a log, run by run."""

    running: dict[int, _Running] = field(default_factory=dict)
    committed: int = 0
    aborted: list[ProducerTransaction] = field(default_factory=list)
    doubtful: list[ProducerTransaction] = field(default_factory=list)

    def data(self, run: BatchRun) -> None:
        """More data of a transaction, or the first of one."""
        found = self.running.get(run.producer)
        if found is None:
            found = self.running[run.producer] = _Running(run.first, run.first_time)
        found.first = min(found.first, run.first)
        found.records += run.records
        found.bytes += run.bytes
        if found.time is None or (run.first_time is not None and run.first_time < found.time):
            found.time = run.first_time

    def marker(self, run: BatchRun) -> None:
        """The end of a transaction; one without data in this log, or whose data is gone, is none."""
        found = self.running.pop(run.producer, None)
        if found is None:
            return
        if run.ends == "commit":
            self.committed += 1
        else:
            self.aborted.append(found.told(run.producer, run.next, "abort"))
        if found.doubt:
            self.doubtful.append(found.told(run.producer, run.next, "commit" if run.ends == "commit" else "abort"))

    def damage(self) -> None:
        """Bytes that cannot be read may have held a marker of any producer."""
        for found in self.running.values():
            found.doubt = True


def transactions(runs: Sequence[tuple[BatchPlace, BatchRun]], damage: Iterable[BatchPlace]) -> PartitionTransactions:
    """The transactions of a log.

    Parameters
    ----------
    runs : rows of `cklog.kafka_logs.kernel`, each with the place where it begins
    damage : places of bytes that cannot be read

    Notes
    -----
    A run of data may reach over the markers of other producers, never over one of its own: so the place where a run
    begins decides its order. It may not reach over damage either.
    """
    fates = _Fates()
    events: list[tuple[BatchPlace, int, BatchRun | None]] = [(place, 1, run) for place, run in runs]
    events += [(place, 0, None) for place in damage]
    for _, _, run in sorted(events, key=lambda event: event[:2]):
        if run is None:
            fates.damage()
        elif run.is_data:
            fates.data(run)
        elif run.ends:
            fates.marker(run)
    running = [found.told(producer, None, "open") for producer, found in fates.running.items()]
    running.sort(key=_by_first)
    doubtful = [*fates.doubtful, *(found for found in running if found.doubt)]
    aborted = sorted(fates.aborted, key=_by_first)
    return PartitionTransactions(fates.committed, tuple(aborted), tuple(running), tuple(doubtful))


def _by_first(found: ProducerTransaction) -> tuple[int, int]:
    return found.first, found.producer

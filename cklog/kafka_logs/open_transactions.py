"""Findings about the transactions in a partition's log: those that are open, in doubt, or aborted without a marker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cklog.inputs.partitions import Partition, ProducerTransaction
from cklog.model.findings import Finding, Where
from cklog.model.wording import many, numbered, utc

COORDINATOR = "__transaction_state"
"""The topic in which brokers keep the transactions that they can end."""

_LONGEST_MS = 15 * 60_000
"""The longest that a broker lets a producer ask for, by default: transaction.max.timeout.ms."""


def transaction_findings(p: Partition, newest: int | None, coordinated: bool) -> Iterator[Finding]:
    """Report the transactions of a partition that hold back readers, or of which it is not known how they ended.

    `newest` : the time of the newest record that was read; `coordinated`: whether a coordinator's log is here
    """
    yield from _doubtful_transactions(p)
    yield from _unseen_aborts(p)
    yield from _open_transactions(p, newest, coordinated)


def _open_transactions(p: Partition, newest: int | None, coordinated: bool) -> Iterator[Finding]:
    """Transactions that hold back readers of committed data, and how they are ended."""
    found = p.transactions.open
    if not found:
        return
    first = found[0]
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    message = (
        f"{p.name}: a transaction of producer {first.producer} is open since offset {first.first} ({utc(first.time)}, "
        f"{many(first.records, 'record')}){others}. Until the transaction ends, read_committed consumers stop at the "
        f"last stable offset, {p.last_stable}: they do not get the rest of the log, "
        f"{many(p.restart_end - p.last_stable, 'offset')} up to {p.restart_end}. "
        f"{_hanging(first, newest, coordinated)}. If neither its producer nor a restored job will end the transaction, "
        f"abort it: {_abort(p, first)}"
    )
    yield Finding("open-transaction", "warning", p.name, message, where=(Where(p.folder.path or "."),))


def _hanging(found: ProducerTransaction, newest: int | None, coordinated: bool) -> str:
    """Say whether anything will end a transaction by itself, as far as the files tell."""
    age = newest - found.time if newest is not None and found.time is not None else 0
    if age > _LONGEST_MS:
        return (
            f"The transaction was open for {age // 60_000} minutes when the newest record was written: it is hanging, "
            "unless transaction.max.timeout.ms was raised above its default of 15 minutes"
        )
    if not coordinated:
        return (
            f"PATH has no {COORDINATOR} log: unless another broker has it, no coordinator times the transaction out, "
            "and it is hanging"
        )
    return (
        f"cklog does not read {COORDINATOR}, which records whether the coordinator will time the transaction out: run "
        "kafka-transactions.sh find-hanging"
    )


def _abort(p: Partition, found: ProducerTransaction) -> str:
    """Return the command that ends a transaction for good."""
    return (
        'kafka-transactions.sh --bootstrap-server "$BOOTSTRAP_SERVERS" abort '
        f"--topic {p.folder.topic} --partition {p.folder.partition} --start-offset {found.first}"
    )


def _doubtful_transactions(p: Partition) -> Iterator[Finding]:
    """Transactions that damage may have hidden the end of."""
    found = p.transactions.doubtful
    if found:
        message = (
            f"{p.name}: {many(len(found), 'transaction', 'cross')} bytes that cannot be read, which may have held the "
            f"marker: {_transaction_words(found)}; whether data was committed cannot be proven from this log"
        )
        yield Finding("transaction-in-doubt", "warning", p.name, message, where=(Where(p.folder.path or "."),))


def _unseen_aborts(p: Partition) -> Iterator[Finding]:
    """Aborts that the broker had indexed and that the log has no marker of."""
    seen = {(t.producer, (t.end or 0) - 1) for t in p.transactions.aborted}
    gone = [span for span in p.folder.aborted if (span.producer, span.last) not in seen and span.last < p.restart_end]
    within = [span for span in gone if span.first >= p.log_start]
    if within:
        span = within[0]
        message = (
            f"{p.name}: the broker's index knows of {many(len(within), 'aborted transaction')} that the log does not "
            f"show, the first of producer {span.producer} at {numbered('offset', span.first, span.last)}: take it "
            "for aborted"
        )
        yield Finding("abort-not-in-log", "warning", p.name, message, where=(Where(p.folder.path or "."),))


def _transaction_words(found: Iterable[ProducerTransaction]) -> str:
    """The first few of some transactions.

    >>> _transaction_words([ProducerTransaction(7, 4, end=None, fate="open", records=1, bytes=1, time=None)])
    'producer 7 from offset 4'
    """
    rows = [f"producer {t.producer} from offset {t.first}" for t in found]
    return ", ".join(rows[:3]) + (", …" if len(rows) > 3 else "")

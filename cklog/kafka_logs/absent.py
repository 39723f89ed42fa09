"""Partitions that were looked for in the Kafka logs and are not there: of a missing topic, or on another broker."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from cklog.model.findings import Finding
from cklog.model.wording import agreeing, first_few

OTHER_BROKER = "--kafka FOLDER of another broker"
"""What compares a partition with its log, where FOLDER has others of its topic."""


_PARTITION = re.compile(r"(?s).+-(?:0|[1-9][0-9]{0,9})")


class Absent(NamedTuple):
    """Partitions without a log, in order: by their topic where none of it is here, else `elsewhere`."""

    topics: dict[str, list[str]]
    elsewhere: list[str]


def absent_partitions(needed: Iterable[str], known: Collection[str]) -> Absent:
    """Return the partitions that are needed and not among the `known` ones.

    A broker has some partitions of a topic: one that is not here may be on another broker. If no partition of the topic
    is here, nothing shows that the topic still exists.

    >>> absent_partitions(["a-0", "a-1", "b-0"], {"a-1"})
    Absent(topics={'b': ['b-0']}, elsewhere=['a-0'])
    """
    here = {name.rpartition("-")[0] for name in known}
    absent = Absent({}, [])
    for name in sorted({*needed} - {*known}):
        topic = name.rpartition("-")[0]
        (absent.elsewhere if topic in here else absent.topics.setdefault(topic, [])).append(name)
    return absent


def is_partition(name: str) -> bool:
    """Return whether a name is that of a partition.

    >>> [is_partition(name) for name in ("orders-3", "shard-003", "source/0", "orders-" + "9" * 5000)]
    [True, False, False, False]
    """
    return _PARTITION.fullmatch(name) is not None


def missing_topic(topic: str, partitions: Iterable[str], job: str = "") -> Finding:
    """Return the error about a topic of which no partition is among the logs."""
    names = [*partitions]
    message = (
        f"topic {topic}: the FOLDER of --kafka has none of its partitions, and {first_few(names, 5)} "
        f"{agreeing(len(names), 'are')} read from the line on. Nothing shows that the topic still exists and has those "
        "records. Copy its partitions from the brokers into FOLDER, or ask without --kafka"
    )
    return Finding("missing-topic", "error", f"{job} {topic}".strip(), message, effect="unknown")


def partitions_elsewhere(names: Sequence[str]) -> Iterator[Finding]:
    """Yield what was not compared, because another broker may have the partitions."""
    if names:
        message = (
            f"{first_few(names, 5)}: not in the FOLDER of --kafka, which has other partitions of the topic. Look on "
            "the other brokers: the offsets were not compared"
        )
        yield Finding("partition-elsewhere", "info", names[0], message)

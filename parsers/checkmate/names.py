"""Names in a dump of the CheckMate testbed, and what they tell of the job.

    snapshot_{worker}_{operator}_{stamp}.bin        worker: int; stamp: wall-clock ms, or a round 0, 1, 2, ...
    worker-{worker}-logs/{channel}.bin              written by the sender's worker
    channel = {from}_{to}_{number}                  number = partition of from * partitions of to + partition of to

Operators' names may hold "_" themselves, so that a channel's name can be split in several ways. No file says how many
partitions an operator has, nor which worker hosts which: a worker's log folder, which has a file for every channel out
of it, tells as much as there is to know, and else the channels that a snapshot names. The testbed's own deployment
gives every worker one partition of each operator; an operator that keeps its partitions sends from each to the same
one of the next alone, and the numbers of those channels lie partitions + 1 apart.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

_SNAPSHOT = re.compile(r"(?s)snapshot_(\d{1,9})_(.+)_(\d{1,18})\.bin")
_LOG = re.compile(r"worker-(\d{1,9})-logs/([^/]+)\.bin")
_CHANNEL = re.compile(r"(?s)(.+)_(\d{1,9})")

ROUND_BELOW = 10_000_000_000
"""A stamp below this is no time of this century in ms, but the number of a coordinated round."""


class Snapshot(NamedTuple):
    """A snapshot object: of operator `operator` on worker `worker`, `size` in bytes.

    `unread`: why nobody looks at what has its name, "" if it is a file.
    """

    path: str
    size: int
    worker: int
    operator: str
    stamp: int
    unread: str = ""


class SenderLog(NamedTuple):
    """The log of a channel, by the name that the testbed gave it; `unread` as of a snapshot."""

    path: str
    size: int
    worker: int
    channel: str
    unread: str = ""


class SentChannel(NamedTuple):
    """A channel by the name that the testbed gave it, and the worker that sends on it."""

    worker: int
    channel: str


def snapshot_of(path: str, size: int) -> Snapshot | None:
    """Return the snapshot object with a path and a size in bytes, None if the path is not one's.

    >>> snapshot_of("universalis-snapshots/snapshot_2_map_1700000000123.bin", 9).operator
    'map'
    """
    found = _SNAPSHOT.fullmatch(posixpath.basename(path))
    if found is None:
        return None
    return Snapshot(path=path, size=size, worker=int(found[1]), operator=found[2], stamp=int(found[3]))


def log_of(path: str, size: int) -> SenderLog | None:
    """Return the channel's log with a path and a size in bytes, None if the path is not one's."""
    found = _LOG.fullmatch("/".join(path.split("/")[-2:]))
    return SenderLog(path, size, int(found[1]), found[2]) if found else None


class ChannelEnds(NamedTuple):
    """A channel's name taken apart: the operators that it joins, and its number."""

    sender: str
    receiver: str
    number: int


def endings(channel: str, operators: Iterable[str]) -> ChannelEnds | None:
    """Take a channel's name apart; None if it has another form, or can be read in several ways.

    >>> endings("join_map_3", [])
    ChannelEnds(sender='join', receiver='map', number=3)
    >>> endings("a_b_c_0", ["a", "b_c"])
    ChannelEnds(sender='a', receiver='b_c', number=0)
    >>> endings("a_b_c_0", ["a", "b_c", "a_b", "c"]) is None
    True
    """
    found = _CHANNEL.fullmatch(channel)
    if not found:
        return None
    words = found[1].split("_")
    splits = [("_".join(words[:i]), "_".join(words[i:])) for i in range(1, len(words))]
    splits = [(a, b) for a, b in splits if a and b]
    if len(splits) > 1:
        known = set(operators)
        splits = [(a, b) for a, b in splits if a in known and b in known]
    if len(splits) != 1:
        return None
    sender, receiver = splits[0]
    return ChannelEnds(sender, receiver, int(found[2]))


class Part(NamedTuple):
    """A partition of an operator, and the worker that hosts it."""

    operator: str
    partition: int
    worker: int


class Uniform(NamedTuple):
    """A deployment in which every operator has so many partitions, on these workers in turn."""

    workers: tuple[int, ...]
    partitions: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """Which worker hosts which partition.

    `partitions` is their number by operator; operators that are not in it have one on each worker. `hosts` is the
    worker by (operator, partition), as far as log folders tell; the others are on the workers in turn. `numbers` are
    those of the channels that are known, by the operators that they join. `fits`: all of them are of this deployment,
    and none of a sender's is missing; `others` are deployments of which that is true as well.
    """

    operators: tuple[str, ...]
    workers: tuple[int, ...]
    partitions: Mapping[str, int] = field(default_factory=dict)
    hosts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    numbers: Mapping[tuple[str, str], Set[int]] = field(default_factory=dict)
    fits: bool = True
    others: tuple[Uniform, ...] = ()

    def count(self, operator: str) -> int:
        """Return the number of partitions of an operator."""
        return self.partitions.get(operator, len(self.workers))

    def host(self, operator: str, partition: int) -> int:
        """Return the worker that hosts a partition."""
        return self.hosts.get((operator, partition), self.workers[partition % len(self.workers)])

    def channel(self, name: str) -> str | None:
        """Name a channel as cklog does, between workers' parts of operators; None if its name cannot be read.

        Where a worker hosts several partitions, several channels join the same pair: then the number is the port.

        >>> Deployment(("a", "b"), (1, 2)).channel("a_b_1")
        'a/1->b/2'
        """
        ends = endings(name, self.operators)
        if ends is None:
            return None
        sender, receiver, number = ends
        start, end = divmod(number, self.count(receiver))
        if start >= self.count(sender):
            return None
        pair = f"{sender}/{self.host(sender, start)}->{receiver}/{self.host(receiver, end)}"
        return pair if self._is_one_each(sender) and self._is_one_each(receiver) else f"{pair}#{number}"

    def ingress(self) -> Iterator[Part]:
        """Yield the partitions of operators that send and are sent nothing: each reads its own partition of a topic.

        >>> [*Deployment(("a", "b"), (1, 2), numbers={("a", "b"): {0, 1, 2, 3}}).ingress()]
        [Part(operator='a', partition=0, worker=1), Part(operator='a', partition=1, worker=2)]
        """
        fed = {receiver for _, receiver in self.numbers}
        for operator in sorted({sender for sender, _ in self.numbers} - fed):
            yield from (Part(operator, p, self.host(operator, p)) for p in range(min(self.count(operator), _MOST)))

    def unseen(self) -> Iterator[str]:
        """Yield the channels that there would be, and of which nothing is here: of a pair all, or one a partition.

        >>> [*Deployment(("a", "b"), (1, 2), numbers={("a", "b"): {0, 1, 3}}).unseen()]
        ['a_b_2']
        """
        for (sender, receiver), numbers in sorted(self.numbers.items()):
            starts, ends = self.count(sender), self.count(receiver)
            forward = starts == ends and all(n // ends == n % ends for n in numbers)
            there = (p * (ends + 1) for p in range(starts)) if forward else range(starts * ends)
            yield from (f"{sender}_{receiver}_{n}" for n in there if n not in numbers)

    def _is_one_each(self, operator: str) -> bool:
        """Return whether no worker hosts two partitions of an operator."""
        count = self.count(operator)
        return count <= len(self.workers) and len({self.host(operator, p) for p in range(count)}) == count


def deployment_of(snapshots: Iterable[Snapshot], sent: Iterable[SentChannel]) -> Deployment:
    """Infer from names which worker hosts which partition, dead workers that nothing else tells of among them.

    Parameters
    ----------
    sent : channels and the workers that send on them, as far as logs or snapshots tell; all of a worker's, or none
    """
    snapshots, sent = list(snapshots), list(sent)
    workers = tuple(sorted({s.worker for s in snapshots} | {s.worker for s in sent}))
    known = {s.operator for s in snapshots}
    numbers: dict[tuple[str, str], dict[int, set[int]]] = {}  # of channels, by the operators joined and by worker
    for worker, name in sent:
        ends = endings(name, known)
        if ends is not None:
            known |= {ends.sender, ends.receiver}
            numbers.setdefault((ends.sender, ends.receiver), {}).setdefault(worker, set()).add(ends.number)
    operators = tuple(sorted(known))
    if not numbers:
        return Deployment(operators, workers)
    told, mixed = list(numbers.values()), _mixed_deployment(operators, workers, numbers)
    for whole in (True, False):  # a log that is gone costs its own channel, and no other one its ends
        everyone, count = first = next(fitting := _fitting(workers, told, whole), Uniform((), 0))
        if everyone and (whole or not mixed.fits):
            hosts = {(o, p): everyone[p % len(everyone)] for o in operators for p in range(count)}
            others = tuple(islice((one for one in fitting if one != first), _OTHERS)) if whole else ()
            counts = dict.fromkeys(operators, count)
            return Deployment(operators, everyone, counts, hosts, mixed.numbers, fits=whole, others=others)
    return mixed


_MOST = 1_000
"""Workers, and partitions on each, that are thought of at the most."""

_OTHERS = 4
"""Deployments that fit as well, of which it is worth knowing."""


def _fitting(workers: tuple[int, ...], told: Sequence[Mapping[int, set[int]]], whole: bool) -> Iterator[Uniform]:
    """Yield the deployments that may have the channels that each worker has, the likeliest first, each once.

    `whole`: a sender's channels are all here; else logs may be missing.
    """
    tried = set()
    for one in _uniform_deployments(workers, told, dead=whole):
        if one not in tried and all(_fits(by_worker, *one, whole) for by_worker in told):
            yield one
        tried.add(one)


def _uniform_deployments(
    workers: tuple[int, ...], told: Sequence[Mapping[int, set[int]]], dead: bool
) -> Iterator[Uniform]:
    """Yield the workers and the partitions of every operator that a deployment may have: the likeliest first.

    Each worker hosts as many partitions of every operator as any other, mostly one. Workers are numbered from 1 in the
    order in which they come, and one that died before its first snapshot left no name: the fewer of those the better.
    `dead`: think of such above the highest number that was seen, too.
    """
    highest = max(n for by_worker in told for numbers in by_worker.values() for n in numbers)
    highest = min(max(highest, 1), _MOST)  # channel 0 may be the only one that is left
    first, last = min(1, *workers), min(max(workers), _MOST)
    numbered = tuple(range(first, last + 1))
    yield from (Uniform(numbered, each * len(numbered)) for each in range(1, highest + 2))
    ends = range(last + 1, first + highest + 1) if dead else range(0)
    for end in ends:
        yield Uniform(tuple(range(first, end + 1)), end + 1 - first)
    yield from (Uniform(workers, each * len(workers)) for each in range(1, highest + 2))
    for end in ends:
        numbered = tuple(range(first, end + 1))
        yield from (Uniform(numbered, each * len(numbered)) for each in range(2, (highest + 1) // len(numbered) + 1))


def _fits(by_worker: Mapping[int, set[int]], workers: tuple[int, ...], count: int, whole: bool = True) -> bool:
    """Return whether channels between operators of `count` partitions each may have these numbers, by their senders.

    A partition is on the worker whose turn it is, and sends to every partition or to its own alone; and what one of an
    operator's partitions has channels to, all of them have. Where not the `whole` of them is there, the rest may.

    >>> _fits({1: {0}, 2: {4}, 3: {8}}, (1, 2, 3), 3), _fits({1: {0, 1}, 2: {2, 3}}, (1, 2), 2)
    (True, True)
    >>> _fits({1: {0}, 2: {1}}, (1, 2), 2), _fits({1: {0, 1}, 2: {3}}, (1, 2), 2)
    (False, False)
    >>> _fits({1: {0, 1}, 2: {2}}, (1, 2), 2), _fits({1: {0, 1}, 2: {2}}, (1, 2), 2, whole=False)
    (False, True)
    """
    alone: set[bool] = set()
    for worker, numbers in by_worker.items():
        sent: dict[int, set[int]] = {}
        for number in numbers:
            sent.setdefault(number // count, set()).add(number % count)
        for partition, to in sent.items():
            if partition >= count or workers[partition % len(workers)] != worker:
                return False
            if whole and to != {partition} and len(to) != count:
                return False
            alone.add(len(to) != count)
        if whole and len(sent) != count // len(workers):
            return False
    return not whole or len(alone) < 2


def _mixed_deployment(
    operators: tuple[str, ...],
    workers: tuple[int, ...],
    sent: Mapping[tuple[str, str], Mapping[int, set[int]]],
) -> Deployment:
    """Infer a deployment whose operators differ in their partitions, from the runs of numbers that each worker has."""
    partitions: dict[str, int] = {}
    hosts: dict[tuple[str, int], int] = {}
    fits = True
    for (sender, receiver), by_worker in sorted(sent.items()):
        count = _receiver_partitions(by_worker, len(workers))
        if count is None or partitions.setdefault(receiver, count) != count:
            fits = False
            continue
        for worker, numbers in sorted(by_worker.items()):
            for number in numbers:
                hosts.setdefault((sender, number // count), worker)
    told = dict(partitions)  # of operators that are sent to
    for sender, partition in hosts:
        partitions.setdefault(sender, 0)
        partitions[sender] = max(partitions[sender], partition + 1)
    fits &= all(partitions[operator] == count for operator, count in told.items())
    fits &= len(hosts) == sum(partitions[sender] for sender in {sender for sender, _ in hosts})  # none is left out
    seen = {pair: set().union(*by_worker.values()) for pair, by_worker in sent.items()}
    return Deployment(operators, workers, partitions, hosts, seen, fits)


def _receiver_partitions(by_worker: Mapping[int, set[int]], workers: int) -> int | None:
    """Infer the number of a receiver's partitions from the numbers of the channels to it; None if they do not tell.

    They tell if each worker sends from one partition: then its numbers are a run of as many as the receiver has
    partitions, e.g. {1: {0, 1}, 2: {2, 3}} → 2.
    """
    sizes = {len(numbers) for numbers in by_worker.values()}
    if len(sizes) != 1 or len(by_worker) != workers:
        return None
    size = sizes.pop()
    runs = [min(numbers) % size == 0 and max(numbers) - min(numbers) == size - 1 for numbers in by_worker.values()]
    return size if all(runs) else None

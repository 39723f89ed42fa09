"""Operators on workers as numbered instances, and their channels as numbers with names."""

from __future__ import annotations

from cklog.model.names import Channel, Subtask
from cklog.simulate.dataflow.queries import DataflowQuery


class InstanceLayout:
    """One instance of every operator on every worker: instance `operator * workers + worker`.

    Attributes
    ----------
    subtasks : by instance
    ways : by instance, where its records go: the first of its channels and how many there are, (-1, 0) for none
    sender, receiver : instance, by channel
    channels : name, by channel
    out, into : by instance, its channels
    """

    def __init__(self, query: DataflowQuery, workers: int) -> None:
        names = [operator.name for operator in query.operators]
        self.workers = workers
        self.operators = query.operators
        self.subtasks = [Subtask(name, w) for name in names for w in range(workers)]
        self.ways: list[tuple[int, int]] = []
        self.sender: list[int] = []
        self.receiver: list[int] = []
        for instance in range(len(self.subtasks)):
            operator, worker = query.operators[instance // workers], instance % workers
            if not operator.to:
                self.ways.append((-1, 0))
                continue
            first = names.index(operator.to) * workers
            receivers = range(first, first + workers) if operator.shuffled else [first + worker]
            self.ways.append((len(self.sender), len(receivers)))
            self.sender += [instance] * len(receivers)
            self.receiver += receivers
        ends = zip(self.sender, self.receiver, strict=True)
        self.channels = [str(Channel(self.subtasks[a], self.subtasks[b])) for a, b in ends]
        self.out: list[list[int]] = [[] for _ in self.subtasks]
        self.into: list[list[int]] = [[] for _ in self.subtasks]
        for channel, (a, b) in enumerate(zip(self.sender, self.receiver, strict=True)):
            self.out[a].append(channel)
            self.into[b].append(channel)

    def on(self, worker: int) -> range:
        """The instances of a worker."""
        return range(worker, len(self.subtasks), self.workers)

    def sources(self, worker: int) -> list[int]:
        """Those of them that are sources."""
        return [i for i in self.on(worker) if self.operators[i // self.workers].share]

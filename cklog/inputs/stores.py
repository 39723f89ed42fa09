"""Stores of a job as values: tasks with what their files say, and what each store reads again after a crash."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cklog.model.findings import Finding, InputUsed

GLOBAL = "global"
"""The group of the stores that every instance has in full; it is no subtopology."""

Start = Literal["checkpoint", "beginning", "unknown"]


@dataclass(frozen=True, slots=True)
class StoreOffset:
    """An offset as it was written, None if it was not known then; `at` is its byte in the file.

    `file`: where it was written, "" for the task's own file. `store`: the one that it is of, None if nothing says so.
    """

    topic: str
    partition: int
    offset: int | None
    at: int
    file: str = ""
    store: str | None = None

    @property
    def name(self) -> str:
        """The partition, as logs are named."""
        return f"{self.topic}-{self.partition}"


class StoreInside(NamedTuple):
    """What a store says inside of its changelogs; `unread`: why that could not be read, "" if it was.

    `unclean`: it was open when the instance ended, so that it may hold what was never committed.
    """

    store: str
    offsets: tuple[StoreOffset, ...]
    unclean: bool
    unread: str = ""


@dataclass(frozen=True, slots=True)
class StoreTask:
    """A task's folder: `stores` with their bytes, `folders` by name, `entries` None if no list of them can be read.

    `group` is the subtopology, or "global", which has no partition. `several`: there are more applications here.
    `instance`: the folder of the instance, where several instances have a task of the same name.
    `empty` are the stores whose folder holds no database: one would be made anew, and begin empty. `inside` are those
    that keep their offsets themselves. In Quix Streams a task is a partition of a stream, which is its `group`.
    """

    application: str
    topology: str
    group: str
    partition: int
    path: str
    stores: tuple[tuple[str, int], ...]
    folders: frozenset[str]
    entries: tuple[StoreOffset, ...] | None
    several: bool = False
    instance: str = ""
    empty: frozenset[str] = frozenset()
    inside: tuple[StoreInside, ...] = ()
    system: Literal["kafka-streams", "quix-streams"] = "kafka-streams"

    @property
    def operator(self) -> str:
        """The subtopology, with its topology if that has a name; instance and application, if there are several."""
        group = f"{self.topology}__{self.group}" if self.topology else self.group
        application = self.application if self.several else ""
        return "/".join(part for part in (self.instance, application, group) if part)

    @property
    def name(self) -> str:
        """The task as a subtask of the line."""
        return f"{self.operator}/{self.partition}"

    @property
    def file(self) -> str:
        """Where the task's entries are, or would be."""
        return f"{self.path}/.checkpoint" if self.path != "." else ".checkpoint"

    def folder_of(self, store: str | None) -> str:
        """Return what is deleted so that a store is restored: the task's folder, or the store's own in Quix Streams."""
        own = self.system == "quix-streams" and store is not None
        return posixpath.normpath(f"{self.path}/{store}/{self.group}/{self.partition}") if own else self.path

    @property
    def order(self) -> tuple[str, str, bool, int, str, int, str]:
        """What tasks are sorted by: subtopologies by number, global stores last."""
        number = int(self.group) if self.system == "kafka-streams" and self.group != GLOBAL else 0
        last = self.group == GLOBAL and self.system == "kafka-streams"
        return self.application, self.topology, last, number, self.group, self.partition, self.path


def with_instances(tasks: Iterable[StoreTask], depth: int) -> list[StoreTask]:
    """Return tasks in order, each with its own name: that of an instance's folder goes first where several have it.

    `depth` : so many folders lie between that folder and a task's path
    """
    tasks = sorted(tasks, key=lambda task: task.order)
    names = Counter(task.name for task in tasks)
    repeated = {task.application for task in tasks if names[task.name] > 1}
    return [
        replace(task, instance="/".join(task.path.split("/")[:-depth]) or ".") if task.application in repeated else task
        for task in tasks
    ]


class StoreLayout(NamedTuple):
    """The tasks below PATH, what is wrong with their files, and those files."""

    tasks: tuple[StoreTask, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]


@dataclass(frozen=True, slots=True)
class StoreRestore:
    """What one store reads again: offsets [restore_from, restore_to) of a changelog partition; None: not known.

    A log that ends before the store's offset gives a `restore_to` below `restore_from`.

    `start`: from its checkpoint, or from the changelog's beginning, or it could not be read. `unclean`: it was open
    when the instance ended, so that exactly-once wipes it first; None: nothing says so. `store` None: the entry names
    no store that is here (a source topic that serves as changelog). `records` and `bytes` are those of the range, if
    the logs are there.
    """

    task: str
    store: str | None
    changelog: str
    start: Start
    restore_from: int | None
    restore_to: int | None
    records: int | None
    bytes: int | None
    store_bytes: int | None
    unclean: bool | None = None

"""Persisted output queues of a run folder (`docs/run-folder.md`), in log order and from the end.

    outputs/OP/FILE               the queue of OP/0: *.jsonl  *.jsonl.gz  *.jsonl.zst  *.parquet
    outputs/OP/N/FILE             the queue of OP/N
    outputs/OP/TOPIC-N/*.log      the queue of OP/N in a Kafka topic-partition folder

A queue that was written to several files goes on in the next one by name, digits compared as numbers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Damage, Split
from cklog.local_files import is_local
from cklog.model.findings import Finding, InputUsed, Where
from cklog.model.names import Subtask
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.parsers.codecs.hadoop_crc import EMPTIED, EMPTY
from cklog.parsers.jsonl import reader as jsonl
from cklog.storage import FileEntry, Root

if TYPE_CHECKING:
    from cklog.inputs.queues import Since

FIRST_STEP_BYTES = 256 << 10
"""The first bytes read from the end of a queue: the paper's chunk. Each further step doubles."""

LARGEST_STEP_BYTES = 8 << 20
"""Steps from the end double up to this."""

_FIRST_REMOTE_BYTES = 64 << 10
"""The same of a store, where each step is half of what was read before: in all no more than twice what is wanted."""

_UNKNOWN = "cklog.parsers.native.output_queues:unknown"
_REFUSED, _LOST = "cklog.parsers.native.output_queues:refused", "cklog.parsers.native.output_queues:lost"
PARTITION = re.compile(r"(?s)(?P<topic>.+)-(?P<partition>[0-9]{1,9})")
"""The name of a Kafka topic-partition folder."""


@dataclass(frozen=True)
class OutputQueue:
    """One subtask's output queue: its files in log order, and how to read them from either end."""

    subtask: Subtask
    files: tuple[FileEntry, ...]
    root: Root
    check: Callable[[FileEntry], tuple[Finding, ...]]
    about: tuple[Finding, ...] = ()
    """What is wrong with the run that all of its queues rest on: its manifest, files that are gone."""

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(entry.size for entry in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files in log order: a record's place is (index here, offset)."""
        return tuple(entry.path for entry in self.files)

    @property
    def by_pos(self) -> bool:
        """Whether only the record number orders records: those of a Kafka batch share its place."""
        return any(is_segment(entry.path) for entry in self.files)

    def findings(self) -> tuple[Finding, ...]:
        """Return what is wrong with files as a whole, and how a Kafka log and its index were reconciled."""
        found = [finding for entry in self.files if not is_segment(entry.path) for finding in self.check(entry)]
        return (*self.about, *found, *self._emptied(), *self._reconciled())

    def inputs(self) -> tuple[InputUsed, ...]:
        """Return one row per kind of file."""
        sizes: dict[str, int] = {}
        for entry in self.files:
            kind = "kafka" if is_segment(entry.path) else f"native{suffix_of(entry.path)}"
            sizes[kind] = sizes.get(kind, 0) + entry.size
        place = f"outputs/{self.subtask.operator}/"
        return tuple(InputUsed(place, kind, size, None) for kind, size in sorted(sizes.items()))

    def splits(self, step: int) -> Iterator[Split]:
        """Yield the whole queue in log order, in splits of about `step` bytes."""
        for group in _joined_segments(self.files):
            if is_segment(group[0].path):
                from cklog.parsers.kafka import log as kafka_log

                yield from kafka_log.splits(self.root, group, step)
            else:
                yield from self._forward(group[0], step)

    def tail(self) -> Iterator[Split]:
        """Yield the whole queue from the end, lazily: small splits first, each twice the one before."""
        for group in reversed(_joined_segments(self.files)):
            if is_segment(group[0].path):
                from cklog.parsers.kafka import log as kafka_log

                yield from kafka_log.tail_splits(self.root, group, FIRST_STEP_BYTES, LARGEST_STEP_BYTES)
            else:
                yield from self._backward(group[0])

    def older(self, path: str) -> Split | None:
        """Return the last split of the file before `path`; None: it is the first one, or a segment of Kafka's."""
        at = self.paths.index(path)
        return next(self._backward(self.files[at - 1]), None) if at and not self.by_pos else None

    def since(self, ts: int | None, number: int | None, stamp: int | None) -> Since | None:
        """Return what follows a time or an offset, by a Kafka partition's indexes; None: the queue must be read back.

        Parameters as those of `cklog.parsers.kafka.log.since`.
        """
        groups = _joined_segments(self.files)
        if len(groups) != 1 or not is_segment(groups[0][0].path):
            return None
        from cklog.parsers.kafka import log as kafka_log

        folder = posixpath.dirname(self.files[0].path)
        try:
            return kafka_log.since(self.root.uri, self.root.read, self.root.list(folder), ts, number, stamp)
        except (OSError, *ARROW_ERRORS):
            return None  # reading it back says what is wrong

    def _reconciled(self) -> tuple[Finding, ...]:
        """Return how a Kafka log and its indexes disagree, if the queue is one."""
        segments = [entry for entry in self.files if is_segment(entry.path)]
        if not segments:
            return ()
        from cklog.parsers.kafka import log as kafka_log

        folder = posixpath.dirname(segments[0].path)
        return kafka_log.reconcile(self.root.read, self.root.uri, self.root.list(folder))

    def _emptied(self) -> Iterator[Finding]:
        """Report segments of a Kafka log that hold nothing although it goes on behind them: only the last may wait."""
        segments = [entry for entry in self.files if is_segment(entry.path)]
        for entry in segments[:-1]:
            if not entry.size:
                message = f"{entry.path} holds nothing, though the log goes on behind it: it was cut to 0"
                yield Finding("empty-file", "warning", entry.path, message, (Where(entry.path),))

    def _forward(self, entry: FileEntry, step: int) -> Iterator[Split]:
        """Yield the splits of one file that is no Kafka segment."""
        uri = self.root.uri(entry.path)
        faults = {f.id for f in self.check(entry)}
        if not entry.size or UNKNOWN_VERSION in faults or (entry.path.endswith(".parquet") and faults):
            reader = _LOST if not entry.size and faults & _UNTRUSTED else _REFUSED
            reader = _UNKNOWN if UNKNOWN_VERSION in faults else reader
            yield Split(uri=uri, path=entry.path, reader=reader, start=0, end=1, size=entry.size)
        elif entry.path.endswith(".parquet"):
            from cklog.parsers.tables.parquet import row_groups

            yield from row_groups(uri, entry.path, entry.size, step, None)
        else:
            reader = jsonl.UNTRUSTED if faults & _UNTRUSTED else jsonl.READER
            step = step if entry.path.endswith(".jsonl") else entry.size
            for start in range(0, entry.size, step):
                end = min(start + step, entry.size)
                yield Split(uri=uri, path=entry.path, reader=reader, start=start, end=end, size=entry.size)

    def _backward(self, entry: FileEntry) -> Iterator[Split]:
        """Yield the splits of one file that is no Kafka segment from its end, those of JSON lines small ones first."""
        if not entry.size or not entry.path.endswith(".jsonl"):
            yield from reversed(list(self._forward(entry, 1)))
            return
        reader = jsonl.UNTRUSTED if {f.id for f in self.check(entry)} & _UNTRUSTED else jsonl.READER
        near = is_local(self.root.path)
        uri, end, step = self.root.uri(entry.path), entry.size, FIRST_STEP_BYTES if near else _FIRST_REMOTE_BYTES
        while end:
            start = max(end - step, 0)
            yield Split(uri=uri, path=entry.path, reader=reader, start=start, end=end, size=entry.size)
            step = 2 * step if near else max((entry.size - start) // 2, step)
            end, step = start, min(step, LARGEST_STEP_BYTES)


_UNTRUSTED = frozenset({"checksum-mismatch"})


def refused(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the damage of a file that holds nothing that can be used, a gap in the queue (a `Reader` of scans)."""
    if not split.size:
        yield Damage(split.path, "empty-file", None, EMPTY)
    else:
        yield Damage(split.path, "corrupt-file", None, "no record of it can be used")


def unknown(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield what hides the records of a file whose format is not known (a `Reader` of scans)."""
    yield Damage(split.path, UNKNOWN_VERSION, None, "its format is not known")


def lost(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the damage of an empty file whose records are proved to be lost (a `Reader` of scans)."""
    yield Damage(split.path, "checksum-mismatch", None, EMPTIED)


def output_queues(
    root: Root,
    entries: Iterable[FileEntry],
    check: Callable[[FileEntry], tuple[Finding, ...]],
    about: tuple[Finding, ...] = (),
) -> dict[Subtask, OutputQueue]:
    """Find every output queue below `outputs/`; `check` finds faults of a file as a whole, `about` are the run's."""
    files: dict[Subtask, list[FileEntry]] = {}
    for entry in entries:
        subtask = owner_of(entry.path)
        if subtask is not None:
            files.setdefault(subtask, []).append(entry)
    ordered = {subtask: tuple(sorted(found, key=lambda e: natural(e.path))) for subtask, found in files.items()}
    return {subtask: OutputQueue(subtask, ordered[subtask], root, check, about) for subtask in sorted(ordered)}


def owner_of(path: str) -> Subtask | None:
    """Return the subtask in whose queue a file lies; None if it is no file of a queue.

    >>> owner_of("outputs/agg1/part-0.jsonl"), owner_of("outputs/agg1/3/part-0.jsonl.gz")
    (Subtask(operator='agg1', subtask=0), Subtask(operator='agg1', subtask=3))
    >>> owner_of("outputs/agg1/out-2/00000000000000000000.log"), owner_of("outputs/agg1/_tmp/part-0.jsonl")
    (Subtask(operator='agg1', subtask=2), None)
    """
    parts = path.split("/")
    if len(parts) < 3 or parts[0] != "outputs" or any(part.startswith((".", "_")) for part in parts[1:]):
        return None
    partition = PARTITION.fullmatch(parts[2]) if len(parts) == 4 else None
    if is_segment(path):
        return Subtask(parts[1], int(partition["partition"])) if partition else None
    if not suffix_of(path):
        return None
    numbered = len(parts) > 3 and parts[2].isascii() and parts[2].isdigit() and len(parts[2]) < 10
    return Subtask(parts[1], int(parts[2]) if numbered else 0)


def natural(path: str) -> tuple[tuple[str, int], ...]:
    """Return a sort key by which part-10 comes after part-9.

    >>> sorted(["p-10", "p-9", "p-09"], key=natural)
    ['p-09', 'p-9', 'p-10']
    """
    words = re.split(r"([0-9]+)", path)
    return (*((word, int(number)) for word, number in zip(words[::2], [*words[1::2], "-1"], strict=True)), (path, 0))


def suffix_of(path: str) -> str:
    """Return the end of a name that says how a file of a run folder is encoded; empty if it is none.

    >>> suffix_of("outputs/agg1/part-0.jsonl.gz"), suffix_of("outputs/agg1/notes.txt")
    ('.jsonl.gz', '')
    """
    return next((s for s in (".parquet", ".jsonl.gz", ".jsonl.zst", ".jsonl") if path.endswith(s)), "")


def is_segment(path: str) -> bool:
    """Return whether a file is named as a segment of a Kafka log."""
    name = posixpath.basename(path)
    return name.endswith(".log") and name[:-4].isdigit() and len(name) == len("00000000000000000000.log")


def _joined_segments(files: tuple[FileEntry, ...]) -> list[list[FileEntry]]:
    """Return files one by one, but the segments of a Kafka partition together."""
    groups: list[list[FileEntry]] = []
    for entry in files:
        if groups and is_segment(entry.path) and is_segment(groups[-1][0].path):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups

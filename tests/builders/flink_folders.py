"""Folders of Flink checkpoints and savepoints as a job leaves them, written by `tests.builders.flink`.

Every file is named by a letter or word instead of a uuid. `ORIGIN` is where the root was when it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cklog.parsers.flink.derived import operator_id
from tests.builders import flink as fb
from tests.builders.flink import Built

ORIGIN = "file:/mnt/flink/ckpts"
OLD, HEIR, THIRD = (digit * 32 for digit in "0ab")


@dataclass(frozen=True)
class Snapshot:
    """What a checkpoint names. Sizes in bytes; `shared` by path from ORIGIN on, `own` relative to its folder.

    `other` are further handles as they are; `sources` are splits of each reader: (topic, partition, offset); `program`
    is the uid of the stateful operator, `backend` the uuid of its state.
    """

    shared: Mapping[str, int] = field(default_factory=dict)
    own: Mapping[str, int] = field(default_factory=dict)
    other: Sequence[Built] = ()
    sources: Sequence[Sequence[tuple[str, int, int]]] = ()
    coordinator: bytes | None = None
    version: int = 6
    savepoint: bool = False
    program: str = "count"
    backend: str = "u-1"


def metadata(snapshot: Snapshot, number: int, origin: str = ORIGIN) -> bytes:
    """The bytes of a snapshot's `_metadata`: a stateful operator `count`, and a source `orders` if it has splits."""
    version = snapshot.version
    shared = [fb.absolute(f"{origin}/{path}", size) for path, size in snapshot.shared.items()]
    private = [fb.relative(path, size) for path, size in snapshot.own.items()]
    keyed = fb.incremental(fb.inline(b"meta"), [*shared, *snapshot.other], private, snapshot.backend)
    counts = [fb.subtask(version, keyed=keyed)]
    id = bytes.fromhex(operator_id(snapshot.program))
    operators = [fb.operator(version, counts, id, "Count", snapshot.program)]
    if snapshot.sources:
        readers = [_reader(version, index, splits) for index, splits in enumerate(snapshot.sources)]
        id = bytes.fromhex(operator_id("orders"))
        made = fb.operator(version, readers, id, "Orders", "orders", coordinator=snapshot.coordinator)
        operators.append(made)
    kind = ("Savepoint", "NATIVE") if snapshot.savepoint else ("Checkpoint", "FORWARD_BACKWARD")
    return fb.metadata(version, operators, checkpoint=number, properties=fb.properties((), *kind)).data


def _reader(version: int, index: int, splits: Sequence[tuple[str, int, int]]) -> Built:
    elements = [fb.versioned(0, fb.kafka_split(*split)) for split in splits]
    data, lists = fb.operator_state({"SourceReaderState": elements})
    return fb.subtask(version, index, managed=fb.states(fb.inline(data), lists))


def assigned(names: Sequence[tuple[str, int]]) -> bytes:
    """The coordinator's state: these partitions are assigned."""
    body = fb.i32(len(names)) + b"".join(fb.utf(topic) + fb.i32(number, 0) for topic, number in names) + b"\1"
    return fb.coordinator(2, body)


def checkpoint(root: Path, job: str, number: int, snapshot: Snapshot = Snapshot()) -> Path:
    """A complete checkpoint with all its files; files that are there already stay as they are."""
    folder = root / job / f"chk-{number}"
    return _written(root, folder, number, snapshot)


def job(root: Path, name: str = OLD, numbers: tuple[int, ...] = (5, 6, 7)) -> None:
    """Checkpoints of a job, each with a file that the one before has too, one of the next, and one of its own."""
    for number in numbers:
        shared = {f"{name}/shared/s{n}": 100 + n for n in (number - 1, number)}
        checkpoint(root, name, number, Snapshot(shared, {f"p{number}": 10 + number}))


def uri(*parts: str) -> str:
    """Where something was when it was written."""
    return "/".join((ORIGIN, *parts))


def savepoint(root: Path, name: str, number: int, snapshot: Snapshot = Snapshot(savepoint=True)) -> Path:
    return _written(root, root / name, number, snapshot)


def _written(root: Path, folder: Path, number: int, snapshot: Snapshot) -> Path:
    for path, size in snapshot.shared.items():
        file(root / path, size)
    for path, size in snapshot.own.items():
        file(folder / path, size)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_metadata").write_bytes(metadata(snapshot, number))
    return folder


def torn(root: Path, job: str, number: int, files: Mapping[str, int] | None = None) -> Path:
    """A checkpoint without metadata."""
    folder = root / job / f"chk-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    for path, size in (files or {}).items():
        file(folder / path, size)
    return folder


def file(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_bytes(b"x" * size)
    return path


def of_subtask(version: int = 6, **state: Any) -> fb.Built:
    """Build a `_metadata` of one operator with one subtask that holds `state` (`fb.subtask`)."""
    return fb.metadata(version, [fb.operator(version, [fb.subtask(version, **state)])])


def written(folder: Path, built: fb.Built | bytes) -> Path:
    """Write a `_metadata`, and return its path."""
    path = folder / "_metadata"
    path.write_bytes(built if isinstance(built, bytes) else built.data)
    return path

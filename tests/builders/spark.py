"""Real checkpoint folders in memory, to be damaged without touching the disk."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from cklog.inputs.pieces import PiecesRead
from cklog.parsers.codecs.hadoop_crc import encode, sidecar_of
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import BatchPlan, pieces_of, plan_of
from cklog.storage import FileEntry, Root
from tests.conftest import SAMPLES, SHARED

SAMPLE = SAMPLES / "spark-wordcount"
REAL = SHARED / "spark-checkpoints"

needs_real = pytest.mark.skipif(
    not REAL.is_dir(), reason="no shared/data/spark-checkpoints beside the repository: tests on real files need it"
)


@dataclass(frozen=True)
class Memory(Root):
    """A root whose files are bytes; `home` is the stored prefix that stands for the root."""

    files: dict[str, bytes] = field(default_factory=dict)
    home: str = ""

    def list(self, prefix: str = "") -> list[FileEntry]:
        inside = prefix and prefix.rstrip("/") + "/"
        return [FileEntry(p, len(d)) for p, d in sorted(self.files.items()) if p.startswith(inside)]

    def read(self, path: str, limit: int | None = None) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path][:limit]

    def open(self, path: str) -> Any:
        return pa.BufferReader(self.read(path, None))

    def exists_outside(self, stored: str) -> int | Literal["outside"] | None:
        if not self.home or not stored.startswith(self.home + "/"):
            return "outside"
        data = self.files.get(stored.removeprefix(self.home + "/"))
        return None if data is None else len(data)

    def remove(self, path: str) -> None:
        """Delete a file and its checksum."""
        del self.files[path]
        self.files.pop(sidecar_of(path), None)

    def write(self, path: str, data: bytes) -> None:
        """Replace a file; its checksum, if it has one, fits."""
        self.files[path] = data
        if sidecar_of(path) in self.files:
            self.files[sidecar_of(path)] = encode(data)

    def without_checksums(self) -> Memory:
        """As on an object store."""
        return self.with_files({p: d for p, d in self.files.items() if not p.endswith(".crc")})

    def with_files(self, files: dict[str, bytes]) -> Memory:
        """The same root with other files."""
        return Memory(self.path, self.maps, files, self.home)

    def copy(self) -> Memory:
        """To be damaged."""
        return self.with_files(dict(self.files))

    def plan(self, as_of: int | None = None, at: int | None = None) -> BatchPlan:
        """What a restart of the query does."""
        return plan_of(SparkCheckpoint(self), as_of, at)

    def pieces(self) -> PiecesRead:
        """Its state, every file of it read."""
        return pieces_of(SparkCheckpoint(self))


def load(folder: Path, home: str) -> Memory:
    """Everything below `folder`."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return Memory("memory", (), {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}, home)


def sample() -> Memory:
    """The word count of `sample_logs`, a copy of its own for each caller."""
    return _sample().copy()


@functools.cache
def _sample() -> Memory:
    return load(SAMPLE, "file:///srv/cklog-sample/wordcount")


def batch_time(batch: int) -> int:
    """When the sample planned a batch."""
    time = json.loads(sample().files[f"ck/offsets/{batch}"].split(b"\n")[1])["batchTimestampMs"]
    assert isinstance(time, int)
    return time

"""Flink killed with SIGKILL, cklog asked, Flink restored as cklog says, and the two compared; then with damage.

What is right is what the engine does: from which checkpoint it says that it restores, the first number that each reader
reads, and the state that each key has then. How many numbers of a key lie before another is counted, not asked.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.flink.live.jobs import REMAINDERS, SIZE, Flink, Running
from tests.program import cklog

pytestmark = pytest.mark.slow

COMMON = {
    "execution.checkpointing.storage": "filesystem",
    "execution.checkpointing.interval": "500ms",
    "execution.checkpointing.num-retained": "3",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.data-inline-threshold": "0b",
}
ROCKSDB = {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "false"}
INCREMENTAL = {**ROCKSDB, "execution.checkpointing.incremental": "true"}
BACKENDS: dict[str, dict[str, str]] = {
    "hashmap": {"state.backend.type": "hashmap"},
    "hashmap-inline": {
        "state.backend.type": "hashmap",
        "execution.checkpointing.data-inline-threshold": "100kb",
    },
    "rocksdb": ROCKSDB,
    "rocksdb-incremental": INCREMENTAL,
    "rocksdb-changelog": {
        **INCREMENTAL,
        "state.changelog.enabled": "true",
        "state.changelog.storage": "filesystem",
        "state.changelog.periodic-materialize.interval": "2s",
    },
    "rocksdb-unaligned": {
        **INCREMENTAL,
        "execution.checkpointing.unaligned.enabled": "true",
        "taskmanager.memory.segment-size": "4kb",
    },
}
GENERATIONS = 2
"""How often each job is restored, and killed again."""


class Pipeline:
    """One pipeline with one root for all that its jobs leave."""

    def __init__(self, flink: Flink, backend: str, folder: Path) -> None:
        self.root, self._flink, self._log = folder / "root", flink, folder / "log"
        self.root.mkdir(parents=True)
        places = {
            "execution.checkpointing.dir": self.root / "ck",
            "state.changelog.dstl.dfs.base-path": self.root / "dstl",
        }
        self._settings = {**COMMON, **BACKENDS[backend], **{key: path.as_uri() for key, path in places.items()}}
        self._pauses = (0, 1000) if backend.endswith("unaligned") else (2000, 0)

    def start(self, restore: str = "", claim: str = "NO_CLAIM") -> Running:
        """Start a job, from a checkpoint if one is named."""
        if not restore:
            return self._flink.start(self._settings, self._log, *self._pauses)
        recovery = {"execution.state-recovery.path": restore, "execution.state-recovery.claim-mode": claim}
        return self._flink.start({**self._settings, **recovery}, self._log, *self._pauses)

    def kill(self, job: Running, after: int, moment: str) -> None:
        """Kill a job when a checkpoint later than `after` is there, at a moment that its files show."""
        job.until(lambda: self.newest() > after)
        last = self.newest()
        if moment == "writing":
            job.until(lambda: any(path for path in self.checkpoint(last + 1) if path.name != "_metadata"))
        elif moment == "written":
            job.until(lambda: self.newest() > last)
        job.kill()

    def checkpoint(self, number: int) -> list[Path]:
        return list(self.root.glob(f"ck/*/chk-{number}/*"))

    def newest(self) -> int:
        """The highest number of a checkpoint with metadata."""
        return max((int(path.parent.name[4:]) for path in self.root.glob("ck/*/chk-*/_metadata")), default=0)

    def told(self) -> dict[str, Any]:
        """The answer of `cklog recovery-line`."""
        ended = cklog("recovery-line", self.root, "--json")
        assert ended.code in (0, 3), ended
        found: dict[str, Any] = json.loads(ended.out)["result"]
        return found


def restore_of(told: dict[str, Any]) -> tuple[str, str]:
    """The path and the claim mode in the one command that was printed."""
    (restore,) = told["details"]["restore"]
    words = restore["command"].split()
    assert words[:3] == ["flink", "run", "-s"]
    return words[3], words[5] if words[4:5] == ["-claimMode"] else "NO_CLAIM"


def line_of(told: dict[str, Any]) -> int:
    (entry,) = told["line"]
    number: int = entry["checkpoint"]
    return number


def offsets_of(told: dict[str, Any]) -> list[int]:
    return sorted(source["offset"] for source in told["sources"])


def before(split: int, remainder: int, number: int) -> int:
    """How many numbers of a split have that remainder and come before another."""
    numbers = range(split * SIZE, number)
    return len(range(numbers.start + (remainder - numbers.start) % REMAINDERS, numbers.stop, REMAINDERS))


def disproved(job: Running, told: dict[str, Any], aligned: bool) -> list[str]:
    """What of an answer the engine did not do, once every key was counted again and a checkpoint completed."""
    line, offsets = line_of(told), offsets_of(told)
    job.until(
        lambda: (
            len(job.states()) == 2 * REMAINDERS
            and len(job.first_read()) == 2
            and max(job.completed(), default=0) > line
        )
    )
    wrong = [] if [entry[0] for entry in job.restored()] == [line] else [f"restored {job.restored()}, said {line}"]
    if not job.restored()[0][1].endswith(restore_of(told)[0].partition("/ck/")[2]):
        wrong.append(f"restored {job.restored()}, said {restore_of(told)}")
    if job.first_read() != offsets:
        wrong.append(f"read from {job.first_read()}, said {offsets}")
    for split, remainder, number, held in job.states():
        if held != before(split, remainder, number):
            wrong.append(f"{remainder} in {split}: {held} before {number}")
        if aligned and number not in range(offsets[split], offsets[split] + REMAINDERS):
            wrong.append(f"{remainder} in {split}: goes on at {number}, said {offsets[split]}")
    return wrong


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_killed_job_is_restored_as_said(backend: str, flink: Flink, tmp_path: Path) -> None:
    """The first job, its restart, and the restart of that, each killed at another moment of a checkpoint."""
    pipeline, chance = Pipeline(flink, backend, tmp_path), random.Random(backend)
    aligned = not backend.endswith("unaligned")
    job = pipeline.start()
    after = 0
    for _ in range(GENERATIONS):
        pipeline.kill(job, after + 2, chance.choice(("writing", "written", "between")))
        told = pipeline.told()
        after = pipeline.newest()
        assert line_of(told) == after  # an undamaged kill loses no complete checkpoint
        job = pipeline.start(*restore_of(told))
        assert disproved(job, told, aligned) == []
        if not aligned:
            assert told["details"]["in_flight"]
            assert min(number - offsets_of(told)[split] for split, _, number, _ in job.states()) < 0
    job.kill()


# --- damage to the newest checkpoint


@pytest.fixture(scope="module", params=["hashmap", "rocksdb", "rocksdb-incremental"])
def left(
    request: pytest.FixtureRequest, flink: Flink, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Pipeline, Path]:
    """What a killed job left, and a copy of it: stored paths are absolute, so that damage has to be done in place."""
    pipeline = Pipeline(flink, request.param, tmp_path_factory.mktemp("left"))
    pipeline.kill(pipeline.start(), 3, "between")
    copy = pipeline.root.parent / "copy"
    shutil.copytree(pipeline.root, copy)
    return pipeline, copy


def newest_s_own(pipeline: Pipeline) -> list[Path]:
    """The files that were written for the newest checkpoint and for no older one, by their times; metadata last."""
    ordered = sorted(pipeline.root.glob("ck/*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:]))
    older, newest = (path.stat().st_mtime_ns for path in ordered[-2:])
    files = (path for path in pipeline.root.rglob("*") if path.is_file() and older < path.stat().st_mtime_ns <= newest)
    return [*sorted(path for path in files if path.name != "_metadata"), ordered[-1]]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def largest(files: list[Path]) -> Path:
    """The largest file with state: without RocksDB's options a restore does."""
    state = [path for path in files[:-1] if not path.read_bytes().startswith(b"# This is a RocksDB option file")]
    return max(state, key=lambda path: path.stat().st_size)


def sources_state(files: list[Path]) -> Path:
    return next(path for path in files[:-1] if b"SourceReaderState" in path.read_bytes()[:64])


DAMAGE: dict[str, Callable[[list[Path]], None]] = {
    "metadata-gone": lambda files: files[-1].unlink(),
    "metadata-cut": lambda files: cut(files[-1]),
    "metadata-zeroed": lambda files: zero(files[-1]),
    "state-gone": lambda files: largest(files).unlink(),
    "state-cut": lambda files: cut(largest(files)),
    "state-zeroed": lambda files: zero(largest(files)),
    "sources-zeroed": lambda files: zero(sources_state(files)),
    "sources-flipped": lambda files: flip(sources_state(files), 88),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_newest_checkpoint_is_refused_by_both(damage: str, left: tuple[Pipeline, Path]) -> None:
    pipeline, copy = left
    shutil.rmtree(pipeline.root)
    shutil.copytree(copy, pipeline.root)
    files, newest = newest_s_own(pipeline), pipeline.newest()
    place = files[-1].parent.as_uri()
    DAMAGE[damage](files)

    told = pipeline.told()
    assert line_of(told) == newest - 1
    refused = pipeline.start(place)
    try:
        assert refused.ends_by_itself(), f"Flink restored {place}"
    finally:
        refused.kill()
    job = pipeline.start(*restore_of(told))
    try:
        assert disproved(job, told, aligned=True) == []
    finally:
        job.kill()

"""The kinds of job that the campaign runs: how state is stored, how checkpoints are taken, where results go."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SIZE = 12_000
"""Numbers in each split: more than a job reads until it is killed."""
KEYS = 13
SLOTS = 64
COMMON = {
    "execution.checkpointing.storage": "filesystem",
    "execution.checkpointing.interval": "250ms",
    "execution.checkpointing.num-retained": "3",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.data-inline-threshold": "0b",
    "restart-strategy.type": "none",
    "taskmanager.memory.network.min": "24mb",
    "taskmanager.memory.network.max": "24mb",
}
HEAP = {"state.backend.type": "hashmap"}
WHOLE = {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "false"}
INCREMENTAL = {**WHOLE, "execution.checkpointing.incremental": "true"}
CHANGELOG = {
    "state.changelog.enabled": "true",
    "state.changelog.storage": "filesystem",
    "state.changelog.periodic-materialize.interval": "1s",
}
UNALIGNED = {"execution.checkpointing.unaligned.enabled": "true", "taskmanager.memory.segment-size": "4kb"}


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    `sink` : closed, open or rolling, how a file sink ends its files; a ledger; or nothing
    `savepoint` : the format of the savepoints that are taken besides
    `claim` : how a second job goes on from the first and is killed, too; "" : there is no second job
    `since` : the first version of Flink that has it
    """

    settings: Mapping[str, str]
    sink: str = ""
    savepoint: str = ""
    claim: str = ""
    since: str = "1.20"
    backpressure: bool = False
    changes: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes_files(self) -> bool:
        return self.sink in ("closed", "open", "rolling")


KINDS: dict[str, Kind] = {
    "heap": Kind(HEAP),
    "heap-inline": Kind({**HEAP, "execution.checkpointing.data-inline-threshold": "1mb"}),
    "heap-unaligned": Kind({**HEAP, **UNALIGNED}, backpressure=True),
    "heap-changelog": Kind({**HEAP, **CHANGELOG}),
    "heap-ledger": Kind(HEAP, sink="ledger"),
    "heap-savepoint": Kind(HEAP, savepoint="CANONICAL"),
    "rocksdb-whole": Kind(WHOLE),
    "rocksdb-incremental": Kind(INCREMENTAL),
    "rocksdb-unaligned": Kind({**INCREMENTAL, **UNALIGNED}, backpressure=True),
    "rocksdb-changelog": Kind({**INCREMENTAL, **CHANGELOG}),
    "rocksdb-ledger": Kind(INCREMENTAL, sink="ledger"),
    "rocksdb-canonical": Kind(INCREMENTAL, savepoint="CANONICAL"),
    "rocksdb-native": Kind(INCREMENTAL, savepoint="NATIVE"),
    "rocksdb-merged": Kind({**INCREMENTAL, "execution.checkpointing.file-merging.enabled": "true"}),
    "restored-no-claim": Kind(INCREMENTAL, claim="NO_CLAIM"),
    "restored-claim": Kind(INCREMENTAL, claim="CLAIM"),
    "forst": Kind({**INCREMENTAL, "state.backend.type": "forst"}, since="2.0"),
    "files-closed": Kind(INCREMENTAL, sink="closed"),
    "files-open": Kind(HEAP, sink="open"),
    "files-rolling": Kind(HEAP, sink="rolling"),
}


def kinds_of(version: str) -> list[str]:
    """Return the kinds that a version of Flink has."""
    return [name for name, kind in KINDS.items() if _ordered(kind.since) <= _ordered(version)]


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@dataclass(frozen=True)
class Plan:
    """What is drawn for one job: how many readers, and when it is killed."""

    kind: str
    splits: int
    after: int
    delay: float

    @classmethod
    def drawn(cls, version: str, seed: int, group: int) -> Plan:
        """Draw the job of a group of trials; each kind comes once before one comes again."""
        names = kinds_of(version)
        order = random.Random(f"{seed} {group // len(names)}").sample(names, len(names))
        chance = random.Random(f"{seed} {group} job")
        return cls(order[group % len(names)], chance.randint(1, 3), chance.randint(2, 5), chance.uniform(0, 0.6))

    def words(self, root: Path, killed: bool, parallelism: int = 0) -> dict[str, str]:
        """Return the words of the job, for a run that is killed or for one to the end of its numbers."""
        kind = KINDS[self.kind]
        slow = (0, 1000) if kind.backpressure else (2000, 0)
        read, count = slow if killed else (0, 0)
        places = {"execution.checkpointing.dir": root / "ck", "state.changelog.dstl.dfs.base-path": root / "dstl"}
        return {
            **COMMON,
            **kind.settings,
            **{key: path.as_uri() for key, path in places.items()},
            "job.size": str(SIZE),
            "job.splits": str(self.splits),
            "job.parallelism": str(parallelism or self.splits),
            "job.read-us": str(read),
            "job.count-us": str(count),
            "job.sink": kind.sink,
            "job.folder": str(root / "out"),
            "job.savepoint": kind.savepoint if killed else "",
            "job.savepoints": (root / "sp").as_uri(),
        }


def recovery(path: str, claim: str) -> dict[str, str]:
    """Return Flink's settings to restore from a path."""
    return {"execution.state-recovery.path": path, "execution.state-recovery.claim-mode": claim}

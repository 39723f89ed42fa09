"""What a plan of deletion lets go of a damaged folder, held against what it lets go of the undamaged one.

The rule: what would be kept if the damage were mended stays. So what may go of a damaged folder is a subset of what may
go of the same folder undamaged, by the same policy; only `--drop-broken` asks for more.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cklog.errors import CklogError
from cklog.model.verdict import Answer
from cklog.retention.plan import RetentionPlan
from cklog.retention.policy import RetentionPolicy
from cklog.run import Options, open_run

REFUSED = (2, 65, 66)
"""Exit codes of answers that are none, so that nothing may go."""

_NOT_INPUT = ("README.md", "expected.json", "truth.json", "jobmanager.log")


@dataclass(frozen=True)
class Folder:
    """A folder that has a plan: where it is, where its stored paths lead (old prefix → folder below it), policies."""

    source: Path
    maps: Mapping[str, str]
    policies: Mapping[str, RetentionPolicy]


POLICIES: Mapping[str, RetentionPolicy] = {
    "none": RetentionPolicy(),
    "keep 1": RetentionPolicy(keep=1),
    "keep 3": RetentionPolicy(keep=3),
}
STOPPED: Mapping[str, RetentionPolicy] = {
    **POLICIES,
    "stopped": RetentionPolicy(jobs_stopped=True),
    "stopped keep 1": RetentionPolicy(keep=1, jobs_stopped=True),
}


@dataclass(frozen=True)
class Outcome:
    """What may go: files below PATH, and names of checkpoints of which no file is known there."""

    files: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    of_files: frozenset[str] = frozenset()
    """The checkpoints that the files are of, where that is known: without its file one of them is but a name."""

    def beyond(self, other: Outcome) -> frozenset[str]:
        """Return what may go here, and not there."""
        return (self.files - other.files) | (self.names - other.names - other.of_files)


def planned(copy: Path, folder: Folder, policy: RetentionPolicy) -> Outcome:
    maps = tuple((old, str(copy / inside)) for old, inside in folder.maps.items())
    try:
        with open_run(str(copy), Options(maps=maps)) as run:
            answer: Answer[RetentionPlan] = run.retention(policy)
    except CklogError as error:
        if error.exit_code not in REFUSED:
            raise
        return Outcome()
    free = [row for row in answer.result.rows if row.fate == "OBSOLETE"]
    return Outcome(
        files=frozenset(row.path for row in free if row.file),
        names=frozenset(row.path for row in free if not row.file),
        of_files=frozenset(row.checkpoint for row in free if row.file and row.checkpoint is not None),
    )


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong with a file: its new bytes, None if it is gone."""

    path: str
    how: str
    data: bytes | None


BLOCK = 512


def damages(copy: Path, rng: random.Random) -> Iterator[Damage]:
    """Yield damage at random without an end: to one file each, of those that are there."""
    files = sorted(p for p in copy.rglob("*") if p.is_file() and p.name not in _NOT_INPUT and p.stat().st_size)
    folders = sorted({p.parent for p in files})
    while True:
        path = rng.choice([p for p in files if p.parent == rng.choice(folders)] or files)
        data = path.read_bytes()
        name = str(path.relative_to(copy))
        at = rng.randrange(len(data))
        flipped = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        zeroed = data[:at] + bytes(min(BLOCK, len(data) - at)) + data[at + BLOCK :]
        made = {"flip": flipped, "zero": zeroed, "cut": data[:at], "empty": b"", "delete": None}
        how = rng.choice([*made, "flip"])
        yield Damage(name, how, made[how])


def unseen(copy: Path, damage: Damage) -> bool:
    """Return whether no reader can see damage: nothing is there that has a checksum, a size or a form to break.

    So are digits and letters of lines without a checksum, pickles without one, and a file of records that is gone with
    nothing beside it that knows of it.
    """
    path = copy / damage.path
    if path.suffix == ".bin":
        return damage.how in ("flip", "zero")
    if path.suffix != ".jsonl" or (path.parent / f".{path.name}.crc").exists():
        return False
    if damage.data is None:
        return True
    old, new = path.read_bytes().splitlines(), damage.data.splitlines()
    changed = [(one, two) for one, two in zip(old, new, strict=False) if one != two]
    if damage.how != "flip" or len(old) != len(new) or len(changed) != 1 or b'"crc32c"' in changed[0][0]:
        return False
    try:
        before, after = (json.loads(line) for line in changed[0])
    except ValueError:
        return False
    return isinstance(after, dict) and _names(before) == _names(after)


def _names(found: dict[str, Any]) -> list[str]:
    """Return the names of an object's members, those of its maps included."""
    inner = [f"{name} {key}" for name, value in found.items() if isinstance(value, dict) for key in value]
    return [*found, *inner]


@contextmanager
def injured(copy: Path, damage: Damage) -> Iterator[None]:
    """Damage a file for a while."""
    path = copy / damage.path
    before = path.read_bytes()
    if damage.data is None:
        path.unlink()
    else:
        path.write_bytes(damage.data)
    try:
        yield
    finally:
        path.write_bytes(before)


def violations(folder: Folder, copy: Path, seed: int, count: int) -> Iterator[tuple[Damage, str, frozenset[str]]]:
    """Yield damage by which more may go than without it: the damage, the policy, and what more may go."""
    shutil.copytree(folder.source, copy)
    allowed = {name: planned(copy, folder, policy) for name, policy in folder.policies.items()}
    rng = random.Random(seed)
    for _, damage in zip(range(count), damages(copy, rng), strict=False):
        if unseen(copy, damage):
            continue
        with injured(copy, damage):
            for name, policy in folder.policies.items():
                more = planned(copy, folder, policy).beyond(allowed[name])
                if more:
                    yield damage, name, more

"""Random roots of several jobs that share files, with torn, corrupt and broken snapshots, against a plain count.

The oracle knows what was written: what each snapshot names, with its size. It looks at the folder file by file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.flink_folders import HEIR, OLD, THIRD, Snapshot, checkpoint, file, savepoint, torn
from tests.examples import examples
from tests.reading.flink_folders import asked, fates

JOBS = (OLD, HEIR, THIRD)
SAVEPOINTS = tuple(f"savepoint-{job[:6]}-0123456789ab" for job in JOBS)
HOMES = dict(zip(JOBS, SAVEPOINTS, strict=True))


@dataclass(frozen=True)
class Written:
    """A snapshot's folder, its number, and what it names below the root; None: it has no metadata."""

    path: str
    number: int
    names: Mapping[str, int] | None
    corrupt: bool = False

    @property
    def job(self) -> str:
        return self.path.partition("/")[0]


@st.composite
def roots(draw: st.DrawFn) -> tuple[list[Written], list[tuple[str, str]]]:
    """Snapshots to write, then files to harm and how. A job names its own files and those of jobs before it."""
    found: list[Written] = []
    for job in draw(st.lists(st.sampled_from(JOBS), min_size=1, max_size=3, unique=True)):
        for number in draw(st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True)):
            path = f"{job}/chk-{number}"
            before = JOBS[: JOBS.index(job) + 1]
            pool = [f"{job}/{area}/{name}" for job in before for area in ("shared", "taskowned") for name in "st"]
            found.append(draw(written(path, number, pool)))
    for name in draw(st.lists(st.sampled_from(SAVEPOINTS), max_size=2, unique=True)):
        found.append(replace(draw(written(name, draw(st.integers(1, 9)), [])), corrupt=False))
    files = sorted({path for one in found for path in one.names or ()})
    harmed = st.tuples(st.sampled_from(files), st.sampled_from(["deleted", "shorter", "longer"]))
    return found, draw(st.lists(harmed, max_size=3, unique_by=lambda pair: pair[0])) if files else []


@st.composite
def written(draw: st.DrawFn, path: str, number: int, pool: list[str]) -> Written:
    own = {f"{path}/{path[0]}{path[-1]}{name}": 7 for name in draw(st.sets(st.sampled_from("xy"), max_size=2))}
    shared = dict.fromkeys(draw(st.sets(st.sampled_from(pool), max_size=4)), 11) if pool else {}
    state = draw(st.sampled_from(["whole"] * 6 + ["corrupt"] + (["torn"] if pool else [])))
    names = None if state == "torn" else {**own, **shared}
    return Written(path, number, names, state == "corrupt")


@contextmanager
def on_disk(found: list[Written], harmed: list[tuple[str, str]]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for one in found:
            write(root, one)
        for job in JOBS:  # what nothing names
            if (root / job).is_dir():
                for path in (f"{job}/shared/stray", f"{job}/taskowned/stray"):
                    file(root / path, 5)
        for path, how in harmed:
            harm(root / path, how)
        yield root


def write(root: Path, one: Written) -> None:
    if one.names is None:
        torn(root, one.job, one.number, {"left": 2})
        return
    own = {path.removeprefix(one.path + "/"): size for path, size in one.names.items() if path.startswith(one.path)}
    shared = {path: size for path, size in one.names.items() if not path.startswith(one.path)}
    if one.path in SAVEPOINTS:
        folder = savepoint(root, one.path, one.number, Snapshot(own=own, savepoint=True))
    else:
        folder = checkpoint(root, one.job, one.number, Snapshot(shared, own))
    if one.corrupt:
        (folder / "_metadata").write_bytes((folder / "_metadata").read_bytes()[:-1])


def harm(path: Path, how: str) -> None:
    if how == "deleted":
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes(data[:-1] if how == "shorter" else data + b"x")


def truth(root: Path, one: Written) -> str:
    """The verdict, by looking at every file."""
    if one.names is None:
        return "no-metadata"
    if one.corrupt:
        return "corrupt"
    sizes = {path: (root / path).stat().st_size if (root / path).exists() else None for path in one.names}
    if None in sizes.values():
        return "missing-state-file"
    return "restorable" if sizes == dict(one.names) else "size-mismatch"


def line(root: Path) -> dict[str, Any]:
    answer = asked("recovery-line", root, root=root)
    lost = {"id": "no-metadata", "severity": "error"}.items()
    assert answer["exit"] in (0, 3, 4, *([5] if any(lost <= finding.items() for finding in answer["findings"]) else []))
    return answer


def picked(answer: dict[str, Any]) -> dict[str, int | None]:
    return {entry["operator"]: entry["checkpoint"] for entry in answer["result"]["line"]}


def newest(answer: dict[str, Any]) -> int:
    return max((number for number in picked(answer).values() if number is not None), default=-1)


@given(roots())
@settings(max_examples=examples(60))
def test_verdicts_are_what_every_file_says(case: tuple[list[Written], list[tuple[str, str]]]) -> None:
    found, harmed = case
    with on_disk(found, harmed) as root:
        answer = line(root)
        told = {row["snapshot"]: row["verdict"] for row in answer["result"]["details"]["snapshots"]}
        expected = {one.path: truth(root, one) for one in found}
        assert told == expected
        whole = [one for one in found if expected[one.path] == "restorable"]
        assert newest(answer) == max((one.number for one in whole), default=-1)
        of_jobs = [[one for one in found if one.path == name or one.job == job] for job, name in HOMES.items()]
        lost = [own for own in of_jobs if len(own) > 1 and all(one.names is None for one in own)]
        assert (answer["exit"] == 5) == bool(lost)
        for job, number in picked(answer).items():
            own = [one.number for one in whole if one.job == job]
            assert number is None or number in {one.number for one in whole}
            assert not own or (number is not None and number >= max(own))


@given(roots())
@settings(max_examples=examples(40))
def test_damage_makes_no_answer_newer(case: tuple[list[Written], list[tuple[str, str]]]) -> None:
    found, harmed = case
    with on_disk(found, []) as root:
        before = newest(line(root))
        for path, how in harmed:
            harm(root / path, how)
        assert newest(line(root)) <= before


@given(roots(), st.booleans())
@settings(max_examples=examples(80))
def test_nobody_misses_what_may_go(case: tuple[list[Written], list[tuple[str, str]]], stopped: bool) -> None:
    found, harmed = case
    with on_disk(found, harmed) as root:
        before = line(root)
        plan = asked("retention", root, *(["--jobs-stopped"] if stopped else []), root=root)
        gone = {path for path, (fate, _) in fates(plan).items() if fate == "OBSOLETE"}
        assert not (gone and any(one.corrupt for one in found))
        rules = {path: rule for path, (_, rule) in fates(plan).items()}
        for one in found:
            if truth(root, one) == "restorable":
                assert all(rules[path] == "restorable" for path in (*(one.names or ()), f"{one.path}/_metadata"))
        if not stopped:
            assert not any("/shared/" in path or "/taskowned/" in path for path in gone)
        whole = {one.path for one in found if truth(root, one) == "restorable"}
        for path in gone:
            (root / path).unlink()
        assert {one.path for one in found if truth(root, one) == "restorable"} == whole
        after = picked(line(root)) if whole else {}
        assert {job: after.get(job) for job, number in picked(before).items() if number is not None} == {
            job: number for job, number in picked(before).items() if number is not None
        }


@given(roots())
@settings(max_examples=examples(30))
def test_one_job_alone_lets_go_of_nothing_that_the_root_keeps(
    case: tuple[list[Written], list[tuple[str, str]]],
) -> None:
    found, harmed = case
    with on_disk(found, harmed) as root:
        whole = {path for path, (fate, _) in fates(asked("retention", root, root=root)).items() if fate == "VALID"}
        for job in {one.job for one in found}:
            alone = asked("retention", root / job, "--jobs-stopped", root=root)
            gone = {f"{job}/{path}" for path, (fate, _) in fates(alone).items() if fate == "OBSOLETE"}
            assert not gone & whole

"""Every file of every folder damaged in ten bytes, and removed: what each command says then, and whether they agree.

    python -m tests.fuzz.everywhere
    python -m tests.fuzz.everywhere --only spark-wordcount,tables --every 10 --jobs 2

The folders are the samples, and what lies in `shared` beside the repository. A folder may hold several runs, as `scan`
finds them: of a damaged file those are asked about that hold it, else all. Every answer is held against itself
(`tests.oracles.answers.contradictions`), and the commands against each other (`tests.oracles.answers.agreement`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.conftest import SAMPLES, SHARED
from tests.fuzz import budgets
from tests.fuzz.oracle import Told, ends
from tests.fuzz.subjects import BY_NAME, folder_files
from tests.fuzz.tree import Tree
from tests.fuzz.worker import bench_folder
from tests.oracles.answers.agreement import COMMANDS, disagreements
from tests.program import cklog

CASES = SHARED.parent / "round3" / "cases"

MOST_BYTES = 64 << 20
"""A folder that is larger is left out, and said to be."""

MOST_RUNS = 3
"""Of more runs that do not hold a damaged file the first are asked about."""

TEN = 10


@dataclass(frozen=True)
class Place:
    """A folder, by its name, and options that its runs are asked with besides."""

    name: str
    folder: Path
    options: tuple[str, ...] = ()


def places() -> list[Place]:
    """Every folder of the samples and of the shared ones; one with tables is asked about with its table, too."""
    found = [Place(path.name, path) for path in sorted(SAMPLES.iterdir()) if path.is_dir() and path.name != "tables"]
    for path in sorted((SAMPLES / "tables").glob("*-*")):
        found.append(Place(f"tables/{path.name}", path))
        found.append(Place(f"tables/{path.name}", path, _sink_options(f"tables/{path.name}")))
    for root in (SHARED, CASES):
        groups = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
        found += [Place(f"{group.name}/{path.name}", path) for group in groups for path in sorted(group.iterdir())]
    return [place for place in found if place.folder.is_dir()]


def _sink_options(name: str) -> tuple[str, ...]:
    """How a sample of a job and its table is asked about, as the subjects of the harness are."""
    question = BY_NAME[name].questions[0]
    return tuple(word for word in question[2:] if word != "--json")


def ten_bytes(data: bytes) -> bytes:
    """The same with a flipped bit in each of ten bytes, spread evenly; of fewer bytes in each."""
    out = bytearray(data)
    for part in range(min(TEN, len(data))):
        out[part * len(data) // min(TEN, len(data))] ^= 1 << part % 8
    return bytes(out)


def damages(tree: Tree, every: int = 1) -> Iterator[tuple[str, str]]:
    """Yield the tree as it is, then with each file removed, and damaged: the file's name, and what happened to it."""
    yield "", "undamaged"
    for number, name in enumerate(tree.names):
        if number % every:
            continue
        tree.drop(name)
        yield name, "removed"
        tree.mend()
        if tree.files[name]:
            tree.put(name, ten_bytes(tree.files[name]))
            yield name, "ten bytes"
            tree.mend()


def runs_below(root: Path) -> list[str]:
    """The folders of runs, below `root`."""
    answer = json.loads(cklog("scan", root, "--json").out or "{}")
    rows = answer.get("result", {}).get("runs", ())
    return sorted({str(Path(row["path"]).relative_to(root)) for row in rows if row["format"]})


def asked(run: Path, options: Sequence[str]) -> dict[str, Told]:
    """What every command says of a run; `verify` is given the line of `recovery-line`."""
    found: dict[str, Told] = {}
    for command in COMMANDS:
        if command == "scan" and options:
            continue
        words = tuple(options[2:] if command in ("inspect", "retention") else options)
        if command == "verify":
            line = run.parent / f"{run.name}-line.json"
            line.write_text(found["recovery-line"].ended.out)
            words = (*words, "--line", str(line))
        found[command] = Told(cklog(command, run, *words, "--json"), True, command)
    return found


def tried(place: Place, every: int = 1) -> tuple[int, list[str]]:
    """Damage every file of a folder: how many answers there were, and what is wrong with them."""
    budgets.prepare()
    files = folder_files(place.folder)
    if sum(map(len, files.values())) > MOST_BYTES:
        return 0, [f"left out: {place.name} is larger than {MOST_BYTES >> 20} MiB"]
    bench = bench_folder()
    try:
        return _damaged(Tree(bench / "run", files), place, every)
    finally:
        shutil.rmtree(bench, ignore_errors=True)


def _damaged(tree: Tree, place: Place, every: int) -> tuple[int, list[str]]:
    runs = _runs(tree, place)
    count, wrong = 0, []
    for name, how in damages(tree, every):
        for run in _asked_about(name, runs):
            options = [word.replace("PATH", str(tree.root)) for word in place.options]
            answers = asked(tree.root / run, options)
            said = [f"{command}: {one}" for command, told in answers.items() for one in ends(told)]
            said += list(disagreements(answers))
            count += len(answers)
            wrong += [
                f"{place.name}{' with its table' if options else ''}: {run}: {name}: {how}: {one}" for one in said
            ]
        budgets.forget()
    return count, wrong


def _runs(tree: Tree, place: Place) -> list[str]:
    if place.options:
        job = BY_NAME[place.name].questions[0][1]
        return [job.removeprefix("PATH/")]
    return runs_below(tree.root)


def _asked_about(name: str, runs: Sequence[str]) -> list[str]:
    its = [run for run in runs if run == "." or name.startswith(f"{run}/")]
    return its or list(runs[:MOST_RUNS])


def main() -> None:
    """Exit with 1 if anything happened that may not."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.everywhere", description=__doc__)
    options.add_argument("--only", default="", metavar="NAME,…", help="folders whose names begin so")
    options.add_argument("--every", type=int, default=1, metavar="N", help="of the files of a folder every Nth")
    options.add_argument("--jobs", type=int, default=1, help="how many processes at a time")
    given = options.parse_args()
    chosen = [place for place in places() if place.name.startswith(tuple(given.only.split(",")))]
    answers, kinds = 0, Counter[str]()
    with ProcessPoolExecutor(given.jobs) as workers:
        for place, (count, wrong) in zip(chosen, workers.map(partial(tried, every=given.every), chosen), strict=True):
            answers += count
            kinds.update(line.split(": ", 5)[-1].partition(":")[0] for line in wrong)
            print(f"{place.name}: {count} answers", *wrong, sep="\n  ", flush=True)
    print(f"{answers} answers about {len(chosen)} folders, {sum(kinds.values())} violations: {dict(kinds)}")
    sys.exit(1 if kinds else 0)


if __name__ == "__main__":
    main()

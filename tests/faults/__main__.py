"""`python -m tests.faults`: inject faults by number, and say what came of them; or one case again."""

from __future__ import annotations

import argparse
import collections
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.faults import ends, files, scarce
from tests.faults.cases import Bench, Fault, Tried
from tests.fuzz.worker import bench_folder

LOCAL: Mapping[str, tuple[Fault, int]] = {
    "cut": (files.cut, 6),
    "cut-at-a-line": (files.cut_at_a_line, 5),
    "grown": (files.grown, 5),
    "removed": (files.removed, 4),
    "folder-removed": (files.folder_removed, 3),
    "a-folder-instead": (files.folded, 2),
    "a-link-instead": (files.linked, 2),
    "unreadable": (files.shut, 4),
    "signal": (ends.signalled, 8),
    "reader-gone": (ends.unread, 2),
    "two-at-once": (ends.together, 2),
    "disk-full": (scarce.full, 2),
    "no-folder": (scarce.read_only, 1),
    "no-temporary-folder": (scarce.no_temporary_folder, 1),
    "no-memory": (scarce.no_memory, 4),
    "few-open-files": (scarce.few_files, 1),
}
"""Each fault, and how many of fifty cases it takes."""

SPARK: Mapping[str, tuple[Fault, int]] = {
    "cut": (files.cut, 2),
    "cut-at-a-line": (files.cut_at_a_line, 1),
    "grown": (files.grown, 1),
    "removed": (files.removed, 1),
    "signal": (ends.signalled, 5),
    "process-killed": (ends.killed, 5),
}


def main() -> None:
    """Exit with 1 if anything happened that may not."""
    options = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    options.add_argument("--count", type=int, default=1000, help="how many cases")
    options.add_argument("--spark", type=int, default=60, help="how many of them with the Spark engine")
    options.add_argument("--seed", type=int, default=0, help="the number of the first case")
    options.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options.add_argument("--only", default="", metavar="FAULT,…", help="leave other faults out")
    asked = options.parse_args()
    only = frozenset(asked.only.split(",")) if asked.only else None
    turns = [
        *turns_of("local", LOCAL, asked.seed, asked.count - asked.spark, only),
        *turns_of("spark", SPARK, asked.seed, asked.spark, only),
    ]
    tried = []
    for one in attempts(turns, asked.jobs):
        tried.append(one)
        if one.wrong:
            print(f"{one.family} {one.case} ({one.engine}): {one.subject}: {' '.join(one.question)}; {one.what}")
            print(*(f"  {why}" for why in one.wrong), sep="\n", flush=True)
    print(summary(tried))
    sys.exit(1 if any(one.wrong for one in tried) else 0)


class Turn(NamedTuple):
    """A case that is to be tried."""

    case: int
    engine: str
    name: str
    fault: Fault


def turns_of(
    engine: str, faults: Mapping[str, tuple[Fault, int]], first: int, count: int, only: frozenset[str] | None = None
) -> Iterator[Turn]:
    """Number the cases: every fault has its share of each round."""
    order = [(name, fault) for name, (fault, share) in faults.items() for _ in range(share)]
    for case in range(first, first + count):
        name, fault = order[case % len(order)]
        if only is None or name in only:
            yield Turn(case, engine, name, fault)


def attempts(turns: Iterable[Turn], jobs: int) -> Iterator[Tried]:
    """Try cases, several at a time, each thread in folders of its own; in the order of their numbers."""
    folders = [bench_folder() for _ in range(jobs)]
    benches = [Bench(Path(folder)) for folder in folders]
    try:
        with ThreadPoolExecutor(1 if jobs < 2 else jobs) as threads:
            free = collections.deque(benches)

            def attempt(turn: Turn) -> Tried:
                bench = free.popleft()
                try:
                    return bench.tried(turn.case, turn.name, turn.fault, turn.engine)
                finally:
                    free.append(bench)

            yield from threads.map(attempt, turns)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def summary(tried: Iterable[Tried]) -> str:
    """Write the table of `docs/reliability.md`."""
    rows: dict[tuple[str, str], list[Tried]] = {}
    for one in tried:
        rows.setdefault((one.engine, one.family), []).append(one)
    lines = ["| engine | fault | cases | exits | wrong |", "|---|---|---|---|---|"]
    for (engine, family), cases in rows.items():
        codes = collections.Counter(one.code for one in cases)
        exits = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
        lines.append(f"| {engine} | {family} | {len(cases)} | {exits} | {sum(bool(one.wrong) for one in cases)} |")
    counted = collections.Counter(why.split(":")[0] for cases in rows.values() for one in cases for why in one.wrong)
    total = sum(map(len, rows.values()))
    names = ("answer", "another-answer", "traceback", "exit-70", "left-files", "left-processes", "hang")
    lines.append("")
    lines.append(f"{total} cases: " + ", ".join(f"{name} {counted.pop(name, 0)}" for name in names))
    lines += [f"{name}: {count}" for name, count in counted.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""`python -m tests.fuzz`: try cases, and say what came of them; or one case again."""

from __future__ import annotations

import argparse
import difflib
import shlex
import sys
from pathlib import Path

from tests.fuzz import budgets, campaign, kept, worker
from tests.fuzz.cases import Bench, words
from tests.fuzz.mutations.whole_files import why_not_shut
from tests.fuzz.subjects import SUBJECTS, shared_subjects

_SHOWN = 40


def main() -> None:
    """Exit with 1 if anything happened that may not."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("--count", type=int, default=2000, help="how many cases")
    options.add_argument("--seed", type=int, default=0, help="the number of the first case")
    options.add_argument("--jobs", type=int, default=1, help="how many processes at a time")
    options.add_argument("--shared", action="store_true", help="folders of ../shared/data too: other cases by number")
    options.add_argument(
        "--only",
        default="",
        metavar="FAMILY,…",
        help="leave out cases of other families, and of subjects whose names begin otherwise",
    )
    options.add_argument("--into", type=Path, metavar="FILE", help="keep what came of cases, and go on from there")
    options.add_argument("--replay", type=int, metavar="CASE", help="try one case again, and keep its folder")
    options.add_argument("--worker", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.worker:
        first, step, count = map(int, asked.worker.split(","))
        worker.main(first, step, count, asked.shared, asked.only)
        return
    if asked.replay is not None:
        sys.exit(replay(asked.replay, asked.shared))
    cases = asked.seed, asked.count, asked.jobs, asked.shared, asked.only
    sums = kept.run(asked.into, *cases) if asked.into else campaign.run(*cases)
    print(sums.summary())
    if why_not_shut():
        print(f"not tried: {why_not_shut()}")
    sys.exit(1 if sums.wrong else 0)


def replay(case: int, shared: bool) -> int:
    """Try a case, tell everything about it, and keep its folder."""
    budgets.prepare()
    folder = worker.bench_folder()
    bench = Bench(folder, SUBJECTS + (shared_subjects() if shared else ()))
    tried = bench.tried(case, keep=True)
    tree = bench.trees[tried.subject]
    print(f"case {case}: {tried.subject}: {tried.mutation}")
    for change in tried.changes:
        print(f"  {change.what}")
    print(f"held: {dict(tried.held)}")
    print(f"ask again: cklog {shlex.join(words(tree, tried.question))}")
    pristine = Path(f"{tree.root}-undamaged")
    for name, data in tree.files.items():
        (pristine / name).parent.mkdir(parents=True, exist_ok=True)
        (pristine / name).write_bytes(data)
    print(f"damaged: {tree.root}\nundamaged: {pristine}")
    print(f"exit {tried.base.ended.code} -> {tried.found.ended.code}, {tried.cpu:.2f} s of CPU")
    before, after = ((told.ended.out + told.ended.err).splitlines() for told in (tried.base, tried.found))
    for line in list(difflib.unified_diff(before, after, "undamaged", "damaged", n=0, lineterm=""))[:_SHOWN]:
        print(line[:400])
    print(*(tried.wrong or ("nothing is wrong",)), sep="\n")
    return 1 if tried.wrong else 0


if __name__ == "__main__":
    main()

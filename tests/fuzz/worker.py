"""A process that tries cases one after the other and says of each what came of it: a line of JSON on stdout."""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from tests.fuzz import budgets
from tests.fuzz.cases import Bench, Tried
from tests.fuzz.subjects import SUBJECTS, shared_subjects

_COLLECT_EVERY = 64


def bench_folder() -> Path:
    """A new folder, in memory where the machine has such a place; others may look into it."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix=f"cklog-fuzz-{os.getpid()}-", dir=place))
    folder.chmod(0o755)
    return folder


def told(tried: Tried) -> str:
    """One line about a case."""
    said = {
        "case": tried.case,
        "subject": tried.subject,
        "question": " ".join(word for word in tried.question if word != "PATH"),
        "mutation": tried.mutation,
        "exit": tried.found.ended.code,
        "cpu": round(tried.cpu, 4),
    }
    if tried.wrong:
        said |= {"wrong": tried.wrong, "what": [change.what for change in tried.changes]}
    return json.dumps(said)


def work(cases: Iterable[int], shared: bool, out: TextIO, only: str = "") -> None:
    """Try cases; before each its number is told, so that it is known which one ended this process."""
    budgets.prepare()
    gc.disable()  # `budgets.forget` collects, between cases
    folder = bench_folder()
    bench = Bench(folder, SUBJECTS + (shared_subjects() if shared else ()))
    try:
        for done, case in enumerate(cases):
            if only and not bench.subject(random.Random(case)).is_one_of(only.split(",")):
                print(json.dumps({"skipped": case}), file=out)
                continue
            print(json.dumps({"begin": case}), file=out, flush=True)
            print(told(bench.tried(case)), file=out, flush=True)
            if done % _COLLECT_EVERY == 0:
                budgets.forget()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(first: int, step: int, count: int, shared: bool, only: str) -> None:
    """Try `count` cases from `first` on, every `step`th."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is none of ours
    sys.stdout = sys.stderr
    work(range(first, first + step * count, step), shared, out, only)

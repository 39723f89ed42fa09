"""A process in which memory that nobody set holds one known byte: it says how questions about damaged folders end.

    MALLOC_PERTURB_=… python -m tests.fuzz.fill_bytes FILL FIRST STEP START END

It asks about every STEPth subject from FIRST on, in its variants from START up to END.

`environment` makes malloc, Arrow and Python take memory that holds `FILL`; where the C library cannot, arrays that
decoders fill hold it all the same. Two processes of two bytes print the same lines, unless an answer was made of memory
that nobody set.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cklog.arrays import buffers
from tests.builders.compressed.short_pages import CODECS, Size, file_with_page
from tests.fuzz import budgets
from tests.fuzz.cases import words
from tests.fuzz.mutations import damage
from tests.fuzz.subjects import SUBJECTS
from tests.fuzz.tree import Tree
from tests.fuzz.worker import bench_folder
from tests.loop_forms import forced
from tests.program import cklog

JOIN = "uncoordinated-join-parquet"
_ROWS = 600
SIZES: tuple[Size | None, ...] = (None, "shorter", "longer")
_LARGE = 1 << 20
_CPU_SECONDS = 60.0
"""Of a question: loops are compiled while it is answered, by processes whose memory is slow."""


def environment(fill: int) -> dict[str, str]:
    """Return the variables by which a new process takes memory that holds a byte."""
    return {
        **os.environ,
        "MALLOC_PERTURB_": str(fill ^ 0xFF),  # glibc fills with the complement what it hands out
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONHASHSEED": "0",
    }


def is_filled(fill: int) -> bool:
    """Say whether memory from malloc, by numpy, Arrow and Python, holds the byte."""
    taken = np.empty(_LARGE, np.uint8), np.frombuffer(pa.allocate_buffer(_LARGE), np.uint8)
    return all(bool((one == fill).all()) for one in taken)


def fill_arrays(patch: pytest.MonkeyPatch, fill: int) -> None:
    """Have every array that a decoder fills hold a byte before."""

    def filled(array: Any) -> Any:
        array.reshape(-1).view(np.uint8)[:] = fill
        return array

    patch.setattr(buffers, "_as_allocated", filled)


def _wrong_pages(tree: Tree) -> Iterator[str]:
    """Put a log into a tree whose last page of a column, or whose dictionary, holds fewer or more bytes than stated.

    An intact one with the same footer comes before it: whether Arrow accepts a footer is asked once.
    """
    seq = np.arange(22, 22 + _ROWS)
    log = pa.table({"channel": ["payments/0->join/0"] * _ROWS, "seq": seq, "bytes": 300 + (seq * 7919) % 400})
    for codec, dictionary in itertools.product(CODECS, (False, True)):
        for size in SIZES:
            tree.put("channels/big.parquet", file_with_page(log, codec, "bytes", size, dictionary))
            yield f"{codec} {dictionary} {size}"


def _ending(tree: Tree, question: tuple[str, ...]) -> str:
    """Say how a question about a tree ends, in a line."""
    with budgets.bounded(_CPU_SECONDS):
        ended = cklog(*words(tree, question))
    text = (ended.out + ended.err).replace(str(tree.root.parent), "").encode()
    return f"{ended.code} {len(text)} {hashlib.sha256(text).hexdigest()}"


def endings(first: int, step: int, variants: range, folder: Path) -> Iterator[str]:
    """Yield how questions about subjects end, and about pages of other sizes. Variant 0 of a subject is undamaged."""
    for number, subject in [*enumerate(SUBJECTS)][first::step]:
        tree = Tree(folder / str(number), subject.files())
        for variant in variants:
            dice = random.Random(variant * len(SUBJECTS) + number)
            changes = [damage(tree, dice)] if variant else []
            if any(change.unreadable for change in changes):
                tree.mend()
                continue
            question = dice.choice(subject.questions) if variant else subject.questions[0]
            name = f"{subject.name} {variant} {' '.join(question)} {' '.join(change.kind for change in changes)}"
            yield f"{name}: {_ending(tree, question)}"
            tree.mend()
        if subject.name == JOIN:
            for name in _wrong_pages(tree):
                yield f"{name}: {_ending(tree, subject.questions[0])}"
        shutil.rmtree(tree.root, ignore_errors=True)


def main(fill: int, first: int, step: int, start: int, end: int) -> None:
    """Print whether memory is filled, and then each ending as a line of JSON."""
    budgets.prepare()
    out, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps(is_filled(fill)), file=out)
    folder = bench_folder()
    try:
        for _ in forced("as it stands"):
            with pytest.MonkeyPatch.context() as patch:
                fill_arrays(patch, fill)
                for line in endings(first, step, range(start, end), folder):
                    print(json.dumps(line), file=out, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

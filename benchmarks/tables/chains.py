"""`chain`, `recovery-line` and `advise` on chain metadata and state sizes in Parquet, records by operator and by time.

Bases and short chains of deltas; one base and nothing but deltas; no base left at all. What `advise delta` is given
comes and goes between two checkpoints; what `advise timing` is given grows in batches and is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.registry import Room, Row, Table
from benchmarks.timing import cklog

ROW_GROUP = 1 << 20
START = 1_767_225_600_000
QUIET = ("--json", "-q", "--max-memory", "12GiB")
"""With more memory than the default: ten million checkpoints, with all that is known of each, are more than its share
for rows."""
FORMS = ["base", "delta"]


def _checkpoints(operator: np.ndarray, n: np.ndarray, base: np.ndarray, size: np.ndarray) -> pa.Table:
    """Checkpoint records, all of which name the one before as their parent, if they are deltas."""
    return pa.table(
        {
            "operator": _named(operator),
            "checkpoint": n + 1,
            "time": START + 10_000 * n,
            "form": pa.DictionaryArray.from_arrays(pa.array(np.where(base, 0, 1).astype(np.int8)), FORMS),
            "parent": pa.array(n, mask=base),
            "bytes": size.astype(np.int64),
            "duration_ms": np.round(size / 20_000, 2),
        }
    )


def _chain(kind: str, operator: np.ndarray, n: np.ndarray) -> pa.Table:
    base = {"short": n % (operator % 20 + 2) == 0, "long": n == 0, "orphaned": n < 0}[kind]
    return _checkpoints(operator, n, base, np.where(base, 1_000_000, 50_000) + operator)


def _deltas(operator: np.ndarray, n: np.ndarray) -> pa.Table:
    """Bases and deltas of every operator, D from 1 to 20."""
    rng = np.random.default_rng(1)
    base = n % (operator % 20 + 2) == 0
    share = 0.02 + 0.5 * (1 + np.sin(n / 300 + operator)) * rng.uniform(0.8, 1.2, len(n))
    return _checkpoints(operator, n, base, (1_000_000 + 1_000 * operator) * np.where(base, 1.0, np.minimum(share, 1.2)))


def _states(operator: np.ndarray, n: np.ndarray) -> pa.Table:
    """State that grows in batches of another length in each operator, and is dropped; a third of it stays level."""
    rng = np.random.default_rng(2)
    batch = np.where(operator % 3 == 0, 10**9, 20 + operator)
    size = 1_000_000 * (n % batch % 10**6 * (operator % 3 > 0) + 10) + rng.integers(0, 100_000, len(n))
    return pa.table({"operator": _named(operator), "time": START + 1_000 * n + 7 * operator, "bytes": size})


def _named(operator: np.ndarray) -> pa.DictionaryArray:
    names = [f"op{i:04}" for i in range(int(operator.max()) + 1)]
    return pa.DictionaryArray.from_arrays(pa.array(operator.astype(np.int32)), names)


def _write(folder: Path, kind: str, operators: int, each: int, by_time: bool) -> None:
    every = np.arange(operators * each)
    operator, n = (every % operators, every // operators) if by_time else (every // each, every % each)
    place = folder / ("state" if kind == "states" else "checkpoints")
    place.mkdir(parents=True)
    made = {"states": _states, "deltas": _deltas}
    table = made[kind](operator, n) if kind in made else _chain(kind, operator, n)
    pq.write_table(table, place / "all.parquet", row_group_size=ROW_GROUP)


QUESTIONS = (
    *(("chain", "short"), ("recovery-line", "short"), ("chain", "long"), ("chain", "orphaned")),
    *(("advise delta", "deltas"), ("advise timing", "states")),
)


def chains(room: Room, sizes: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """A row for each question and order; a size is operators and records of each, of states a tenth and ten times."""
    for operators, each in sizes:
        for question, kind in QUESTIONS:
            sides = (operators // 10, each * 10) if kind == "states" else (operators, each)
            for by_time in (False, True):
                order = "by time" if by_time else "by operator"
                name = f"{kind}-{sides[0]}-{sides[1]}-{order.replace(' ', '-')}"
                folder = room.data.made(name, lambda to, k=kind, s=sides, b=by_time: _write(to, k, s[0], s[1], b))  # type: ignore[misc]
                command = cklog(question, *question.split(), folder, *QUIET, codes=(0, 3, 4))
                runs = room.pairs_of(command, pairs=3)
                took = (f"{runs.median(question, what):.1f}" for what in ("wall", "cpu"))
                peak = f"{runs.median(question, 'peak'):,.0f}"
                yield (f"`{question}`", kind, f"{operators * each:,}", order, *took, peak)


TABLES = (
    Table(
        name="chains",
        columns=("command", "what", "records", "order", "wall s", "CPU s", "peak MiB"),
        rows=chains,
        quick=((50, 200),),
        full=((1_000, 10_000),),
    ),
)

"""Executions as run folders: records in any order, in files of any kind."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from cklog.model.schemas import CHECKPOINTS, EVENTS, MESSAGES
from tests.oracles.lines import Execution, checkpoint_records, event_records, executions, failures, message_records

SCHEMAS = {"checkpoints": CHECKPOINTS, "channels": MESSAGES, "events": EVENTS}
Tables = dict[str, list[dict[str, Any]]]


def tables(execution: Execution, failed: frozenset[str], rng: random.Random) -> Tables:
    """All records; the current state of survivors is in their events, or (silent ones, and some more) volatile."""
    heard = {event.subtask for event in execution.events}
    alive = sorted(set(execution.subtasks) - failed)
    return {
        "checkpoints": checkpoint_records(execution, [s for s in alive if s not in heard or rng.random() < 0.3]),
        "channels": message_records(execution),
        "events": event_records(execution),
    }


def write(folder: Path, run: Tables, rng: random.Random) -> None:
    """Records shuffled over one to three files of any kind, some of them twice; all subtasks in the manifest."""
    for place, records in run.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        if place == "checkpoints":
            records = records + [r for r in records if rng.random() < 0.1]
        records = rng.sample(records, len(records))
        files = min(rng.randint(1, 3), len(records))
        for i in range(files):
            write_file(folder / place / f"part-{i}", records[i::files], SCHEMAS[place], rng)


def write_file(path: Path, records: list[dict[str, Any]], schema: pa.Schema, rng: random.Random) -> None:
    if rng.random() < 0.3 and records:
        rows = [{f.name: _as_arrow(r.get(f.name), f) for f in schema} for r in records]
        table = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(table, path.with_suffix(".parquet"), row_group_size=rng.randint(1, 50))
        return
    lines = "".join(json.dumps(r, separators=rng.choice([(",", ":"), (", ", ": ")])) + "\n" for r in records)
    if rng.random() < 0.3:
        data = pa.compress(lines.encode(), codec="gzip", asbytes=True)
        path.with_suffix(".jsonl.gz").write_bytes(data)
    else:
        path.with_suffix(".jsonl").write_text(lines, encoding="utf-8")


def _as_arrow(value: Any, field: pa.Field) -> Any:
    return sorted(value.items()) if pa.types.is_map(field.type) and value is not None else value


def manifest(folder: Path, execution: Execution) -> None:
    count: dict[str, int] = {}
    for name in execution.subtasks:
        operator, _, number = name.rpartition("/")
        count[operator] = max(count.get(operator, 0), int(number) + 1)
    operators = [{"name": name, "parallelism": n} for name, n in count.items()]
    (folder / "job.json").write_text(
        json.dumps({"operators": operators, "channels": [{"channel": c} for c in execution.channels]})
    )


@st.composite
def failed_runs(draw: st.DrawFn) -> tuple[Execution, frozenset[str], random.Random]:
    execution = draw(executions())
    return execution, draw(failures(execution)), random.Random(draw(st.integers(0, 1 << 30)))

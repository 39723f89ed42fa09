"""A simulated run as a native run folder (`docs/run-folder.md`), of any size in the memory of its extent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import crc32c
import pyarrow as pa

from cklog.arrays.types import Ints
from cklog.errors import OutputError, UsageError
from cklog.model.schemas import OUTPUTS
from cklog.model.verdict import Answer
from cklog.policies.check_records import CostBenefit, SavePolicy, WholeState
from cklog.simulate.cec.figures import PaperFigures, paper_figures
from cklog.simulate.cec.operator import RECORD_BYTES, WARM, OutputRecords, RunStretch, Simulation, Statistics
from cklog.simulate.cec.tuples import Workload
from cklog.simulate.files import PART_BYTES, LineParts, RowParts, refuse_encoding, require_empty, written_files

Encoding = Literal["jsonl", "jsonl.gz", "jsonl.zst", "parquet"]

_WORDS = ("open", "check", "result")

_COLUMNS = pa.schema(
    [OUTPUTS.field(n) for n in ("type", "window", "ts", "open_windows", "state", "input", "pos", "bytes")]
)


def write(
    folder: str | os.PathLike[str],
    workload: Workload,
    policy: SavePolicy,
    *,
    encoding: Encoding = "jsonl",
    part_bytes: int = PART_BYTES,
    checksums: bool = False,
    upstream: bool = False,
    crash_at: int | None = None,
) -> Statistics:
    """Simulate a run and write what it leaves behind: `job.json`, and the output queues below `outputs/`.

    The same arguments write the same bytes.

    Parameters
    ----------
    folder : made if missing; must hold nothing
    part_bytes : a part of a queue that has grown to this size is followed by a new one
    checksums : end every JSON line with its CRC-32C
    upstream : write the queue of the stateless operator in front, too: an `emit` record per tuple
    crash_at : the run ends after that many tuples, in the middle of writing its last record

    Raises
    ------
    UsageError : the folder is not empty, or the options do not fit together
    OutputError : something cannot be written; names it
    """
    refuse_encoding(encoding, part_bytes)
    _refuse_misfits(encoding, checksums, crash_at, workload)
    run = Simulation(workload if crash_at is None else replace(workload, tuples=crash_at), policy)
    place = Path(folder)
    try:
        require_empty(place)
        (place / "outputs").mkdir(parents=True)
        _write_job(place, workload, policy, crash_at)
        with ExitStack() as queues:
            own, *filtered = (
                queues.enter_context(_open_queue(place / "outputs" / name, encoding, part_bytes, checksums))
                for name in ("agg1", *(["filter1"] if upstream else []))
            )
            _write_steps(run.steps(), workload, own, filtered)
        if crash_at is not None:
            _tear_last_line(own.path)
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: {error.strerror or error}") from None
    return run.statistics()


def _refuse_misfits(encoding: str, checksums: bool, crash_at: int | None, workload: Workload) -> None:
    """Refuse options that do not fit together."""
    if checksums and encoding == "parquet":
        raise UsageError("a Parquet row has no line whose checksum could be written")
    if crash_at is not None and encoding != "jsonl":
        raise UsageError(f"a crash can tear the last line of a .jsonl file, not of a .{encoding} file")
    if crash_at is not None and not 0 < crash_at <= workload.tuples:
        raise UsageError(f"a crash at tuple {crash_at} of {workload.tuples}")


def _write_job(place: Path, workload: Workload, policy: SavePolicy, crash_at: int | None) -> None:
    """The manifest of the run."""
    window = {"tuples": workload.count} if workload.count is not None else {"ms": workload.window_ms}
    job = {
        "job": "simulated-cec",
        "operators": [
            {"name": "source", "parallelism": 1, "kind": "source"},
            {"name": "filter1", "parallelism": 1, "kind": "filter"},
            {"name": "agg1", "parallelism": 1, "kind": "aggregate", "window": window, "recovery": "eventual"},
        ],
        "channels": [{"channel": "source/0->filter1/0"}, {"channel": "filter1/0->agg1/0"}],
        "simulation": {**described(workload, policy), "crash_at": crash_at},
    }
    (place / "job.json").write_text(json.dumps(job, indent=2) + "\n", encoding="utf-8")


def described(workload: Workload, policy: SavePolicy) -> dict[str, Any]:
    """Describe all that a run depends on, as JSON."""
    if isinstance(policy, CostBenefit):
        name = "cost-benefit"
    elif isinstance(policy, WholeState):
        name = "rollback"
    else:
        name = "none" if (policy.q, policy.u, policy.q_windows) == (None, None, None) else "targets"
    return {
        "protocol": "cec",
        "workload": asdict(workload),
        "policy": {"name": name, **asdict(policy)},
        "record_bytes": RECORD_BYTES,
    }


def simulation_answer(
    folder: str, workload: Workload, policy: SavePolicy, statistics: Statistics
) -> Answer[dict[str, Any]]:
    """Make the answer about a run, and about what was written to `folder` ("" if nothing was)."""
    result = {
        "folder": folder or None,
        **described(workload, policy),
        "warm": WARM,
        "statistics": asdict(statistics),
        "files": written_files(folder),
    }
    return Answer("simulate", verdict="ok", exit_code=0, inputs=(), findings=(), result=result)


def sweep_answer(workload: Workload, runs: Sequence[tuple[SavePolicy, Statistics]]) -> Answer[dict[str, Any]]:
    """Make the answer about several settings on one workload."""
    rows = [{"policy": described(workload, policy)["policy"], "statistics": asdict(found)} for policy, found in runs]
    result = {"workload": asdict(workload), "record_bytes": RECORD_BYTES, "warm": WARM, "runs": rows}
    return Answer("simulate-sweep", verdict="ok", exit_code=0, inputs=(), findings=(), result=result)


def paper_answer(workload: Workload) -> Answer[PaperFigures]:
    """Make the answer that puts the paper's numbers beside runs of its experiments."""
    result = paper_figures(workload)
    return Answer("simulate-cec-paper", verdict="ok", exit_code=0, inputs=(), findings=(), result=result)


def _write_steps(steps: Iterable[RunStretch], workload: Workload, own: _Queue, filtered: list[_Queue]) -> None:
    mark = "#" if workload.window_ms is None else "@"
    for step in steps:
        if len(step.records):
            own.add_records(step.records, step.pos, mark)
        for queue in filtered if len(step.ts) else []:
            queue.add_emits(step.first, step.ts)


class _Queue(Protocol):
    """One operator's output queue, in parts."""

    @property
    def path(self) -> Path:
        """The newest part."""

    def add_records(self, records: OutputRecords, pos: int, mark: str) -> None:
        """Add records, the first at log position `pos`; windows are called `k<key><mark><number>`."""

    def add_emits(self, first: int, ts: Ints) -> None:
        """Add a record per tuple, from number `first`, at the times `ts` (ms)."""

    def __enter__(self) -> _Queue: ...

    def __exit__(self, *raised: object) -> None: ...


def _open_queue(folder: Path, encoding: Encoding, part_bytes: int, checksums: bool) -> _Queue:
    folder.mkdir()
    if encoding == "parquet":
        return _Rows(folder, part_bytes)
    return _JsonLines(folder, encoding, part_bytes, checksums)


class _JsonLines:
    """Parts of JSON lines."""

    def __init__(self, folder: Path, encoding: str, part_bytes: int, checksums: bool) -> None:
        self._parts, self._checksums = LineParts(folder, encoding, part_bytes), checksums

    @property
    def path(self) -> Path:
        return self._parts.path

    def add_records(self, records: OutputRecords, pos: int, mark: str) -> None:
        line = (
            f'{{"type":"%s","window":"k%d{mark}%d","ts":%d,"open_windows":%d,"state":{{"sum":%d,"count":%d}},'
            f'"input":%d,"pos":%d,"bytes":{RECORD_BYTES}'
        )
        r = records
        columns = (r.key, r.number, r.ts, r.open_windows, r.total, r.count, r.input)
        rows = zip(_record_types(r), *(c.tolist() for c in columns), range(pos, pos + len(r)), strict=True)
        self._write_bodies([line % row for row in rows])

    def add_emits(self, first: int, ts: Ints) -> None:
        line = f'{{"type":"emit","ts":%d,"open_windows":0,"input":%d,"pos":%d,"bytes":{RECORD_BYTES}'
        self._write_bodies([line % (t, i, i) for i, t in enumerate(ts.tolist(), first)])

    def _write_bodies(self, bodies: list[str]) -> None:
        """Write objects given without their closing brace: the checksum covers the bytes before it."""
        if self._checksums:
            bodies = [f'{body},"crc32c":"{crc32c.crc32c(body.encode()):08x}"' for body in bodies]
        bodies.append("")
        self._parts.write("}\n".join(bodies).encode())

    def __enter__(self) -> _JsonLines:
        return self

    def __exit__(self, *raised: object) -> None:
        self._parts.close()


class _Rows:
    """Parts of Parquet rows."""

    def __init__(self, folder: Path, part_bytes: int) -> None:
        self._parts = RowParts(folder, _COLUMNS, part_bytes)

    @property
    def path(self) -> Path:
        return self._parts.path

    def add_records(self, records: OutputRecords, pos: int, mark: str) -> None:
        r = records
        windows = [f"k{key}{mark}{number}" for key, number in zip(r.key.tolist(), r.number.tolist(), strict=True)]
        pairs = zip(r.total.tolist(), r.count.tolist(), strict=True)
        states = [f'{{"sum":{total},"count":{count}}}' for total, count in pairs]
        numbers = range(pos, pos + len(r))
        self._write_columns(
            [_record_types(r), windows, r.ts, r.open_windows, states, r.input, numbers, [RECORD_BYTES] * len(r)]
        )

    def add_emits(self, first: int, ts: Ints) -> None:
        n = len(ts)
        numbers = range(first, first + n)
        self._write_columns([["emit"] * n, [None] * n, ts, [0] * n, [None] * n, numbers, numbers, [RECORD_BYTES] * n])

    def _write_columns(self, columns: list[Any]) -> None:
        arrays = [pa.array(values, field.type) for values, field in zip(columns, _COLUMNS, strict=True)]
        self._parts.write(pa.table(arrays, schema=_COLUMNS))

    def __enter__(self) -> _Rows:
        return self

    def __exit__(self, *raised: object) -> None:
        if not raised[0]:
            self._parts.flush()
        self._parts.close()


def _record_types(records: OutputRecords) -> list[str]:
    return [_WORDS[kind] for kind in records.kind.tolist()]


def _tear_last_line(path: Path) -> None:
    """Cut the last line in half, as a crash in the middle of its write does."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(max(0, size - _LONGEST_LINE))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        file.truncate(size - 1 - len(last) + len(last) // 2)


_LONGEST_LINE = 1024  # bytes; a line of six numbers of 64 bits has less than half

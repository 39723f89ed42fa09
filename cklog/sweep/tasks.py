"""Runs read by tasks of an engine: groups of folders as splits, their rows as JSON in one column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from cklog.budgets import budgets
from cklog.engine.choosing import Engines
from cklog.engine.costs import RUNS_PER_TASK
from cklog.engine.scan import Damage, Engine, Scan, Split
from cklog.errors import EngineError, SelfCheckFailed
from cklog.local_files import is_local
from cklog.storage import Root
from cklog.sweep.asking import HowToAsk, as_told, rows_of
from cklog.sweep.model import ScannedRun
from cklog.sweep.workers import Job, ask_here

_COLUMN = "row"
_UNSEEN = ("unreadable-file", "not-found")
"""Errors of a run whose files a worker on another machine may not see."""

_READER = "cklog.sweep.tasks:read_group"


def read_runs(jobs: Sequence[Job], how: HowToAsk, engines: Engines) -> list[ScannedRun]:
    """Read every run by tasks of Spark or by processes of this machine; rows come in no order."""
    elsewhere = any(not is_local(job.root.path) for job in jobs)
    engine = engines.for_runs(len(jobs), elsewhere)
    if engine is None:
        return ask_here(jobs, how)
    try:
        rows = ask_by_engine(jobs, how, engine)
    except EngineError as error:
        engines.leave_spark(error)
        return ask_here(jobs, how)
    unseen = [row.path for row in rows if row.error_id in _UNSEEN]
    if unseen and engines.is_auto:
        engines.leave_spark(f"its workers could not read {unseen[0]}")
        return ask_here(jobs, how)
    return rows


def ask_by_engine(jobs: Sequence[Job], how: HowToAsk, engine: Engine) -> list[ScannedRun]:
    """Ask every run in tasks of an engine, each for a group of folders; rows come in no order."""
    by_root: dict[int, list[Job]] = {}
    for job in jobs:
        by_root.setdefault(id(job.root), []).append(job)
    groups = [mine[i : i + RUNS_PER_TASK] for mine in by_root.values() for i in range(0, len(mine), RUNS_PER_TASK)]
    schema = pa.schema([pa.field(_COLUMN, pa.string())])
    scan = Scan(tuple(_split(group, how) for group in groups), "runs", (_COLUMN,), _same, schema, None)
    scanned = engine.run(scan)
    if scanned.damage:  # whatever is wrong with a run is in its row
        raise SelfCheckFailed(f"a bug: folders were passed over: {scanned.damage[0].detail}")
    return [ScannedRun.of(json.loads(text)) for text in scanned.table[_COLUMN].to_pylist()]


def _split(group: Sequence[Job], how: HowToAsk) -> Split:
    """A group of folders of one root as a split, whose `path` tells which they are."""
    root = group[0].root
    runs = [(job.folder, job.format, job.shown) for job in group]
    told = json.dumps({"runs": runs, "how": (how.split_bytes, how.strict, how.seconds, how.io_threads)})
    maps = root.maps_anywhere()
    return Split(root.uri(""), told, _READER, 0, len(group), len(group), maps, root.follow_links, numbered=True)


def read_group(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Ask every run of a group; each folder is listed here, by who reads it."""
    told = json.loads(split.path)
    split_bytes, strict, seconds, io_threads = told["how"]
    how = HowToAsk(split_bytes, strict, budgets().memory, seconds, io_threads)
    whole = split.folder()
    rows = []
    for folder, form, shown in told["runs"]:
        root = Root(whole.below(folder).path, split.maps, follow_links=split.follow_links)
        rows += [json.dumps(as_told(row)) for row in rows_of(root, form, shown, how)]
    yield pa.record_batch({_COLUMN: pa.array(rows, pa.string())})


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep rows as they are: the kernel of these scans."""
    return batch

"""What queries into tables leave when they are killed, what people then do to it, and how often each record came."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.builders.sinks.queries import MOMENTS, PER_BATCH, create, start, write_inputs
from tests.builders.spark_restarts import WAIT_S, delete, newest

_ROOT = Path(__file__).resolve().parents[3]
BRANCH = "audit"
OTHERS = 1_000_000
"""From here on numbers are those of another writer."""


def kill(folder: Path, which: list[str], chance: random.Random) -> dict[str, str]:
    """Run queries in a process of their own; kill it when some are held in a batch and the others anywhere."""
    each = [MOMENTS[1], "anywhere", MOMENTS[1], MOMENTS[0]] * len(which)
    moments = dict(zip(which, chance.sample(each[: len(which)], len(which)), strict=True))
    held = [folder / name / "held" for name in which if moments[name] in MOMENTS]
    for name in which:
        create(folder / name, name)
        write_inputs(folder / name / "in")
        if moments[name] in MOMENTS:
            (folder / name / "hold").write_text(json.dumps([moments[name], chance.randint(3, 6)]))
    command = [sys.executable, "-m", "tests.builders.sinks.queries", str(folder), *which]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=log, start_new_session=True)
    try:
        since = time.monotonic()
        while not all(path.exists() for path in held) or min(newest(folder / n / "ck/commits") for n in which) < 2:
            assert running.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() - since < WAIT_S, (folder / "log").read_text()[-2000:]
            time.sleep(0.05)
        time.sleep(chance.random())
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    for name in which:
        (folder / name / "hold").unlink(missing_ok=True)
    return moments


@dataclass(frozen=True, slots=True)
class Crash:
    """A query's folders as a kill left them; a copy lies at the same place for each restart, as paths are absolute.

    `committed`, `planned` : the newest files of `commits` and `offsets`
    `taken` : the newest batch that the table has
    `to` : an older batch, to go back to
    """

    name: str
    home: Path
    saved: Path
    committed: int
    planned: int
    taken: int
    to: int

    @property
    def sink(self) -> str:
        """Delta or Iceberg, stamped or not."""
        return self.name.partition("/")[2]

    @property
    def reads_files(self) -> bool:
        """Whether its source keeps a log of its own."""
        return self.name.startswith("files")

    def again(self) -> None:
        """Put everything back to where the kill left it."""
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self.saved, self.home)


def crash(folder: Path, name: str, chance: random.Random) -> Crash:
    """Put a killed query's folders away."""
    home, saved = folder / name, folder / "saved" / name
    shutil.copytree(home, saved)
    committed = newest(home / "ck/commits")
    units = {value // PER_BATCH for value in counted(home, name)}
    assert units == set(range(len(units)))  # before the restart: every batch once, in order
    to = max(committed - chance.randint(1, 3), 0)
    return Crash(name, home, saved, committed, newest(home / "ck/offsets"), len(units) - 1, to)


def counted(home: Path, name: str, branch: str = "") -> Counter[int]:
    """How often the table has each record of the query's."""
    if "/delta" in name:
        from deltalake import DeltaTable

        values = DeltaTable(str(home / "table")).to_pyarrow_table()["value"].to_pylist()
    else:
        from tests.builders.sinks.iceberg_folder import rows_of

        values = rows_of(_iceberg(home), "value", branch)
    return Counter(value for value in values if value < OTHERS)


def _iceberg(home: Path) -> Any:
    from tests.builders.sinks.iceberg_folder import FolderCatalog

    return FolderCatalog(home / "table").load_table("table")


def nothing(crash: Crash) -> None:
    """Restart it as it is."""


def commit_lost(crash: Crash) -> None:
    """Lose the newest file of `commits`."""
    delete(crash.home / "ck/commits" / str(crash.committed))


def back(crash: Crash) -> None:
    """Go back to an older batch."""
    for path in [*crash.home.glob("ck/commits/[0-9]*"), *crash.home.glob("ck/offsets/[0-9]*")]:
        if int(path.name) > crash.to:
            delete(path)


def rolled_back(crash: Crash) -> None:
    """Take the table back to where that older batch was its newest."""
    if crash.sink.startswith("delta"):
        from deltalake import DeltaTable

        DeltaTable(str(crash.home / "table")).restore(crash.to + 1)  # version 0 is the empty table
    else:
        table = _iceberg(crash.home)
        table.manage_snapshots().rollback_to_snapshot(_of(table, crash.to)).commit()


def _of(table: Any, batch: int) -> int:
    """The snapshot of a batch: each batch before the crash made one, in order."""
    found: int = table.snapshots()[batch].snapshot_id
    return found


def new_checkpoint(crash: Crash) -> None:
    """Start with another, empty checkpoint folder."""
    shutil.rmtree(crash.home / "ck")


def expired(crash: Crash) -> None:
    """Forget every older snapshot; of Delta, every older file of the log."""
    if crash.sink.startswith("delta"):
        from deltalake import DeltaTable

        table = DeltaTable(str(crash.home / "table"))
        table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
        table.create_checkpoint()
        table.cleanup_metadata()
    else:
        later = datetime.now() + timedelta(days=1)
        _iceberg(crash.home).maintenance.expire_snapshots().older_than(later).commit()


def second_writer(crash: Crash) -> None:
    """Another job appends, too."""
    rows = pa.table({"value": pa.array([OTHERS, OTHERS + 1], pa.int64())})
    if crash.sink.startswith("delta"):
        from deltalake import write_deltalake

        write_deltalake(str(crash.home / "table"), rows, mode="append")
    else:
        _iceberg(crash.home).append(rows)


def compacted(crash: Crash) -> None:
    """Write the same rows as one file."""
    if crash.sink.startswith("delta"):
        from deltalake import DeltaTable

        DeltaTable(str(crash.home / "table")).optimize.compact()
    else:
        table = _iceberg(crash.home)
        table.overwrite(table.scan().to_arrow())  # pyiceberg has no `replace`: a delete and an append


def recreated(crash: Crash) -> None:
    """Drop the table and make it anew."""
    shutil.rmtree(crash.home / "table")
    create(crash.home, crash.name)


def branched(crash: Crash) -> None:
    """Make a branch at an older batch; the query is to go on there."""
    table = _iceberg(crash.home)
    table.manage_snapshots().create_branch(_of(table, crash.to), BRANCH).commit()


VARIATIONS: dict[str, tuple[Callable[[Crash], None], ...]] = {
    "nothing": (nothing,),
    "commit lost": (commit_lost,),
    "back": (back,),
    "rolled back": (rolled_back,),
    "rolled back, and back": (rolled_back, back),
    "new checkpoint": (new_checkpoint,),
    "expired": (expired,),
    "second writer": (second_writer,),
    "second writer, expired": (second_writer, expired),
    "compacted": (compacted,),
    "compacted, expired": (compacted, expired),
    "compacted, expired, and back": (compacted, expired, back),
    "recreated": (recreated,),
    "branch": (branched,),
}


def applies(variation: str, crash: Crash) -> bool:
    """Whether a table of this format can be treated so."""
    return variation != "branch" or crash.sink.startswith("iceberg")


def run_again(spark: Any, crashes: list[Crash], variation: str) -> None:
    """Restart queries at once, and let each take its input to the end."""
    branch = BRANCH if variation == "branch" else "main"
    running = []
    for crash in crashes:
        if crash.reads_files:
            _keep_few_inputs(crash)
        running.append(start(spark, crash.home, crash.name, until(crash), branch))
    try:
        since = time.monotonic()
        for crash, query in zip(crashes, running, strict=True):
            while query.isActive and not (crash.home / "done").exists():
                assert time.monotonic() - since < WAIT_S
                time.sleep(0.05)
            assert query.exception() is None, (crash.name, variation, query.exception())
    finally:
        for query in running:
            query.stop()


def until(crash: Crash) -> int:
    """The first record that is not to be taken: some batches after the last that can be held against an older one."""
    return PER_BATCH * (2 * (crash.taken + 1) - crash.to + 4)


def _keep_few_inputs(crash: Crash) -> None:
    for path in sorted((crash.home / "in").iterdir())[until(crash) // PER_BATCH :]:
        path.unlink()

"""A watched scan on Spark whose splits are read when they are let: `python -m … MODE FOLDER`.

MODE is `classic` or `connect`: both cannot be had in one process; or the URL of a master or a Connect server, whose
splits are never let: a task has begun where there is a file `begun`. Prints how many splits had come back each time
before the next one was let, or the error.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa

from cklog.engine.scan import Damage, Scan, Split
from cklog.engine.spark import SparkEngine
from cklog.engine.spark_session import SparkOptions
from cklog.errors import EngineError
from cklog.inputs.tables import as_it_is
from cklog.progress import Stage, watched_by

SPLITS = 4
PATIENCE_SECONDS = 300
WAITED = 15.0
"""Seconds in which a master or server may do nothing."""


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Wait for the split's gate to open, then yield one row."""
    Path(split.uri).with_name("begun").touch()
    while not Path(split.uri).exists():
        time.sleep(0.05)
    yield pa.RecordBatch.from_arrays([pa.array([split.path])], ["channel"])


class Opener:
    """Opens a gate when the splits of all gates before it have come back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: list[int] = []

    def begin(self, stage: Stage) -> None:
        if stage.what.startswith("scanning"):
            threading.Thread(target=self._open_all, args=(stage,), daemon=True).start()

    def end(self, stage: Stage) -> None:
        pass

    def _open_all(self, stage: Stage) -> None:
        for number in range(SPLITS):
            deadline = time.monotonic() + PATIENCE_SECONDS
            while stage.done < number and time.monotonic() < deadline:
                time.sleep(0.05)
            self.seen.append(stage.done)
            (self.folder / str(number)).touch()


def main() -> None:
    """Scan, and print what was seen."""
    mode, folder = sys.argv[1], Path(sys.argv[2])
    options = SparkOptions(remote="local[2]") if mode == "connect" else SparkOptions(master="local[2]")
    if "://" in mode:
        path = (("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"]),)
        options = (
            SparkOptions(remote=mode, timeout=WAITED)
            if mode.startswith("sc:")
            else SparkOptions(mode, "", path, timeout=WAITED)
        )
    splits = tuple(
        Split(str(folder / str(n)), str(n), "tests.integration.spark.gates:read", 0, 1 << 20, 1 << 20)
        for n in range(SPLITS)
    )
    partial = pa.schema([pa.field("channel", pa.string())])
    engine, opener = SparkEngine(options), Opener(folder)
    try:
        with nullcontext() if "://" in mode else watched_by(opener):
            found = engine.run(Scan(splits, "channels", ("channel",), as_it_is, partial, None))
    except EngineError as error:
        print(error.message)
        return
    finally:
        engine.close()
    print(*opener.seen, "of", len(found.table))


if __name__ == "__main__":
    main()

"""What benchmarks read: made once, kept in the folder that `--data` names, the same bytes each time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import BENCHMARKS, REPOSITORY

JOB = '{"operators": [{"name": "src", "parallelism": 10}]}\n'
PAPER = ("--q-windows", "1.6")  # an extent of 1% of the queue, of 40 M tuples on 100,000 keys


class Data:
    """A folder of inputs; one is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def made(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return the input of this name; `make` is given the folder or file that it has to write."""
        target, part = self.folder / name, self.folder / f"{name}.part"
        if not target.exists():
            if part.is_dir():
                shutil.rmtree(part)
            part.unlink(missing_ok=True)
            make(part)
            part.rename(target)
        return target

    def messages(self, rows: int, form: str = "parquet", *, long_runs: bool = False, channels: int = 0) -> Path:
        """Channel logs of so many messages, as `make_messages.py` writes them, below a run; 0 channels: as it has."""
        how = [*["--long-runs"] * long_runs, *(["--channels", str(channels)] if channels else [])]

        def make(folder: Path) -> None:
            _script("make_messages.py", folder, "--rows", rows, "--format", form, *how)
            (folder / "job.json").write_text(JOB)  # `inspect` wants a run, not logs alone

        kind = f"{form}{'-long-runs' if long_runs else ''}{f'-{channels}-channels' if channels else ''}"
        return self.made(f"messages-{kind}-{rows}", make)

    def history(self, subtasks: int, channels: int, checkpoints: int, *, cyclic: bool) -> Path:
        """Checkpoints of an uncoordinated run, as `make_history.py` writes them."""
        sizes = ("--subtasks", subtasks, "--channels", channels, "--checkpoints", checkpoints)
        name = f"history-{'cyclic' if cyclic else 'acyclic'}-{subtasks}-{channels}-{checkpoints}"
        return self.made(name, lambda folder: _script("make_history.py", folder, *sizes, *["--cyclic"] * cyclic))

    def events(self, rows: int) -> Path:
        """Raw events, as `make_events.py` writes them."""
        return self.made(f"events-{rows}", lambda folder: _script("make_events.py", folder, "--rows", rows))

    def queue(self, tuples: int, form: str = "jsonl") -> Path:
        """An output queue of a window per key, as `cklog simulate cec` writes it: 60 bytes a tuple in JSON lines."""

        def make(folder: Path) -> None:
            sizes = ("--keys", str(max(100, tuples // 400)), "--tuples", str(tuples))
            encoding = ("--encoding", "parquet") if form == "parquet" else ()
            command = [sys.executable, "-m", "cklog", "simulate", "cec", str(folder), *sizes, *PAPER, *encoding]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=REPOSITORY)

        return self.made(f"queue-{form}-{tuples}", make)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _script(name: str, *words: str | int | Path) -> None:
    subprocess.run([sys.executable, str(BENCHMARKS / name), *map(str, words)], check=True, cwd=REPOSITORY)

"""The one way in which benchmarks time: whole processes, in pairs.

A command and its peers are run in turn, and who goes first alternates, so that what else the machine does falls on
all of them. Told are medians, and the median of the pairs' ratios. CPU seconds, user and system, are those of the whole
tree of processes, as the kernel counts them; the peak of memory is that of the tree's largest process (`meter.py`).

Where starting would hide the work (a JVM, a second of imports beside a scan of one), a process may count a stretch of
itself: it warms, calls `counted`, and that stretch stands for it. `work` makes such a process of a function.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent
REPOSITORY = BENCHMARKS.parent
TOLD = "CKLOG_BENCHMARK_TOLD"
"""The environment variable that names the file in which a process may tell numbers of its own."""


@dataclass(frozen=True)
class Command:
    """A whole process: what tables call it, its words, the exit codes that are right."""

    name: str
    words: tuple[str, ...]
    codes: tuple[int, ...] = (0,)
    terminal: bool = False


@dataclass(frozen=True)
class Cost:
    """Seconds and MiB of one process; numbers that it told of itself; what it wrote on stderr."""

    wall: float
    cpu: float
    peak: float
    told: dict[str, float] = field(default_factory=dict)
    err: str = ""

    def of(self, what: str) -> float:
        """`wall`, `cpu`, `peak`, or a number that the process told."""
        own = {"wall": self.wall, "cpu": self.cpu, "peak": self.peak}
        return own[what] if what in own else self.told[what]


@dataclass(frozen=True)
class Runs:
    """What commands cost that were run in turn, by name, a cost for each pair."""

    costs: dict[str, list[Cost]]

    def median(self, name: str, what: str = "cpu") -> float:
        """Return the median of `what`."""
        return statistics.median(cost.of(what) for cost in self.costs[name])

    def ratio(self, name: str, to: str, what: str = "cpu") -> float:
        """Return the median, pair by pair, of what `name` takes to what `to` takes."""
        return statistics.median(self.ratios(name, to, what))

    def ratios(self, name: str, to: str, what: str = "cpu") -> list[float]:
        """Return the ratio of each pair."""
        pairs = zip(self.costs[name], self.costs[to], strict=True)
        return [one.of(what) / max(other.of(what), 1e-9) for one, other in pairs]

    def told(self, name: str, what: str) -> float:
        """Return the median of a number that the command told of itself."""
        return statistics.median(cost.told[what] for cost in self.costs[name])

    def count(self) -> int:
        """Return how much all of them say they have found, which is the same."""
        found = {name: {cost.told["count"] for cost in costs} for name, costs in self.costs.items()}
        if len(set.union(*found.values())) != 1:
            raise ValueError(f"not the same answer: {found}")
        return int(next(iter(next(iter(found.values())))))


def cklog(name: str, *words: str | Path, codes: tuple[int, ...] = (0,)) -> Command:
    """Make a command of the program."""
    return Command(name, (sys.executable, "-m", "cklog", *map(str, words)), codes)


def work(name: str, function: Callable[..., None], *words: str | int | Path) -> Command:
    """Make a command of a function that calls `counted`; its arguments are handed over as text."""
    place = f"{function.__module__}:{function.__name__}"
    return Command(name, (sys.executable, str(BENCHMARKS / "work.py"), place, *map(str, words)))


def alternating(commands: Sequence[Command], pairs: int, *, warm: bool = True) -> Runs:
    """Run all commands in turn, `pairs` times; the first round is not counted if it is to warm caches."""
    costs: dict[str, list[Cost]] = {command.name: [] for command in commands}
    for i in range(-int(warm), pairs):
        for command in commands if i % 2 == 0 else reversed(commands):
            cost = measured(command)
            if i >= 0:
                costs[command.name].append(cost)
    return Runs(costs)


def measured(command: Command) -> Cost:
    """Run a command once, from the repository's root, in a session of its own."""
    with tempfile.TemporaryDirectory(prefix="cklog-benchmark-") as folder:
        cost, err, told = (Path(folder, name) for name in ("cost", "err", "told"))
        meter = [sys.executable, "-I", "-S", BENCHMARKS / "meter.py", cost, err, "yes" if command.terminal else "no"]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        process = subprocess.Popen(
            [*map(str, meter), *command.words],
            cwd=REPOSITORY,
            env={**env, TOLD: str(told)},  # what pip installs is compiled, and so is this, by its first run
            start_new_session=True,
        )
        try:
            process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # its own session, and nobody else's
            process.wait()
            raise
        said = err.read_text(encoding="utf-8", errors="replace") if err.exists() else ""
        found = json.loads(cost.read_text()) if cost.exists() else {"code": process.returncode}
        if found["code"] not in command.codes:
            raise RuntimeError(f"{command.name}: exit {found['code']}: {' '.join(command.words)}\n{said[-2000:]}")
        numbers = json.loads(told.read_text()) if told.exists() else {}
    wall, cpu = (numbers.pop(what, found[what]) for what in ("wall", "cpu"))
    return Cost(wall, cpu, found["peak"], numbers, said)


def counted(run: Callable[[], int], *, warm: Callable[[], int] | None = None, times: int = 1) -> None:
    """Let one stretch stand for this process: `run`, the mean of `times`, after `warm`; what it returns is told, too.

    CPU is this process's, that of children which have ended, and that of all others of the session (the JVM).
    """
    if warm is not None:
        warm()
    cpu, wall = _session_cpu(), time.perf_counter()
    for _ in range(times):
        count = run()
    took = {"wall": time.perf_counter() - wall, "cpu": _session_cpu() - cpu}
    tell(count=count, **{what: seconds / times for what, seconds in took.items()})


def tell(**numbers: float) -> None:
    """Hand numbers to whoever measures this process."""
    if TOLD in os.environ:
        Path(os.environ[TOLD]).write_text(json.dumps(numbers))
    else:
        print(numbers)


def _session_cpu() -> float:
    """CPU seconds so far of this process, to the microsecond, and of the others of its session, in ticks."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks, mine, session = 0, os.getpid(), os.getsid(0)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != mine:
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return time.process_time() + ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")

"""Many cases: workers side by side, started anew where a case ends one; what came of it all, added up."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STUCK_SECONDS = 120
"""Without a word and without using the CPU for so long, a worker waits for something that never comes."""

_RESTARTED_EVERY = 25_000
"""Cases of one process: what libraries keep does not add up."""

_WORKERS_ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
"""The same order in each process, and one thread: as many workers as wanted are asked for by themselves."""


@dataclass
class Sums:
    """What came of the cases so far."""

    count: int = 0
    subjects: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    mutations: Counter[str] = field(default_factory=Counter)
    exits: Counter[str] = field(default_factory=Counter)
    oracles: Counter[str] = field(default_factory=Counter)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)

    def add(self, said: dict[str, Any]) -> None:
        """Add one case."""
        self.count += 1
        self.subjects[said["subject"]] += 1
        words = said["question"].split()
        self.commands[" ".join(words[:2]) if words[0] == "advise" else words[0]] += 1
        self.mutations.update(said["mutation"].split("+"))
        self.exits[str(said["exit"])] += 1
        self.slowest = max(self.slowest, (said["cpu"], said["case"]))
        if "wrong" in said:
            self.wrong.append(said)
            self.oracles.update({wrong.partition(":")[0] for wrong in said["wrong"]})

    def merge(self, other: Sums) -> None:
        """Add what came of other cases."""
        self.count += other.count
        for name in ("subjects", "commands", "mutations", "exits", "oracles"):
            getattr(self, name).update(getattr(other, name))
        self.wrong += other.wrong
        self.slowest = max(self.slowest, other.slowest)

    def summary(self) -> str:
        """What came of all cases, for people."""
        lines = [
            f"{self.count} cases, {len(self.wrong)} with violations; the slowest took "
            f"{self.slowest[0]:.2f} s of CPU (case {self.slowest[1]})"
        ]
        for title, counts in (
            ("subject", self.subjects),
            ("command", self.commands),
            ("mutation", self.mutations),
            ("exit", self.exits),
            ("violated", self.oracles),
        ):
            lines += ["", title] + [f"  {name:<32} {number:>9}" for name, number in sorted(counts.items())]
        lines += [""] if self.wrong else []
        for said in sorted(self.wrong, key=lambda one: one["case"]):
            lines.append(_as_told(said))
        return "\n".join(lines)


def _as_told(said: dict[str, Any]) -> str:
    """A case with violations, for people."""
    head = f"case {said['case']}: {said['subject']}: cklog {said['question']}; {'; '.join(said['what'])}"
    return "\n".join([head, *(f"  {wrong}" for wrong in said["wrong"])])


def run(first: int, count: int, jobs: int, shared: bool = False, only: str = "") -> Sums:
    """Try `count` cases from `first` on with `jobs` workers at a time."""
    sums, lock = Sums(), threading.Lock()
    words = [*(["--shared"] if shared else []), *(["--only", only] if only else [])]
    threads = [
        threading.Thread(target=_lane, args=(first + job, jobs, len(range(job, count, jobs)), words, sums, lock))
        for job in range(jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sums


def _lane(first: int, step: int, count: int, words: list[str], sums: Sums, lock: threading.Lock) -> None:
    """Try every `step`th case, in one worker after the other."""
    done = 0
    while done < count:
        part = min(_RESTARTED_EVERY, count - done)
        tried, ended = _one_worker(first + done * step, step, part, words, sums, lock)
        done += tried
        if tried < part and ended:
            said = {"case": first + done * step, "subject": "?", "question": "?", "mutation": "?", "exit": "killed"}
            with lock:
                sums.add({**said, "cpu": 0.0, "wrong": [f"killed: {ended}"], "what": ["the process ended"]})
            done += 1


def _one_worker(
    first: int, step: int, count: int, words: list[str], sums: Sums, lock: threading.Lock
) -> tuple[int, str]:
    """Let a worker try cases; how many it has tried, and how it ended if that was not by itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz", "--worker", f"{first},{step},{count}", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **_WORKERS_ENVIRONMENT},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors = threading.Thread(target=lambda stream=process.stderr: _kept.append(stream.read()[-2000:]), daemon=True)
    errors.start()
    done, why = 0, ""
    for line in _lines(process):
        said = json.loads(line)
        if "begin" not in said:
            done += 1
        if "subject" in said:
            with lock:
                sums.add(said)
                if "wrong" in said:
                    print(_as_told(said), file=sys.stderr, flush=True)
    code = process.wait()
    errors.join()
    last = _kept.pop() if _kept else b""
    if code < 0:
        why = signal.Signals(-code).name
    elif code:
        why = f"exit {code}: {last.decode(errors='replace').strip().splitlines()[-1:]}"
    _clean_behind(process.pid)
    return done, why


_kept: list[bytes] = []


def _lines(process: subprocess.Popen[bytes]) -> Any:
    """The lines of a worker, until it ends, or does nothing for long and is ended."""
    stream = process.stdout
    assert stream is not None
    rest, used = b"", -1
    with selectors.DefaultSelector() as waiting:
        waiting.register(stream, selectors.EVENT_READ)
        while True:
            if not waiting.select(STUCK_SECONDS):
                now = _ticks(process.pid)
                if now == used:
                    process.kill()
                used = now
                continue
            data = os.read(stream.fileno(), 1 << 16)
            if not data:
                return
            *whole, rest = (rest + data).split(b"\n")
            yield from whole


def _ticks(pid: int) -> int:
    """The CPU time that a process has used."""
    try:
        cells = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -1
    return int(cells[11]) + int(cells[12])


def _clean_behind(pid: int) -> None:
    """Remove what a worker that was killed has left in memory."""
    for left in Path("/dev/shm").glob(f"cklog-fuzz-{pid}-*"):
        shutil.rmtree(left, ignore_errors=True)

"""Jobs on Flink: one that is killed, and a process that restores one after the other and tells what they did."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.flink.live.jobs import Flink
from tests.live.flink.kinds import KEYS, SIZE, SLOTS

_WAIT_S = 400.0
_RESTORING = re.compile(r"Restoring job \w+ from (?:Checkpoint|Savepoint) (\d+) .* located at (\S+?)\.?$", re.MULTILINE)
_COMPLETED = re.compile(r"Completed checkpoint (\d+) for job")
_FIRST = re.compile(r"^FIRST (\d+) (\d+)$", re.MULTILINE)
_READ = re.compile(r"^READ (\d+)$", re.MULTILINE)
_STATE = re.compile(r"^STATE (\d+) (\d+) (\d+) (\d+)$", re.MULTILINE)
_TOTAL = re.compile(r"^TOTAL (\d+) (\d+) (\d+) (\d+)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Did:
    """What the engine did with a job.

    `firsts` : the first number that was read of each split
    `held` : for each key its split, its remainder, the number, and what its state counted before it
    `totals` : for each key its split, its remainder, what its state counted in the end, and the sum of its slots
    """

    status: str
    restored: list[tuple[int, str]] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    firsts: dict[int, int] = field(default_factory=dict)
    read: int = 0
    held: list[tuple[int, int, int, int]] = field(default_factory=list)
    totals: list[tuple[int, int, int, int]] = field(default_factory=list)
    cause: str = ""

    @classmethod
    def told(cls, status: str, text: str) -> Did:
        """Read what a job printed and logged."""
        causes = _CAUSE.findall(text)
        return cls(
            status=status,
            restored=[(int(number), path) for number, path in _RESTORING.findall(text)],
            completed=[int(number) for number in _COMPLETED.findall(text)],
            firsts={int(split): int(number) for split, number in _FIRST.findall(text)},
            read=sum(map(int, _READ.findall(text))),
            held=sorted(_numbers(_STATE, text)),
            totals=sorted(_numbers(_TOTAL, text)),
            cause=causes[-1][:300] if causes and status != "FINISHED" else "",
        )

    def faults(self, splits: int) -> list[str]:
        """What is wrong with a job's state, by what it counted to the end; nothing if it is exact."""
        if self.status != "FINISHED":
            return [f"{self.status}: {self.cause}"]
        found = [] if self.completed else ["no checkpoint was completed"]
        for split, remainder, number, held in self.held:
            if held != len(_of_key(split, remainder, number)):
                found.append(f"{remainder} of split {split}: {held} counted before {number}")
        begun = sum(first - split * SIZE for split, first in self.firsts.items())
        begun += SIZE * (splits - len(self.firsts))
        if self.restored and self.read != begun:
            found.append(f"{self.read} read says the operator's state, {begun} the source")
        wanted = [(s, r, len(_of_key(s, r)), _slots(s, r)) for s in range(splits) for r in range(KEYS)]
        wrong = sorted(set(self.totals) ^ set(wanted))
        return found + ([f"{len(wrong)} totals differ, first {wrong[0]}"] if wrong else [])


def _numbers(pattern: re.Pattern[str], text: str) -> list[tuple[int, int, int, int]]:
    return [(int(a), int(b), int(c), int(d)) for a, b, c, d in pattern.findall(text)]


def _of_key(split: int, remainder: int, before: int = -1) -> range:
    """The numbers of a key, those before another."""
    first = split * SIZE
    end = first + SIZE if before < 0 else before
    return range(first + (remainder - first) % KEYS, end, KEYS)


def _slots(split: int, remainder: int) -> int:
    return sum({number % SLOTS: number for number in _of_key(split, remainder)}.values())


class Restores:
    """A process that runs jobs to the end of their numbers, one after the other."""

    def __init__(self, flink: Flink, log: Path) -> None:
        self._flink, self._log = flink, log
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = 0

    def run(self, words: Mapping[str, str], seconds: int = 300) -> Did:
        """Run a job; a process that ends with it has failed, too."""
        process = self._started()
        assert process.stdin is not None
        self._asked += 1
        begins = self._log.stat().st_size
        given = {**words, "job.id": str(self._asked), "job.seconds": str(seconds)}
        process.stdin.write("\t".join(f"{key}={value}" for key, value in given.items()).encode() + b"\n")
        process.stdin.flush()
        text = self._until(f"DONE {self._asked} ", begins, seconds + _WAIT_S)
        rest = text.rpartition(f"DONE {self._asked} ")[2].split()
        status = rest[0] if rest and process.poll() is None else "ENDED"
        return Did.told(status, text)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            with self._log.open("ab") as out:
                self._process = subprocess.Popen(
                    [*self._flink.java(), "Campaign", "serve"],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=out,
                    process_group=0,
                )
            self._until("READY\n", 0, _WAIT_S)
        return self._process

    def _until(self, mark: str, begins: int, seconds: float) -> str:
        """Wait for a line that begins so, and return what was printed since; or until the process ends."""
        process, ends = self._process, time.monotonic() + seconds
        assert process is not None
        while True:
            over = process.poll() is not None
            with self._log.open("rb") as log:
                log.seek(begins)
                text = log.read().decode("utf-8", "replace")
            _, found, rest = text.rpartition(f"\n{mark}" if begins else mark)
            if (found and (not begins or "\n" in rest)) or over:
                return text
            if time.monotonic() > ends:
                self.close()
                return text
            time.sleep(0.05)

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Killed:
    """A job in a process of its own, until SIGKILL."""

    def __init__(self, flink: Flink, words: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            given = [f"{key}={value}" for key, value in words.items()]
            command = [*flink.java(), "Campaign", "kill", *given]
            self._process = subprocess.Popen(command, stdout=out, stderr=out, process_group=0)

    def after(self, count: int, delay: float, savepoint: bool = False) -> str:
        """Kill it once so many checkpoints were completed, and after a delay; return what it printed."""
        ends = time.monotonic() + _WAIT_S
        while True:
            text = self._log.read_text(encoding="utf-8", errors="replace")
            if len(_COMPLETED.findall(text)) >= count and (not savepoint or "\nSAVEPOINT " in text):
                break
            if self._process.poll() is not None or time.monotonic() > ends:
                self._kill()
                raise RuntimeError(f"the job did not get that far:\n{text[-3000:]}")
            time.sleep(0.03)
        time.sleep(delay)
        self._kill()
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def ledger_of(folder: Path, finished_only: bool) -> Counter[int]:
    """How often each number is in the files of a folder; those under temporary names only if they count."""
    found: Counter[int] = Counter()
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        if not (finished_only and path.name.startswith(".")):
            found.update(map(int, path.read_bytes().split()))
    return found

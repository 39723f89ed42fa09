"""All trials, several from one killed job, and the table of what came of them."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.integration.flink.live.jobs import SOURCES, Flink
from tests.live.flink.asking import Cklog
from tests.live.flink.engine import Restores
from tests.live.flink.judge import AGREED, BAD, VERDICTS
from tests.live.flink.kinds import Plan
from tests.live.flink.trial import Kept, Row, Trial, failed

TRIALS_OF_A_JOB = 4
NOT_RUN = "not run"


@dataclass(frozen=True)
class Campaign:
    """What is asked for on the command line."""

    trials: Sequence[int]
    seed: int
    version: str
    cklog: Sequence[str]
    home: Path
    jobs: int
    keep: Path | None
    minutes: float

    def run(self) -> list[Row]:
        """Run the trials, those of a job one after the other; tell each as it is done."""
        ends = time.monotonic() + 60 * self.minutes
        self.home.mkdir(parents=True, exist_ok=True)
        flink = Flink(self.home, self.version, (*SOURCES, Path(__file__).with_name("Campaign.java")))
        groups: dict[int, list[int]] = {}
        for number in self.trials:
            groups.setdefault(number // TRIALS_OF_A_JOB, []).append(number)
        rows: list[Row] = []
        with tempfile.TemporaryDirectory(prefix="cklog-live-flink-") as work:
            workers = _Workers(flink, Path(work), ends)
            try:
                with ThreadPoolExecutor(self.jobs) as pool:
                    tasks = [pool.submit(self._group, workers, group, of) for group, of in groups.items()]
                    for task in tasks:
                        rows += task.result()
            finally:
                workers.close()
        return sorted(rows)

    def _group(self, workers: _Workers, group: int, numbers: Iterable[int]) -> list[Row]:
        plan = Plan.drawn(self.version, self.seed, group)
        kept = Kept(plan, workers.folder / f"job-{group}")
        rows, begins = [], time.monotonic()
        if workers.late:
            return []
        try:
            kept.kill(workers.flink)
        except (RuntimeError, OSError) as reason:
            return [_tell(failed(number, plan.kind, reason, time.monotonic() - begins)) for number in numbers]
        for number in numbers:
            if workers.late:
                break
            rows.append(_tell(self._trial(workers.restores(), kept, number, begins)))
            begins = time.monotonic()
        shutil.rmtree(kept.work, ignore_errors=True)
        return rows

    def _trial(self, restores: Restores, kept: Kept, number: int, begins: float) -> Row:
        trial = Trial(kept, restores, Cklog(self.cklog), self.seed, number)
        try:
            damage, answer, judged = trial.run()
            row = Row(number, kept.plan.kind, damage, answer.action, answer.code, judged, time.monotonic() - begins)
        except Exception as reason:  # the others go on
            row = failed(number, kept.plan.kind, reason, time.monotonic() - begins)
        if self.keep is not None:
            folder = self.keep / str(number)
            shutil.rmtree(folder, ignore_errors=True)
            for name in ("kept", "hurt"):
                if (kept.work / name).exists():
                    shutil.copytree(kept.work / name, folder / name)
            (folder / "told").write_text("\n".join([str(row), *trial.told]), encoding="utf-8")
        return row


class _Workers:
    """A process that restores for each thread."""

    def __init__(self, flink: Flink, folder: Path, ends: float) -> None:
        self.flink, self.folder, self._ends = flink, folder, ends
        self._own = threading.local()
        self._all: list[Restores] = []

    @property
    def late(self) -> bool:
        """Whether no more trial is to begin."""
        return time.monotonic() > self._ends

    def restores(self) -> Restores:
        found: Restores | None = getattr(self._own, "restores", None)
        if found is None:
            found = self._own.restores = Restores(self.flink, self.folder / f"restores-{threading.get_ident()}")
            self._all.append(found)
        return found

    def close(self) -> None:
        for one in self._all:
            one.close()


def _tell(row: Row) -> Row:
    why = f" | {row.judged.why}" if row.judged.verdict != AGREED else ""
    told = f"{row.action or '-'}, exit {row.code}: {row.judged.verdict}"
    print(f"{row.number:4} {row.seconds:5.1f} s  {row.kind:20} {row.damage or 'undamaged'} | {told}{why}", flush=True)
    return row


def table(rows: Sequence[Row]) -> str:
    """Return the verdicts by kind, and how long a trial took."""
    columns = [*VERDICTS, NOT_RUN]
    lines = [" ".join([f"{'kind':20}", "trials", *(f"{name:>17}" for name in columns)])]
    for kind in [*sorted({row.kind for row in rows}), "all"]:
        of = [row for row in rows if kind in (row.kind, "all")]
        counts = Counter(row.judged.verdict for row in of)
        lines.append(" ".join([f"{kind:20}", f"{len(of):6}", *(f"{counts[name]:17}" for name in columns)]))
    took = sum(row.seconds for row in rows) / max(len(rows), 1)
    return "\n".join([*lines, f"{took:.1f} seconds a trial and thread"])


def passed(rows: Sequence[Row]) -> bool:
    """Whether nothing is wrong, no repair failed, and every trial was run."""
    return not any(row.judged.verdict in (*BAD, NOT_RUN) for row in rows)

"""Kill queries, damage what they leave, ask cklog, restart, and compare.

    python -m tests.live.spark --trials 200 --seed 0 [--jobs N] [--cklog "COMMAND"] [--kinds A,B] [--work DIR]
    python -m tests.live.spark --trial N,... [--keep DIR]

The interpreter is one that has pyspark: its version is the one on trial. Exit code 1: an answer was wrong, or a repair
failed; the files of such a trial are in --keep, and `--trial` judges them again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import queue
import random
import shlex
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.live.spark.ask import Program
from tests.live.spark.judge import BAD, Trial
from tests.live.spark.kinds import kinds_of
from tests.live.spark.rounds import MOMENTS, Round, end, run
from tests.live.spark.trials import Bench, as_json
from tests.live.spark.worker import Worker

AT_ONCE = 8
COLUMNS = ("agreed", "too careful", "unchecked", "wrong", "repair failed")


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="how many trials run at once")
    parser.add_argument("--cklog", default=shlex.join([sys.executable, "-m", "cklog"]), help="the command of cklog")
    parser.add_argument("--kinds", default="", help="only these, with commas between")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir(), "cklog-live-spark"),
        help="a folder for all that is made",
    )
    parser.add_argument("--trial", default="", help="judge these trials again, with commas between")
    parser.add_argument("--keep", type=Path, help="where the files of bad trials are kept; default: WORK/kept-VERSION")
    return parser.parse_args(words)


class Campaign:
    """Rounds of kills, and the trials of what each leaves."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.first = Worker()
        self.version = self.first.open()
        self.work = options.work / f"{self.version}-{options.seed}"
        self.keep = options.keep or options.work / f"kept-{self.version}-{options.seed}"
        self.work.mkdir(parents=True, exist_ok=True)
        self.keep.mkdir(parents=True, exist_ok=True)
        self.names = [name for name in options.kinds.split(",") if name] or kinds_of(self.version)
        self.trials: list[Trial] = []
        self.refused: dict[str, str] = {}
        self.broken: list[str] = []

    def bench(self, worker: Worker) -> Bench:
        """Return a bench for trials by one session."""
        return Bench(worker, Program(tuple(shlex.split(self.options.cklog))), self.work, self.keep)

    def rounds(self) -> Iterable[tuple[int, list[str]]]:
        """Yield the rounds: every kind comes once before one comes again."""
        order: list[str] = []
        many = min(AT_ONCE, len(self.names))
        for number in itertools.count():
            chance = random.Random(f"{self.options.seed} round {number}")
            while len(order) < many:
                order += [name for name in chance.sample(self.names, len(self.names)) if name not in order]
            yield number, order[:many]
            order = order[many:]

    def run(self) -> None:
        """Make one round after the other, and try what each leaves; the next is made meanwhile."""
        made: queue.Queue[tuple[int, Round] | None] = queue.Queue(maxsize=1)

        def make() -> None:
            images = 0
            for number, names in self.rounds():
                left = run(self.work / f"r{number}", names, random.Random(f"{self.options.seed} {number}"))
                made.put((number, left))
                images += sum(map(len, left.images.values()))
                if images >= self.options.trials or not left.images:
                    made.put(None)
                    return

        threading.Thread(target=make, daemon=True).start()
        workers = [self.first, *(Worker() for _ in range(self.options.jobs - 1))]
        try:
            while (item := made.get()) is not None:
                self._try_all(workers, *item)
        except KeyboardInterrupt:
            print("interrupted: the table has what was done", file=sys.stderr)
        finally:
            end()
            for worker in workers:
                worker.close()

    def _try_all(self, workers: list[Worker], number: int, left: Round) -> None:
        self.refused |= left.failed
        jobs: queue.Queue[tuple[int, str]] = queue.Queue()
        for place, name in enumerate(left.images):
            jobs.put((number * AT_ONCE * MOMENTS + place * MOMENTS, name))
        threads = [threading.Thread(target=self._try, args=(worker, left, jobs), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        shutil.rmtree(left.folder, ignore_errors=True)

    def _try(self, worker: Worker, left: Round, jobs: queue.Queue[tuple[int, str]]) -> None:
        bench = self.bench(worker)
        while True:
            try:
                number, name = jobs.get_nowait()
            except queue.Empty:
                return
            for moment, image in enumerate(left.images[name]):
                if len(self.trials) >= self.options.trials:
                    return
                chance = random.Random(f"{self.options.seed} trial {number + moment}")
                damaged = (number // MOMENTS + moment) % 2 == 1
                began = time.monotonic()
                try:
                    trial = bench.trial(number + moment, name, image, left.folder / name, chance, damaged)
                except Exception:
                    self.broken.append(f"trial {number + moment}, {name}: {traceback.format_exc()}")
                    continue
                self.trials.append(trial)
                self._say(trial, time.monotonic() - began)

    def _say(self, trial: Trial, seconds: float) -> None:
        words = [f"{trial.number} {trial.kind} [{trial.damage}]: {trial.answer.action} {trial.answer.code}"]
        words += [f"{trial.verdict} ({seconds:.1f} s)", *trial.reasons]
        print("; ".join(words).replace("\n", " ")[:700], file=sys.stderr, flush=True)
        with (self.work / "trials.jsonl").open("a") as log:
            log.write(json.dumps(as_json(trial)) + "\n")

    def again(self, numbers: str) -> int:
        """Judge kept trials again, each with what was kept of it; return 1 if one of them is bad."""
        bench = self.bench(self.first)
        for number in numbers.split(","):
            kept = self.keep / number
            about = json.loads((kept / "trial.json").read_text())
            home, damage = Path(about["home"]), about["damage"]
            with tempfile.TemporaryDirectory() as copies:
                base = Path(copies) / about["kind"]
                shutil.copytree(kept / "base", base, copy_function=shutil.copy2)
                trial = bench.judged(int(number), about["kind"], base, home, damage, about["by_script"])
            self.trials.append(trial)
            self._say(trial, 0.0)
        self.first.close()
        return any(trial.verdict in BAD for trial in self.trials)


def table(trials: Iterable[Trial]) -> str:
    """Return the verdicts by kind.

    >>> print(table([]))
    kind                      trials  damaged  agreed  too careful  unchecked  wrong  repair failed
    all                            0        0       0            0          0      0              0
    """
    counts: dict[str, Counter[str]] = {}
    for trial in trials:
        for name in (trial.kind, "all"):
            counts.setdefault(name, Counter()).update([trial.verdict, "trials", *(["damaged"] if trial.damage else [])])
    columns = ("trials", "damaged", *COLUMNS)
    lines = ["kind".ljust(24) + "".join(f"  {column:>6}" for column in columns)]
    for name in [*sorted(counts.keys() - {"all"}), "all"]:
        cells = (counts.get(name, Counter())[column] for column in columns)
        lines.append(
            name.ljust(24) + "".join(f"  {cell:>{max(6, len(c))}}" for c, cell in zip(columns, cells, strict=True))
        )
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    """Run a campaign, print its table, and return 1 if an answer was wrong or a repair failed."""
    options = parsed(words)
    campaign = Campaign(options)
    if options.trial:
        return campaign.again(options.trial)
    began = time.monotonic()
    campaign.run()
    bad = [trial for trial in campaign.trials if trial.verdict in BAD]
    tried = {trial.kind for trial in campaign.trials}
    print(f"Spark {campaign.version}, seed {options.seed}, {time.monotonic() - began:.0f} s, {len(tried)} kinds")
    print(table(campaign.trials))
    for name, why in sorted(campaign.refused.items()):
        print(f"{name} did not run: {why[:300]}")
    for trial in sorted(bad, key=lambda trial: trial.number):
        print(
            f"\ntrial {trial.number}, {trial.kind} [{trial.damage}]: {trial.verdict}: {'; '.join(trial.reasons)[:600]}"
        )
    print("\n".join(["", *campaign.broken]) if campaign.broken else "", end="")
    if bad:
        print(f"\nfiles of these are in {campaign.keep}; --trial N judges one again")
    return bool(bad) or len(campaign.trials) < options.trials


if __name__ == "__main__":
    sys.exit(main())

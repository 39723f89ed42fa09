"""One trial: a killed query's files, damaged or not; what cklog says of them; what Spark does with them."""

from __future__ import annotations

import json
import random
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.live.spark.ask import Program, changed, follow, images, paste
from tests.live.spark.damage import damage
from tests.live.spark.judge import Answer, Outcome, Row, Trial, against, compared, judge
from tests.live.spark.kinds import KINDS, write_inputs
from tests.live.spark.rounds import newest
from tests.live.spark.worker import Worker

NOT_CHOSEN = 66
"""The exit code where several runs lie below a path."""
Ledger = list[tuple[int, list[Row]]]


class Bench:
    """What a trial needs: a Spark session, the program cklog, the results of unbroken runs, and where to keep files."""

    def __init__(self, worker: Worker, program: Program, work: Path, keep: Path) -> None:
        self.worker, self.program, self.work, self.keep = worker, program, work, keep

    def truth(self, name: str) -> list[Row]:
        """Return what an unbroken run of a kind gives."""
        if KINDS[name].truth == "numbers":
            return []
        version = self.worker.open()
        known = self.work.parent / f"truth-{version}" / f"{name}.json"
        if not known.exists():
            home = self.work.parent / f"truth-{version}" / name
            shutil.rmtree(home, ignore_errors=True)
            write_inputs(home / "in")
            write_inputs(home / "in2")
            ran = self.worker.ask("restart", home, name)
            assert not ran["failed"], f"{name}: {ran['failed']}"
            known.write_text(json.dumps(self._results(home, name, 0)[0]))
            shutil.rmtree(home)
        rows: list[Row] = json.loads(known.read_text())
        return rows

    def _results(self, home: Path, name: str, skip: int) -> tuple[list[Row], str]:
        """Return all that a sink has, of a ledger what was added after `skip` bytes; and why it cannot be read."""
        if KINDS[name].sink in ("each", "foreach"):
            return [row for _, rows in ledger(home, skip) for row in rows], ""
        found = self.worker.ask("read", home, name)
        return found["rows"], found["failed"]

    def trial(self, number: int, name: str, image: Path, home: Path, chance: random.Random, damaged: bool) -> Trial:
        """Put an image where its query ran, damage it, ask, restart, repair, restart again, and judge."""
        place(image, home)
        trim(home)
        kind = KINDS[name]
        if kind.query not in ("rate", "rate_per_batch"):
            write_inputs(home / "in")
            write_inputs(home / "in2") if (home / "ck/sources/1").exists() or kind.query == "named" else None
        done = damage(home, chance, newest_inputs(home), earlier(image)) if damaged else ""
        base = home.with_name(f".base-{name}")
        place(home, base)
        return self.judged(number, name, base, home, done, by_script=chance.random() < 0.5)

    def judged(self, number: int, name: str, base: Path, home: Path, done: str, by_script: bool) -> Trial:
        """Judge what lies in `base`, at the place where its query ran."""
        place(base, home)
        asked = home
        answer, printed = self.program.line(home)
        if answer.code == NOT_CHOSEN:  # there is a copy of the checkpoint: the answer asks which of the two is meant
            asked = home / "ck"
            answer, printed = self.program.line(asked)
        trial = Trial(number, name, done, answer, Outcome())
        script = self.program.script(asked) if by_script else ""
        trial.plain = self._restart(name, home, base, answer)
        if answer.command and not script:
            place(base, home)
            failed = paste(answer.command, asked)
            trial.repaired = Outcome(failed=failed) if failed else self._restart(name, home, base, answer)
        elif script:
            place(base, home)
            trial.script = self._follow(script, trial, home, base)
        judge(trial)
        if trial.verdict == "wrong" and "--check-contents" in answer.options:
            self._look_closer(trial, base, home)
        if number % 2:
            self._ask_of_checkpoint(trial, base, home)
        if trial.reasons and self.keep:
            self._keep(trial, base, home, printed, script)
        return trial

    def _restart(self, name: str, home: Path, base: Path, answer: Answer) -> Outcome:
        kind, truth = KINDS[name], self.truth(name)
        before, skip = ledger(base), size(base)
        ran = self.worker.ask("restart", home, name)
        first = ran["batches"][0]["batchId"] if ran["batches"] else None
        ranges: tuple[tuple[Any, Any], ...] = ()
        if first is not None and kind.how != "continuous":
            sources = ran["batches"][0]["sources"]
            ranges = tuple((_offset(source["startOffset"]), _offset(source["endOffset"])) for source in sources)
        outcome = Outcome(failed=ran["failed"], first=first, sources=ranges)
        if ran["failed"]:
            return replace(outcome, perfect=False)
        if kind.sink == "noop":
            return outcome
        if kind.sink not in ("each", "foreach"):
            rows, unread = self._results(home, name, 0)
            missing, extra = against(kind.truth, truth, rows)
            failed = f"the sink cannot be read: {unread}" if unread else ""
            return replace(outcome, failed=failed, missing=missing, extra=extra, perfect=not missing and not extra)
        after = ledger(home, skip)
        line = -1 if answer.committed is None else answer.committed
        missing, extra = compared(kind.truth, truth, before, line, after)
        own = compared(kind.truth, truth, before, newest(base, "commits") if first is None else first - 1, after)
        return replace(outcome, missing=missing, extra=extra, perfect=own == (0, 0))

    def _follow(self, script: str, trial: Trial, home: Path, base: Path) -> str:
        """Run the script of a runbook; return how it did not do what it says."""
        answer, before = trial.answer, images(home)
        work = home.with_name(f".script-{trial.kind}")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        code, said, starts = follow(script, work / "run", self.program.words)
        if answer.action == "restart" or answer.command:
            if code != 0 or not starts:
                return f"exit {code}, starts the query: {starts}: {said}"
            if answer.action == "restart":
                gone = changed(before, images(home))
                return f"it changed {gone[:5]}" if gone else ""
            trial.repaired = self._restart(trial.kind, home, base, answer)
            return ""
        gone = changed(before, images(home))
        if starts and code == 0:
            trial.repaired = self._restart(trial.kind, home, base, answer)
        elif code == 0 or gone:
            return f"exit {code} and nothing is started; changed {gone[:5]}: {said}"
        return ""

    def _look_closer(self, trial: Trial, base: Path, home: Path) -> None:
        place(base, home)
        closer, _ = self.program.line(home, "--check-contents")
        if closer.action != "restart" or judge(replace(trial, answer=closer, reasons=[])) != "wrong":
            trial.verdict = "unchecked"

    def _ask_of_checkpoint(self, trial: Trial, base: Path, home: Path) -> None:
        """Ask of the checkpoint folder alone: of the sink it can say nothing, of the start it must not be wrong."""
        place(base, home)
        answer, _ = self.program.line(home / "ck")
        of_sink = "out/" in trial.damage or any("sink-log" in finding for finding in trial.answer.findings)
        if of_sink and any(option.startswith("PATH") for option in answer.options):
            return  # it says that the sink was not looked at, and with which PATH it is
        firsts = (answer.first, trial.answer.first)
        if answer.action == "restart" and trial.plain.failed and not trial.plain.failed.startswith("the sink"):
            if trial.verdict not in ("wrong", "unchecked"):
                trial.verdict = "wrong"
                trial.reasons.append(f"asked of ck: restart with exit {answer.code}, but {trial.plain.failed[:300]}")
        elif answer.action == "restart" and trial.plain.first not in (None, *firsts):
            trial.verdict = "wrong"
            trial.reasons.append(f"asked of ck: batch {trial.plain.first} ran first, not {answer.first}")

    def _keep(self, trial: Trial, base: Path, home: Path, printed: str, script: str) -> None:
        kept = self.keep / str(trial.number)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(base, kept / "base", copy_function=shutil.copy2, symlinks=True)
        (kept / "answer.json").write_text(printed)
        (kept / "script.sh").write_text(script)
        about = {"home": str(home), "by_script": bool(script), **as_json(trial)}
        (kept / "trial.json").write_text(json.dumps(about, indent=1))


def as_json(trial: Trial) -> dict[str, Any]:
    """Return a trial in terms of JSON."""
    plain = asdict(trial)
    for name in ("effects", "options"):
        plain["answer"][name] = sorted(plain["answer"][name])
    return plain


def place(of: Path, at: Path) -> None:
    """Put a copy of a folder in the place of another, file times as they are."""
    shutil.rmtree(at, ignore_errors=True)
    shutil.copytree(of, at, copy_function=shutil.copy2)


def earlier(image: Path) -> list[Path]:
    """Return the images that were made before one of a round."""
    name, _, moment = image.name.rpartition(".")
    return [image.with_name(f"{name}.{before}") for before in range(int(moment))]


def size(home: Path) -> int:
    """Return the bytes of a ledger."""
    path = home / "out/ledger.jsonl"
    return path.stat().st_size if path.exists() else 0


def trim(home: Path) -> None:
    """Drop the line of a ledger that the kill cut off: its sink did not get it."""
    path = home / "out/ledger.jsonl"
    if path.exists():
        data = path.read_bytes()
        path.write_bytes(data[: data.rfind(b"\n") + 1])


def ledger(home: Path, skip: int = 0) -> Ledger:
    """Return what a sink was given, batch by batch, after so many bytes."""
    path = home / "out/ledger.jsonl"
    lines = path.read_bytes()[skip:].decode().splitlines() if path.exists() else []
    return [(row["batch"], row["rows"]) for row in map(json.loads, lines)]


def newest_inputs(home: Path) -> list[Path]:
    """Return the input files in the newest entries of the sources' logs."""
    found = []
    for source in (home / "ck/sources").glob("*"):
        logs = [path for path in source.iterdir() if re.fullmatch(r"\d+(\.compact)?", path.name)]
        for log in sorted(logs, key=lambda path: int(path.name.split(".")[0]))[-1:]:
            names = re.findall(r"/(in2?/f\d+\.json)", log.read_text())
            found += [home / name for name in names[-1:]]
    return found


def _offset(stored: Any) -> Any:
    try:
        return json.loads(stored) if isinstance(stored, str) else stored
    except ValueError:
        return stored

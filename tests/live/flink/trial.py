"""One trial: damage, cklog's answer and runbook, the restores that prove or disprove them."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.integration.flink.live.jobs import Flink
from tests.live.flink.asking import Answer, Cklog, Script, restore_of
from tests.live.flink.damage import Done, damaged, snapshots_in
from tests.live.flink.engine import Did, Killed, Restores, ledger_of
from tests.live.flink.judge import AGREED, Judged, Proof, elsewhere, judge, sink_of
from tests.live.flink.kinds import KINDS, Plan, recovery

_CONTENTS = ("--check-contents",)


class Row(NamedTuple):
    """What came of a trial."""

    number: int
    kind: str
    damage: str
    action: str
    code: int
    judged: Judged
    seconds: float


@dataclass
class Kept:
    """What a killed job left, and how to have it again at the same place: stored paths are absolute."""

    plan: Plan
    work: Path
    snapshots: list[Path] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.work / "root"

    def kill(self, flink: Flink) -> None:
        """Run the job until it is killed, and a second one after it where the kind has one."""
        kind, plan = KINDS[self.plan.kind], self.plan
        self.root.mkdir(parents=True)
        words = plan.words(self.root, killed=True)
        Killed(flink, words, self.work / "killed-1").after(plan.after, plan.delay, bool(kind.savepoint))
        if kind.claim:
            again = {**words, **recovery(snapshots_in(self.root)[0].as_uri(), kind.claim)}
            Killed(flink, again, self.work / "killed-2").after(plan.after, plan.delay)
        self.snapshots = snapshots_in(self.root)
        shutil.copytree(self.root, self.work / "kept")

    def again(self, name: str = "kept") -> None:
        """Put everything back as the kill, or the damage, left it."""
        for folder in (self.root, self.work / "elsewhere"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.work / name, self.root)

    def keep(self) -> None:
        """Keep what the damage left, to restore more than once from it."""
        shutil.rmtree(self.work / "hurt", ignore_errors=True)
        shutil.copytree(self.root, self.work / "hurt")


class Trial:
    """A trial by its number."""

    def __init__(self, kept: Kept, restores: Restores, cklog: Cklog, seed: int, number: int) -> None:
        self._kept, self._restores, self._cklog = kept, restores, cklog
        self._chance = random.Random(f"{seed} {number} trial")
        self._damaged = number % 2 == 1
        self._parallelism = self._chance.randint(1, 3)
        self._kind = KINDS[kept.plan.kind]
        self.number = number
        self.told: list[str] = []
        self._late = ""

    def run(self) -> tuple[str, Answer, Judged]:
        """Do the damage, ask, restore, and judge."""
        kept = self._kept
        kept.again()
        done = damaged(kept.root, self._chance) if self._damaged else Done("", kept.root)
        answer, options = self._asked(done)
        place = done.place
        if done.name == "moved" and answer.back:
            self._note("put back", answer.back)
            subprocess.run(["sh", "-c", answer.back], check=True)
            place = kept.root
            answer, options = self._asked(Done("", place))
        if moved := _to_be_moved(answer, place):
            for path in moved:
                path.rename(kept.work / path.name)
            self._note("moved out of the sink", str(moved))
            answer, options = self._asked(Done("", place))
        if kept.root.exists():
            kept.keep()
        named, script = self._restored(done, answer, place, options)
        newer = self._newer(done, answer, named)
        if self._late:
            raise RuntimeError(f"the job from {self._late} did not come to the end of its numbers")
        judged = judge(answer, named, newer, script, done.name.endswith("flipped"))
        self._note("judged", f"{judged.verdict}: {judged.why}")
        return f"{done.name} {done.what}".strip(), answer, judged

    def _asked(self, done: Done) -> tuple[Answer, tuple[str, ...]]:
        """Ask; if the answer leaves the state's bytes open, and a bit of them was flipped, ask to look at all."""
        answer = self._cklog.line(done.place)
        self._note("answer", answer.raw)
        if done.name == "state-flipped" and answer.action == "restart" and answer.leaves_open("state"):
            answer = self._cklog.line(done.place, *_CONTENTS)
            self._note("answer --check-contents", answer.raw)
            return answer, _CONTENTS
        return answer, ()

    def _restored(
        self, done: Done, answer: Answer, place: Path, options: tuple[str, ...]
    ) -> tuple[Proof | None, Script]:
        """Run the runbook's script, whose `flink` is the real one, and else the printed command."""
        did: list[Did] = []

        def flink(words: list[str]) -> bool:
            if "-s" not in words:
                return True
            did.append(self._run(*restore_of(f"flink {' '.join(words)}")))
            return did[-1].status == "FINISHED"

        work = self._kept.work / f"script-{self.number}"
        script = self._cklog.script(place, work, flink, *options)
        self._note("script", script.text)
        self._note(f"script ended with {script.code}", f"{script.calls}\n{script.out}")
        if not answer.commands:
            return None, script
        path, claim = restore_of(answer.commands[0])
        if not did:
            self._kept.again("hurt")
            did.append(self._run(path, claim))
        proof = self._proof(path, did[0], done, answer)
        self._note("named", str(proof))
        return proof, script

    def _newer(self, done: Done, answer: Answer, named: Proof | None) -> list[Proof]:
        """Restore from what is newer than what is named: from all, where nothing is."""
        if done.name == "moved":
            return []
        found = []
        claim = "CLAIM" if "state.changelog.enabled" in self._kind.settings else "NO_CLAIM"
        for snapshot in self._kept.snapshots:
            within = snapshot.relative_to(self._kept.root)
            if named is not None and named.path.rstrip("/").endswith(str(within)):
                break
            if not (self._kept.work / "hurt" / within).exists():
                continue
            self._kept.again("hurt")
            found.append(self._proof(snapshot.as_uri(), self._run(snapshot.as_uri(), claim), done))
            self._note("newer", str(found[-1]))
        return found

    def _run(self, path: str, claim: str) -> Did:
        words = self._kept.plan.words(self._kept.root, killed=False, parallelism=self._parallelism)
        did = self._restores.run({**words, **recovery(path, claim)})
        self._note("restored", f"{path}, {claim}, {self._parallelism} readers: {did}")
        if did.status == "RUNNING":
            self._late = path
        return did

    def _proof(self, path: str, did: Did, done: Done, answer: Answer | None = None) -> Proof:
        splits, sink = self._kept.plan.splits, self._kind.sink
        faults = did.faults(splits) + (elsewhere(answer, did, path, splits) if answer else [])
        if did.status != "FINISHED" or not sink:
            return Proof(path, did, faults)
        found = ledger_of(self._kept.root / "out", self._kind.writes_files)
        found -= Counter({number: 1 for number in done.torn if found[number] > 1})
        again = None if self._kind.writes_files else did.firsts
        return Proof(path, did, faults, **sink_of(found, splits, done.lost, again))

    def _note(self, what: str, text: str) -> None:
        self.told.append(f"--- {what}\n{text}\n")


def _to_be_moved(answer: Answer, place: Path) -> list[Path]:
    """Return the files of the sink that the answer says to move away before the restart."""
    found = [f for f in answer.findings if f["id"] == "files-committed-since"]
    return [place / where["path"] for finding in found for where in finding["where"]]


def failed(number: int, kind: str, reason: BaseException, seconds: float) -> Row:
    """Return the row of a trial that the harness could not run."""
    why = f"{type(reason).__name__}: {reason}".replace("\n", " ")
    return Row(number, kind, "", "", -1, Judged("not run", f"{why[:60]} … {why[-200:]}"), seconds)


def agreed(row: Row) -> bool:
    return row.judged.verdict == AGREED

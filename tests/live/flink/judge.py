"""What a trial proves: cklog's answer beside what the engine then did."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.live.flink.asking import Answer, Script
from tests.live.flink.engine import Did
from tests.live.flink.kinds import SIZE

AGREED, WRONG, REPAIR, CAREFUL, UNCHECKED = "agreed", "wrong with exit 0", "repair failed", "too careful", "unchecked"
VERDICTS = (AGREED, WRONG, REPAIR, CAREFUL, UNCHECKED)
BAD = (WRONG, REPAIR)


@dataclass(frozen=True)
class Proof:
    """A real restore.

    `faults` : why it failed, or what of its state or of the first numbers read is not right
    `missing`, `doubled` : numbers that the sink has not, or more than once, beyond what the damage took
    `lost` : numbers that the sink has not since the damage took them
    """

    path: str
    did: Did
    faults: list[str] = field(default_factory=list)
    missing: int = 0
    doubled: int = 0
    lost: int = 0

    @property
    def perfect(self) -> bool:
        return not (self.faults or self.missing or self.doubled or self.lost)

    def __str__(self) -> str:
        sink = {"missing": self.missing, "doubled": self.doubled, "lost": self.lost}
        told = [*self.faults, *(f"{count} {name} in the sink" for name, count in sink.items() if count)]
        return f"{self.path}: {'; '.join(told) or 'perfect'}"


class Judged(NamedTuple):
    """A verdict and its reason."""

    verdict: str
    why: str = ""


def sink_of(found: Counter[int], splits: int, lost: Counter[int], again_from: dict[int, int] | None) -> dict[str, int]:
    """Count what a sink has not, and has more than once.

    `again_from` : of a sink without transactions, the number of each split from which on it may have them again
    """
    wanted = range(splits * SIZE)
    missing = [n for n in wanted if not found[n]]
    doubled = [
        n for n in wanted if found[n] > 1 and (again_from is None or n < again_from.get(n // SIZE, SIZE * splits))
    ]
    return {
        "missing": sum(not lost[n] for n in missing),
        "lost": sum(bool(lost[n]) for n in missing),
        "doubled": len(doubled),
    }


def elsewhere(answer: Answer, did: Did, path: str, splits: int) -> list[str]:
    """Say in what a restore that worked went on otherwise than the answer says."""
    if did.status != "FINISHED":
        return []
    found = []
    if [number for number, _ in did.restored] != [answer.number]:
        found.append(f"restored {did.restored}, said {answer.number}")
    elif _plain(did.restored[0][1]) != _plain(path):
        found.append(f"restored {did.restored[0][1]}, said {path}")
    said = [int(offset) for offset in answer.offsets if offset.isdigit()]
    ended = [split * SIZE for split in range(1, splits + 1) if split - 1 not in did.firsts]
    if len(said) != len(answer.offsets) or sorted([*did.firsts.values(), *ended]) != _all_of(said, splits):
        found.append(f"read from {sorted(did.firsts.values())}, said {answer.offsets}")
    return found


def _all_of(said: Sequence[int], splits: int) -> list[int]:
    """The offsets with those of splits that were read to their ends, which a checkpoint no longer has."""
    open_ = {(offset - 1) // SIZE if offset % SIZE == 0 and offset else offset // SIZE for offset in said}
    return sorted([*said, *((split + 1) * SIZE for split in range(splits) if split not in open_)])


def _plain(path: str) -> str:
    return "/" + path.removeprefix("file:").lstrip("/").rstrip("/")


def judge(
    answer: Answer, named: Proof | None, newer: Sequence[Proof], script: Script | None = None, flipped: bool = False
) -> Judged:
    """Judge an answer by the restore that it names, and by those of snapshots that are newer than that.

    Parameters
    ----------
    named : the restore by the printed command, None where no command was printed
    newer : what became of newer snapshots, or of all of them where no command was printed
    flipped : whether a bit was flipped, which nothing tells in state without checksums: an answer that says that it did
        not check the state's bytes is not wrong, but `unchecked`
    """
    judged = _by_restores(answer, named, newer, flipped)
    if judged.verdict in BAD or script is None:
        return judged
    wrong = script_faults(answer, named, script)
    return Judged(REPAIR, f"runbook: {wrong[0]}") if wrong else judged


def _by_restores(answer: Answer, named: Proof | None, newer: Sequence[Proof], flipped: bool) -> Judged:
    if answer.action == "restart" and answer.code == 0:
        if named is None:
            return Judged(WRONG, "restart, and no command")
        if not named.perfect:
            return Judged(UNCHECKED if flipped and answer.leaves_open("state") else WRONG, str(named))
    elif answer.action in ("restart", "restart-older"):
        if named is None:
            return Judged(REPAIR, f"{answer.action}, and no command")
        if named.faults or named.missing or (named.lost and "pending-file-missing" not in answer.errors):
            return Judged(REPAIR, str(named))
        if named.doubled and not announces_doubles(answer):
            return Judged(REPAIR, f"not announced: {named}")
    elif named is not None and named.perfect:
        return Judged(CAREFUL, f"{answer.action}: {named}")
    elif named is not None and named.did.status == "FINISHED" and (named.faults or named.missing or named.doubled):
        return Judged(REPAIR, f"{answer.action}: {named}")
    good = [proof for proof in newer if proof.perfect]
    return (
        Judged(CAREFUL, f"newer and fine: {good[0]}") if good else Judged(AGREED, "" if named is None else str(named))
    )


def announces_doubles(answer: Answer) -> bool:
    """Whether an answer says that a sink gets results again."""
    told = " ".join([*answer.notes, *(str(f["message"]) for f in answer.findings)])
    return any(
        word in told for word in ("twice", "doubled", "written again", "write again", "writes again", "duplicat")
    )


def script_faults(answer: Answer, named: Proof | None, script: Script) -> list[str]:
    """Say what a runbook's script did that its text, or the answer, does not say."""
    if not script.text:
        return [f"there is none, exit {script.code}: {script.out[-300:]}"] if answer.commands else []
    started = [call[1:] for call in script.calls if call[0] == "flink"]
    if answer.action == "undetermined" or answer.code in (5, 65, 66):
        found = [f"undetermined, and it ran flink {started}"] if started else []
        return found + ([] if script.code else ["undetermined, and it ended with 0"])
    if answer.action == "start-over":
        return [] if started in ([["run", "job.jar"]], []) else [f"start over by flink {started}"]
    if answer.action == "repair-first":
        return [] if script.code else ["repair first, and it ended with 0"]
    wanted = [[*shlex.split(command)[1:], "job.jar"] for command in answer.commands]
    if started != wanted:
        return [f"flink {started}, the answer says {wanted}; it ended with {script.code}: {script.out[-300:]}"]
    runs = named is not None and named.did.status == "FINISHED"
    return (
        []
        if runs == (script.code == 0)
        else [f"it ended with {script.code}, and the job {'runs' if runs else 'failed'}"]
    )

"""One case: from a number to a damaged folder, a question about it, and what is wrong with the answer."""

from __future__ import annotations

import os
import random
import traceback
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path

from tests.fuzz import budgets, unknown
from tests.fuzz.excuses import Levels, levels
from tests.fuzz.mutations import Change, damage
from tests.fuzz.mutations.whole_files import NOBODY
from tests.fuzz.oracle import Told, violations
from tests.fuzz.subjects import ANY_RUN, SUBJECTS, Question, Subject
from tests.fuzz.tree import Tree
from tests.program import Ended, cklog

_SHARE_OF_ANY_RUN = 1 / 20
_AROUND = 4
"""Bytes before and after a version that are flipped with it."""


@dataclass(frozen=True)
class Tried:
    """What came of a case."""

    case: int
    subject: str
    question: Question
    changes: tuple[Change, ...]
    held: Levels
    base: Told
    found: Told
    wrong: tuple[str, ...]
    cpu: float

    @property
    def mutation(self) -> str:
        """The mutations by their names."""
        return "+".join(change.kind for change in self.changes)


@dataclass
class Bench:
    """Where cases are tried: the subjects' folders below `root`, and what undamaged ones answer."""

    root: Path
    subjects: tuple[Subject, ...] = SUBJECTS
    trees: dict[str, Tree] = field(default_factory=dict)
    bases: dict[tuple[str, Question], Told] = field(default_factory=dict)

    def tree(self, subject: Subject) -> Tree:
        """The subject's folder, written when it is first asked for."""
        if subject.name not in self.trees:
            self.trees[subject.name] = Tree(self.root / subject.name.replace("/", "-"), subject.files())
        return self.trees[subject.name]

    def base(self, subject: Subject, question: Question) -> Told:
        """What the undamaged folder answers."""
        key = subject.name, question
        if key not in self.bases:
            self.bases[key] = asked(self.tree(subject), question)
        return self.bases[key]

    def subject(self, dice: random.Random) -> Subject:
        """Which subject a case is about: the first throw of its dice."""
        return dice.choices(self.subjects, cum_weights=self._weights)[0]

    def _damaged(self, subject: Subject, question: Question, name: str, later: bytes) -> Told:
        """What the folder answers in which those bytes of a file are flipped that are others in its `later` version."""
        tree = self.tree(subject)
        whole = tree.files[name]
        begin = _alike(whole, later)
        end = len(whole) - _alike(whole[:begin:-1], later[:begin:-1])
        begin, end = max(0, begin - _AROUND), end + _AROUND
        key = subject.name, (name, str(begin), str(end), *question)
        if key not in self.bases:
            tree.put(name, whole[:begin] + bytes(byte ^ 0xFF for byte in whole[begin:end]) + whole[end:])
            try:
                self.bases[key] = asked(tree, question)
            finally:
                tree.mend()
        return self.bases[key]

    @cached_property
    def _weights(self) -> list[int]:
        return [*accumulate(subject.weight for subject in self.subjects)]

    def tried(self, case: int, keep: bool = False) -> Tried:
        """Try a case; with `keep` the folder stays as it was damaged."""
        dice = random.Random(case)
        subject = self.subject(dice)
        question = dice.choice(ANY_RUN if dice.random() < _SHARE_OF_ANY_RUN else subject.questions)
        base = self.base(subject, question)
        tree = self.tree(subject)
        changes = tuple(damage(tree, dice) for _ in range(dice.choice((1, 1, 1, 1, 2))))
        held = levels(tree, subject.family, changes)
        later = {name: tree.now(name) or b"" for name in unknown.alone(changes)}
        try:
            found, wrong, cpu = _within_budget(tree, question, any(change.unreadable for change in changes))
        finally:
            if not keep:
                tree.mend()
        wrong += violations(base, found, held) if found.ended.code >= 0 else []
        for name, data in later.items() if found.ended.code >= 0 else ():
            damaged = partial(self._damaged, subject, question, name, data)
            wrong += unknown.violations_of(name, base, found, damaged)
        return Tried(case, subject.name, question, changes, held, base, found, tuple(wrong), cpu)


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def words(tree: Tree, question: Question) -> list[str]:
    """A question as it is typed."""
    return [word.replace("PATH", str(tree.root)) for word in question]


def asked(tree: Tree, question: Question) -> Told:
    """How a question about a tree ends."""
    return Told(cklog(*words(tree, question)), "--json" in question, question[0])


def _within_budget(tree: Tree, question: Question, as_nobody: bool) -> tuple[Told, list[str], float]:
    """The same, and what it used too much of."""
    resident, used, wrong = budgets.begin_peak(), _cpu(), []
    root = as_nobody and os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        with budgets.bounded():
            found = asked(tree, question)
    except budgets.OverBudget:
        place = traceback.extract_stack()
        found = Told(Ended(-1, "", ""), False)
        wrong.append(f"hang: more than {budgets.CPU_SECONDS} s of CPU ({place[-1].name})")
    except MemoryError:
        found = Told(Ended(-1, "", ""), False)
        wrong.append("memory: no more addresses")
    finally:
        if root:
            os.seteuid(0)
    grown = budgets.grown(resident)
    if grown > budgets.MEMORY:
        wrong.append(f"memory: {grown >> 20} MiB more than before")
    return found, wrong, _cpu() - used


def _cpu() -> float:
    times = os.times()
    return times.user + times.system

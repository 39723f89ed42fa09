"""One case by its number: a question, the fault that comes while it is answered, and what is wrong with the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.process import Left, run
from tests.fuzz.cases import words
from tests.fuzz.excuses import STRICT
from tests.fuzz.oracle import ANSWERED, REFUSED, Told, violations
from tests.fuzz.subjects import SUBJECTS, Question, Subject
from tests.fuzz.tree import Tree

_LEAST_BYTES = 40
"""Smaller files are not cut: nothing is left of them."""


@dataclass(frozen=True)
class Asked:
    """A question that a fault comes upon: the folder, the words as typed, the engine, and the dice of the case."""

    tree: Tree
    question: Question
    engine: str
    dice: random.Random
    base: Told

    def words(self) -> list[str]:
        """The command line."""
        return [*words(self.tree, self.question), *(["--engine", self.engine] if self.engine != "local" else [])]

    def file(self) -> str:
        """One of the files that are asked about, by its relative path: any but very small ones."""
        places = [word.removeprefix("PATH").lstrip("/") for word in self.question if word.startswith("PATH")]
        large = [name for name in self.tree.names if len(self.tree.files[name]) >= _LEAST_BYTES]
        names = [name for name in large if name.startswith(tuple(places))]
        return self.dice.choice(names)

    def path(self, name: str) -> str:
        """Where a file lies."""
        return str(self.tree.root / name)


@dataclass(frozen=True)
class Outcome:
    """What a fault was, and how the command that it came upon ended.

    `may` : exit codes that are right beside those of every answer, such as that of a signal
    `alike` : the answer must be the undamaged one, byte for byte
    """

    what: str
    left: Left
    may: frozenset[int] = frozenset()
    alike: bool = False


Fault = Callable[[Asked], Outcome]


@dataclass(frozen=True)
class Tried:
    """What came of a case."""

    case: int
    family: str
    engine: str
    subject: str
    question: Question
    what: str
    code: int
    wrong: tuple[str, ...]
    seconds: float


@dataclass
class Bench:
    """Where cases are tried: the subjects' folders below `root`, and what undamaged ones answer."""

    root: Path
    trees: dict[str, Tree] = field(default_factory=dict)
    bases: dict[tuple[str, Question], Told] = field(default_factory=dict)

    def tried(self, case: int, family: str, fault: Fault, engine: str) -> Tried:
        """Try a case."""
        dice = random.Random(f"{family} {case}")
        subject = dice.choice(SUBJECTS)
        question = dice.choice([one for one in subject.questions if "--json" in one])
        tree = self._tree(subject)
        asked = Asked(tree, question, engine, dice, self._base(subject, question))
        try:
            came = fault(asked)
        finally:
            tree.touched.update(tree.names)
            tree.mend()
        wrong = tuple(_wrong(asked, came))
        ended = came.left.ended
        return Tried(
            case, family, engine, subject.name, question, came.what, ended.code, wrong, round(came.left.seconds, 2)
        )

    def _tree(self, subject: Subject) -> Tree:
        if subject.name not in self.trees:
            self.trees[subject.name] = Tree(self.root / subject.name.replace("/", "-"), subject.files())
        return self.trees[subject.name]

    def _base(self, subject: Subject, question: Question) -> Told:
        key = subject.name, question
        if key not in self.bases:
            self.bases[key] = Told(run(words(self._tree(subject), question)).ended, json=True)
        return self.bases[key]


def _wrong(asked: Asked, came: Outcome) -> Iterator[str]:
    """What may not be; each begins with the name of what is counted."""
    ended, base = came.left.ended, asked.base
    if ended.code == -1 and ended.err.startswith("hung"):
        yield f"hang: {ended.err}"
        return
    # what takes signals had them: else the interpreter itself was starting, and its is the traceback
    begun = "run_interruptibly" in ended.err or "KeyboardInterrupt" not in ended.err
    if begun and ("Traceback" in ended.err or "py4j" in ended.err.lower()):
        yield f"traceback: {ended.err.strip().splitlines()[-1][:200]}"
    if ended.code not in ANSWERED | REFUSED | came.may:
        yield f"exit-{ended.code}: {ended.err.strip()[:300]}"
    if not came.left.came:
        yield "never-came: the fault"
    if came.left.files:
        yield f"left-files: {', '.join(came.left.files[:5])}"
    if came.left.processes:
        yield f"left-processes: {', '.join(came.left.processes[:3])}"
    if came.alike and ended.code not in came.may and (ended.code, ended.out) != (base.ended.code, base.ended.out):
        yield f"another-answer: exit {base.ended.code} -> {ended.code}"
    if ended.code in ANSWERED:
        yield from (f"answer: {one}" for one in violations(base, Told(ended, json=True), STRICT))

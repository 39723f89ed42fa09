"""What a trial proves: the answer of cklog against what Spark did. It knows only answers and outcomes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.live.spark.kinds import Truth

Row = Mapping[str, Any]
Batches = Sequence[tuple[int, Sequence[Row]]]
"""What a sink got, batch by batch; -1 where the sink is given no batch."""
Verdict = Literal["agreed", "too careful", "unchecked", "wrong", "repair failed"]
BAD: tuple[Verdict, ...] = ("wrong", "repair failed")


@dataclass(frozen=True)
class Answer:
    """What `cklog recovery-line PATH --json` said; `twice`: an error says that a sink may get results twice."""

    code: int
    action: str
    committed: int | None = None
    planned: int | None = None
    command: str | None = None
    effects: frozenset[str] = frozenset()
    lost: int | None = 0
    doubled: int | None = 0
    sources: tuple[tuple[Any, Any], ...] = ()
    options: frozenset[str] = frozenset()
    findings: tuple[str, ...] = ()
    twice: bool = False

    @property
    def first(self) -> int | None:
        """Return the batch that it says runs first."""
        if self.planned is not None:
            return self.planned
        return None if self.committed is None else self.committed + 1


def answer_of(code: int, text: str) -> Answer:
    """Return the answer in what was printed; one that cannot be understood has no action."""
    try:
        envelope = json.loads(text)
        result = envelope["result"]
        run = (result.get("runs") or [{}])[0]
        details = result.get("details") or {}
        return Answer(
            code=code,
            action=result["action"],
            committed=details.get("committed"),
            planned=details.get("planned"),
            command=run.get("command"),
            effects=frozenset(found["effect"] for found in envelope["findings"]),
            lost=run.get("lost", 0),
            doubled=run.get("doubled", 0),
            sources=tuple((row["offset"], row.get("replay_to")) for row in result.get("sources") or ()),
            options=frozenset(row["option"] for row in run.get("unchecked", ()) if row["option"]),
            findings=tuple(f"{found['severity']} {found['id']} {found['subject']}" for found in envelope["findings"]),
            twice=any(found["severity"] == "error" and "twice" in found["message"] for found in envelope["findings"]),
        )
    except (ValueError, KeyError, TypeError):
        return Answer(code=code, action="none")


@dataclass(frozen=True)
class Outcome:
    """What a restart of Spark did.

    Attributes
    ----------
    failed : why it failed; "": it did not
    first : the first batch that ran; None: none did
    sources : what that batch read of each source: from and to
    missing, extra : results that are not in the sink, or too often, if what it got after the line is dropped
    perfect : whether nothing is missing or extra, counted from where Spark itself went on
    """

    failed: str = ""
    first: int | None = None
    sources: tuple[tuple[Any, Any], ...] = ()
    missing: int = 0
    extra: int = 0
    perfect: bool = True


@dataclass
class Trial:
    """A trial, and what came of it."""

    number: int
    kind: str
    damage: str
    answer: Answer
    plain: Outcome
    repaired: Outcome | None = None
    script: str = ""
    reasons: list[str] = field(default_factory=list)
    verdict: Verdict = "agreed"


def judge(trial: Trial) -> Verdict:
    """Return the verdict of a trial, and note in it why."""
    answer, plain = trial.answer, trial.plain
    if answer.action == "restart":
        wrong = _disproved(answer, plain)
        trial.reasons += [f"restart with exit {answer.code}, but {why}" for why in wrong]
        trial.verdict = "wrong" if wrong else "agreed"
    else:
        careful = not plain.failed and plain.perfect
        trial.verdict = "too careful" if careful else "agreed"
        if trial.repaired is not None:
            failed = _disproved(answer, trial.repaired, repaired=True)
            trial.reasons += [f"after the repair {why}" for why in failed]
            trial.verdict = "repair failed" if failed else trial.verdict
    if trial.script:
        trial.reasons.append(f"the script: {trial.script}")
        trial.verdict = "repair failed"
    return trial.verdict


def _disproved(answer: Answer, outcome: Outcome, repaired: bool = False) -> list[str]:
    """Say how an outcome is not what the answer says."""
    if outcome.failed:
        return [f"it fails: {outcome.failed[:400]}"]
    wrong = []
    after = -1 if answer.committed is None else answer.committed
    firsts = (after + 1, answer.planned) if repaired else (answer.first,)
    if outcome.first is not None and outcome.first not in firsts:
        wrong.append(f"batch {outcome.first} ran first, not {firsts[0]}")
    elif not repaired and outcome.sources and len(outcome.sources) == len(answer.sources):
        wrong += _elsewhere(answer, outcome)
    if outcome.missing and not answer.lost and not answer.effects & {"data-lost"}:
        wrong.append(f"{outcome.missing} results are missing")
    if outcome.extra and not (answer.doubled or answer.twice or "data-duplicated" in answer.effects):
        wrong.append(f"{outcome.extra} results are extra")
    return wrong


def _elsewhere(answer: Answer, outcome: Outcome) -> list[str]:
    said = [(start, end if answer.planned is not None else None) for start, end in answer.sources]
    did = [(start, end if answer.planned is not None else None) for start, end in outcome.sources]
    if sorted(map(_text, said)) == sorted(map(_text, did)):
        return []
    return [f"it read {did}, not {said}"]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def compared(truth: Truth, expected: Sequence[Row], batches: Batches, line: int, after: Batches) -> tuple[int, int]:
    """Count the results that are missing and extra, of what a sink got up to the line and after it."""
    got = [row for batch, rows in batches if batch <= line for row in rows]
    got += [row for _, rows in after for row in rows]
    return against(truth, expected, got)


def against(truth: Truth, expected: Sequence[Row], got: Sequence[Row]) -> tuple[int, int]:
    """Count the results that are missing and extra.

    >>> against("append", [{"n": 1}, {"n": 2}], [{"n": 2}, {"n": 2}])
    (1, 1)
    >>> against("latest", [{"k": "a", "c": 3}], [{"k": "a", "c": 2}, {"k": "a", "c": 4}])
    (0, 1)
    >>> against("numbers", [], [{"n": 0}, {"n": 3}, {"n": 3}])
    (2, 1)
    """
    if truth == "numbers":  # those below zero are counted downwards
        seen = Counter(row["n"] for row in got)
        whole = [*range(max([*seen, -1]) + 1), *range(min([*seen, 0]), 0)]
        return sum(n not in seen for n in whole), sum(seen.values()) - len(seen)
    if truth == "latest":
        return _latest(expected, got)
    want, have = (Counter(map(_text, rows)) for rows in (expected, got))
    return sum((want - have).values()), sum((have - want).values())


def _latest(expected: Iterable[Row], got: Iterable[Row]) -> tuple[int, int]:
    want, have = ({row["k"]: row for row in rows} for rows in (expected, got))
    missing = sum(k not in have or have[k]["c"] < row["c"] for k, row in want.items())
    extra = sum(
        have[k]["c"] > row["c"] or (have[k]["c"] == row["c"] and have[k] != row) for k, row in want.items() if k in have
    )
    return missing, extra + len(have.keys() - want.keys())

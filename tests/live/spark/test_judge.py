"""The judging of a campaign, on outcomes that no engine gave: what is wrong is counted as wrong."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.spark.__main__ import table
from tests.live.spark.judge import Answer, Outcome, Trial, against, answer_of, compared, judge
from tests.live.spark.kinds import KINDS, kinds_of, rows_of

RESTART = Answer(code=0, action="restart", committed=5, planned=6, sources=(({"logOffset": 5}, {"logOffset": 6}),))
REPAIR = Answer(code=3, action="repair-first", committed=4, command="rm -- ck/offsets/6", lost=None, doubled=None)
AS_SAID = Outcome(first=6, sources=(({"logOffset": 5}, {"logOffset": 6}),))
BACK = Outcome(first=5)
FAILED = Outcome(failed="StreamingQueryException", perfect=False)


def verdict(answer: Answer, plain: Outcome, repaired: Outcome | None = None, script: str = "") -> str:
    return judge(Trial(0, "map", "", answer, plain, repaired, script))


def test_what_was_said_is_agreed() -> None:
    assert verdict(RESTART, AS_SAID) == "agreed"
    assert verdict(replace(RESTART, planned=None, sources=()), replace(AS_SAID, sources=())) == "agreed"
    assert verdict(REPAIR, FAILED, BACK) == "agreed"


@pytest.mark.parametrize(
    "outcome",
    [
        FAILED,
        replace(AS_SAID, first=7),
        replace(AS_SAID, sources=(({"logOffset": 4}, {"logOffset": 6}),)),
        replace(AS_SAID, sources=(({"logOffset": 5}, {"logOffset": 7}),)),
        replace(AS_SAID, missing=1),
        replace(AS_SAID, extra=1),
    ],
)
def test_a_restart_that_is_another_than_said_is_wrong(outcome: Outcome) -> None:
    assert verdict(RESTART, outcome) == "wrong"
    assert verdict(replace(RESTART, code=3), outcome) == "wrong"


def test_what_is_announced_is_not_wrong() -> None:
    assert verdict(replace(RESTART, effects=frozenset({"data-lost"})), replace(AS_SAID, missing=1)) == "agreed"
    assert verdict(replace(RESTART, effects=frozenset({"data-lost"})), replace(AS_SAID, extra=1)) == "wrong"
    assert verdict(replace(RESTART, doubled=4), replace(AS_SAID, extra=1)) == "agreed"
    assert verdict(replace(RESTART, lost=None), replace(AS_SAID, missing=1)) == "wrong"
    assert verdict(replace(REPAIR, twice=True), FAILED, replace(BACK, extra=1)) == "agreed"


@pytest.mark.parametrize("outcome", [FAILED, replace(BACK, first=9), replace(BACK, missing=1), replace(BACK, extra=1)])
def test_a_repair_that_leads_elsewhere_has_failed(outcome: Outcome) -> None:
    assert verdict(REPAIR, FAILED, outcome) == "repair failed"
    assert verdict(REPAIR, AS_SAID, outcome) == "repair failed"


def test_a_script_that_does_not_do_what_it_says_has_failed() -> None:
    assert verdict(RESTART, AS_SAID, script="exit 1") == "repair failed"


def test_a_repair_that_was_not_needed_is_too_careful() -> None:
    assert verdict(REPAIR, AS_SAID, BACK) == "too careful"
    assert verdict(REPAIR, replace(AS_SAID, missing=1, perfect=False), BACK) == "agreed"


def test_an_answer_that_cannot_be_read_is_no_restart() -> None:
    assert answer_of(70, "Traceback").action == "none"
    assert answer_of(66, json.dumps({"error": {"id": "not-found"}})).action == "none"


def test_what_the_sink_got_after_the_line_does_not_count() -> None:
    rows = [{"n": n} for n in range(4)]
    before = [(0, rows[:1]), (1, rows[1:2]), (2, rows[2:3])]
    assert compared("append", rows, before, 1, [(2, rows[2:])]) == (0, 0)
    assert compared("append", rows, before, 2, [(2, rows[2:])]) == (0, 1)
    assert compared("append", rows, before, 0, [(2, rows[2:])]) == (1, 0)


def test_results_are_counted() -> None:
    assert against("append", [{"n": 1}, {"n": 1}], [{"n": 1}]) == (1, 0)
    assert against("latest", [{"k": "a", "c": 2, "s": 3}], [{"k": "a", "c": 2, "s": 4}]) == (0, 1)
    assert against("latest", [{"k": "a", "c": 2}], [{"k": "a", "c": 3}, {"k": "a", "c": 1}]) == (1, 0)
    assert against("numbers", [], [{"n": n} for n in (0, 1, 3, 3, -1, -3)]) == (2, 1)


def test_each_version_has_its_kinds() -> None:
    assert all(len(kinds_of(version)) >= 25 for version in ("3.5.9", "4.0.5", "4.3.0"))
    assert {KINDS[name].how for name in kinds_of("4.3.0")} >= {"async", "continuous", "repartition"}
    assert {KINDS[name].query for name in kinds_of("4.3.0")} >= {"tws", "timers", "pandas", "named", "sessions", "join"}


def test_records_are_numbered_and_half_of_them_come_twice() -> None:
    rows = [row for file in range(10) for row in rows_of(file)]
    assert [row["n"] for row in rows] == list(range(40))
    assert len({row["d"] for row in rows}) == len({(row["d"], row["dt"]) for row in rows}) == 22


def test_a_table_counts_by_kind() -> None:
    trials = [Trial(0, "map", "", RESTART, AS_SAID), Trial(1, "map", "a cut", RESTART, FAILED, verdict="wrong")]
    last = [line.split() for line in table(trials).splitlines()][1:]
    assert last == [[name, "2", "1", "1", "0", "0", "1", "0"] for name in ("map", "all")]


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("*.py")), ids=lambda path: path.name)
def test_a_campaign_imports_nothing_of_cklog(path: Path) -> None:
    tree = ast.walk(ast.parse(path.read_text()))
    names = [node.module or "" for node in tree if isinstance(node, ast.ImportFrom)]
    assert not [name for name in names if name.split(".")[0] == "cklog"]

"""The campaign's own judging, on outcomes that are made up: what is wrong is counted as wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.live.flink.asking import Answer, Script, restore_of
from tests.live.flink.campaign import passed, table
from tests.live.flink.engine import Did
from tests.live.flink.judge import (
    AGREED,
    CAREFUL,
    REPAIR,
    UNCHECKED,
    WRONG,
    Judged,
    Proof,
    elsewhere,
    judge,
    script_faults,
    sink_of,
)
from tests.live.flink.kinds import KEYS, KINDS, SIZE, SLOTS, Plan, kinds_of
from tests.live.flink.trial import Row

COMMAND = "flink run -s file:/data/ck/job/chk-3"
PATH = "file:/data/ck/job/chk-3"
RESTART = Answer(0, "restart", number=3, commands=[COMMAND], offsets=["5"])
OLDER = replace(RESTART, code=3, action="restart-older")
DID = Did("FINISHED", restored=[(3, "file:/data/ck/job/chk-3")], completed=[4], firsts={0: 5}, read=5)
FINE = Proof(PATH, DID)
FAILED = Proof(PATH, Did("FAILED"), ["FAILED: FileNotFoundException"])


def told(first: int = 5, more: int = 0) -> str:
    """What a job prints that goes on from a number, and counts `more` than it should."""
    lines = ["Restoring job ab from Checkpoint 3 @ 17 for ab located at file:/data/ck/job/chk-3.", f"READ {first}"]
    lines += [f"FIRST 0 {first}", f"STATE 0 {first % KEYS} {first} {len(range(first % KEYS, first, KEYS))}"]
    for key in range(KEYS):
        numbers = range(key, SIZE, KEYS)
        slots = {number % SLOTS: number for number in numbers}
        lines.append(f"TOTAL 0 {key} {len(numbers) + more * (key == 4)} {sum(slots.values())}")
    return "\n".join([*lines, "Completed checkpoint 4 for job ab (10 bytes)", ""])


def test_a_job_that_counts_each_number_once_is_exact() -> None:
    did = Did.told("FINISHED", told())
    assert (did.restored, did.firsts, did.faults(1)) == (DID.restored, {0: 5}, [])
    assert elsewhere(RESTART, did, PATH, 1) == []


@pytest.mark.parametrize(
    "text",
    [
        told(more=1),
        told().replace("READ 5", "READ 6"),
        told().replace("STATE 0 5 5 0", "STATE 0 5 5 1"),
        told().replace("TOTAL 0 7 ", "LOST 0 7 "),
        told().replace("Completed", "Declined"),
    ],
    ids=["counted twice", "read", "held", "key lost", "no checkpoint"],
)
def test_a_job_with_other_state_is_not_exact(text: str) -> None:
    assert Did.told("FINISHED", text).faults(1)


def test_a_job_that_goes_on_elsewhere_than_said_is_noticed() -> None:
    assert elsewhere(replace(RESTART, number=2), DID, PATH, 1)
    assert elsewhere(replace(RESTART, offsets=["6"]), DID, PATH, 1)
    assert elsewhere(replace(RESTART, offsets=["unknown"]), DID, PATH, 1)
    assert elsewhere(RESTART, DID, PATH.replace("data", "copy"), 1)


@pytest.mark.parametrize(
    ("answer", "named", "newer", "verdict"),
    [
        (RESTART, FINE, [], AGREED),
        (RESTART, FAILED, [], WRONG),
        (RESTART, None, [], WRONG),
        (RESTART, replace(FINE, missing=1), [], WRONG),
        (RESTART, replace(FINE, doubled=1), [], WRONG),
        (RESTART, replace(FINE, lost=1), [], WRONG),
        (replace(RESTART, unchecked=[{"kind": "sink"}]), FAILED, [], WRONG),
        (replace(RESTART, unchecked=[{"kind": "state"}]), FAILED, [], WRONG),
        (RESTART, FINE, [FINE], CAREFUL),
        (OLDER, FINE, [FAILED], AGREED),
        (OLDER, FAILED, [], REPAIR),
        (OLDER, None, [], REPAIR),
        (OLDER, FINE, [FINE], CAREFUL),
        (OLDER, replace(FINE, missing=1), [], REPAIR),
        (OLDER, replace(FINE, doubled=1), [], REPAIR),
        (replace(OLDER, notes=["results are written twice"]), replace(FINE, doubled=1), [], AGREED),
        (replace(RESTART, code=3), FAILED, [], REPAIR),
        (replace(OLDER, action="repair-first"), FAILED, [], AGREED),
        (replace(OLDER, action="repair-first"), FINE, [], CAREFUL),
        (replace(OLDER, action="repair-first"), replace(FINE, lost=1), [], AGREED),
        (replace(OLDER, action="repair-first"), replace(FINE, missing=1), [], REPAIR),
        (Answer(5, "undetermined"), None, [FAILED], AGREED),
        (Answer(5, "undetermined"), None, [FINE], CAREFUL),
        (Answer(4, "start-over"), None, [FAILED, FINE], CAREFUL),
    ],
)
def test_an_answer_is_judged_by_restores(answer: Answer, named: Proof | None, newer: list[Proof], verdict: str) -> None:
    assert judge(answer, named, newer).verdict == verdict


def test_a_flipped_bit_is_wrong_unless_the_answer_leaves_the_state_open() -> None:
    assert judge(RESTART, FAILED, [], flipped=True).verdict == WRONG
    assert judge(replace(RESTART, unchecked=[{"kind": "sink"}]), FAILED, [], flipped=True).verdict == WRONG
    assert judge(replace(RESTART, unchecked=[{"kind": "state"}]), FAILED, [], flipped=True).verdict == UNCHECKED


def test_a_runbook_does_what_its_text_and_the_answer_say() -> None:
    did = Script(0, [["job", "stop"], ["flink", "run", "-s", PATH, "job.jar"], ["job", "running"]], "set -eu", "")
    assert script_faults(RESTART, FINE, did) == []
    for answer, named, script in (
        (RESTART, FAILED, did),
        (RESTART, FINE, replace(did, code=1)),
        (RESTART, FINE, replace(did, calls=[["flink", "run", "job.jar"]])),
        (replace(RESTART, commands=[f"{COMMAND} -claimMode CLAIM"]), FINE, did),
        (Answer(5, "undetermined"), None, replace(did, code=5)),
        (Answer(5, "undetermined"), None, replace(did, calls=[])),
        (RESTART, FINE, Script(66, [], "", "several runs")),
    ):
        assert script_faults(answer, named, script)
    assert script_faults(Answer(5, "undetermined"), None, Script(66, [], "", "several runs")) == []
    assert judge(OLDER, FINE, [], replace(did, code=1)).verdict == REPAIR


def test_a_sink_is_counted_beside_what_the_damage_took() -> None:
    whole = Counter(range(SIZE))
    found = whole + Counter([7, 9]) - Counter([3, 4])
    assert sink_of(whole, 1, Counter(), None) == {"missing": 0, "lost": 0, "doubled": 0}
    assert sink_of(found, 1, Counter([4]), None) == {"missing": 1, "lost": 1, "doubled": 2}
    assert sink_of(found, 1, Counter(), {0: 8}) == {"missing": 2, "lost": 0, "doubled": 1}


def test_a_campaign_fails_by_one_wrong_trial() -> None:
    rows = [Row(number, "heap", "", "restart", 0, Judged(AGREED), 1.0) for number in range(3)]
    assert passed(rows)
    for verdict in (WRONG, REPAIR, "not run"):
        assert not passed([*rows, rows[0]._replace(judged=Judged(verdict))])
    counted = table([*rows, rows[0]._replace(judged=Judged(WRONG))]).splitlines()[1]
    assert counted.split() == ["heap", "4", "3", "1", "0", "0", "0", "0"]


def test_a_plan_is_drawn_by_the_number_and_each_kind_comes_once() -> None:
    names = kinds_of("1.20.5")
    assert "forst" not in names
    assert {Plan.drawn("1.20.5", 0, group).kind for group in range(len(names))} == set(names)
    assert Plan.drawn("2.3.0", 3, 8) == Plan.drawn("2.3.0", 3, 8)
    assert {*names, "forst"} == set(KINDS) == set(kinds_of("2.3.0"))


def test_a_command_is_read_with_its_claim_mode() -> None:
    assert restore_of(COMMAND) == (PATH, "NO_CLAIM")
    assert restore_of("flink run -s '/a b' -claimMode CLAIM") == ("/a b", "CLAIM")
    with pytest.raises(ValueError, match="mv"):
        restore_of("mv a b")

"""The oracles about one answer: each notices an answer made up to contradict itself, and lets a right one pass."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.fuzz import unknown
from tests.fuzz.mutations import versions
from tests.fuzz.mutations.fields import hadoop
from tests.fuzz.oracle import Told
from tests.fuzz.subjects import BY_NAME
from tests.fuzz.tree import Tree
from tests.oracles.answers.contradictions import ASKS, ORDER, contradictions, contradictions_of_text
from tests.program import Ended

VERDICTS = {0: "ok", 3: "findings", 4: "unrecoverable", 5: "indeterminate"}


def finding(effect: str, severity: str = "error", message: str = "a file is damaged", **more: Any) -> dict[str, Any]:
    common = {"id": "corrupt-file", "subject": "ck/commits/5", "where": [{"path": "ck/commits/5", "offset": 0}]}
    return {**common, "severity": severity, "effect": effect, "message": message, **more}


def answered(action: str, *findings: dict[str, Any], command: str = "recovery-line", **more: Any) -> dict[str, Any]:
    """An answer about one run, whose action is given, and what its findings say of the run."""
    blocking = [f"{f['id']} {f['subject']}" for f in findings if f["severity"] == "error" and f["effect"] != "none"]
    run = {"run": "job", "action": action, "command": None, "note": None, "lost": None, "doubled": None}
    code = 5 if action == "undetermined" else 3 if any(f["severity"] == "error" for f in findings) else 0
    return {
        "schema": f"cklog.{command}/1",
        "verdict": VERDICTS[code],
        "findings": list(findings),
        "result": {"action": action, "runs": [run | {"blocked_by": blocking} | more], "details": {}},
    }


def kinds(code: int, answer: dict[str, Any]) -> set[str]:
    return {said.partition(":")[0] for said in contradictions(code, answer)}


@pytest.mark.parametrize("effect", ASKS)
@pytest.mark.parametrize("action", ORDER)
def test_an_action_that_asks_less_than_an_error_is_noticed(action: str, effect: str) -> None:
    less = ORDER.index(action) < ORDER.index(ASKS[effect])
    code = 5 if action == "undetermined" else 3
    found = kinds(code, answered(action, finding(effect, id="over-recovery-time")))
    assert found == ({"action"} if less else set())


def test_the_effects_of_the_oracle_are_those_of_the_page() -> None:
    page = (REPOSITORY / "docs" / "json.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| (`[a-z-]+`|nothing) \|$", page, re.MULTILINE)
    assert {effect: asked.strip("`") for effect, asked in rows} == ASKS | {"none": "nothing"}


def with_headline(text: str) -> dict[str, Any]:
    found = answered("repair-first", finding("data-lost"))
    found["result"]["details"]["headline"] = text
    return found


FAILS = "the file is torn. The restart fails. Put the file back from a backup"
WRONG: dict[str, tuple[str, int, dict[str, Any]]] = {
    "exit 0 next to an error": ("exit", 0, answered("repair-first", finding("data-lost"))),
    "exit 3 without an error": ("exit", 3, answered("restart")),
    "a verdict of another exit code": ("exit", 4, answered("restart-older", finding("older-line"))),
    "undetermined with exit 3": ("exit", 3, answered("undetermined", finding("unknown"))),
    "exit 5 with an action": ("exit", 5, answered("repair-first", finding("data-lost"))),
    "a text that the restart fails": ("text", 3, answered("restart-older", finding("older-line", message=FAILS))),
    "a restart next to what may be": ("severity", 0, answered("restart", finding("data-lost", "warning"))),
    "an error that does nothing": ("severity", 3, answered("restart", finding("none"))),
    "nothing is lost": ("sentence", 3, with_headline("Batch 0 runs again, and nothing is lost.")),
    "nothing was found": ("sentence", 3, with_headline("repair-first: nothing found that stops it; from batch 5.")),
    "0 lost": ("sentence", 3, answered("repair-first", finding("data-lost"), lost=0)),
    "0 doubled": ("sentence", 3, answered("repair-first", finding("data-duplicated"), doubled=0)),
    "an error that no run has": ("action", 3, answered("repair-first", finding("data-lost"), blocked_by=[])),
    "a run with an error of no answer": ("action", 0, answered("restart", blocked_by=["corrupt-file x"])),
    "impact next to an error": ("action", 3, answered("restart", finding("data-lost"), command="impact-sinks")),
    "a runbook": ("action", 3, answered("restart", finding("data-lost"), command="runbook")),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_contradiction_is_noticed(name: str) -> None:
    kind, code, answer = WRONG[name]
    assert kind in kinds(code, answer)


def test_a_command_where_nothing_is_known_is_noticed() -> None:
    answer = answered("undetermined", finding("unknown"))
    assert kinds(5, answer) == set()
    [run] = answer["result"]["runs"]
    run["command"] = "flink run -s chk-3"
    assert kinds(5, answer) == {"action"}


def test_of_several_runs_each_has_the_action_of_its_own_errors() -> None:
    answer = answered("repair-first", finding("data-lost"))
    [run] = answer["result"]["runs"]
    answer["result"]["runs"].append(run | {"run": "other", "action": "restart", "blocked_by": []})
    assert kinds(3, answer) == set()
    answer["result"]["runs"][1]["blocked_by"] = run["blocked_by"]
    assert kinds(3, answer) == {"action"}


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({"exit": 0, "errors": 2, "action": "restart"}, True),
        ({"exit": 3, "errors": 2, "action": "undetermined"}, True),
        ({"exit": 5, "errors": 2, "action": "undetermined"}, False),
        ({"exit": 65, "errors": 0, "action": "restart", "error_id": "corrupt-input"}, True),
        ({"exit": 65, "errors": 0, "action": "undetermined", "error_id": "corrupt-input"}, False),
    ],
)
def test_a_row_of_scan_agrees_with_itself(row: dict[str, Any], wrong: bool) -> None:
    answer: dict[str, Any] = {"schema": "cklog.scan/1", "verdict": "findings", "findings": []}
    answer["result"] = {"action": row["action"], "runs": [{"error_id": None, **row}]}
    assert bool(kinds(3, answer)) == wrong


@pytest.mark.parametrize(
    ("code", "out", "wrong"),
    [
        (0, "Action: restart (nothing found that stops it).\n\nerror [corrupt-file] x", True),
        (3, "Action: restart (nothing found that stops it).\n\nerror [corrupt-file] x", True),
        (3, "Action: repair-first (a restart fails).\n\nerror [corrupt-file] x", False),
        (0, "Action: restart (nothing found that stops it).\n\nwarning [torn-tail] x", False),
    ],
)
def test_a_printed_answer_that_contradicts_its_errors_is_noticed(code: int, out: str, wrong: bool) -> None:
    assert bool(list(contradictions_of_text("recovery-line", code, out))) == wrong


# --- a file of a later version

NAME = "ck/commits/5"
KNOWN = finding("unknown", id="unknown-version", message="version v99, known are v1 to v3. Use a newer cklog")


def told(code: int, answer: dict[str, Any] | None, out: str = "") -> Told:
    return Told(Ended(code, out or json.dumps(answer), "cklog: nothing can be read"), True, "recovery-line")


WHOLE = told(0, answered("restart"))
DAMAGED = told(3, answered("repair-first", finding("restart-fails")))
BLAMED: dict[str, tuple[str, Told]] = {
    "refused": ("unknown-refused", told(65, None, '{"error": {}}\n')),
    "called damaged": ("unknown-as-damage", told(3, answered("restart-older", finding("older-line")))),
    "said to stop a restart": (
        "unknown-as-damage",
        told(3, answered("repair-first", finding("restart-fails", id="missing-batch-file"))),
    ),
    "advised to be removed": (
        "unknown-removed",
        told(5, answered("undetermined", KNOWN | {"message": "version v99: remove the file"})),
    ),
    "removed by a command": (
        "unknown-removed",
        told(3, answered("repair-first", KNOWN, note=f"run rm -- ./{NAME} ./{NAME}.crc")),
    ),
    "listed to be removed": ("unknown-removed", told(5, answered("undetermined", KNOWN))),
    "decided upon": ("unknown-decided", told(3, answered("repair-first", KNOWN))),
    "passed over": ("unknown-ignored", WHOLE),
}
BLAMED["listed to be removed"][1].answer["result"]["details"]["remove"] = [NAME]  # type: ignore[index]


@pytest.mark.parametrize("name", BLAMED)
def test_whatever_but_unknown_is_said_of_a_file_of_a_later_version_is_noticed(name: str) -> None:
    oracle, found = BLAMED[name]
    wrong = list(unknown.violations_of(NAME, WHOLE, found, lambda: DAMAGED))
    assert oracle in {one.partition(":")[0] for one in wrong}


def test_what_is_right_about_a_file_of_a_later_version_passes() -> None:
    right = told(5, answered("undetermined", KNOWN))
    assert list(unknown.violations_of(NAME, WHOLE, right, lambda: DAMAGED)) == []
    assert list(unknown.violations_of(NAME, WHOLE, WHOLE, lambda: WHOLE)) == [], "nobody reads the file"
    assert {"corrupt-file", "checksum-mismatch", "bad-record"} <= unknown.DAMAGE


@pytest.mark.parametrize(("row", "wrong"), [({"exit": 3}, True), ({"exit": 5}, False)])
def test_a_row_of_scan_that_is_a_bound_needs_no_word_of_a_later_version(row: dict[str, Any], wrong: bool) -> None:
    row |= {"path": "p", "worst": ["corrupt-file"], "errors": 1, "warnings": 0, "infos": 0, "message": "", "chosen": ""}
    found = {"schema": "cklog.scan/1", "verdict": "findings", "findings": [], "result": {"runs": [row]}}
    assert bool(list(unknown.violations_of(NAME, WHOLE, told(3, found), lambda: DAMAGED))) == wrong


SUBJECTS = (
    *("spark-wordcount", "spark-state-rocksdb", "flink-orders", "kafka-broker", "connect-offsets", "crafted/join-gz"),
    *("crafted/join-zst", "crafted/join-parquet", "checkmate-uncoordinated", "tables/spark-iceberg-branch"),
    *("tables/spark-delta-restored", "tables/spark-hudi", "tables/spark-paimon-twice"),
)


def test_every_field_of_a_version_is_changed_in_some_subject(tmp_path: Path) -> None:
    """Each edit finds its field, in a file that it leaves as long as a reader of versions needs."""
    left = {edit.__qualname__ for _, edits in versions.FIELDS for edit in edits}
    for name in SUBJECTS:
        for path, data in BY_NAME[name].files().items():
            for edit in versions.edits_of(path):
                for seed in range(6 if edit.__qualname__ in left else 0):
                    edited = edit(path, data, random.Random(seed))
                    if edited is not None and edited[0] != data:
                        left.discard(edit.__qualname__)
    assert left == set()


def test_checksums_beside_a_file_of_a_later_version_are_right(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "run", BY_NAME["spark-wordcount"].files())
    for seed in range(30):
        change = versions.later(tree, random.Random(seed))
        assert change is not None
        data, side = tree.now(change.unknown), tree.now(change.paths[-1])
        assert data is not None
        assert len(change.paths) == 1 or side == hadoop(data)
        tree.mend()
    whole = tree.files["ck/commits/5"]
    assert tree.files["ck/commits/.5.crc"] == hadoop(whole), "the checksum that Spark's file system writes"

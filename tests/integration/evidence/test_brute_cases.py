"""Runs of which brute force found another answer: each has a README that says the right one."""

from __future__ import annotations

from tests.integration.evidence.cases import CASES, answer, kept

pytestmark = kept


def test_what_is_in_no_line_is_needed_by_no_failure() -> None:
    run = "brute/useless-not-obsolete/run-events"
    counts = answer("z-cycles", run)[1]["result"]["counts"]
    assert (counts["useless"], counts["obsolete"]) == (1, 1)
    (row,) = [row for row in answer("retention", run)[1]["result"]["rows"] if row["path"] == "c/0=1"]
    assert (row["fate"], row["needed_by"]) == ("KEEP", None), "records may be missing here: it stays for that alone"


def test_the_message_that_is_lost_is_named_alone() -> None:
    restored = CASES / "brute/restored-span/line.json"
    _, found = answer("verify", "brute/restored-span/run", "--restored", restored)
    (span,) = found["result"]["spans"]
    assert (span["fate"], span["start"], span["end"], span["messages"]) == ("lost", 2, 3, 1)


def test_what_a_failed_subtask_did_after_its_newest_checkpoint_is_undone() -> None:
    _, found = answer("recovery-line", "brute/rollback-received/run")
    undone = {
        f"{row['operator']}/{row['subtask']}": (row["received"], row["sent"]) for row in found["result"]["rollback"]
    }
    assert undone == {"a/0": (3, 4), "a/1": (0, 0), "b/0": (1, 1), "b/1": (0, 0)}

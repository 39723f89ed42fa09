"""Folders that were found with a wrong answer: each has a README that says the right one."""

from __future__ import annotations

import pytest

from tests.integration.evidence.cases import CASES, answer, kept

pytestmark = kept


@pytest.mark.parametrize(
    ("path", "committed", "planned"),
    [("engines/spark-commits-v3/ck", 9, 10), ("mission/spark-commit-v3/run/ck", 2, None)],
)
def test_commits_of_version_3(path: str, committed: int, planned: int | None) -> None:
    code, found = answer("recovery-line", path)
    assert (code, found["result"]["action"]) == (0, "restart")
    assert (found["result"]["details"]["committed"], found["result"]["details"]["planned"]) == (committed, planned)
    assert not [f for f in found["findings"] if f["severity"] == "error"]


def test_metadata_of_a_version_that_is_not_known() -> None:
    run = CASES / "mission/flink-unknown-version/run"
    code, found = answer("recovery-line", str(run), "--map", f"file:///srv/cklog-sample/flink-orders={run}")
    assert (code, found["verdict"], found["result"]["action"]) == (5, "indeterminate", "undetermined")


def test_checkpoints_behind_the_moment_asked_for() -> None:
    _, found = answer("recovery-line", "brute/as-of-unplaced/run", "--as-of", "1700000000100")
    assert "unplaced-checkpoint" not in {f["id"] for f in found["findings"]}


def test_work_that_a_failure_undoes() -> None:
    _, found = answer("recovery-line", "brute/failed-at-lost/run", "--failed-at", "all")
    assert [moment["lost_ms"] for moment in found["result"]["moments"]][-2:] == [50_000, 60_000]


@pytest.mark.parametrize(("run", "behind"), [("run", ("op2", "op3")), ("run-minimal", ("op0",))])
def test_pairs_that_a_join_does_not_make(run: str, behind: tuple[str, ...]) -> None:
    path = f"brute/impact-join-stateless-missing/{run}"
    _, found = answer("impact", path, "--recovery", "stateless-rollback")
    missing = {output["output"]: output["missing"]["most"] for output in found["result"]["outputs"]}
    assert all(missing[name] is None or missing[name] >= 11 for name in behind)


def test_an_entry_of_a_source_log_without_its_timestamp() -> None:
    code, found = answer("recovery-line", "users/spark-source-log-entry", "--map", "file:///srv/job/h3/A/job=.")
    assert (code, found["result"]["action"]) == (3, "repair-first")
    errors = [f for f in found["findings"] if f["severity"] == "error"]
    assert any("sources/0/33" in f["message"] and "timestamp" in f["message"] for f in errors)


def test_a_run_that_goes_on_after_a_recovery() -> None:
    code, found = answer("recovery-line", "users/native-checkpoint0")
    assert (code, found["result"]["action"]) == (0, "restart")
    states = {
        entry["operator"]: (entry["checkpoint"], entry["state"], entry["uri"]) for entry in found["result"]["line"]
    }
    assert states == {"agg": (0, "stored", "ck/a0"), "src": (0, "stored", "ck/s0")}
    assert [(source["source"], source["offset"]) for source in found["result"]["sources"]] == [("in-0", 532)]
    assert [(c["replay_from"], c["replay_to"]) for c in found["result"]["channels"]] == [(258, 321)]

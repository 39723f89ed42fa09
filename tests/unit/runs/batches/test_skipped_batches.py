"""A batch in flight that a Delta table has already: its sink skips it unrun, so that nobody writes its state."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog

SETTING = '"spark.sql.streaming.stateStore.providerClass"'


def checkpoint(folder: Path, *, whole: bool = True, ids: bool = False) -> Path:
    """A word count by deltas with a batch in flight; `whole`: the state after that batch is there."""
    run = shutil.copytree(SAMPLES / "spark-state-hdfs", folder / "run")
    if whole:  # batch 6 is in flight then, whose state version 7 was written
        for place in ("offsets", "commits"):
            number = 7 if place == "offsets" else 6
            (run / f"ck/{place}/{number}").unlink()
            (run / f"ck/{place}/.{number}.crc").unlink()
    if ids:
        for plan in (run / "ck/offsets").glob("[0-9]*"):
            named = '"spark.sql.streaming.stateStore.checkpointFormatVersion":"2",' + SETTING
            plan.write_text(plan.read_text().replace(SETTING, named))
            (plan.parent / f".{plan.name}.crc").unlink()
    return run


def table(folder: Path, query: str, batches: int) -> Path:
    """A Delta table whose commits have taken batches 0 to `batches` - 1 of a query, one each."""
    log = folder / "table/_delta_log"
    log.mkdir(parents=True)
    schema = json.dumps({"type": "struct", "fields": []})
    created = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    first: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": created | {"partitionColumns": [], "configuration": {}, "createdTime": 1}},
    ]
    for n in range(batches):
        add = {"path": f"part-{n}", "partitionValues": {}, "size": 1, "modificationTime": n, "dataChange": True}
        actions = [*(first if n == 0 else []), {"txn": {"appId": query, "version": n, "lastUpdated": n}}, {"add": add}]
        actions.append({"commitInfo": {"timestamp": n, "operation": "STREAMING UPDATE"}})
        (log / f"{n:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return log.parent


def asked(folder: Path, run: Path, batches: int, *words: str, query: str = "") -> tuple[int, Any, list[dict[str, Any]]]:
    """The exit code, the result and what is said of the batch that the table has."""
    query = query or json.loads((run / "ck/metadata").read_text())["id"]
    sink = table(folder, query, batches)
    ended = cklog(
        *(words or ("recovery-line",)), run, "--sink", sink, "--map", f"file:///srv/cklog-words/hdfs={run}", "--json"
    )
    answer = json.loads(ended.out)
    return ended.code, answer["result"], [f for f in answer["findings"] if f["id"] == "sink-log-ahead"]


def test_with_the_state_after_it_the_query_goes_on(tmp_path: Path) -> None:
    code, result, [finding] = asked(tmp_path, checkpoint(tmp_path), 7)
    assert (code, result["action"], finding["severity"], finding["effect"]) == (0, "restart", "info", "none")
    assert finding["message"] == (
        "table has batch 6, but ck/commits/6 is missing. The sink has the batch and skips it. All that batch 7 needs "
        "of the state is there."
    )


def test_without_the_state_after_it_the_next_batch_fails(tmp_path: Path) -> None:
    code, result, [finding] = asked(tmp_path, checkpoint(tmp_path, whole=False), 8)
    assert (code, result["action"], finding["effect"]) == (3, "repair-first", "restart-fails")
    assert "The sink skips batch 7, so a restart does not write the state after it" in finding["message"]
    assert "ck/state/0/0/8.delta is missing" in finding["message"]
    assert "A Delta table never forgets a batch" in finding["message"]


def test_with_state_ids_no_restart_can_commit_it(tmp_path: Path) -> None:
    code, result, [finding] = asked(tmp_path, checkpoint(tmp_path, ids=True), 7)
    assert (code, result["action"], finding["effect"]) == (3, "repair-first", "restart-fails")
    assert "Every restart fails (CheckpointInfo length: 0)." in finding["message"]


@pytest.mark.parametrize(("batches", "query"), [(6, ""), (7, "another")])
def test_a_batch_that_the_table_does_not_skip_is_run(batches: int, query: str, tmp_path: Path) -> None:
    assert asked(tmp_path, checkpoint(tmp_path), batches, query=query)[2] == []


@pytest.mark.parametrize("command", ["impact", "replay"])
def test_other_commands_say_it_too(command: str, tmp_path: Path) -> None:
    code, _, [finding] = asked(tmp_path, checkpoint(tmp_path, whole=False), 8, command)
    assert (code, finding["severity"]) == (3, "error")


def test_verify_refutes_nothing_but_says_it(tmp_path: Path) -> None:
    run = checkpoint(tmp_path, whole=False)
    line = tmp_path / "line.json"
    line.write_text(cklog("recovery-line", run, "--json").out)
    code, _, [finding] = asked(tmp_path, run, 8, "verify", "--line", str(line))
    assert (code, finding["effect"]) == (3, "restart-fails")

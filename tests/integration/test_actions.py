"""One action for every format: equal in shape, and only damage that touches it is an error."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cklog.model.actions import ACTIONS, RunAction
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Draft, conclude
from tests.conftest import SAMPLES
from tests.program import cklog

MEMBERS = {field.name for field in dataclasses.fields(RunAction)}

ACTION_OF_SAMPLE = {
    "cec-crashed": "restart-older",
    "checkmate-uncoordinated": "restart",
    "connect-offsets": "restart",
    "domino-cycle": "restart",
    "flink-orders": "restart",
    "incremental": "restart",
    "kafka-broker": "salvage-first",
    "kafka-streams-state": "repair-first",
    "odysseus-gap": "restart",
    "patent-store": "restart-older",
    "spark-state-rocksdb": "restart",
    "spark-wordcount": "restart",
    "token-rounds": "restart",
    "uncoordinated-join": "restart",
}

ACTION_OF_REAL = {
    "checkmate-q1": "restart",
    "flink-generations": "restart",
    "flink-zeroed-sst": "start-over",
    "kafka-swap": "restart",
    "spark-stale-changelog": "repair-first",
    "spark-v2-sink-ahead": "repair-first",
}
"""By what the engines did with them: `engine-verified/README.md`."""


def answered(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    ended = cklog("recovery-line", folder, *options, "--json")
    return ended.code, json.loads(ended.out)


def copy_of(sample: str, place: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / sample, place / sample))


@pytest.mark.parametrize("sample", [p.name for p in sorted(SAMPLES.iterdir()) if p.is_dir()])
def test_every_answer_about_a_line_has_an_action_and_runs_of_one_shape(sample: str) -> None:
    ended = cklog("recovery-line", SAMPLES / sample, "--json")
    if ended.code == 66:  # samples of something else than a line
        return
    found = json.loads(ended.out)
    result = found["result"]
    assert result["action"] == ACTION_OF_SAMPLE.get(sample, result["action"])
    assert result["runs"]
    for run in result["runs"]:
        assert set(run) == MEMBERS
        assert run["action"] in ACTIONS
        assert run["command"] or run["note"]
        assert (run["chosen"] is None) == (run["action"] == "start-over")
    actions = {run["action"] for run in result["runs"]}
    if "connectors" in result.get("details", {}):  # one that begins anew does not make the others begin anew
        actions = actions - {"start-over"} or actions
    assert result["action"] == max(actions, key=ACTIONS.index)
    replayed = json.loads(cklog("replay", SAMPLES / sample, "--json").out)["result"]
    assert (replayed["action"], replayed["runs"]) == (result["action"], result["runs"])
    assert f"Action: {result['action']} (" in cklog("recovery-line", SAMPLES / sample).out


@pytest.mark.parametrize("name", ACTION_OF_REAL)
def test_folders_of_real_engines_have_the_action_that_the_engine_proved_right(name: str, shared_data: Path) -> None:
    _, found = answered(shared_data / "engine-verified" / name)
    assert found["result"]["action"] == ACTION_OF_REAL[name]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garbled_line(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = b"#" + lines[number][1:]
    path.write_bytes(b"".join(lines))


def of_flink(folder: Path, newest: bool) -> None:
    [job] = [p for p in folder.iterdir() if (p / "chk-13").is_dir()]
    cut(job / ("chk-13" if newest else "chk-11") / "_metadata")


def of_spark(folder: Path, newest: bool) -> None:
    commits = sorted((folder / "ck" / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
    cut(commits[-1 if newest else 0])
    for side in (folder / "ck" / "commits").glob(".*.crc"):
        side.unlink()


def of_checkmate(folder: Path, newest: bool) -> None:
    found = sorted((folder / "universalis-snapshots").glob("snapshot_1_bids_*.bin"))
    cut(found[-1 if newest else 0])


def of_records(folder: Path, newest: bool) -> None:
    garbled_line(folder / "checkpoints" / "orders.jsonl", -1 if newest else 0)


def of_messages(folder: Path, newest: bool) -> None:
    """A message in flight is needed, the first of a log that begins long before the line is not."""
    place = folder / "channels" / "orders.jsonl"
    records = [json.loads(line) for line in place.read_text().splitlines()]
    wanted = next(c for c in answered(folder)[1]["result"]["channels"] if c["channel"].startswith("orders/"))
    numbers = [r["seq"] if r["channel"] == wanted["channel"] else -1 for r in records]
    garbled_line(
        place, numbers.index(wanted["replay_from"]) if newest else numbers.index(min(n for n in numbers if n >= 0))
    )


DAMAGED: list[tuple[str, Callable[[Path, bool], None], str]] = [
    ("flink-orders", of_flink, "restart-older"),
    ("spark-wordcount", of_spark, "repair-first"),
    ("checkmate-uncoordinated", of_checkmate, "restart-older"),
    ("uncoordinated-join", of_records, "restart-older"),
    ("uncoordinated-join", of_messages, "repair-first"),
]


@pytest.mark.parametrize(("sample", "damage", "action"), DAMAGED, ids=[f"{s}-{d.__name__}" for s, d, _ in DAMAGED])
def test_damage_that_does_not_touch_the_action_is_a_warning(
    sample: str, damage: Callable[[Path, bool], None], action: str, tmp_path: Path
) -> None:
    whole = answered(SAMPLES / sample)[1]["result"]
    folder = copy_of(sample, tmp_path)
    damage(folder, False)
    code, found = answered(folder)
    new = {f["id"] for f in found["findings"] if f["severity"] == "warning"}
    assert (code, found["result"]["action"], found["result"]["line"]) == (0, whole["action"], whole["line"]), found
    assert new & {"bad-record", "checksum-mismatch", "corrupt-metadata", "torn-batch-file", "corrupt-file", "torn-tail"}


@pytest.mark.parametrize(("sample", "damage", "action"), DAMAGED, ids=[f"{s}-{d.__name__}" for s, d, _ in DAMAGED])
def test_damage_that_touches_the_action_is_an_error_that_is_named(
    sample: str, damage: Callable[[Path, bool], None], action: str, tmp_path: Path
) -> None:
    folder = copy_of(sample, tmp_path)
    damage(folder, True)
    code, found = answered(folder)
    assert (code, found["result"]["action"]) == (3, action)
    [run] = found["result"]["runs"]
    errors = {f"{f['id']} {f['subject']}" for f in found["findings"] if f["severity"] == "error"}
    assert set(run["blocked_by"]) == errors != set()
    if damage is of_messages:
        assert run["lost"] == 1


def test_messages_that_are_gone_are_no_plain_restart_and_what_comes_then_is_told(tmp_path: Path) -> None:
    """One wrong byte of a log: messages that the line needs cannot be read, and neither line nor command changes."""
    run = copy_of("uncoordinated-join-parquet", tmp_path)
    whole = answered(run)[1]["result"]
    log = run / "channels" / "join.parquet"
    log.write_bytes(log.read_bytes()[:60] + b"XXXX" + log.read_bytes()[64:])
    code, told = answered(run)
    (row,) = told["result"]["runs"]
    assert (code, told["result"]["action"]) == (3, "repair-first")
    assert [one for one in row["blocked_by"] if one.startswith("retention-hole ")] != []
    assert told["result"]["line"] == whole["line"]
    assert row["lost"] > 0
    assert row["command"] is None
    assert row["note"].endswith(f"; then {whole['runs'][0]['note']}")
    text = cklog("recovery-line", run).out
    assert text.startswith("Not yet: ")
    assert "nothing found that stops it" not in text


def test_a_command_that_would_restart_it_as_it_is_stands_behind_what_comes_first(tmp_path: Path) -> None:
    """A folder that was renamed: nobody knows whether it is the newest, and to restore it is not for pasting."""
    run = copy_of("flink-orders", tmp_path)
    (whole,) = answered(run)[1]["result"]["runs"]
    newest = next(run.rglob(whole["chosen"]))
    newest.rename(newest.with_name("chk-999"))
    told = answered(run)[1]["result"]
    (row,) = told["runs"]
    assert (row["action"], row["command"]) == ("repair-first", None)
    assert told["details"]["headline"].startswith("Not yet: errors are in the way. Then: Restore ")
    assert "; then flink run -s " in row["note"]


def test_what_goes_wrong_is_not_hidden_behind_many_other_errors() -> None:
    """Of what blocks a run so much is listed; what is to be done follows from all of it."""
    many = [Finding("bad-record", "error", f"checkpoints/{i:03}", "", effect="older-line") for i in range(99)]
    line = RecoveryLine(
        consistent=True,
        protocol="uncoordinated",
        line=(),
        channels=(),
        sources=(),
        rolled_back=(),
        useless=(),
        steps=(),
        domino=False,
        runs=(RunAction("r", "restart-older"),),
    )
    hole = Finding("retention-hole", "error", "a->b", "", effect="data-lost")
    for more, action in (([], "restart-older"), ([hole], "repair-first")):
        told = conclude(Draft("recovery-line", line, [*many, *more], ())).result
        assert (told.action, len(told.runs[0].blocked_by)) == (action, 50)


def test_a_restart_that_takes_longer_than_it_may_is_a_restart() -> None:
    code, told = answered(SAMPLES / "incremental", "--read-rate", "1", "--max-recovery-time", "0.000001")
    (row,) = told["result"]["runs"]
    assert code == 3
    assert [f["id"] for f in told["findings"] if f["severity"] == "error"] == ["over-recovery-time"]
    assert (row["action"], row["blocked_by"]) == ("restart", [])


def test_fail_on_says_what_an_exit_code_is_for(tmp_path: Path) -> None:
    def codes(folder: Path) -> dict[str, int]:
        return {
            choice: cklog("recovery-line", folder, "--fail-on", choice).code
            for choice in ("error", "warning", "older", "never")
        }

    assert codes(SAMPLES / "uncoordinated-join") == {"error": 0, "warning": 0, "older": 0, "never": 0}
    assert codes(SAMPLES / "spark-wordcount") == {"error": 0, "warning": 3, "older": 0, "never": 0}
    assert codes(SAMPLES / "kafka-broker") == {"error": 3, "warning": 3, "older": 3, "never": 0}
    assert cklog("recovery-line", tmp_path, "--fail-on", "never").code == 66


def test_an_error_is_told_once_on_stdout_under_json(tmp_path: Path) -> None:
    ended = cklog("recovery-line", tmp_path, "--json")
    assert list(json.loads(ended.out)) == ["error"]
    assert json.loads(ended.out)["error"]["exit"] == ended.code == 66
    assert '"error"' not in ended.err
    assert ended.err.startswith("cklog: ")
    assert cklog("recovery-line", tmp_path).out == ""


def test_an_operator_whose_queue_is_gone_is_missed(tmp_path: Path) -> None:
    """`job.json` says that `agg1` restarts from its queue: a line without it is no line of the job."""
    folder = copy_of("cec-aggregate", tmp_path)
    shutil.rmtree(folder / "outputs" / "agg1")
    code, found = answered(folder)
    assert (code, found["result"]["action"]) == (5, "undetermined")
    assert [f["id"] for f in found["findings"] if f["severity"] == "error"] == ["missing-queue"]
    [run] = found["result"]["runs"]
    assert (run["command"], "start nothing" in run["note"]) == (None, True)


def test_a_queue_that_lost_all_its_records_is_no_plain_restart(tmp_path: Path) -> None:
    """Emptied or full of zeros, it is refused, or the operator goes back to the start of its input."""
    folder = copy_of("cec-aggregate", tmp_path)
    place = folder / "outputs" / "agg1" / "part-00000.jsonl"
    for lost in (b"", bytes(5_000)):
        place.write_bytes(lost)
        code, found = answered(folder)
        assert code == 65 or found["result"]["action"] == "restart-older"


def test_an_offset_file_at_which_streams_stops_is_repaired_first(tmp_path: Path) -> None:
    """Kafka Streams reads `.checkpoint` when a task begins, and ends where it cannot (OffsetCheckpoint.read)."""
    folder = copy_of("kafka-streams-state", tmp_path)
    task = folder / "state" / "wordcount" / "0_0"
    (task / ".checkpoint").write_text("0\n1\nnot a topic\n")
    code, found = answered(folder / "state")
    run = found["result"]["runs"][0]
    assert (code, run["action"]) == (3, "repair-first")
    assert run["note"] == "keep wordcount/0_0: its changelog was not looked at (--kafka FOLDER)"


def test_batches_that_sink_and_state_show_to_be_done_need_no_commit(tmp_path: Path) -> None:
    folder = copy_of("spark-wordcount", tmp_path)
    for batch in (4, 5):
        (folder / "ck" / "commits" / str(batch)).unlink()
    code, found = answered(folder)
    run = found["result"]["runs"][0]
    assert (code, run["action"], run["lost"]) == (0, "restart", 0)
    assert "ck/commits/5 is missing, but the file sink's log has" in found["result"]["details"]["headline"]


def test_a_spark_query_that_would_skip_batches_is_repaired_first(tmp_path: Path) -> None:
    """Spark runs the newest planned batch, and none of those before it that have no commit; the sink lacks batch 2."""
    folder = copy_of("spark-wordcount", tmp_path)
    for batch in range(6):
        remove_logged(folder / "ck" / "commits" / str(batch))
    code, found = answered(folder)
    assert (code, found["result"]["action"]) == (0, "restart")  # the sink's log has all of them
    remove_logged(folder / "out" / "_spark_metadata" / "2")
    code, found = answered(folder)
    run = found["result"]["runs"][0]
    assert (code, run["action"], run["lost"], run["command"]) == (4, "repair-first", None, None)
    assert run["note"] == "repair what the findings name before the query is started again"
    assert run["blocked_by"] == ["missing-batch-file ck/commits/0", "sink-log-behind out/_spark_metadata/2"]


@pytest.mark.parametrize("options", [(), ("--as-of", "2026-11-22T04:52:00Z"), ("--at", "query/0=3")])
def test_a_sink_log_of_another_query_is_an_error_whatever_is_asked(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The plans are a day younger than the files that the sink's log lists for their batches."""
    folder = copy_of("spark-wordcount", tmp_path)
    for path in (folder / "ck" / "offsets").iterdir():
        if path.name.isdecimal():
            text = path.read_text(encoding="utf-8")
            younger = re.sub(r'(?<="batchTimestampMs":)\d+', lambda found: str(int(found[0]) + 86_400_000), text)
            assert younger != text
            path.write_text(younger, encoding="utf-8")
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    for command in ("recovery-line", "replay", "impact", "runbook"):
        found = json.loads(cklog(command, folder, "--json", *options).out)
        assert found["result"]["action"] == "repair-first", command
        [error] = [f for f in found["findings"] if f["id"] == "sink-log-ahead" and f["severity"] == "error"]
        assert (error["subject"], error["effect"]) == ("out/_spark_metadata/0", "data-lost"), command


def remove_logged(path: Path) -> None:
    """Remove an entry of a log, and its checksum."""
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def test_what_a_broker_cuts_at_damage_is_copied_first(tmp_path: Path) -> None:
    """A batch of which not even the head can be believed: what its bytes hold may be read by other means, once."""
    folder = copy_of("kafka-broker", tmp_path)
    first, second = sorted((folder / "orders-1").glob("*.log"))
    written = bytearray(first.read_bytes())
    written[57:61] = b"\x2a\x00\x00\x3f"  # how many records are in the batch: more than there are offsets
    first.write_bytes(written[:500])
    second.write_bytes(b"")
    code, found = answered(folder)
    run = found["result"]["runs"][0]
    assert (code, run["action"], run["lost"]) == (3, "salvage-first", None)
    assert "copy the folder" in run["note"]

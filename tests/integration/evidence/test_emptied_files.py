"""A file that was emptied, or a damaged description of a job, never leaves an answer as sure as it was."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.codecs.hadoop_crc import encode, sidecar_of
from tests.conftest import SAMPLES
from tests.program import cklog


def copy_of(sample: str, folder: Path) -> Path:
    run: Path = shutil.copytree(SAMPLES / sample, folder / sample)
    return run


def answered(command: str, run: Path, *options: str) -> tuple[int, Any]:
    ended = cklog(command, run, "--json", *options)
    return ended.code, json.loads(ended.out)


def found(answer: Any, id: str) -> list[tuple[str, str]]:
    """Severity and subject of each finding with an id."""
    return [(f["severity"], f["subject"]) for f in answer["findings"] if f["id"] == id]


@pytest.mark.parametrize(
    ("sample", "file"),
    [
        ("incremental", "checkpoints/count.jsonl"),
        ("uncoordinated-join", "checkpoints/join.jsonl"),
        ("uncoordinated-join-parquet", "checkpoints/join.parquet"),
        ("raw-events", "events/pack.jsonl"),
    ],
)
@pytest.mark.parametrize("command", ["recovery-line", "retention"])
def test_an_emptied_file_whose_checksum_file_has_sums_is_an_error(
    command: str, sample: str, file: str, tmp_path: Path
) -> None:
    run = copy_of(sample, tmp_path)
    _, before = answered(command, run)
    (run / file).write_bytes(b"")
    code, after = answered(command, run)
    assert code in (3, 5)
    assert found(after, "checksum-mismatch") == [("error", file)]
    assert not found(after, "empty-file"), "one fact is one finding"
    if command == "recovery-line":
        assert after["result"]["action"] != "restart"
    else:
        free = [{row["path"] for row in one["result"]["rows"] if row["fate"] == "OBSOLETE"} for one in (before, after)]
        assert free[1] <= free[0]


@pytest.mark.parametrize("summed", [True, False])
@pytest.mark.parametrize("emptied", [0, 1])
def test_an_emptied_file_of_an_output_queue_is_one_finding(summed: bool, emptied: int, tmp_path: Path) -> None:
    run = copy_of("cec-aggregate", tmp_path)
    files = [run / "outputs" / "agg1" / f"part-0000{i}.jsonl" for i in (0, 1)]
    lines = files[0].read_bytes().splitlines(keepends=True)
    for file, part in zip(files, (lines[: len(lines) // 2], lines[len(lines) // 2 :]), strict=True):
        file.write_bytes(b"".join(part))
        if summed:
            Path(sidecar_of(str(file))).write_bytes(encode(file.read_bytes()))
    files[emptied].write_bytes(b"")
    subject = f"outputs/agg1/part-0000{emptied}.jsonl"
    code, answer = answered("recovery-line", run)
    told = {id: found(answer, id) for id in ("checksum-mismatch", "empty-file")}
    assert told == (
        {"checksum-mismatch": [("error", subject)], "empty-file": []}
        if summed
        else {"checksum-mismatch": [], "empty-file": [("warning", subject)]}
    )
    assert (code, answer["result"]["action"]) == ((3, "restart-older") if summed else (0, "restart"))
    claims = [row["claim"] for run in answer["result"]["runs"] for row in run["unchecked"]]
    assert ("the empty files never held a record" in claims) is not summed


@pytest.mark.parametrize("sample", ["domino-cycle", "uncoordinated-join", "token-rounds", "cec-aggregate"])
@pytest.mark.parametrize("kept", [0, 30])
def test_a_damaged_job_json_is_one_finding_and_no_older_line(sample: str, kept: int, tmp_path: Path) -> None:
    run = copy_of(sample, tmp_path)
    _, before = answered("recovery-line", run)
    (run / "job.json").write_bytes((run / "job.json").read_bytes()[:kept])
    code, after = answered("recovery-line", run)
    assert found(after, "bad-manifest") == [("error", "job.json")]
    assert not found(after, "unknown-subtasks"), "no record is lost"
    assert (code, after["result"]["action"]) == (5, "undetermined")
    assert after["result"]["line"] == before["result"]["line"]


@pytest.mark.parametrize(
    ("sample", "file"),
    [
        ("odysseus-precise", "checkpoints/part-00000.jsonl"),
        ("cec-aggregate", "outputs/agg1/part-00000.jsonl"),
        ("cec-aggregate", "outputs/filter1/part-00000.jsonl"),
    ],
)
def test_a_file_of_nothing_but_zeros_is_no_torn_tail(sample: str, file: str, tmp_path: Path) -> None:
    run = copy_of(sample, tmp_path)
    (run / file).write_bytes(bytes((run / file).stat().st_size))
    ended = cklog("recovery-line", run)
    assert (ended.code, file in ended.err, "it holds nothing but zeros" in ended.err) == (65, True, True)


OFFSETS = "topic/connect-offsets-0/00000000000000000000.log"
NEVER = "the offsets partitions without a record never had one"


def claims(answer: Any) -> list[set[str]]:
    """What the action of each run takes for granted."""
    return [{row["claim"] for row in run["unchecked"]} for run in answer["result"]["runs"]]


@pytest.mark.parametrize("path", ["topic", "."])
def test_an_emptied_partition_of_connectors_offsets_is_named(path: str, tmp_path: Path) -> None:
    """It looks like one that was never used, of which a topic has many."""
    run = copy_of("connect-offsets", tmp_path)
    (run / OFFSETS).write_bytes(b"")
    code, answer = answered("recovery-line", run / path)
    assert (code, found(answer, "empty-offsets-partition")) == (0, [("info", "connect-offsets")])
    assert all(NEVER in one for one in claims(answer))
    assert cklog("recovery-line", run / path, "--fail-on", "unchecked").code == 5
    assert NEVER in cklog("recovery-line", run / path, "--brief").out


def test_a_zeroed_partition_of_connectors_offsets_leaves_a_bound(tmp_path: Path) -> None:
    run = copy_of("connect-offsets", tmp_path)
    (run / OFFSETS).write_bytes(bytes((run / OFFSETS).stat().st_size))
    code, answer = answered("recovery-line", run / "topic")
    assert (code, answer["result"]["action"]) == (5, "undetermined")
    assert found(answer, "empty-offsets-partition") == [("error", "connect-offsets")]


def test_an_emptied_segment_before_others_is_named(tmp_path: Path) -> None:
    run = copy_of("connect-offsets", tmp_path) / "topic"
    folder = run / "connect-offsets-0"
    (folder / "00000000000000000100.log").write_bytes(b"")
    (folder / "00000000000000000000.log").replace(folder / "00000000000000000050.log")
    (folder / "00000000000000000000.log").write_bytes(b"")
    _, answer = answered("recovery-line", run)
    (told,) = [f for f in answer["findings"] if f["id"] == "empty-file"]
    assert [place["path"] for place in told["where"]] == ["connect-offsets-0/00000000000000000000.log"]
    assert all("the empty files never held a record" in one for one in claims(answer))
    assert not found(answer, "offset-gap"), "one fact is one finding"


@pytest.mark.parametrize(("path", "code"), [("export", 5), (".", 0)])
def test_an_emptied_export_of_connectors_offsets_is_named(path: str, code: int, tmp_path: Path) -> None:
    run = copy_of("connect-offsets", tmp_path)
    file = run / "export" / "connect-offsets.jsonl"
    file.write_bytes(b"")
    ended, answer = answered("recovery-line", run / path, "--from", "connect")
    assert ended == code
    assert [severity for severity, _ in found(answer, "empty-file")] == ["warning"]
    assert all("the empty files never held a record" in one for one in claims(answer))
    assert cklog("recovery-line", run / path, "--from", "connect", "--fail-on", "unchecked").code == 5


def test_an_export_that_was_cut_short_is_no_newest_offset(tmp_path: Path) -> None:
    run = copy_of("connect-offsets", tmp_path) / "export"
    file = run / "connect-offsets.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    code, answer = answered("recovery-line", run)
    assert (code, found(answer, "bad-record")) == (3, [("error", "connect-offsets.jsonl")])
    assert answer["result"]["action"] != "restart"


@pytest.mark.parametrize(
    ("compacted", "id", "severity"),
    [("__consumer_offsets", "empty-file", "error"), ("orders", "offset-gap", "info"), ("", "empty-file", "warning")],
)
def test_an_emptied_segment_of_a_broker_is_named(compacted: str, id: str, severity: str, tmp_path: Path) -> None:
    """A broker that lists what it compacts proves that it has not compacted the rest."""
    run = copy_of("kafka-broker", tmp_path)
    if compacted:
        (run / "cleaner-offset-checkpoint").write_text(f"0\n1\n{compacted} 0 0\n")
    (run / "orders-0" / "00000000000000000000.log").write_bytes(b"")
    _, answer = answered("recovery-line", run)
    assert found(answer, id) == [(severity, "orders-0")]
    assert len(found(answer, "empty-file") + found(answer, "offset-gap")) == 1


@pytest.mark.parametrize("how", ["emptied", "zeroed", "halved"])
@pytest.mark.parametrize("sample", ["spark-state-hdfs", "spark-state-rocksdb", "spark-wordcount"])
def test_a_damaged_schema_of_spark_state_is_repaired_by_the_printed_command(
    sample: str, how: str, tmp_path: Path
) -> None:
    run = copy_of(sample, tmp_path)
    file = run / "ck" / "state" / "0" / "0" / "_metadata" / "schema"
    data = file.read_bytes()
    file.write_bytes({"emptied": b"", "zeroed": bytes(len(data)), "halved": data[: len(data) // 2]}[how])
    code, answer = answered("recovery-line", run)
    [error] = [f for f in answer["findings"] if f["severity"] == "error"]
    assert (error["subject"], error["effect"]) == ("ck/state/0/0/_metadata/schema", "restart-fails")
    (row,) = answer["result"]["runs"]
    assert (code, row["action"]) == (3, "repair-first")
    assert row["command"] == "rm -- ./ck/state/0/0/_metadata/.schema.crc ./ck/state/0/0/_metadata/schema"
    subprocess.run(row["command"], shell=True, check=True, cwd=run)
    code, answer = answered("recovery-line", run)
    assert (code, answer["result"]["action"]) == (0, "restart")


@pytest.mark.parametrize("changed", [(b'"long"', b'"date"'), (b'"name":"count"', b'"name":"c0unt"')])
def test_a_schema_of_spark_state_with_another_checksum_may_stop_a_restart(
    changed: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """Read off Spark 4.3: a type that differs stops it, a name that differs does not."""
    run = copy_of("spark-wordcount", tmp_path)
    file = run / "ck" / "state" / "0" / "0" / "_metadata" / "schema"
    data = file.read_bytes()
    assert changed[0] in data
    file.write_bytes(data.replace(*changed))
    code, answer = answered("recovery-line", run)
    [error] = [f for f in answer["findings"] if f["severity"] == "error"]
    assert (error["id"], error["effect"]) == ("checksum-mismatch", "unknown")
    assert (code, answer["result"]["action"]) == (5, "undetermined")


def test_going_back_removes_checksum_files_that_were_left_behind(tmp_path: Path) -> None:
    """One that stays stops the query when it writes that plan again."""
    run = copy_of("spark-wordcount", tmp_path)
    (run / "ck" / "offsets" / "6").unlink()
    _, answer = answered("recovery-line", run, "--at", "query/0=3")
    assert "ck/offsets/.6.crc" in answer["result"]["details"]["remove"]


@pytest.mark.parametrize("log", ["out/_spark_metadata", "ck/sources/0"])
def test_a_log_of_files_of_another_version_is_not_read(log: str, tmp_path: Path) -> None:
    run = copy_of("spark-wordcount", tmp_path)
    newest = max((p for p in (run / log).iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    newest.write_bytes(newest.read_bytes().replace(b"v1", b"v2", 1))
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    code, answer = answered("recovery-line", run)
    assert found(answer, "unknown-version")
    assert (code, answer["result"]["action"]) == (5, "undetermined")


def test_damaged_messages_lose_data_and_choose_no_line(tmp_path: Path) -> None:
    run = copy_of("uncoordinated-join", tmp_path)
    (file,) = (run / "channels").glob("orders.jsonl")
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2] + b"?" * 200 + data[len(data) // 2 + 200 :])
    for command in ("recovery-line", "inspect"):
        _, answer = answered(command, run)
        effects = {f["effect"] for f in answer["findings"] if f["subject"].startswith("channels/")}
        assert effects <= {"data-lost", "none"}, command

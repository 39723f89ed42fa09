"""Every folder of the shared real data that a user could name has an answer, or a refusal, as documented."""

from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.program import Ended, cklog

COMMANDS = ("recovery-line", "replay", "inspect")
ENVELOPE = {"schema", "tool", "inputs", "verdict", "findings", "result"}
VERDICTS = {0: {"ok", "findings"}, 3: {"findings"}, 4: {"unrecoverable"}, 5: {"indeterminate"}}
NOISE = ("Traceback", "Warning", "a bug", "Error:", 'File "')


def asked(command: str, folder: Path) -> Ended:
    """What a command prints; a warning of Python's own is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return cklog(command, folder, "--json")


def answered(command: str, folder: Path, placeless: bool = True, before: Ended | None = None) -> dict[str, Any]:
    """The answer, held against what is promised of each: exit code, verdict, members, and the same bytes twice.

    `before` is what it was, if it was asked for already.
    """
    ended = before or asked(command, folder)
    where = f"{command} {folder}: exit {ended.code}\n{ended.err}"
    assert ended.code in VERDICTS, where
    assert not [word for word in NOISE if word in ended.err], where
    assert asked(command, folder) == ended, f"{command} {folder}: another answer the second time"
    found: dict[str, Any] = json.loads(ended.out)
    assert set(found) == ENVELOPE, where
    assert found["schema"] == f"cklog.{command}/1"
    assert found["verdict"] in VERDICTS[ended.code], where
    assert found["inputs"] or found["result"].get("runs"), f"{where}: nothing was read, and no runs are named"
    assert not placeless or str(folder) not in ended.out, f"{command} {folder}: its own place is in the answer"
    for finding in found["findings"]:
        assert set(finding) == {"id", "severity", "subject", "message", "where", "effect"}
        assert finding["severity"] in ("error", "warning", "info")
        assert "\n" not in finding["message"]
    errors = any(finding["severity"] == "error" for finding in found["findings"])
    assert ended.code != 0 or not errors, where
    return found


@pytest.fixture(scope="module")
def image(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a broker that was killed, unpacked."""
    packed = shared_data / "kafka" / "broker-crash.tar.gz"
    folder = tmp_path_factory.mktemp("image")
    subprocess.run(["tar", "-xzSf", packed, "-C", folder], check=True, timeout=120)
    [data] = [entry.parent for entry in folder.rglob("meta.properties")]
    return data


# --- Kafka


@pytest.mark.parametrize("command", COMMANDS)
def test_the_image_of_a_broker(command: str, image: Path) -> None:
    found = answered(command, image)
    from_above = answered(command, image.parent)
    assert {f["id"] for f in from_above["findings"]} == {f["id"] for f in found["findings"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_partition_of_the_image_alone(command: str, image: Path) -> None:
    partitions = sorted({entry.parent for entry in image.glob("*-*/*.log")})
    assert len(partitions) > 15
    together = {row["partition"]: row for row in answered("inspect", image)["result"]["partitions"]}
    for folder in partitions:
        found = answered(command, folder)
        if command == "inspect":
            [row] = found["result"]["partitions"]
            assert row["partition"] == folder.name
            assert (row["batches"], row["data"]) == (together[folder.name]["batches"], together[folder.name]["data"])


@pytest.mark.quarter
@pytest.mark.parametrize("command", COMMANDS)
def test_every_folder_of_segments(command: str, shared_data: Path) -> None:
    folder = shared_data / "kafka" / "segments"
    answered(command, folder)
    for partition in sorted(folder.iterdir()):
        answered(command, partition)


# --- Spark and Flink


@pytest.mark.quarter
@pytest.mark.parametrize("command", COMMANDS)
def test_every_spark_checkpoint(command: str, shared_data: Path) -> None:
    folders = sorted({entry.parent for entry in (shared_data / "spark-checkpoints").rglob("offsets") if entry.is_dir()})
    assert folders
    for folder in folders:
        answered(command, folder)
        if folder.name == "ck":
            refused_or_answered(command, folder.parent)


@pytest.mark.quarter
@pytest.mark.parametrize("command", COMMANDS)
def test_every_flink_job_and_snapshot(command: str, shared_data: Path) -> None:
    for root in ("flink-checkpoints", "flink-metadata"):
        snapshots = sorted({entry.parent for entry in (shared_data / root).rglob("_metadata")})
        assert snapshots
        above = {snapshot.parent for snapshot in snapshots} - {shared_data / root}
        for folder in sorted({*snapshots, *above, shared_data / root}):
            answered(command, folder, placeless=False)  # `flink run -s` wants the whole path


@pytest.mark.quarter
@pytest.mark.parametrize("command", COMMANDS)
def test_any_other_folder_is_answered_or_refused_in_one_line(command: str, shared_data: Path) -> None:
    """Folders that hold no run, or one of several below: what a slip of the hand names."""
    roots = [shared_data, shared_data / "kafka", shared_data / "kafka" / "dump-log", shared_data / "spark-checkpoints"]
    spark = sorted(p for p in (shared_data / "spark-checkpoints").glob("*/*/*") if p.is_dir())
    flink = sorted(p for p in (shared_data / "flink-checkpoints").glob("*") if p.is_dir())
    for folder in [*roots, *spark[:20], *flink]:
        refused_or_answered(command, folder)


def refused_or_answered(command: str, folder: Path) -> None:
    """One of the two: an answer as documented, or one line with an exit code that says why there is none."""
    ended = asked(command, folder)
    if ended.code in VERDICTS:
        answered(command, folder, placeless=False, before=ended)
        return
    assert ended.code in (2, 65, 66), f"{command} {folder}: {ended.err}"
    found = json.loads(ended.out)
    assert list(found) == ["error"]
    told = found["error"]
    assert told["exit"] == ended.code
    assert len(told["message"].splitlines()) == 1
    assert told["message"] in ended.err
    assert not [word for word in NOISE if word in ended.err]

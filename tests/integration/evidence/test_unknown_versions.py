"""Versions that cklog does not know: no damage, nothing that an answer rests on, and no reason to remove a file."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crc32c
import pytest

from tests.conftest import SAMPLES
from tests.program import cklog

COMMANDS = ["recovery-line", "impact", "retention", "runbook"]
QUERIES = ["spark-wordcount", "spark-state-rocksdb"]
JOB, OLDER_JOB = "125c88b9401f9252baa1b39e412cc4b8", "aba3f4bfac52eaa92f2d9f59dce4f476"
MAP = "file:///srv/cklog-sample/flink-orders"

_SPARK_VERSION = re.compile(rb"\0?v[0-9]+\n")


def _versioned(sample: str) -> Iterator[Path]:
    for path in sorted((SAMPLES / sample).rglob("*")):
        if path.is_file() and _SPARK_VERSION.match(path.read_bytes()):
            yield path.relative_to(SAMPLES / sample)


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def _is_read(sample: str, path: Path) -> bool:
    """Whether a restart, or a reader of the sink, reads a file: of plans the last two, of commits the newest."""
    if path.parent.name not in ("offsets", "commits"):
        return True
    newest = _numbers(SAMPLES / sample / path.parent)[-1]
    return int(path.name) >= newest - (path.parent.name == "offsets")


def _with_other_version(sample: str, path: Path, folder: Path) -> None:
    """Copy a sample with one file of version 99, and without its checksum file, which would prove it damaged."""
    shutil.copytree(SAMPLES / sample, folder)
    data = (folder / path).read_bytes()
    found = _SPARK_VERSION.match(data)
    assert found is not None
    (folder / path).write_bytes(data[: found.start()] + b"v99\n" + data[found.end() :])
    (folder / path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def _answer(command: str, folder: Path, *options: str) -> tuple[int, Any]:
    ended = cklog(command, folder, "--json", *options)
    return ended.code, json.loads(ended.out)


@pytest.mark.quarter
@pytest.mark.parametrize("sample", QUERIES)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_answer_rests_on_a_file_of_another_version(sample: str, command: str, tmp_path: Path) -> None:
    whole, intact = _answer(command, SAMPLES / sample)
    read = 0
    for number, path in enumerate(_versioned(sample)):
        folder = tmp_path / str(number)
        _with_other_version(sample, path, folder)
        code, answer = _answer(command, folder)
        found = [f for f in answer["findings"] if f["id"] == "unknown-version"]
        assert [f["subject"] for f in found] == [str(path)]
        assert code == (5 if _is_read(sample, path) else whole), path
        if code == 5:
            read += 1
            assert found[0]["severity"] == "error"
            assert answer["result"].get("action", "undetermined") == "undetermined"
            assert not re.search(r"fails|remove|backup|damaged", found[0]["message"])
            assert not [row for row in answer["result"].get("rows", []) if row.get("fate") == "OBSOLETE"], path
        else:
            assert answer["result"].get("action") == intact["result"].get("action")
        shutil.rmtree(folder)
    assert read > 3


@pytest.mark.parametrize("sample", QUERIES)
def test_the_page_of_a_query_of_another_version_advises_nothing(sample: str, tmp_path: Path) -> None:
    newest = Path("ck/commits") / str(_numbers(SAMPLES / sample / "ck/commits")[-1])
    _with_other_version(sample, newest, tmp_path / "run")
    ended = cklog("recovery-line", tmp_path / "run")
    assert ended.code == 5
    assert not re.search(r"\bfails|\bremove|\brm\b|backup", ended.out)


@pytest.mark.parametrize("sample", QUERIES)
def test_a_checksum_makes_no_damage_of_another_version(sample: str, tmp_path: Path) -> None:
    newest = Path("ck/commits") / str(_numbers(SAMPLES / sample / "ck/commits")[-1])
    _with_other_version(sample, newest, tmp_path / "run")
    sidecar = newest.parent / f".{newest.name}.crc"
    shutil.copy(SAMPLES / sample / sidecar, tmp_path / "run" / sidecar)
    code, answer = _answer("recovery-line", tmp_path / "run")
    errors = {f["subject"]: f["id"] for f in answer["findings"] if f["severity"] == "error"}
    assert errors[str(newest)] == "unknown-version"
    assert code == 5


def _flink(folder: Path, *checkpoints: str) -> tuple[str, str]:
    """Copy the sample, its metadata of some checkpoints of version 99; return the options that map it."""
    shutil.copytree(SAMPLES / "flink-orders", folder)
    for checkpoint in checkpoints:
        metadata = folder / checkpoint / "_metadata"
        data = metadata.read_bytes()
        metadata.write_bytes(data[:4] + (99).to_bytes(4, "big") + data[8:])
    return "--map", f"{MAP}={folder}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_newer_checkpoint_of_another_version_leaves_the_line_open(command: str, tmp_path: Path) -> None:
    options = _flink(tmp_path / "run", f"{JOB}/chk-13")
    code, answer = _answer(command, tmp_path / "run", *options)
    assert code == 5
    assert [(f["severity"], f["subject"]) for f in answer["findings"] if f["id"] == "unknown-version"] == [
        ("error", f"{JOB}/chk-13/_metadata")
    ]
    assert answer["result"].get("action", "undetermined") == "undetermined"


def test_no_checkpoint_of_a_known_version_is_no_start_from_nothing(tmp_path: Path) -> None:
    everything = [f"{JOB}/chk-{n}" for n in (11, 12, 13)] + [f"{OLDER_JOB}/chk-{n}" for n in (5, 6)]
    options = _flink(tmp_path / "run", *everything)
    code, answer = _answer("recovery-line", tmp_path / "run", *options)
    assert (code, answer["result"]["action"]) == (5, "undetermined")
    assert "initial state" not in answer["result"]["details"]["headline"]


def test_an_older_checkpoint_of_another_version_changes_nothing(tmp_path: Path) -> None:
    options = _flink(tmp_path / "run")
    whole, intact = _answer("recovery-line", tmp_path / "run", *options)
    shutil.rmtree(tmp_path / "run")
    options = _flink(tmp_path / "run", f"{JOB}/chk-11")
    code, answer = _answer("recovery-line", tmp_path / "run", *options)
    assert (code, answer["result"]["action"]) == (whole, intact["result"]["action"])
    assert answer["result"]["line"] == intact["result"]["line"]


def _batches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each whole batch of a Kafka log begins and ends."""
    at = 0
    while at + 61 <= len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if end > len(data):
            return
        yield at, end
        at = end


def _of_format_3(data: bytes, at: int) -> bytes:
    """Make a batch one of a newer format, whose checksum format 2 does not understand."""
    return data[: at + 16] + b"\x03" + data[at + 17 : at + 20] + bytes([data[at + 20] ^ 1]) + data[at + 21 :]


def _of_codec_6(data: bytes, at: int, end: int) -> bytes:
    checked = data[at + 21 : at + 22] + bytes([data[at + 22] & ~7 | 6]) + data[at + 23 : end]
    crc = int(crc32c.crc32c(checked))
    return data[: at + 17] + crc.to_bytes(4, "big") + checked + data[end:]


def _kafka_variants(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield files of which a batch or the version is of a later Kafka."""
    for path in sorted(folder.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        name = str(path.relative_to(folder))
        if path.suffix == ".log":
            batches = list(_batches(data))
            for at, end in (batches[0], batches[-1]):
                yield name, _of_format_3(data, at)
                if path.parent.name.startswith(("__consumer_offsets", "connect-offsets")):
                    yield name, _of_codec_6(data, at, end)
        elif data.startswith(b"0\n"):
            yield name, b"9\n" + data[2:]


@pytest.mark.parametrize(
    ("sample", "least"), [("kafka-broker", 16), ("kafka-streams-state", 20), ("connect-offsets", 8)]
)
def test_no_answer_rests_on_what_a_later_kafka_wrote(sample: str, least: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / sample, folder)
    looked = 0
    for name, data in _kafka_variants(SAMPLES / sample):
        if "shop.shop.orders" in name:  # what the connector wrote, which it does not read
            continue
        (folder / name).write_bytes(data)
        code, answer = _answer("recovery-line", folder)
        found = [f for f in answer["findings"] if f["id"] == "unknown-version"]
        assert {f["severity"] for f in found} == {"error"}, name
        assert (code, answer["result"]["action"]) == (5, "undetermined"), name
        shutil.copy(SAMPLES / sample / name, folder / name)
        looked += 1
    assert looked >= least


def test_a_batch_of_a_later_format_may_have_the_checksum_of_format_2(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "kafka-broker", folder)
    log = folder / "orders-0" / f"{0:020}.log"
    data = log.read_bytes()
    log.write_bytes(data[:16] + b"\x03" + data[17:])
    code, answer = _answer("recovery-line", folder)
    found = {f["subject"]: f["id"] for f in answer["findings"] if f["subject"].startswith("orders-0/")}
    assert (code, found[f"orders-0/{0:020}.log"]) == (5, "unknown-version")

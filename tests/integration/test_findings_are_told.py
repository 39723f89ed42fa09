"""What an answer rests on and cannot be read is in the answer, whichever command asks, and `--strict` refuses it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog

QUEUE = "outputs/filter1/part-00000.jsonl"
KAFKA = "outputs/agg1/agg1-out-0/00000000000000000250.log"


def copied(sample: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / sample, tmp_path / sample))


def broken_manifest(folder: Path) -> None:
    (folder / "job.json").write_text((folder / "job.json").read_text().replace('"operators"', '"operatorr"', 1))


def torn_manifest(folder: Path) -> None:
    data = (folder / "job.json").read_bytes()
    (folder / "job.json").write_bytes(data[: len(data) // 2])


def answered(*asked: str | Path) -> tuple[int, dict[str, Any]]:
    ended = cklog(*asked, "--json")
    return ended.code, json.loads(ended.out) if ended.out else {}


def ids(answer: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in answer["findings"]}


@pytest.mark.parametrize("sample", ["cec-aggregate", "cec-aggregate-kafka", "uncoordinated-join", "q3-coordinated"])
@pytest.mark.parametrize("damage", [broken_manifest, torn_manifest])
@pytest.mark.parametrize("command", ["recovery-line", "replay", "inspect", "rounds", "extent", "eventual-checkpoint"])
def test_a_damaged_manifest_is_told_by_every_command(
    command: str, damage: Callable[[Path], None], sample: str, tmp_path: Path
) -> None:
    """Each reads who exists, and what feeds what, from it."""
    folder = copied(sample, tmp_path)
    more = ("--operator", "agg1") if command in ("extent", "eventual-checkpoint") else ()
    code, _ = answered(command, folder, *more)
    if code not in (0, 3, 4, 5):
        return  # the sample has no answer of this kind
    damage(folder)
    code, answer = answered(command, folder, *more)
    assert "bad-manifest" in ids(answer)
    assert code != 0
    assert cklog(command, folder, *more, "--strict").code == 65


def flipped_line(folder: Path, number: int) -> None:
    path = folder / QUEUE
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'"', b"#", 1)
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("sample", ["cec-aggregate", "cec-aggregate-kafka"])
@pytest.mark.parametrize("command", ["recovery-line", "replay", "eventual-checkpoint", "extent"])
def test_an_unreadable_record_of_the_upstream_in_the_replay_is_told(command: str, sample: str, tmp_path: Path) -> None:
    """agg1 takes 515 records of filter1 again, from 1985 on: one that cannot be read is missing from its state."""
    folder = copied(sample, tmp_path)
    more = ("--operator", "agg1") if command in ("extent", "eventual-checkpoint") else ()
    _, whole = answered(command, folder, *more)
    flipped_line(folder, 1200)
    _, before = answered(command, folder, *more)
    assert (before["findings"], before["result"]) == (whole["findings"], whole["result"]), "what is older is not needed"
    flipped_line(folder, 2200)
    code, answer = answered(command, folder, *more)
    assert {"bad-record", "retention-hole"} <= ids(answer)
    assert (code, answer["verdict"]) == (5, "indeterminate")
    place = next(f["where"][0] for f in answer["findings"] if f["id"] == "bad-record")
    line = (folder / QUEUE).read_bytes()[place["offset"] :].split(b"\n")[0]
    assert (place["path"], line.startswith(b"{#")) == (QUEUE, True)
    assert cklog(command, folder, *more, "--strict").code == 65


def test_a_damaged_batch_of_a_kafka_upstream_in_the_replay_is_told(tmp_path: Path) -> None:
    """The upstream's partition is looked up by its indexes; its batches are held against their checksums all the same.

    A job in which what agg1 put out is taken by another operator, which has taken nothing yet.
    """
    folder = copied("cec-aggregate-kafka", tmp_path)
    manifest = json.loads((folder / "job.json").read_text())
    manifest["operators"].append({"name": "next", "parallelism": 1, "kind": "map"})
    manifest["channels"].append({"channel": "agg1/0->next/0"})
    (folder / "job.json").write_text(json.dumps(manifest))
    queue = folder / "outputs" / "next"
    queue.mkdir()
    (queue / "part.jsonl").write_text('{"type":"emit","ts":0,"open_windows":0,"pos":0,"input":0}\n')
    code, answer = answered("extent", folder, "--operator", "next")
    assert "corrupt-batch" not in ids(answer)
    data = bytearray((folder / KAFKA).read_bytes())
    data[-40] ^= 1
    (folder / KAFKA).write_bytes(data)
    code, answer = answered("extent", folder, "--operator", "next")
    assert {"corrupt-batch", "retention-hole"} <= ids(answer)
    assert code == 5
    assert cklog("extent", folder, "--operator", "next", "--strict").code == 65


def test_a_file_of_a_queue_of_which_only_the_checksum_is_left_is_told(tmp_path: Path) -> None:
    folder = copied("cec-aggregate", tmp_path)
    (folder / "outputs" / "agg1" / ".part-00001.jsonl.crc").write_bytes(b"crc\0\0\0\x02\0")
    for command in ("recovery-line", "inspect"):
        code, answer = answered(command, folder)
        assert ("missing-file" in ids(answer), code) == (True, 3)

"""Every finding about what an answer rests on is in it: the manifest's, and those of the upstream's queue."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog

QUESTIONS = (
    "recovery-line",
    "replay",
    "inspect",
    "impact",
    "extent --operator agg1",
    "extent --operator agg1 --forward",
    "extent --operator agg1 --over-time",
    "eventual-checkpoint --operator agg1",
    "advise extent --operator agg1",
)
UPSTREAM = "outputs/filter1/part-00000.jsonl"
REPLAYED_FROM = 1985
"""The first record of filter1's queue, its number and its place, that agg1 needs again: see the sample's README."""


def told(question: str, folder: Path) -> set[tuple[str, str]]:
    ended = cklog(*question.split(), folder, "--json")
    assert ended.code in (3, 5), (question, ended.err)
    return {(f["id"], f["subject"]) for f in json.loads(ended.out)["findings"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "run"
    shutil.copytree(SAMPLES / "cec-aggregate", copy)
    return copy


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_damaged_manifest_is_told_by_every_answer(question: str, folder: Path) -> None:
    assert cklog(*question.split(), folder).code == 0
    manifest = folder / "job.json"
    manifest.write_bytes(manifest.read_bytes()[:-20])
    assert ("bad-manifest", "job.json") in told(question, folder)
    assert cklog(*question.split(), folder, "--strict").code == 65


@pytest.mark.parametrize(("number", "matters"), [(REPLAYED_FROM - 50, False), (REPLAYED_FROM + 3, True), (2499, True)])
@pytest.mark.parametrize("question", ["extent --operator agg1", "eventual-checkpoint --operator agg1", "recovery-line"])
def test_an_unreadable_record_that_is_to_be_replayed_is_told(
    question: str, number: int, matters: bool, folder: Path
) -> None:
    path = folder / UPSTREAM
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = b"x" * (len(lines[number]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    if matters:
        assert ("bad-record", UPSTREAM) in told(question, folder)
    assert cklog(*question.split(), folder, "--strict").code == (65 if matters else 0)


@pytest.mark.parametrize("compressed", [False, True])
def test_what_an_advice_read_of_the_upstream_is_told(compressed: bool, folder: Path) -> None:
    """The mean size of its records is in the advice."""
    path = folder / UPSTREAM
    data = path.read_bytes()
    if compressed:
        path.unlink()
        path = path.with_name("part-00000.jsonl.gz")
        packed = gzip.compress(data)
        path.write_bytes(packed[:-6] + b"xx" + packed[-4:])
    else:
        path.write_bytes(data[:-40] + b"x" * 39 + b"\n")
    found = told("advise extent --operator agg1", folder)
    assert {subject for _, subject in found} == {path.relative_to(folder).as_posix()}

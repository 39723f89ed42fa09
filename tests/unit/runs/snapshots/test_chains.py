"""Flink's checkpoints as chains: the files of each operator, and every file deleted in turn."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cklog.chains.answer import ChainQuestion
from cklog.chains.model import ChainAnswer
from cklog.parsers.flink.parser import Flink
from cklog.run import open_run
from cklog.runs.snapshots.order import survey
from cklog.runs.snapshots.verdicts import JudgedSnapshot
from cklog.storage import Root
from tests.builders import flink as fb
from tests.builders.flink_folders import OLD
from tests.conftest import SAMPLES
from tests.reading.concluded import READING

ORDERS = SAMPLES / "flink-orders"
FIRST, SECOND = "aba3f4bfac52eaa92f2d9f59dce4f476", "125c88b9401f9252baa1b39e412cc4b8"


def ask(folder: Path, asked: ChainQuestion = ChainQuestion()) -> ChainAnswer:
    with open_run(str(folder)) as run:
        found = run.chain(asked).result
    assert isinstance(found, ChainAnswer)
    return found


def judged(folder: Path) -> tuple[JudgedSnapshot, ...]:
    parser: Any = Flink(Root(str(folder)))
    return survey(parser, READING).judged


def test_the_files_of_an_operator_and_how_far_back_they_reach() -> None:
    """The second job goes on from the first, and still reads one of its files; its chk-11 named that already."""
    found = ask(ORDERS)
    rows = {(row.operator, row.store): row for row in found.chains}
    count = rows[SECOND, "count"]
    assert (count.status, count.checkpoint, count.pieces, count.back_to) == ("intact chain", 13, 8, 11)
    assert rows[FIRST, "count"].status == "broken chain"
    assert [(r.operator, r.checkpoint) for r in found.together] == [(SECOND, 13), (FIRST, None)]
    files = [step for step in found.read if step.store == "count"]
    assert [(step.checkpoint, step.form) for step in files] == [(11, "delta")] + [(13, "base")] * 7
    assert files[0].path.startswith(FIRST)
    assert sum(step.bytes or 0 for step in files) == count.bytes
    assert all((ORDERS / step.path).is_file() for step in found.read)


def test_what_is_read_is_what_the_snapshot_uses() -> None:
    newest = next(j for j in judged(ORDERS) if j.id == 13)
    assert {step.path for step in ask(ORDERS).read} == newest.uses


def agrees(folder: Path) -> None:
    """Each job goes back to the newest of its own snapshots that can be restored, by the verdicts."""
    by_job: dict[str, list[JudgedSnapshot]] = {}
    for one in judged(folder):
        by_job.setdefault(one.folder.job, []).append(one)
    newest = {
        job: max((j.id or 0 for j in of_job if j.verdict == "restorable"), default=None)
        for job, of_job in by_job.items()
        if any(j.id is not None for j in of_job)
    }
    root = Flink(Root(str(folder)))
    together = {r.operator: r.checkpoint for r in ask(folder).together}
    assert together == {job or root.job_id(""): number for job, number in newest.items()}


def test_every_file_deleted_in_turn(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ORDERS, copy)
    agrees(copy)
    files = sorted(p for p in copy.rglob("*") if p.is_file() and len(p.relative_to(copy).parts) > 1)
    assert len(files) > 20
    for file in files:
        kept = file.read_bytes()
        file.unlink()
        agrees(copy)
        file.write_bytes(kept[:-1])
        agrees(copy)
        file.write_bytes(kept)


def test_real_checkpoints(shared_data: Path) -> None:
    folders = sorted(p for p in (shared_data / "flink-checkpoints").iterdir() if p.is_dir())
    assert folders
    for folder in folders:
        if Flink.recognises(Root(str(folder))):
            agrees(folder)


@pytest.mark.parametrize(("number", "able"), [(13, True), (12, True), (11, True)])
def test_an_older_checkpoint_of_a_job(number: int, able: bool) -> None:
    found = ask(ORDERS, ChainQuestion(operator=SECOND, checkpoint=number))
    assert [r.checkpoint == number for r in found.together] == [able]


def test_operators_of_one_name_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    """Flink calls every map without a name of its own "Map"; each has its own files."""
    folder = tmp_path / OLD / "chk-1"
    operators = []
    for id, file in (("0a" * 16, "a"), ("0b" * 16, "b"), ("0c" * 16, "c")):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(b"x" * 7)
        keyed = fb.incremental(fb.inline(b"meta"), private=[fb.relative(file, 7)])
        name = "Map" if file != "c" else "Sum"
        operators.append(fb.operator(6, [fb.subtask(6, keyed=keyed)], bytes.fromhex(id), name))
    (folder / "_metadata").write_bytes(fb.metadata(6, operators, checkpoint=1).data)
    files = {step.store: Path(step.path).name for step in ask(tmp_path).read if step.store}
    assert files == {"Map (0a0a0a0a)": "a", "Map (0b0b0b0b)": "b", "Sum": "c"}

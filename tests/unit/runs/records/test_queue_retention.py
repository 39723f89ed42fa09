"""`retention` of output queues: who holds what, and what is not known lets nothing go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cklog.retention.plan import LogTrim, RetentionPlan
from cklog.retention.policy import RetentionPolicy
from cklog.run import open_run
from tests.builders.native import checkpoint, write
from tests.builders.queues import chain, emits
from tests.conftest import SAMPLES
from tests.program import cklog

WINDOWS = [
    ("open", "w1", 3, 1),
    ("open", "w2", 5, 2),
    ("result", "w1", 6, 1),
    ("open", "w3", 8, 2),
    ("check", "w2", 9, 2),
    ("open", "w4", 11, 3),
]
"""Type, window, input (and ms), N: w3 is the oldest footprint, record 3, of tuple 8; record 2 is the one before it."""


def queue(folder: Path, numbered: bool = True) -> Path:
    """The aggregate of `WINDOWS` behind a filter with a queue of 12 tuples; the filter has a source."""
    rows: list[dict[str, Any]] = []
    for pos, (kind, window, number, n) in enumerate(WINDOWS):
        row = {"type": kind, "window": window, "ts": number, "open_windows": n, "pos": pos, "state": {}}
        rows.append(row | {"input": number} if numbered else row)
    write(folder, "outputs/agg", rows)
    emits(folder, "filter", 12)
    chain(folder, "src", "filter", "agg")
    return folder


def plan_of(folder: Path) -> RetentionPlan:
    with open_run(str(folder)) as run:
        found: RetentionPlan = run.retention(RetentionPolicy()).result
    return found


def trims(plan: RetentionPlan) -> dict[str, LogTrim]:
    return {trim.channel: trim for trim in plan.trimming}


def below(folder: Path) -> dict[str, int | None]:
    return {name: trim.below for name, trim in trims(plan_of(folder)).items()}


def test_a_queue_stays_from_the_record_before_t_on_and_its_upstream_from_t(tmp_path: Path) -> None:
    assert below(queue(tmp_path)) == {
        "src/0->filter/0": 11,  # the filter took tuple 11 last, and may have written it half
        "filter/0->agg/0": 8,
        "agg/0": 2,
        "filter/0": 8,
    }
    assert {name: trim.checkpoint for name, trim in trims(plan_of(tmp_path)).items()}["filter/0"] == "agg/0"


def test_where_only_time_leads_upstream_the_record_before_stays_too(tmp_path: Path) -> None:
    found = below(queue(tmp_path, numbered=False))
    assert (found["filter/0"], found["agg/0"]) == (7, 2)


def test_a_reader_whose_progress_is_not_known_holds_the_queue(tmp_path: Path) -> None:
    chain(queue(tmp_path), "src", "filter", "agg", "sink")
    assert below(tmp_path)["agg/0"] is None
    assert {row.rule for row in plan_of(tmp_path).rows if "agg" in row.path} == {"reader"}
    assert below(tmp_path)["filter/0"] == 8


def test_without_the_channels_of_the_manifest_no_queue_says_who_reads_it(tmp_path: Path) -> None:
    (queue(tmp_path) / "job.json").write_text("{")
    plan = plan_of(tmp_path)
    assert plan.doubt == "unproven"
    assert {trim.below for trim in plan.trimming} == {None}
    assert {row.fate for row in plan.rows} == {"KEEP"}


@pytest.mark.parametrize(
    "manifest",
    [
        None,
        {"job": "j"},
        {"operators": [{"name": n} for n in ("src", "filter", "agg")], "channels": [{"channel": "filtes/0->agg/0"}]},
    ],
    ids=["gone", "no channels", "a channel from nowhere"],
)
def test_a_manifest_that_may_hide_a_reader_lets_nothing_go(manifest: dict[str, Any] | None, tmp_path: Path) -> None:
    """Nobody could tell that the aggregate reads the filter's queue, of which then all but the end would go."""
    place = queue(tmp_path) / "job.json"
    place.unlink()
    if manifest is not None:
        place.write_text(json.dumps(manifest))
    plan = plan_of(tmp_path)
    assert plan.doubt == "unproven"
    assert {trim.below for trim in plan.trimming} == {None}


def test_an_operator_in_doubt_holds_its_queue_and_what_feeds_it_and_no_other(tmp_path: Path) -> None:
    queue(tmp_path)
    path = tmp_path / "outputs" / "agg" / "part.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], b"#" * (len(lines[4]) - 1) + b"\n", *lines[5:]]))
    found = below(tmp_path)
    assert found == {"src/0->filter/0": 11, "filter/0->agg/0": None, "agg/0": None, "filter/0": None}


def test_a_source_of_another_system_is_told_by_its_offset(tmp_path: Path) -> None:
    rows = [{"type": "emit", "ts": n, "open_windows": 0, "input": {"orders/0": n + 40}, "pos": n} for n in range(6)]
    write(tmp_path, "outputs/filter", rows)
    assert set(below(tmp_path).values()) == {None}  # without a manifest nobody knows who reads the queue
    (tmp_path / "job.json").write_text('{"operators": [{"name": "filter"}]}')
    assert below(tmp_path) == {"orders/0": 45, "filter/0": 4}


def test_parts_that_lie_wholly_before_may_go(tmp_path: Path) -> None:
    queue(tmp_path)
    path = tmp_path / "outputs" / "agg" / "part.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.unlink()
    for number, start in enumerate((0, 2, 4)):
        (path.parent / f"part-{number}.jsonl").write_bytes(b"".join(lines[start : start + 2]))
    fates = {row.path.rpartition("/")[2]: (row.fate, row.rule) for row in plan_of(tmp_path).rows if "agg" in row.path}
    assert fates == {
        "part-0.jsonl": ("OBSOLETE", "obsolete"),
        "part-1.jsonl": ("VALID", "extent"),
        "part-2.jsonl": ("VALID", "extent"),
    }
    assert trims(plan_of(tmp_path))["agg/0"].bytes == len(lines[0] + lines[1])
    ended = cklog("retention", tmp_path, "--format", "paths")
    assert ended.out == "outputs/agg/part-0.jsonl\n"


def test_a_broker_lets_its_segments_go_itself(tmp_path: Path) -> None:
    """No `rm` of a Kafka segment is ever proposed; how far DeleteRecords may go is told."""
    shutil.copytree(SAMPLES / "cec-aggregate-kafka", tmp_path / "run")
    plan = plan_of(tmp_path / "run")
    segments = {row.path.rpartition("/")[2]: (row.fate, row.rule) for row in plan.rows if row.path.endswith(".log")}
    assert segments == {
        "00000000000000000000.log": ("KEEP", "broker"),
        "00000000000000000250.log": ("VALID", "extent"),
    }
    native, kafka = (
        trims(plan_of(SAMPLES / name))["agg1/0"].below for name in ("cec-aggregate", "cec-aggregate-kafka")
    )
    assert kafka == native == 391


def test_a_source_queue_that_nobody_reads_stays(tmp_path: Path) -> None:
    emits(tmp_path, "src", 5)
    chain(tmp_path, "x", "y", operators=[{"name": "src", "kind": "source"}])
    assert below(tmp_path) == {"src/0": None}


def test_damage_beside_checkpoints_lets_nothing_go(tmp_path: Path) -> None:
    emits(tmp_path, "filter", 9)
    chain(tmp_path, "src", "filter", "join")
    taken = {"received": {"filter/0->join/0": 4}}
    place = write(tmp_path, "checkpoints", [checkpoint("join", 1, **taken), checkpoint("join", 2, **taken)])
    assert below(tmp_path)["filter/0"] == 4
    place.write_bytes(place.read_bytes() + b"{broken\n")
    plan = plan_of(tmp_path)
    assert (plan.doubt, trims(plan)["filter/0"].below) == ("unproven", None)


@pytest.mark.parametrize(
    "options", [("--keep", "2"), ("--pin", "agg/0=1"), ("--window", "1d", "--now", "9"), ("--drop-broken",)]
)
def test_options_about_stored_checkpoints_are_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    ended = cklog("retention", queue(tmp_path), *options)
    assert (ended.code, ended.out) == (2, "")
    assert "--keep" in ended.err


def test_the_answer_says_what_it_does_not_see(tmp_path: Path) -> None:
    ended = cklog("retention", queue(tmp_path))
    assert ended.code == 0
    assert "Who reads a queue outside of this run is not seen" in ended.out
    assert "0 of 2 files may go as a whole; nothing was deleted." in ended.out
    rows = json.loads(cklog("retention", tmp_path, "--json").out)["result"]["trimming"]
    size = len(b"".join((tmp_path / "outputs/agg/part.jsonl").read_bytes().splitlines(keepends=True)[:2]))
    assert rows[2] == {
        "channel": "agg/0",
        "below": 2,
        "checkpoint": "agg/0",
        "log": "queue",
        "bytes": size,
        "place": f"outputs/agg/part.jsonl:{size}",
    }


def test_a_source_that_is_read_from_its_start_may_not_be_cut(tmp_path: Path) -> None:
    """Of one round only the source's checkpoint is there, of another only the other operator's: there is no line."""
    shutil.copytree(SAMPLES / "odysseus-precise", tmp_path, dirs_exist_ok=True)
    place = tmp_path / "checkpoints" / "part-00000.jsonl"
    first, *_, last = place.read_text().splitlines(keepends=True)
    place.write_text(first + last)
    plan = plan_of(tmp_path)
    assert [trim.below for trim in plan.trimming if trim.channel == "in-0"] == [None], plan.trimming

"""Ids that a terminal cuts: never to the same digits, never in what is pasted, never where a program reads."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.model.findings import Finding
from cklog.render.short_ids import with_short_ids
from cklog.render.view import Section, View
from tests.conftest import SAMPLES
from tests.program import cklog
from tests.terminal import on_terminal

FLINK = SAMPLES / "flink-orders"
JOBS = ("125c88b9401f9252baa1b39e412cc4b8", "aba3f4bfac52eaa92f2d9f59dce4f476")
COMMAND = f"flink run -s file:/srv/cklog-sample/flink-orders/{JOBS[0]}/chk-13"


def cut(text: str, *others: str) -> str:
    shown, _ = with_short_ids(View(text, (), others), ())
    return shown.headline


def test_a_terminal_shows_eight_digits_and_the_command_whole() -> None:
    told = on_terminal("recovery-line", FLINK, columns=150).out.splitlines()
    assert told[0] == "Restore 125c88b9/chk-13."
    assert told.index(COMMAND) < 8, "above the tables"
    table = [line for line in told if line.startswith("125c88b9/chk-1")]
    assert len(table) >= 4
    assert not [line for line in told if line.startswith(JOBS)]


@pytest.mark.quarter
@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "md", "table"])
def test_nothing_is_cut_where_no_terminal_is(form: str, tmp_path: Path) -> None:
    assert JOBS[0] in cklog("recovery-line", FLINK, "--format", form).out
    if form != "table":
        told = on_terminal("recovery-line", FLINK, "--format", form, columns=200).out
        assert all(job in told for job in JOBS)
        assert not re.search(r"125c88b9(?!401f)", told)
    on_terminal("recovery-line", FLINK, "--format", form, "-o", tmp_path / "answer")
    assert JOBS[0] in (tmp_path / "answer").read_text()


@pytest.mark.parametrize(
    "whole",
    [
        COMMAND,
        f"as in file:/srv/x/{JOBS[0]}/chk-1, and",
        f"s3://b/{JOBS[0]}/chk-1",
        f"(/srv/{JOBS[0]}/chk-1)",
        f"--at {JOBS[0]}/chk-1",
        f"--map {JOBS[0]}=x",
        JOBS[0] * 2,  # the digits of a SHA-256
        f"x{JOBS[0]}",
        JOBS[0].upper(),
    ],
)
def test_what_is_pasted_or_is_no_id_stays_whole(whole: str) -> None:
    assert cut(whole) == whole


def test_uuids_and_ids_in_relative_paths_are_cut() -> None:
    assert cut("the query 9d15472e-e5b0-4f43-bd11-c0c4419c1c02.") == "the query 9d15472e."
    assert cut(f"{JOBS[0]}/chk-1, {JOBS[1]}") == "125c88b9/chk-1, aba3f4bf"


@given(st.lists(st.text("01", min_size=32, max_size=32), min_size=1, max_size=12, unique=True))
def test_ids_that_differ_look_different_and_are_beginnings(ids: list[str]) -> None:
    rows = tuple((one, 1) for one in ids)
    view, (finding,) = with_short_ids(
        View("", (Section("jobs", ("job", "n"), rows),)), (Finding("x", "info", "", " ".join(ids)),)
    )
    shown = [row[0] for row in view.sections[0].rows]
    assert all(one.startswith(short) and len(short) >= 8 for one, short in zip(ids, shown, strict=True))
    for short in shown:
        assert [one for one in ids if one.startswith(short)] == [ids[shown.index(short)]]
    assert finding.message.split() == shown


def test_a_run_can_be_named_as_it_is_shown(tmp_path: Path) -> None:
    for job in JOBS:
        shutil.copytree(SAMPLES / "domino-cycle", tmp_path / job)
    whole = cklog("recovery-line", tmp_path, "--run", JOBS[0], "--json")
    assert cklog("recovery-line", tmp_path, "--run", "125c88b9", "--json") == whole
    assert cklog("recovery-line", tmp_path, "--run", "125c88").code == 66
    twin = JOBS[0][:-1] + "0"
    shutil.copytree(SAMPLES / "domino-cycle", tmp_path / twin)
    several = cklog("recovery-line", tmp_path, "--run", "125c88b9")
    assert several.code == 66
    assert twin in several.err

"""A part of a run leads to the run, to nothing larger, and never without a word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cklog.kinds.enclosing import PARTS, _candidates, enclosing_run
from cklog.kinds.opening import PARSERS, runs_of
from cklog.storage import Root
from tests.conftest import SAMPLES
from tests.program import cklog

JOB = "flink-orders/125c88b9401f9252baa1b39e412cc4b8"


@pytest.mark.parametrize(
    ("part", "run"),
    [
        (f"{JOB}/chk-13/_metadata", f"{JOB}/chk-13"),
        (f"{JOB}/chk-13/0083868e-5f61-4fc6-84e4-3e24eb5f9b23", f"{JOB}/chk-13"),
        (f"{JOB}/shared", JOB),
        ("spark-wordcount/ck/offsets", "spark-wordcount/ck"),
        ("spark-wordcount/ck/offsets/3", "spark-wordcount/ck"),
        ("spark-wordcount/ck/commits/", "spark-wordcount/ck"),
        ("spark-wordcount/ck/metadata", "spark-wordcount/ck"),
        ("spark-state-hdfs/ck/state/0/0", "spark-state-hdfs/ck"),
        ("domino-cycle/checkpoints", "domino-cycle"),
        ("domino-cycle/checkpoints/op1.jsonl", "domino-cycle"),
        ("domino-cycle/job.json", "domino-cycle"),
        ("cec-aggregate/outputs", "cec-aggregate"),
        ("kafka-broker/orders-1/00000000000000000040.log", "kafka-broker/orders-1"),
        ("kafka-broker/meta.properties", "kafka-broker"),
        ("kafka-streams-state/state/wordcount/1_0/.checkpoint", "kafka-streams-state/state/wordcount/1_0"),
        ("patent-store/totals.jsonl", "patent-store"),
        ("checkmate-uncoordinated/worker-1-logs", "checkmate-uncoordinated"),
    ],
)
def test_a_part_is_answered_as_its_run_and_the_choice_is_said(part: str, run: str) -> None:
    ended, whole = cklog("inspect", f"{SAMPLES}/{part}", "--json"), cklog("inspect", SAMPLES / run, "--json")
    assert (ended.code, json.loads(ended.out)) == (whole.code, json.loads(whole.out))
    said = ended.err.removesuffix(whole.err).strip()
    assert said.startswith(f"{SAMPLES}/{part} is a part of the run {SAMPLES / run} (")
    assert len(said.splitlines()) == 1


def test_paths_that_hold_runs_or_are_runs_are_taken_as_they_are() -> None:
    for place in ("flink-orders", f"{JOB}/chk-13", "spark-wordcount/ck", "kafka-broker", "kafka-streams-state/state"):
        assert enclosing_run(Root(str(SAMPLES / place))) is None


@pytest.mark.parametrize("place", ["README.md", "docs", "docs/json.md", "no/such/offsets"])
def test_what_is_no_part_of_a_run_is_refused_as_ever(place: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "json.md").write_text("x")
    (tmp_path / "README.md").write_text("x")
    ended = cklog("recovery-line", tmp_path / place)
    assert (ended.code, ended.out) == (66, "")
    assert "part of" not in ended.err


def test_a_part_by_its_name_alone_is_none(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "x").write_text("x")
    (tmp_path / "_metadata.d").mkdir()
    assert enclosing_run(Root(str(tmp_path / "offsets"))) is None
    shutil.copytree(SAMPLES / "domino-cycle", tmp_path / "run")  # beside it, not around it
    assert enclosing_run(Root(str(tmp_path / "offsets"))) is None


def test_a_run_of_another_format_around_a_part_is_not_taken(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "domino-cycle", tmp_path / "run")
    (tmp_path / "run" / "offsets").mkdir()
    (tmp_path / "run" / "offsets" / "7").write_text("v1\n{}\n")
    assert [run.format for run in runs_of(Root(str(tmp_path / "run")))] == ["native"]
    assert enclosing_run(Root(str(tmp_path / "run" / "offsets"))) is None


def test_a_chosen_run_or_format_is_not_overruled() -> None:
    part = SAMPLES / "spark-wordcount" / "ck" / "offsets"
    assert cklog("inspect", part, "--run", "x").code == 66
    assert enclosing_run(Root(str(part / "3")), "flink") is None
    assert enclosing_run(Root(str(part / "3")), "spark-checkpoint") is not None


def test_nothing_more_is_planned_to_be_deleted_than_was_named() -> None:
    ended = cklog("retention", SAMPLES / "spark-wordcount" / "ck" / "offsets", "--keep", "1")
    assert (ended.code, ended.out) == (2, "")
    assert f"is only a part of the run {SAMPLES}/spark-wordcount/ck: name that" in ended.err


def test_every_run_that_is_compared_says_where_it_was_found() -> None:
    others = [SAMPLES / "uncoordinated-join" / "job.json", SAMPLES / "domino-cycle" / "job.json"]
    told = cklog("compare", *others).err
    assert all(f"{place} is a part of the run {place.parent} (native)" in told for place in others)


def test_parts_are_of_formats_that_there_are() -> None:
    assert set(PARTS) <= set(PARSERS)


def test_a_part_named_from_inside_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLES / "spark-wordcount" / "ck" / "offsets")
    assert cklog("inspect").err.startswith(". is a part of the run ")
    assert cklog("inspect", "3").err.startswith("3 is a part of the run .. (spark-checkpoint)")


def test_what_cannot_be_looked_at_beside_a_folder_is_none_of_it(tmp_path: Path) -> None:
    """It is called as a part of a Flink job is, so its parent is listed, in which a link leads out."""
    (tmp_path / "shared" / "notes").mkdir(parents=True)
    (tmp_path / "shared" / "notes" / "a.txt").write_text("no run\n")
    (tmp_path / "elsewhere").symlink_to("/")
    root = Root(str(tmp_path / "shared" / "notes"))
    assert enclosing_run(root) is None
    assert not root.trouble.links


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "{}"])
@pytest.mark.parametrize("part", ["offsets", "offsets/3", "state/0/0"])
def test_a_part_by_its_uri_leads_to_a_folder_that_a_shell_can_enter(form: str, part: str, tmp_path: Path) -> None:
    run = tmp_path / "what?now" / "ck"
    shutil.copytree(SAMPLES / "spark-wordcount/ck", run)
    ended = cklog("runbook", form.format(run / part))
    setup = [text.strip() for text in ended.out.splitlines() if text.strip().startswith("RUN=")]
    assert setup[0] == f"RUN='{run}'"


def test_a_uri_of_a_store_keeps_its_scheme_and_options() -> None:
    [(above, formats), *_] = _candidates(Root("s3://bucket/run/ck/offsets?region=x"), "")
    assert (above.path, formats) == ("s3://bucket/run/ck?region=x", ["spark-checkpoint"])


def test_a_folder_above_with_very_many_files_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a home folder in which PATH lies."""
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "spark-wordcount", run)
    [part] = [path for path in run.rglob("commits") if path.is_dir()][:1]
    assert cklog("recovery-line", part).code == 0
    count = sum(1 for _ in part.parent.rglob("*"))
    monkeypatch.setattr("cklog.kinds.enclosing._MOST_ENTRIES", count - 1)
    assert cklog("recovery-line", part).code == 66
    monkeypatch.setattr("cklog.kinds.enclosing._MOST_ENTRIES", count)
    assert cklog("recovery-line", part).code == 0

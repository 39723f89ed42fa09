"""The pages in docs/runbooks: their command blocks are run, one after the other, on sound and on damaged copies."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog
from tests.standins import Ran, run_script

PAGES = REPOSITORY / "docs" / "runbooks"
FLINK_JOB = "125c88b9401f9252baa1b39e412cc4b8"


def blocks(page: str) -> list[str]:
    """The command blocks of a page; the last one undoes what the others did."""
    return re.findall(r"```sh\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), flags=re.DOTALL)


def run_page(page: str, run: Path, folder: Path, *words: str, undone: bool = False, **env: str) -> Ran:
    """Run a page from its first block to its last but one, or with the undo that stands last."""
    found = blocks(page)
    script = "set -eu\n" + "".join(found if undone else found[:-1])
    return run_script(script, folder, *words, cwd=None, RUN=str(run), **env)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def copied(sample: str, to: Path, damage: Callable[[Path], None]) -> Path:
    shutil.copytree(SAMPLES / sample, to)
    damage(to)
    return to


def nothing(run: Path) -> None:
    """Leave a copy as it is."""


def lose_newest_of_flink(run: Path) -> None:
    metadata = run / FLINK_JOB / "chk-13" / "_metadata"
    metadata.write_bytes(metadata.read_bytes()[:-100])


def lose_all_of_flink(run: Path) -> None:
    """Leave of each job the checkpoint that was in progress."""
    for file in [*run.rglob("_metadata")]:
        shutil.rmtree(file.parent)


def lose_metadata_of_flink(run: Path) -> None:
    for file in run.rglob("_metadata"):
        file.unlink()


def hide_newest_of_flink(run: Path) -> None:
    metadata = run / FLINK_JOB / "chk-13" / "_metadata"
    metadata.rename(run.parent / "elsewhere")
    metadata.symlink_to(run.parent / "elsewhere")


def lose_newest_of_spark(run: Path) -> None:
    max(run.rglob("state/0/0/*.delta"), key=lambda path: int(path.stem)).unlink()


def drop_wrong_task(run: Path) -> None:
    shutil.rmtree(run / "state" / "wordcount" / "1_1")


def flip_newest_of_join(run: Path) -> None:
    file = run / "checkpoints" / "join.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:-1], lines[-1].replace('"time":1', '"time":2')]))


GIVEN: dict[str, Any] = {"OPERATOR": "agg1", "LOST": "yes"}  # changelogs of the stores begin late
WORDS = {"flink": ("-p", "4", "a job.jar"), "spark": ("query.py",)}
SOUND = {
    "flink": ("flink-orders", nothing, "restart"),
    "spark": ("spark-state-hdfs", nothing, "restart"),
    "kafka-streams": ("kafka-streams-state", drop_wrong_task, "restart-older"),
    "uncoordinated": ("uncoordinated-join", nothing, "restart"),
    "cec": ("cec-aggregate", nothing, "restart"),
}
DAMAGED = {
    "flink": ("flink-orders", lose_newest_of_flink, "restart-older"),
    "spark": ("spark-state-hdfs", lose_newest_of_spark, "repair-first"),
    "kafka-streams": ("kafka-streams-state", nothing, "repair-first"),
    "uncoordinated": ("uncoordinated-join", flip_newest_of_join, "restart-older"),
    "cec": ("cec-crashed", nothing, "restart-older"),
}


def test_there_is_a_page_for_each_kind_and_it_is_one_page() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(SOUND)
    for page in PAGES.glob("*.md"):
        lines = page.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 60, page
        assert all(line.startswith("|") or len(line) <= 120 for line in lines), page


@pytest.mark.quarter
@pytest.mark.parametrize("state", [pytest.param("sound", marks=pytest.mark.slow), "damaged"])
@pytest.mark.parametrize("page", SOUND)
def test_a_page_goes_through_on_a_sound_and_on_a_damaged_copy(page: str, state: str, tmp_path: Path) -> None:
    sample, damage, action = (SOUND if state == "sound" else DAMAGED)[page]
    run = copied(sample, tmp_path / "run", damage)
    before = files(run)
    answer = json.loads(cklog("recovery-line", run, "--json").out)["result"]
    assert answer["action"] == action
    ran = run_page(page, run, tmp_path / "work", *WORDS.get(page, ()), **GIVEN)
    assert ran.code == 0, ran.err
    assert ran.calls[0] == ["job", "stop"]
    assert ran.calls[-1] == ["job", "running"]
    assert files(tmp_path / "work" / "save" / "run") == before
    if page == "flink":
        command = answer["runs"][0]["command"]
        assert ran.named("flink") == [[*command.split()[1:], *WORDS["flink"]]]
        assert command.endswith("chk-13" if state == "sound" else "chk-12")
    elif page == "spark":
        assert ran.named("spark-submit") == [["query.py"]]
        assert before.keys() - files(run).keys() >= {one for one in answer["details"]["remove"] if one in before}
    elif page == "kafka-streams":
        assert not (run / "state" / "wordcount" / "1_1").exists()
    elif page == "uncoordinated":
        assert [words[:2] for words in ran.named("job", "restore")] == [
            [f"{e['operator']}/{e['subtask']}", str(e["checkpoint"])] for e in answer["line"]
        ]
    else:
        assert [words[0] for words in ran.named("job", "load")] == ["filter1/0", "agg1/0"]


@pytest.mark.quarter
@pytest.mark.parametrize("page", ["flink", "spark", "kafka-streams"])
def test_what_a_page_did_is_undone_by_its_last_block(page: str, tmp_path: Path) -> None:
    sample, damage, _ = DAMAGED[page]
    run = copied(sample, tmp_path / "run", damage)
    before = files(run)
    ran = run_page(page, run, tmp_path / "work", *WORDS.get(page, ()), undone=True, **GIVEN)
    assert ran.code == 0, ran.err
    assert ran.calls[-1] == ["job", "stop"]
    assert files(run) == before


def test_stores_of_late_changelogs_are_not_restored_before_somebody_gives_their_state_up(tmp_path: Path) -> None:
    run = copied("kafka-streams-state", tmp_path / "run", nothing)
    before = files(run)
    ran = run_page("kafka-streams", run, tmp_path / "work")
    assert (ran.code, ran.calls) == (1, [["job", "stop"]])
    assert files(run) == before


def test_the_pages_have_one_undo() -> None:
    assert {blocks(page)[-1] for page in SOUND} == {blocks("flink")[-1]}


@pytest.mark.parametrize(
    ("damage", "code", "action"),
    [
        (lose_all_of_flink, 4, "start-over"),
        (lose_metadata_of_flink, 5, "undetermined"),
        (hide_newest_of_flink, 5, "undetermined"),
    ],
    ids=["nothing left", "metadata lost", "unreadable"],
)
def test_a_page_starts_nothing_where_nobody_should(
    damage: Callable[[Path], None], code: int, action: str, tmp_path: Path
) -> None:
    run = copied("flink-orders", tmp_path / "run", damage)
    assert json.loads(cklog("recovery-line", run, "--json").out)["result"]["action"] == action
    ran = run_page("flink", run, tmp_path / "work", "job.jar")
    assert ran.code == code
    assert ran.named("flink") == []


@pytest.mark.quarter
@pytest.mark.parametrize("page", SOUND)
def test_a_page_stops_where_the_folder_is_no_run(page: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    ran = run_page(page, tmp_path / "run", tmp_path / "work", "job.jar", **GIVEN)
    assert ran.code == 66
    assert ran.calls == [["job", "stop"]]


@pytest.mark.parametrize("page", SOUND)
def test_a_page_stops_where_the_job_cannot_be_stopped(page: str, tmp_path: Path) -> None:
    sample, damage, _ = SOUND[page]
    run = copied(sample, tmp_path / "run", damage)
    ran = run_page(page, run, tmp_path / "work", "job.jar", OPERATOR="agg1", FAILS="stop")
    assert ran.code == 7
    assert ran.calls == [["job", "stop"]]

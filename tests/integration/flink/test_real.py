"""The answers on real checkpoints and savepoints of Flink 1.20 and 2.3, and on older metadata, in every way to ask."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cklog.engine.scan import Engine
from cklog.run import Run
from tests.program import Ended, cklog

STORED = "file:/mnt/flink/prod/checkpts"
CODES = {0, 3, 4, 5}
"""An answer without findings, with findings, no recovery point, and not known for sure."""

RUNS = (
    "aligned-bp",
    "changelog",
    "f120-unaligned",
    "f39964",
    "filemerge",
    "finished",
    "hashmap",
    "hashmap-files",
    "kafka",
    "rocksdb-incr",
    "rocksdb-restored",
    "sp-native-39964",
    "unaligned",
)
OLDER = (
    "v2__new-stateful-udf-migration-itcase-flink1.8-rocksdb-savepoint",
    "v3__new-stateful-udf-migration-itcase-flink1.14-rocksdb-savepoint",
    "v3__new-stateful-udf-migration-itcase-flink1.15-hashmap-checkpoint",
    "v5__table-state",
)
A50B, RESTORED = "rocksdb-incr/a50b527fd4f00e485eb0bb7960c9d08f", "rocksdb-restored/fde10d788b48fc4702d4d31bab1ebb60"
F39964, SAVEPOINT = "f39964/f2d94ce82da46440c2b4005edf87a083", "sp-native-39964/savepoint-a50b52-cef4457a0e31"
TORN = ("aligned-bp/02af140c9b8e2e33bd5fc16b890e701c/chk-2",)
FEW = ("sp-native-39964",)
"""Of which every folder is asked each time: a changelog, files of several subtasks, a savepoint."""


@pytest.fixture
def checkpoints(shared_data: Path) -> Path:
    return shared_data / "flink-checkpoints"


def there(folder: Path) -> Path:
    """The folder, or a skipped test: not every run that the notes tell of was kept."""
    if not folder.is_dir():
        pytest.skip(f"{folder.name} is not among the shared data")
    return folder


def asked(command: str, path: Path, checkpoints: Path | None = None, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of a command, `checkpoints` being where the stored paths are mapped to."""
    maps = () if checkpoints is None else ("--map", f"{STORED}={checkpoints}")
    ended = cklog(command, path, *maps, *more, "--json")
    assert ended.code in CODES, ended.err
    return ended.code, json.loads(ended.out)


def verdicts(answer: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """The verdict of each snapshot and how many files are wrong."""
    return {row["snapshot"]: (row["verdict"], row["flawed"]) for row in answer["result"]["details"]["snapshots"]}


def picks(answer: dict[str, Any]) -> dict[str, int | None]:
    return {entry["operator"]: entry["checkpoint"] for entry in answer["result"]["line"]}


def sources(answer: dict[str, Any]) -> dict[str, int]:
    return {source["source"]: source["offset"] for source in answer["result"]["sources"]}


def test_a_claimed_job_lost_files_to_its_heir(checkpoints: Path) -> None:
    """Finding A: the old job's checkpoints look whole; the heir's newest is, and needs nothing of the old job."""
    code, answer = asked("recovery-line", checkpoints, checkpoints)
    found = verdicts(answer)
    assert code == 3
    assert found[f"{A50B}/chk-5"] == ("missing-state-file", 10)
    assert found[f"{A50B}/chk-6"] == ("missing-state-file", 12)
    assert found[f"{RESTORED}/chk-14"] == ("restorable", 0)
    assert picks(answer)[RESTORED] == 14
    assert A50B not in picks(answer)
    line = {entry["operator"]: entry for entry in answer["result"]["line"]}
    assert line[RESTORED]["uri"] == f"{STORED}/{RESTORED}/chk-14"
    needs = {(row["snapshot"], row["needs"]): row["files"] for row in answer["result"]["details"]["needs"]}
    assert {pair: files for pair, files in needs.items() if pair[1] == A50B} == {(f"{RESTORED}/chk-12", A50B): 2}


def test_checkpoints_that_name_files_of_a_savepoint_as_theirs(checkpoints: Path) -> None:
    """Finding B: every checkpoint of the job misses ten files, which lie under the savepoint; that one is whole."""
    _, answer = asked("recovery-line", checkpoints, checkpoints)
    found = verdicts(answer)
    assert found[f"{F39964}/chk-10"] == found[f"{F39964}/chk-11"] == ("missing-state-file", 10)
    for row in answer["result"]["details"]["snapshots"]:
        if row["snapshot"].startswith(F39964):
            places = [reason["found"] for reason in row["reasons"]]
            assert all(len(place) == 1 and place[0].startswith(f"{SAVEPOINT}/") for place in places)
    assert picks(answer)[F39964] == 9
    line = {entry["operator"]: entry for entry in answer["result"]["line"]}
    assert line[F39964]["uri"] == f"{STORED}/{SAVEPOINT}"
    assert line[F39964]["rolled_back"] is True


def test_a_mended_checkpoint_is_restorable(checkpoints: Path, tmp_path: Path) -> None:
    """What the answer proposes works: the ten files copied from the savepoint make chk-11 whole."""
    for run in ("f39964", "sp-native-39964", "rocksdb-incr"):
        shutil.copytree(there(checkpoints / run), tmp_path / run)
    _, answer = asked("recovery-line", tmp_path, tmp_path)
    for row in answer["result"]["details"]["snapshots"]:
        for reason in row["reasons"] if row["snapshot"].endswith("chk-11") else ():
            shutil.copyfile(tmp_path / reason["found"][0], tmp_path / reason["file"])
    _, mended = asked("recovery-line", tmp_path, tmp_path)
    assert verdicts(mended)[f"{F39964}/chk-11"] == ("restorable", 0)
    assert picks(mended)[F39964] == 11


def test_kafka_sources_resume_where_the_job_was(checkpoints: Path) -> None:
    code, answer = asked("replay", there(checkpoints / "kafka"), checkpoints)
    assert code == 0
    assert sources(answer) == {"orders-0": 1637, "orders-1": 1624, "orders-2": 1637, "orders-3": 812}
    _, answer = asked("replay", checkpoints / "kafka", checkpoints, "--against", "chk-6")
    rows = answer["result"]["details"]["against"]
    assert [row["source"] for row in rows] == ["orders-0", "orders-1", "orders-2", "orders-3"]
    assert all(row["read_again"] == 0 and row["read_again_by_other"] == row["offset"] - row["other"] for row in rows)


def test_against_compares_one_job_with_itself(checkpoints: Path) -> None:
    """All the jobs but kafka read splits 1 and 2: those of other jobs are none of this one's."""
    _, alone = asked("replay", there(checkpoints / "unaligned"), checkpoints, "--against", "chk-6")
    name = "unaligned/773784045eba23330e334f2d4b9029c7/chk-6"
    _, answer = asked("replay", checkpoints, checkpoints, "--against", name)
    assert answer["result"]["details"]["against"] == alone["result"]["details"]["against"]
    assert len(answer["result"]["details"]["against"]) == 2


def test_bytes_in_flight_of_an_unaligned_checkpoint(checkpoints: Path) -> None:
    _, answer = asked("replay", there(checkpoints / "unaligned"), checkpoints)
    sums = {"input": 0, "output": 0}
    for row in answer["result"]["details"]["in_flight_channels"]:
        sums[row["direction"]] += row["bytes"]
    assert sums == {"input": 6_859, "output": 421_380}


def test_the_only_orphans_are_of_torn_checkpoints(checkpoints: Path) -> None:
    _, answer = asked("retention", checkpoints, checkpoints, "--jobs-stopped")
    of_torn = {path.relative_to(checkpoints).as_posix() for torn in TORN for path in (checkpoints / torn).iterdir()}
    rules = {row["path"]: row["rule"] for row in answer["result"]["rows"]}
    assert {path for path, rule in rules.items() if rule == "orphan"} == set()
    assert {rules[path] for path in of_torn} <= {"torn", "last"}  # metadata that is lost may come back
    _, dropped = asked("retention", checkpoints, checkpoints, "--jobs-stopped", "--drop-broken")
    gone = {row["path"] for row in dropped["result"]["rows"] if row["fate"] == "OBSOLETE"}
    assert gone & of_torn == {path for path in of_torn if rules[path] == "torn"}
    fates = {row["path"]: row["fate"] for row in answer["result"]["rows"]}
    files = [path for path in checkpoints.rglob("*") if path.is_file() and path.parent.parent != checkpoints]
    assert {path.relative_to(checkpoints).as_posix() for path in files} >= set(fates)
    _, line = asked("recovery-line", checkpoints, checkpoints)
    for row in line["result"]["details"]["snapshots"]:
        if row["verdict"] == "restorable":
            assert fates[f"{row['snapshot']}/_metadata"] == "VALID"


def test_one_job_alone_lets_nothing_go_that_another_may_need(checkpoints: Path) -> None:
    """Finding A again: two files that only the heir names would be orphans of the old job's folder."""
    folder = there(checkpoints / A50B)
    for more in ((), ("--jobs-stopped",)):
        _, answer = asked("retention", folder, checkpoints, *more)
        assert not [row for row in answer["result"]["rows"] if row["fate"] == "OBSOLETE"]


def test_what_may_go_is_missed_by_nobody(checkpoints: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(checkpoints, tmp_path / "root"))
    _, before = asked("recovery-line", copy, copy)
    _, plan = asked("retention", copy, copy, "--jobs-stopped")
    for row in plan["result"]["rows"]:
        if row["fate"] == "OBSOLETE":
            (copy / row["path"]).unlink()
    _, after = asked("recovery-line", copy, copy)
    assert picks(after) == picks(before)
    whole = {name for name, (verdict, _) in verdicts(before).items() if verdict == "restorable"}
    assert {name for name, (verdict, _) in verdicts(after).items() if verdict == "restorable"} == whole


@pytest.mark.parametrize("run", [run if run in FEW else pytest.param(run, marks=pytest.mark.slow) for run in RUNS])
def test_every_folder_answers_with_a_map_and_without(checkpoints: Path, run: str) -> None:
    """The root, a job's folder, one checkpoint: by a map, or by the job's id; the same bytes twice."""
    top = there(checkpoints / run)
    jobs = [top, *(path for path in sorted(top.iterdir()) if path.is_dir())]
    folders = [*jobs, *(path for job in jobs[1:] for path in sorted(job.iterdir()) if path.name.startswith("chk-"))]
    for folder in folders:
        for maps in ((), ("--map", f"{STORED}={checkpoints}")):
            for command in ("recovery-line", "replay", "inspect", "retention"):
                answers_twice(command, folder, maps)


@pytest.mark.parametrize("name", OLDER)
def test_older_metadata_answers(shared_data: Path, name: str) -> None:
    folder = there(shared_data / "flink-metadata" / name)
    for command in ("recovery-line", "replay", "inspect", "retention"):
        answers_twice(command, folder, ())


def answers_twice(command: str, folder: Path, maps: tuple[str, ...]) -> None:
    one = folder.name.startswith("chk-")
    ended = cklog(command, folder, *maps, "--json")
    assert ended.code in ({2} if one and command == "retention" else CODES), (command, folder, ended.err)
    assert "Traceback" not in ended.err
    assert cklog(command, folder, *maps, "--json") == ended
    shown = cklog(command, folder, *maps)
    assert shown.code == ended.code
    assert "Traceback" not in shown.err


def test_without_a_map_the_job_id_leads_to_the_files(checkpoints: Path) -> None:
    _, mapped = asked("recovery-line", checkpoints, checkpoints)
    _, found = asked("recovery-line", checkpoints)
    assert verdicts(found) == verdicts(mapped)
    assert picks(found) == picks(mapped)
    assert "stored-elsewhere" in {finding["id"] for finding in found["findings"]}
    assert "stored-elsewhere" not in {finding["id"] for finding in mapped["findings"]}


def test_a_changelog_elsewhere_was_not_looked_at(checkpoints: Path) -> None:
    """The job's folder alone does not hold its changelog: that is no proof that segments are missing."""
    folder = there(checkpoints / "changelog" / "82d0b3a4969cad4810f85a8322f21839")
    code, answer = asked("recovery-line", folder)
    assert code == 5
    assert {verdict for verdict, _ in verdicts(answer).values()} == {"unchecked"}
    code, answer = asked("recovery-line", folder, checkpoints)
    assert (code, picks(answer)) == (0, {"82d0b3a4969cad4810f85a8322f21839": 8})
    code, answer = asked("recovery-line", folder, None, "--no-check-files")
    assert (code, picks(answer)) == (0, {"82d0b3a4969cad4810f85a8322f21839": 8})


def test_the_format_need_not_be_named(checkpoints: Path) -> None:
    plain = cklog("recovery-line", checkpoints, "--map", f"{STORED}={checkpoints}", "--json")
    assert cklog("recovery-line", checkpoints, "--map", f"{STORED}={checkpoints}", "--from", "flink", "--json") == plain
    slash = cklog("recovery-line", f"{checkpoints}/", "--map", f"{STORED}/={checkpoints}/", "--json")
    assert picks(json.loads(slash.out)) == picks(json.loads(plain.out))
    uri = cklog("recovery-line", f"file://{checkpoints}", "--map", f"{STORED}=file://{checkpoints}", "--json")
    assert picks(json.loads(uri.out)) == picks(json.loads(plain.out))


@pytest.mark.spark
@pytest.mark.parametrize("command", ["recovery-line", "replay", "inspect", "retention"])
def test_spark_gives_the_same_bytes(
    checkpoints: Path, command: str, monkeypatch: pytest.MonkeyPatch, spark: Engine
) -> None:
    def ask() -> Ended:
        return cklog(command, checkpoints, "--map", f"{STORED}={checkpoints}", "--json")

    local = ask()
    monkeypatch.setattr(Run, "engine_for", lambda _run, _size: spark)
    assert ask() == local


@pytest.mark.parametrize("more", [(), ("--check-contents",)])
def test_no_real_state_is_called_damaged(checkpoints: Path, more: tuple[str, ...]) -> None:
    """Every run and savepoint of the root at once: RocksDB, ForSt, heap, changelog, merged files, unaligned."""
    _, answer = asked("recovery-line", checkpoints, checkpoints, *more)
    assert not [f for f in answer["findings"] if f["id"] in ("corrupt-file", "unreadable-file")]
    assert "corrupt-state-file" not in {row["verdict"] for row in answer["result"]["details"]["snapshots"]}

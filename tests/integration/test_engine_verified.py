"""Folders that real systems left, held against what those systems did with them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.program import cklog


@pytest.fixture(scope="module")
def verified(shared_data: Path) -> Path:
    return shared_data / "engine-verified"


def answer(*words: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cklog(*words, "--json").out)
    return found


@pytest.mark.parametrize("name", ["checkmate-q1", "checkmate-q3", "checkmate-two-partitions"])
def test_the_line_of_a_dump_is_that_of_its_execution(verified: Path, name: str) -> None:
    """Forward channels, objects as payload, workers without a snapshot, two partitions on each worker."""
    truth = json.loads((verified / name / "truth.json").read_text())
    found = answer("recovery-line", verified / name)
    line = {f"{row['operator']}/{row['subtask']}": row["checkpoint"] for row in found["result"]["line"]}
    assert line == truth["line"]
    if "sources" in truth:
        resumed = {row["source"]: row["offset"] for row in found["result"]["sources"]}
        assert resumed == truth["sources"]
    assert not [finding for finding in found["findings"] if finding["id"] == "corrupt-file"]


@pytest.mark.parametrize("name", ["checkmate-q1", "checkmate-q3"])
def test_every_stored_checkpoint_is_read(verified: Path, name: str) -> None:
    truth = json.loads((verified / name / "truth.json").read_text())
    found = answer("inspect", verified / name)["result"]["subtasks"]
    stored = {f"{row['operator']}/{row['subtask']}": row["last"] or 0 for row in found}
    assert {unit: count for unit, count in truth["stored"].items() if count} == {k: n for k, n in stored.items() if n}


@pytest.fixture
def copy(verified: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a folder, to be damaged as it was when the engine was tried."""

    def copied(name: str) -> Path:
        shutil.copytree(verified / name, tmp_path / name)
        return tmp_path / name

    return copied


def ids(found: dict[str, Any], severity: str = "error") -> set[str]:
    return {finding["id"] for finding in found["findings"] if finding["severity"] == severity}


def test_spark_cannot_commit_a_batch_that_the_sink_has(verified: Path) -> None:
    """`assertion failed: CheckpointInfo length: 0` at every restart, and none with the sink's entry removed."""
    ran = cklog("recovery-line", verified / "spark-v2-sink-ahead", "--json")
    found = json.loads(ran.out)
    details = found["result"]["details"]
    assert (ran.code, details["restart_fails"], ids(found)) == (3, True, {"sink-log-ahead"})
    assert details["remove"] == ["out/_spark_metadata/4"]
    alone = answer("recovery-line", verified / "spark-v2-sink-ahead" / "ck")
    assert ids(alone) == {"sink-log-ahead"}, "the sink beside it is found"


def test_spark_begins_anew_only_without_any_state(copy: Callable[[str], Path]) -> None:
    """`STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY` where any of it is left."""
    home = copy("spark-back-to-initial")
    (home / "ck/state/1/0/1.delta").unlink()
    found = answer("recovery-line", home)
    assert found["result"]["line"][0]["checkpoint"] == -1
    for path in found["result"]["details"]["remove"]:
        (home / path).unlink()
    assert [path for path in (home / "ck/state").rglob("*") if path.is_file()] == []


def test_the_command_that_begins_anew_leaves_no_empty_folder(copy: Callable[[str], Path]) -> None:
    """Spark lists the folders of batches, in which an empty one is something, too; and the runbook expects the rest."""
    home = copy("spark-back-to-initial")
    (home / "ck/state/1/0/1.delta").unlink()
    (home / "ck/offsets/.3.4711.tmp").write_bytes(b"v1")
    run = answer("recovery-line", home)["result"]["runs"][0]
    steps = cklog("runbook", home, "--format", "script").out
    assert "-e action=start-over --" in steps
    subprocess.run(["sh", "-c", run["command"]], cwd=home, check=True)
    assert [name for name in ("offsets", "commits", "state") if (home / "ck" / name).exists()] == []
    assert answer("recovery-line", home)["result"]["action"] == "start-over"


def test_spark_keeps_the_plan_after_a_line_whose_plan_before_is_purged(copy: Callable[[str], Path]) -> None:
    """`batch 14 doesn't exist`; with `offsets/16` kept, batch 16 runs with its stored range."""
    home = copy("spark-previous-offsets-purged")
    (home / "ck/state/0/0/17.delta").unlink()
    found = answer("recovery-line", home)
    details = found["result"]["details"]
    assert (details["committed"], details["planned"]) == (15, 16)
    assert found["result"]["sources"][0]["replay_to"] == {"logOffset": 16}
    gone = {path for path in details["remove"] if path.startswith("ck/offsets/")}
    assert gone == {"ck/offsets/17", "ck/offsets/18", "ck/offsets/.17.crc", "ck/offsets/.18.crc"}


def test_spark_does_not_load_a_changelog_that_is_whole_and_stale(verified: Path) -> None:
    ran = cklog("recovery-line", verified / "spark-stale-changelog", "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["result"]["details"]["restart_fails"], ids(found)) == (3, True, {"checksum-mismatch"})
    assert found["result"]["details"]["committed"] == 8


def test_a_table_full_of_zeros_costs_every_checkpoint_that_names_it(verified: Path) -> None:
    """Flink's restore of the newest fails, and that of an undamaged control does not; all three name the table."""
    found = answer("recovery-line", verified / "flink-zeroed-sst")
    verdicts = {row["id"]: row["verdict"] for row in found["result"]["details"]["snapshots"]}
    assert verdicts == {2: "corrupt-state-file", 3: "corrupt-state-file", 4: "corrupt-state-file", 5: "no-metadata"}
    assert found["verdict"] == "unrecoverable"
    damaged = [finding for finding in found["findings"] if finding["id"] == "corrupt-file"]
    assert {finding["where"][0]["path"].rpartition("/")[2] for finding in damaged} == {
        "2780d8c9-9879-471e-8450-9314d224d680"
    }


@pytest.mark.parametrize("more", [(), ("--check-contents",)])
@pytest.mark.parametrize("name", ["flink-changelog-noclaim", "flink-filemerge", "flink-generations"])
def test_state_that_flink_restored_is_not_called_damaged(verified: Path, name: str, more: tuple[str, ...]) -> None:
    found = answer("recovery-line", verified / name, *more)
    assert not [f for f in found["findings"] if f["id"] in ("corrupt-file", "unreadable-file")]
    assert "restorable" in {row["verdict"] for row in found["result"]["details"]["snapshots"]}


def test_every_folder_is_held_against_what_its_engine_did(verified: Path) -> None:
    """By a test that names it, here or beside the parser."""
    tests = Path(__file__).resolve().parents[1]
    named = {path: path.read_text() for path in tests.rglob("test_*.py")}
    folders = sorted(path.name for path in verified.iterdir() if path.is_dir())
    assert len(folders) >= 13
    assert [name for name in folders if not any(f'"{name}' in text for text in named.values())] == []


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path) -> None:
    """A bit of what the serializer of the sources' state says of itself."""
    data = bytearray(path.read_bytes())
    data[88] ^= 4
    path.write_bytes(data)


REFUSED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "metadata-gone": ("metadata", Path.unlink),
    "metadata-cut": ("metadata", cut),
    "metadata-zeroed": ("metadata", zero),
    "state-gone": ("state", Path.unlink),
    "state-cut": ("state", cut),
    "state-zeroed": ("state", zero),
    "sources-zeroed": ("sources", zero),
    "sources-flipped": ("sources", flip),
}
"""Eight damages, of three backends: all 24 restores ended by themselves (`tests/integration/flink/live`)."""


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", ["flink-checkpoints/hashmap-files", "engine-verified/flink-generations"])
def test_what_flink_refused_is_not_restorable(name: str, case: str, shared_data: Path, tmp_path: Path) -> None:
    what, damage = REFUSED[case]
    home = tmp_path / "home"
    shutil.copytree(shared_data / name, home)
    before = restorable(home)
    assert before
    newest = home / max(before, key=lambda path: int(path.rpartition("-")[2]))
    files = {path: path.read_bytes() for path in newest.iterdir() if path.name != "_metadata"}
    kept = [path for path, data in files.items() if what == "state" or b"SourceReaderState" in data[:64]]
    damaged = newest / "_metadata" if what == "metadata" else max(kept, key=lambda path: len(files[path]))
    damage(damaged)
    assert restorable(home) == before - {newest.relative_to(home).as_posix()}


def restorable(home: Path) -> set[str]:
    rows = answer("recovery-line", home)["result"]["details"]["snapshots"]
    return {row["snapshot"] for row in rows if row["verdict"] == "restorable"}

"""`cklog scan`: every run below some folders, a row each, whatever lies between them."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cklog.engine.choosing import Engines
from cklog.engine.scan import Engine
from cklog.kinds.snapshots import SnapshotsKind
from cklog.sweep import worker, workers
from cklog.sweep.workers import Job
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog
from tests.users import open_to_all, somebody_else

GOOD = ("flink-orders", "spark-wordcount", "domino-cycle", "kafka-broker", "patent-store", "kafka-streams-state")
SEVERITIES = ("error", "warning", "info")


@pytest.fixture(autouse=True)
def _from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def scanned(*args: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cklog("scan", *args, "--json").out)["result"]
    return found


def rows(*args: str | Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scanned(*args)["runs"]
    return found


def of_samples(place: Path, *names: str) -> Path:
    for name in names:
        shutil.copytree(SAMPLES / name, place / name)
    return place


def test_a_row_says_what_recovery_line_says_of_the_folder() -> None:
    found = rows("sample_logs")
    assert {row["path"].split("/")[1] for row in found} == {
        path.name for path in SAMPLES.iterdir() if path.is_dir() and path.name != "flink"
    }
    for path in {row["path"] for row in found}:
        mine = [row for row in found if row["path"] == path]
        ended = cklog("recovery-line", path, "--json")
        told = json.loads(ended.out)
        names = ("run", "action", "newest", "newest_time", "chosen", "chosen_time", "age_ms")
        assert [[row[name] for name in names] for row in mine] == sorted(
            [run[name] for name in names] for run in told["result"]["runs"]
        )
        assert {row["exit"] for row in mine} == {ended.code}
        for run, row in zip(sorted(told["result"]["runs"], key=lambda run: run["run"]), mine, strict=True):
            counts = [sum(f["severity"] == severity for f in told["findings"]) for severity in SEVERITIES]
            counted = [row["errors"], row["warnings"], row["infos"]]
            assert counted == counts if len(mine) == 1 else all(a <= b for a, b in zip(counted, counts, strict=True))
            assert row["errors"] >= len(run["blocked_by"])
        everything = {f["id"] for f in told["findings"]}
        assert all(set(row["worst"]) <= everything for row in mine)


def test_rows_of_real_systems_are_what_recovery_line_says(shared_data: Path) -> None:
    found = rows(shared_data)
    assert {row["format"] for row in found} >= {"flink", "spark-checkpoint", "kafka", "kafka-streams", "checkmate"}
    names = ("run", "action", "newest", "newest_time", "chosen", "chosen_time", "age_ms")
    for path in {row["path"] for row in found}:
        mine = [row for row in found if row["path"] == path]
        ended = cklog("recovery-line", path, "--from", mine[0]["format"], "--json")
        told = json.loads(ended.out)["result"]["runs"]
        assert [[row[n] for n in names] for row in mine] == sorted(([run[n] for n in names] for run in told), key=str)
        assert {row["exit"] for row in mine} == {ended.code}


def test_sizes_are_those_of_the_files() -> None:
    for row in rows("sample_logs"):
        files = [path for path in Path(row["path"]).rglob("*") if path.is_file()]
        if row["format"] not in ("flink", "patent-store", "kafka-streams", "connect"):  # of one job among several
            assert (row["files"], row["bytes"]) == (len(files), sum(path.stat().st_size for path in files))


@pytest.mark.parametrize("bad", ["torn", "names", "loop", "bomb", "empty-log", "killed-parser"])
def test_a_bad_folder_leaves_the_rows_of_the_others_as_they_are(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_samples(tmp_path / "runs", *GOOD)
    before = rows(tmp_path / "runs")
    wrong = tmp_path / "runs" / "middle"
    if bad == "torn":
        shutil.copytree(SAMPLES / "spark-wordcount", wrong)
        for path in (wrong / "ck" / "offsets").iterdir():
            path.write_bytes(path.read_bytes()[:9])
    elif bad == "names":
        shutil.copytree(SAMPLES / "domino-cycle", os.fsdecode(os.fsencode(wrong) + b'\n"\\\x1b[31m\xff'))
    elif bad == "loop":
        shutil.copytree(SAMPLES / "domino-cycle", wrong)
        (wrong / "again").symlink_to(wrong)
        (wrong / "up").symlink_to(tmp_path / "runs")
        (wrong / "out").symlink_to("/etc")
        (wrong / "circle").symlink_to("circle")
    elif bad == "bomb":
        (wrong / "checkpoints").mkdir(parents=True)
        (wrong / "checkpoints" / "a.jsonl").write_text('{"a":' * 100_000)
    elif bad == "empty-log":
        (wrong / "offsets").mkdir(parents=True)
        (wrong / "commits").mkdir()
        (wrong / "offsets" / "0").write_bytes(b"")
        (wrong / "metadata").write_bytes(b"")
    else:
        shutil.copytree(SAMPLES / "flink-orders", wrong)
        real = SnapshotsKind.recovery_line

        def failing(self: SnapshotsKind, *asked: Any) -> Any:
            if self._opened.root.path.endswith("middle"):
                raise RecursionError("too deep")
            return real(self, *asked)

        monkeypatch.setattr(SnapshotsKind, "recovery_line", failing)
    after = rows(tmp_path / "runs")
    assert [row for row in after if "middle" not in row["path"]] == before
    mine = [row for row in after if "middle" in row["path"]]
    assert mine
    if bad in ("torn", "bomb", "empty-log", "killed-parser"):
        assert all(row["action"] != "restart" and row["exit"] for row in mine)
    if bad == "killed-parser":
        assert [(row["error_id"], row["action"], row["exit"]) for row in mine] == [
            ("self-check-failed", "undetermined", 3)
        ]
        assert mine[0]["message"] == "a bug: RecursionError: too deep"


def test_a_folder_that_may_not_be_looked_at_has_a_row_that_says_so(tmp_path: Path) -> None:
    folder = of_samples(open_to_all(tmp_path) / "runs", *GOOD)
    before = rows(folder)
    hidden = folder / "hidden"
    shutil.copytree(SAMPLES / "domino-cycle", hidden)
    savepoint = folder / "z" / "savepoint-125c88-0123456789ab"
    savepoint.mkdir(parents=True)
    (savepoint / "_metadata").write_bytes(b"\x49\x60\xd6\x72" + b"\0" * 9)
    hidden.chmod(0)
    (savepoint / "_metadata").chmod(0)
    with somebody_else():
        ended = cklog("scan", folder, "--json")
    hidden.chmod(0o755)
    (savepoint / "_metadata").chmod(0o644)
    found = json.loads(ended.out)["result"]["runs"]
    other = [row for row in found if row["path"] not in (str(hidden), str(savepoint))]
    told = [row for row in found if row not in other]
    assert (ended.code, other) == (5, before)
    assert [(row["error_id"], row["action"]) for row in told] == [("unreadable-file", "undetermined")] * 2
    assert all("permission denied" in row["message"] for row in told)


def test_neither_the_order_of_roots_nor_that_of_directories_matters(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    of_samples(one, *GOOD)
    of_samples(other, *reversed(GOOD))
    found = [[{**row, "path": Path(row["path"]).name} for row in rows(root)] for root in (one, other)]
    assert found[0] == found[1]
    assert rows(one, other) == rows(other, one)
    assert rows(one, one / "domino-cycle", f"{one}/") == rows(one)
    assert len(rows(one, other)) == 2 * len(rows(one))


def test_many_processes_give_the_rows_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cklog("scan", "sample_logs", "--json").out
    monkeypatch.setattr(workers, "_PER_PROCESS", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    asked: list[str] = []
    real = worker.job_line

    def noted(*args: Any) -> bytes:
        asked.append(args[2])
        return real(*args)

    monkeypatch.setattr(worker, "job_line", noted)
    assert cklog("scan", "sample_logs", "--json").out == before
    assert len(asked) == len({row["path"] for row in json.loads(before)["result"]["runs"]})


def test_a_run_that_ends_the_process_costs_its_own_row_only(monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows("sample_logs")
    monkeypatch.setattr(workers, "_PER_PROCESS", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    real = worker.job_line

    def broken(root: Any, form: str, shown: str, how: Any) -> bytes:
        return b"no job\n" if shown.endswith("domino-cycle") else real(root, form, shown, how)

    monkeypatch.setattr(worker, "job_line", broken)
    after = rows("sample_logs")
    changed = [row for row in after if row not in before]
    assert [(row["path"], row["action"], row["error_id"]) for row in changed] == [
        ("sample_logs/domino-cycle", "undetermined", "self-check-failed")
    ]
    assert len(after) == len(before)


@pytest.mark.spark
def test_spark_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Engine) -> None:
    of_samples(tmp_path / "runs", *GOOD)
    (tmp_path / "runs" / "bad" / "offsets").mkdir(parents=True)
    (tmp_path / "runs" / "bad" / "metadata").write_bytes(b"{")
    (tmp_path / "runs" / "bad" / "offsets" / "0").write_bytes(b"v9")
    before = [
        cklog("scan", root, "--format", form).out for root in ("sample_logs", tmp_path) for form in ("json", "csv")
    ]
    monkeypatch.setattr(Engines, "for_runs", lambda *_: spark)
    after = [
        cklog("scan", root, "--format", form).out for root in ("sample_logs", tmp_path) for form in ("json", "csv")
    ]
    assert after == before


def test_every_folder_is_listed_once(tmp_path: Path) -> None:
    """As the interpreter itself tells; what is opened is counted by benchmarks/scan_folders.py, with strace."""
    place = of_samples(tmp_path / "runs", *GOOD)
    code = (
        "import sys, os, collections\nfound = collections.Counter()\n"
        "sys.addaudithook(lambda e, a: found.update([os.path.normpath(a[0])]) if e == 'os.scandir' else None)\n"
        "from cklog.storage import Root\nfrom cklog.run import Run, Options\n"
        "from cklog.sweep.model import ScanQuestion\n"
        f"Run(Root({str(place)!r}), Options(engine='local')).scan(ScanQuestion())\n"
        f"print(sorted((p, n) for p, n in found.items() if p.startswith({str(place)!r})))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
    folders = [place, *(path for path in place.rglob("*") if path.is_dir())]
    assert eval(told) == sorted((str(path), 1) for path in folders)


def test_since_leaves_out_what_is_older_and_keeps_what_tells_no_time() -> None:
    everything = rows("sample_logs")
    found = scanned("sample_logs", "--since", "2026-06-01T00:00:00Z")
    limit = 1780272000000
    assert found["runs"] == [row for row in everything if row["last_time"] is None or row["last_time"] >= limit]
    assert found["found"] == len(everything)
    assert found["untimed"] == sum(row["last_time"] is None for row in everything) > 0
    assert "tell no time" in cklog("scan", "sample_logs", "--since", "2026-06-01T00:00:00Z").out
    none = cklog("scan", "sample_logs/domino-cycle", "--since", "2030-01-01")
    assert (none.code, none.out.splitlines()[0]) == (
        0,
        "None of 1 run tells of anything since 2030-01-01 00:00:00.000Z.",
    )


def test_times_are_those_that_the_runs_tell() -> None:
    found = {row["path"]: row for row in rows("sample_logs")}
    for row in found.values():
        if row["age_ms"] is not None and row["chosen_time"] is not None:
            assert row["last_time"] >= row["chosen_time"] + row["age_ms"]
    stored = [
        json.loads(line)["time"]
        for path in (SAMPLES / "domino-cycle" / "checkpoints").rglob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert found["sample_logs/domino-cycle"]["newest_time"] == max(stored)


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("column", "key", "down"),
    [
        ("size", lambda row: row["bytes"], True),
        ("age", lambda row: -1e9 if row["age_ms"] is None else row["age_ms"], True),
        ("newest", lambda row: float("inf") if row["chosen_time"] is None else row["chosen_time"], False),
        ("findings", lambda row: row["errors"], True),
        ("path", lambda row: row["path"], False),
        ("format", lambda row: row["format"], False),
    ],
)
def test_rows_are_sorted_by_what_needs_a_look_first(column: str, key: Any, down: bool) -> None:
    values = [key(row) for row in rows("sample_logs", "--sort", column)]
    assert values == sorted(values, reverse=down)


def test_the_gravest_action_comes_first() -> None:
    found = [row["action"] for row in rows("sample_logs", "--sort", "action")]
    order = ["undetermined", "start-over", "salvage-first", "repair-first", "restart-older", "restart"]
    assert [action for action, _ in itertools.groupby(found)] == order
    assert found[-1] == "restart"
    wrong = cklog("scan", "sample_logs", "--sort", "colour")
    assert (wrong.code, "--sort colour" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("sample", "code", "warning", "older"),
    [
        ("domino-cycle", 0, 0, 0),
        ("spark-wordcount", 0, 3, 0),
        ("kafka-broker", 3, 3, 3),
        ("meteor-shower", 4, 4, 4),
    ],
)
def test_exit_codes_go_by_fail_on(sample: str, code: int, warning: int, older: int) -> None:
    place = f"sample_logs/{sample}"
    asked = {None: code, "error": code, "warning": warning, "older": older, "never": 0}
    found = {how: cklog("scan", place, *(["--fail-on", how] if how else [])).code for how in asked}
    assert found == asked


def test_what_cannot_be_scanned_is_refused_and_one_root_does_not_cost_the_others(tmp_path: Path) -> None:
    assert cklog("scan", tmp_path / "gone").code == 66
    assert cklog("scan", tmp_path).code == 66
    assert cklog("scan", "sample_logs", "--run", "domino-cycle").code == 2
    found = rows("sample_logs/domino-cycle", tmp_path / "gone")
    assert [(row["path"], row["error_id"]) for row in found] == [
        (str(tmp_path / "gone"), "not-found"),
        ("sample_logs/domino-cycle", None),
    ]


def test_changelogs_belong_to_the_nearest_stores(tmp_path: Path) -> None:
    """Two copies side by side are two runs, each with its own broker, as each by itself is."""
    alone = rows("sample_logs/kafka-streams-state")
    for name in ("one", "two"):
        shutil.copytree(SAMPLES / "kafka-streams-state", tmp_path / name)
    found = rows(tmp_path)
    assert [{**row, "path": ""} for row in found] == [{**row, "path": ""} for row in alone] * 2


def test_prometheus_reads_what_is_printed(tmp_path: Path) -> None:
    hostile = b'a"b\\c\n\x1b[31md{e="f"} 1'
    shutil.copytree(SAMPLES / "domino-cycle", tmp_path / os.fsdecode(hostile))
    of_samples(tmp_path, "kafka-broker")
    table = {row["path"]: row for row in rows(tmp_path)}
    text = cklog("scan", tmp_path, "--format", "prometheus").out
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert list(families) == [
        "cklog_runs",
        "cklog_run_action",
        "cklog_run_exit_code",
        "cklog_run_findings",
        "cklog_run_stored_timestamp_seconds",
        "cklog_run_restorable_timestamp_seconds",
        "cklog_run_last_timestamp_seconds",
        "cklog_run_files",
        "cklog_run_size_bytes",
    ]
    assert {family.type for family in families.values()} == {"gauge"}
    assert all(family.documentation for family in families.values())
    assert "\x1b" not in text
    shown = {s.labels["path"]: s for s in families["cklog_run_action"].samples}
    assert set(shown) == {str(tmp_path / "kafka-broker"), f'{tmp_path}/a"b\\c\n\\x1b[31md{{e="f"}} 1'}
    for path, row in table.items():
        name = path.replace("\x1b", "\\x1b")
        assert shown[name].labels["action"] == row["action"]
        values = {
            (metric, *(v for k, v in s.labels.items() if k == "severity")): s.value
            for metric, family in families.items()
            for s in family.samples
            if s.labels.get("path") == name
        }
        assert values[("cklog_run_size_bytes",)] == row["bytes"]
        assert [values[("cklog_run_findings", s)] for s in SEVERITIES] == [row["errors"], row["warnings"], row["infos"]]
        for metric, member in (("restorable", "chosen_time"), ("last", "last_time"), ("stored", "newest_time")):
            told = values.get((f"cklog_run_{metric}_timestamp_seconds",))
            assert told == (None if row[member] is None else row[member] / 1000)
    counts = {s.labels["action"]: s.value for s in families["cklog_runs"].samples}
    assert (counts["restart"], counts["salvage-first"], sum(counts.values())) == (1, 1, 2)


def test_a_job_goes_through_a_line(tmp_path: Path) -> None:
    """What a worker is told is what the run is asked by itself: names that are no UTF-8, too."""
    shutil.copytree(SAMPLES / "domino-cycle", tmp_path / os.fsdecode(b"\xff\n"))
    from cklog.storage import Root
    from cklog.sweep.asking import HowToAsk, as_told, rows_of
    from cklog.sweep.finding import places_below

    root, how = Root(str(tmp_path)), HowToAsk(1 << 26, False, 4 << 30)
    (place,) = places_below(root)
    job = Job(root, place.folder, place.format, "it")
    told = json.loads(worker.job_line(job.opened(), job.format, job.shown, how))
    assert worker._answered(told) == [as_told(row) for row in rows_of(job.opened(), job.format, job.shown, how)]

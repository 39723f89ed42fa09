"""The report and the scan of programs are those of the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import cklog
from cklog.model.recovery_time import RecoveryRates
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog as program


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


@pytest.mark.parametrize("name", ["uncoordinated-join", "flink-orders", "patent-store"])
def test_a_report_is_what_the_command_writes(name: str) -> None:
    path = f"sample_logs/{name}"
    found = cklog.open(path).report()
    ended = program("report", path, "--json")
    assert (found.to_json(), found.exit_code) == (ended.out, ended.code)
    assert found.to_markdown() == program("report", path, "--format", "md").out
    assert found.to_markdown(brief=True) == program("report", path, "--format", "md", "--brief").out
    assert found.to_html() == program("report", path, "--format", "html").out


def test_keywords_of_a_report_are_options_and_its_commands_name_them() -> None:
    path = "sample_logs/uncoordinated-join"
    rates = RecoveryRates(read=12.5, most_s=60)
    found = cklog.open(path).report(failed="join/1", at={"join/0": 3}, rates=rates)
    options = ("--failed", "join/1", "--at", "join/0=3", "--read-rate", "12.5", "--max-recovery-time", "60")
    assert found.result.arguments == ("cklog", "report", path, *options)
    assert found.to_dict()["result"] == json.loads(program("report", path, *options, "--json").out)["result"]


def test_a_scan_has_typed_rows() -> None:
    roots = ("sample_logs/spark-wordcount", Path("sample_logs/kafka-broker"))
    found = cklog.scan(*roots, sort="action")
    ended = program("scan", *map(str, roots), "--sort", "action", "--json")
    assert found.to_dict() == json.loads(ended.out)
    assert found.exit_code == ended.code
    table = found.to_arrow()
    assert table.column("path").to_pylist() == ["sample_logs/kafka-broker", "sample_logs/spark-wordcount"]
    assert table.schema.field("bytes").type == pa.int64()
    assert pa.types.is_timestamp(table.schema.field("chosen_time").type)
    assert found.to_pandas()["action"].tolist() == ["salvage-first", "restart"]


def test_a_scan_takes_the_maps_and_the_time_limit_of_the_command() -> None:
    path, stored = "sample_logs/flink-orders", "file:///srv/cklog-sample/flink-orders"
    found = cklog.scan(path, maps={stored: path}, time_limit=0)
    ended = program("scan", path, "--map", f"{stored}={path}", "--time-limit", "0", "--json")
    assert found.to_dict() == json.loads(ended.out)
    assert "stored-elsewhere" not in found.result.runs[0].worst
    assert "stored-elsewhere" in cklog.scan(path).result.runs[0].worst


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_time_limit_that_is_none_is_refused_and_blames_no_run(seconds: float) -> None:
    with pytest.raises(cklog.UsageError, match="time-limit"):
        cklog.scan("sample_logs/domino-cycle", time_limit=seconds)


def test_one_root_that_is_missing_costs_no_other(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "spark-wordcount", tmp_path / "run")
    found = cklog.scan(tmp_path / "run", tmp_path / "none")
    assert [row.error_id for row in found.result.runs] == ["not-found", None]
    with pytest.raises(cklog.NotFound):
        cklog.scan(tmp_path / "none")
    with pytest.raises(cklog.UsageError):
        cklog.scan()

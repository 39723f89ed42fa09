"""Answers on the samples, byte for byte, on both engines. `pytest --refresh-golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from cklog.engine.scan import Engine
from cklog.run import Run
from tests.conftest import REPOSITORY
from tests.golden.cases import CASES, EXITS
from tests.program import cklog

HERE = Path("tests/golden")


def check(name: str, refresh: bool) -> None:
    path = REPOSITORY / (name if "/" in name else HERE / name)
    ended = cklog(*CASES[name].split())
    assert ended.code == EXITS.get(name, 0), ended.err
    out = ended.out.replace(f"={REPOSITORY}/", "=")  # a runbook names whole paths
    if refresh:
        path.write_text(out, encoding="utf-8", newline="\n")
    assert out == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_the_local_engine_prints_the_golden_bytes(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(REPOSITORY)
    check(name, refresh=request.config.getoption("--refresh-golden"))


@pytest.mark.quarter
@pytest.mark.spark
@pytest.mark.parametrize("name", CASES)
def test_the_spark_engine_prints_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch, spark: Engine) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(Run, "engine_for", lambda _run, _size: spark)
    check(name, refresh=False)


def test_three_encodings_of_one_queue_give_the_same_bytes() -> None:
    texts = [(REPOSITORY / HERE / f"cec-extent{name}.txt").read_bytes() for name in ("", "-parquet", "-kafka")]
    assert texts[0] == texts[1] == texts[2]

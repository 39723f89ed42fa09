"""`cklog impact --annotate` on results that ask for much: refused on both engines, and nothing is called written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bombs import MIB, gzipped, one_text_in_every_row, zstd
from tests.measured import Measured, measured
from tests.program import cklog

LINE = b'{"ts":0,"text":"' + b"x" * 1000 + b'"}\n'

BOMBS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "parquet": (
        "x.parquet",
        lambda path: one_text_in_every_row(path, 120_000, "text", 10_000),
        "what the texts of a batch of rows take when written out is over the budget of ",
    ),
    "gzip": (
        "x.jsonl.gz",
        lambda path: path.write_bytes(gzipped(b"\n" * MIB, 400)),
        "compressed bytes become is over",
    ),
    "zstd": ("x.jsonl.zst", lambda path: path.write_bytes(zstd(b"\n" * MIB, 400)), "compressed bytes become is over"),
    "line": ("x.jsonl", lambda path: path.write_bytes(LINE[:-3] + b"x" * (70 * MIB) + b'"}\n'), "a line is over "),
}


def annotated(tmp_path: Path, case: str, engine: str) -> Measured:
    """The paper's experiment, with results from elsewhere."""
    name, write, _ = BOMBS[case]
    run = tmp_path / "run"
    if not run.exists():
        assert cklog("simulate", "odysseus", run, "--recovery", "gap").code == 0
        (tmp_path / "results").mkdir()
        write(tmp_path / "results" / name)
    options = ("--results", tmp_path / "results", "--time", "ts", "--operator", "count", "--engine", engine)
    return measured("impact", run, "--annotate", tmp_path / f"out-{engine}", *options)


@pytest.mark.quarter
@pytest.mark.parametrize("case", BOMBS)
def test_results_that_ask_for_much(tmp_path: Path, case: str) -> None:
    ended = annotated(tmp_path, case, "local")
    assert (ended.code, ended.out) == (65, "")
    why, hint = ended.err.splitlines()
    assert why.startswith(f"cklog: {BOMBS[case][0]}")
    assert BOMBS[case][2] in why
    assert "--max-memory" in hint
    assert not (tmp_path / "out-local").exists()
    assert ended.peak < 500


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("case", ["parquet", pytest.param("gzip", marks=pytest.mark.slow)])
def test_spark_says_the_same(tmp_path: Path, case: str, spark: object) -> None:
    """`spark` is asked for as it knows whether there is a Java; the program starts a session of its own."""
    ended = [annotated(tmp_path, case, engine) for engine in ("local", "spark")]
    assert [one.code for one in ended] == [65, 65]
    assert ended[0].err == ended[1].err
    assert ended[1].peak < 500

"""The impact as people see it: drawings as in the paper's Figures 4 to 6, sentences, and the simulator's figures."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from cklog.impact.model import RECOVERIES, BoundedTime, Impact
from cklog.impact.view import impact_figure
from cklog.run import Options, open_run
from tests.conftest import SAMPLES
from tests.program import cklog
from tests.reading.impact import impact_of

PRECISE = SAMPLES / "odysseus-precise"


def lanes(**asked: Any) -> dict[str, str]:
    """Each lane of the drawing with runs of one sign as one sign."""
    found = impact_of(PRECISE, **asked)
    lines = impact_figure(found, found.outputs[0]).splitlines()[3:]
    pairs = (line.split(maxsplit=1) for line in lines)
    return {name: "".join(sign for sign, _ in itertools.groupby(lane)) for name, lane in pairs}


def test_gap_recovery_is_drawn_as_in_figures_4b_and_6a() -> None:
    """Once, then nothing, then wrong counts that are not trusted, then right ones."""
    found = lanes(recovery="gap")
    assert found["results"] == "1.1"
    assert found["values"] == "= x="
    assert found["trust"] == "+ -+"


def test_rollback_is_drawn_as_in_figures_5a_and_6b() -> None:
    """Twice between checkpoint and crash; indefinite until the restart."""
    found = lanes(recovery="rollback")
    assert found["results"] == "121"
    assert found["values"] == "="
    assert found["trust"] == "+?+"


def test_precise_recovery_is_drawn_as_in_figures_5b_and_6c() -> None:
    found = lanes(recovery="precise")
    assert found == {"results": "1", "values": "=", "trust": "+"}


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_drawings_fit_80_columns(recovery: str) -> None:
    found = impact_of(PRECISE, recovery=recovery)
    assert max(map(len, impact_figure(found, found.outputs[0]).splitlines())) <= 80


def test_dates_are_drawn_as_seconds_after_the_crash() -> None:
    """Times of a real clock are counted from the crash."""
    with open_run(str(PRECISE), Options(engine="local")) as run:
        from cklog.impact.answer import ImpactQuestion

        crash = 1_800_000_000_000
        found = run.impact(ImpactQuestion(crash=crash, restart=crash + 90_000, recovery="gap")).result
    assert isinstance(found, Impact)
    assert found.crash == BoundedTime(crash, crash, "--crash")
    assert impact_figure(found, found.outputs[0]).splitlines()[1].split() == ["s,", "crash", "0", "0", "90", "149"]


@pytest.mark.parametrize("form", ["table", "md", "csv", "jsonl", "json"])
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_every_format_can_be_printed(form: str, recovery: str) -> None:
    ended = cklog("impact", PRECISE, "--recovery", recovery, "--format", form)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out


def test_the_headline_says_what_is_lost_and_since_when_it_is_right_again() -> None:
    told = cklog("impact", PRECISE, "--recovery", "gap").out.splitlines()[0]
    assert told == (
        "The system crashed at 270 s and is back at 360 s. count (gap recovery, at-most-once): 90 missing, 59 wrong "
        "results, right again from 419 s on."
    )


# cklog simulate odysseus


def test_the_simulator_writes_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert cklog("simulate", "odysseus", tmp_path / name, "--period", "1000").code == 0
    files = [p.relative_to(tmp_path / "a") for p in sorted((tmp_path / "a").rglob("*")) if p.is_file()]
    assert len(files) == 5
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()


def test_the_samples_are_what_the_simulator_writes(tmp_path: Path) -> None:
    for name, recovery in (("odysseus-precise", "precise"), ("odysseus-gap", "gap")):
        made = tmp_path / name
        cklog("simulate", "odysseus", made, "--recovery", recovery, "--period", "1000")
        for path in sorted(p for p in made.rglob("*") if p.is_file()):
            assert path.read_bytes() == (SAMPLES / name / path.relative_to(made)).read_bytes(), path


@pytest.mark.parametrize("encoding", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
def test_every_encoding_gives_the_same_answer(tmp_path: Path, encoding: str) -> None:
    cklog("simulate", "odysseus", tmp_path / "run", "--period", "1000", "--encoding", encoding)
    assert impact_of(tmp_path / "run", recovery="rollback") == impact_of(PRECISE, recovery="rollback")


def test_the_simulator_counts_what_happened() -> None:
    ended = cklog("simulate", "odysseus", "--no-log", "--recovery", "gap", "--period", "1000", "--json")
    (output,) = json.loads(ended.out)["result"]["outputs"]
    assert (output["missing"], output["wrong"], output["doubled"], output["results"]) == (90, 59, 0, 390)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--no-log", "--period", "0"),
        ("--no-log", "--slide", "61"),
        ("--no-log", "--crash-at", "400"),
        ("--no-log", "--period", "1e30"),
        ("--no-log", "--end", "nan"),
        ("--no-log", "--format", "xml"),
    ],
)
def test_the_simulator_refuses_nonsense(options: tuple[str, ...]) -> None:
    ended = cklog("simulate", "odysseus", *options)
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_the_simulator_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("mine")
    assert cklog("simulate", "odysseus", tmp_path, "--period", "1000").code == 2

"""`inspect --validate`: what the writer of a run folder got wrong ends with exit 3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.native import write
from tests.conftest import SAMPLES
from tests.integration.evidence.cases import answer, kept, said
from tests.program import cklog


@kept
def test_misspelled_members_fail_the_check_of_the_writer() -> None:
    code, found = answer("inspect", "users/native-typo", "--validate")
    assert code == 3
    assert len(said(found, "unknown-member")) == 3


@kept
def test_a_log_that_ends_before_what_its_sender_has_sent_is_named() -> None:
    code, found = answer("inspect", "users/native-lost-tail-of-log", "--validate")
    assert code == 3
    short = {f["subject"]: f["message"] for f in found["findings"] if f["id"] == "log-ends-before-sent"}
    assert set(short) >= {"src/0->agg/0", "src/0->agg/1"}
    assert "up to 58, but the log ends before message 48" in short["src/0->agg/0"]
    assert not said(answer("inspect", "users/native-lost-tail-of-log")[1], "log-ends-before-sent")


def run_of(folder: Path, sent: int, logged: int, retained: int = 0) -> Path:
    channel = "a/0->b/0"
    write(folder, "checkpoints", [{"operator": "a", "checkpoint": 1, "sent": {channel: sent}}])
    write(folder, "channels", [{"channel": channel, "seq": n} for n in range(logged)])
    job = {"channels": [{"channel": channel, "first_retained": retained}]}
    (folder / "job.json").write_text(json.dumps(job))
    return folder


@pytest.mark.parametrize(
    ("sent", "logged", "retained", "code"), [(5, 5, 0, 0), (5, 4, 0, 3), (5, 0, 0, 3), (5, 3, 5, 0), (5, 9, 0, 0)]
)
def test_sent_beyond_the_end_of_the_log(tmp_path: Path, sent: int, logged: int, retained: int, code: int) -> None:
    run = run_of(tmp_path, sent, logged, retained)
    ended, found = answer("inspect", run, "--validate")
    assert (ended, bool(said(found, "log-ends-before-sent"))) == (code, bool(code))
    assert cklog("inspect", run, "--validate", "--fail-on", "never").code == 0


def test_samples_pass_the_check_of_the_writer() -> None:
    assert cklog("inspect", SAMPLES / "uncoordinated-join", "--validate").code == 0


def test_other_formats_and_metrics_have_nothing_to_validate() -> None:
    assert cklog("inspect", SAMPLES / "flink-orders", "--validate").code == 2
    assert cklog("inspect", SAMPLES / "uncoordinated-join", "--validate", "--metrics").code == 2


def test_of_several_runs_none_passes_unchecked(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run_of(tmp_path / name, 5, 4)
    assert cklog("inspect", tmp_path).code == 0
    assert cklog("inspect", tmp_path, "--validate").code == 2

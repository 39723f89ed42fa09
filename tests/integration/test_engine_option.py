"""`--engine spark` on every command and sample: either Spark reads, or one line says that it had no effect."""

from __future__ import annotations

import pytest

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Scan, Scanned
from cklog.engine.spark import SparkEngine
from tests.conftest import REPOSITORY, SAMPLES
from tests.integration.questions import FOLDERS, QUESTIONS
from tests.program import Ended, cklog, hide_java

NO_EFFECT = "--engine spark had no effect: "
ANSWERED = (0, 3, 4, 5)


class Recorder:
    """Stands for scans on Spark: notes that there was one, and makes it in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scans = 0
        monkeypatch.chdir(REPOSITORY)
        monkeypatch.setattr(SparkEngine, "run", lambda _engine, scan: self.run(scan))

    def run(self, scan: Scan) -> Scanned:
        self.scans += 1
        return LocalEngine().run(scan)

    def ask(self, question: str, folder: str) -> Ended:
        self.scans = 0
        return cklog(*(folder if word == "PATH" else word for word in question.split()), "--engine", "spark")

    def require_truth(self, question: str, folder: str) -> str:
        """Compare what was said with what was done; return which it was."""
        ended = self.ask(question, folder)
        where = f"{question} on {folder}: {ended.err}"
        if ended.code not in ANSWERED:
            return "refused"
        said = [line for line in ended.err.splitlines() if line.startswith(NO_EFFECT)]
        assert len(said) == (self.scans == 0), where
        return "on Spark" if self.scans else "no effect"


COMMANDS = [*{question.split()[0]: question for question in QUESTIONS if "--json" not in question}.values()]
"""One question of each command, and all that end here without a scan."""


@pytest.mark.parametrize("sample", ["uncoordinated-join", "spark-wordcount", "cec-aggregate", "incremental"])
def test_each_command_says_whether_spark_had_an_effect(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    found = {question: recorder.require_truth(question, f"sample_logs/{sample}") for question in COMMANDS}
    assert "on Spark" in found.values() or sample == "spark-wordcount", found


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_command_says_whether_spark_had_an_effect(folder: object, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    for question in QUESTIONS:
        recorder.require_truth(question, str(folder))


@pytest.mark.parametrize(
    "words",
    [
        ("recovery-line", "spark-wordcount"),
        ("recovery-line", "patent-store"),
        ("eventual-checkpoint", "cec-aggregate-kafka", "--as-of", "100", "--operator", "agg1"),
        ("advise", "extent", "cec-aggregate", "--operator", "agg1"),
        ("extent", "cec-aggregate", "--operator", "agg1", "--over-time"),
    ],
)
def test_no_jvm_is_started_where_spark_has_no_effect(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java the answer is the same, with the line: nothing has even looked for one."""
    hide_java(monkeypatch)
    path = [str(SAMPLES / word) if (SAMPLES / word).is_dir() else word for word in words]
    local, spark = cklog(*path, "--engine", "local"), cklog(*path, "--engine", "spark")
    assert (spark.code, spark.out) == (local.code, local.out)
    assert spark.code in ANSWERED
    assert NO_EFFECT in spark.err
    assert NO_EFFECT not in local.err

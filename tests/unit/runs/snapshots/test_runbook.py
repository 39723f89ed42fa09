"""The step of a runbook that restores a Flink job: which checkpoint its command names, and where that is looked for."""

from __future__ import annotations

import pytest

from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.runbook.shell import Again
from cklog.runs.snapshots.runbook import snapshot_steps


def command_of(path: str) -> str:
    """The command of the step that restores the checkpoint at a path."""
    line = RecoveryLine(True, "coordinated", (), (), (), (), (), (), False, action="restart")
    run = RunAction("3f2a", "restart", chosen="chk-3", command=f"flink run -s {path}")
    (restore,) = [step for step in snapshot_steps(line, run, Again()) if step.title == "Restore chk-3"]
    assert restore.command is not None
    return restore.command


def test_a_checkpoint_of_the_copy_is_where_the_script_says() -> None:
    assert command_of("3f2a/chk-3").startswith('flink run -s "$CHECKPOINT"')


@pytest.mark.parametrize("path", ["/jobs/3f2a/chk-3", "file:/jobs/chk-3", "hdfs://name/jobs/chk-3", "s3://b/chk-3"])
def test_a_checkpoint_elsewhere_is_named_as_it_is(path: str) -> None:
    assert command_of(path).startswith(f"flink run -s {path} ")

"""Which snapshots a restore has to claim: those of a job that writes a changelog, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import flink as fb
from tests.builders.flink_folders import OLD, Snapshot, checkpoint
from tests.reading.flink_folders import asked, ids


@pytest.mark.parametrize(
    "keyed",
    [
        fb.changelog([], [], second=False),
        fb.changelog([fb.incremental(fb.empty())], []),
        fb.changes_inlined([b"x"]),
        fb.changes([fb.inline(b"x")], second=False),
        fb.changes([fb.inline(b"x")]),
    ],
    ids=["8", "14", "9", "10", "13"],
)
def test_a_changelog_of_any_kind_is_claimed(tmp_path: Path, keyed: fb.Built) -> None:
    folder = checkpoint(tmp_path, OLD, 7)
    made = [fb.operator(4, [fb.subtask(4, 3, keyed=keyed)])]
    (folder / "_metadata").write_bytes(fb.metadata(4, made, checkpoint=7).data)
    answer = asked("recovery-line", tmp_path)
    assert answer["result"]["details"]["restore"][0]["command"].endswith(" -claimMode CLAIM")
    assert "claim-needed" in ids(answer)


def test_no_other_state_is_claimed(tmp_path: Path) -> None:
    checkpoint(tmp_path, OLD, 7, Snapshot(own={"p": 3}))
    answer = asked("recovery-line", tmp_path)
    assert "CLAIM" not in answer["result"]["details"]["restore"][0]["command"]
    assert "claim-needed" not in ids(answer)

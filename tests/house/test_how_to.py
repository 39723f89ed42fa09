"""The how-tos by copy and paste: every block runs, in order, in one shell, and does what its page says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, SAMPLES
from tests.pasting import blocks, copies, pasted

FOLDER = REPOSITORY / "docs" / "how-to"
STAND_INS = {"aws": copies("uncoordinated-join", 5), "kubectl": copies("flink-orders", 3)}

THERE = {
    "sweep.md": ("jobs", ["flink-orders", "domino-cycle", "kafka-broker"]),
    "retention.md": ("run", [f"spark-state-hdfs/{name}" for name in ("ck", "in")]),
}
"""What a page takes for given: a folder, and samples, or parts of one, that lie in it."""

SAID = {
    "ci-gate.md": ("Action: restart (", "go on: start every subtask", "The same: ok"),
    "object-stores.md": ("Action: restart (", "aws s3 cp --recursive s3://checkpoints/join join"),
    "own-format.md": ("To replay from the channel logs", "src/0              2", "Proved: "),
    "retention.md": (),
    "sweep.md": ("salvage-first",),
    "what-to-copy.md": ("flink", "contents-not-checked"),
}
"""What must be among what the blocks of a page print."""


@pytest.mark.parametrize("page", sorted(SAID))
def test_the_blocks_of_a_how_to_run(page: str, tmp_path: Path) -> None:
    folder, given = THERE.get(page, ("", []))
    for name in given:
        shutil.copytree(SAMPLES / name, tmp_path / "work" / folder / Path(name).name)
    told = pasted(FOLDER / page, STAND_INS, tmp_path)
    for sentence in SAID[page]:
        assert sentence in told, told
    if page == "sweep.md":
        metrics = (tmp_path / "work" / "textfiles" / "cklog.prom").read_text()
        assert 'cklog_runs{action="salvage-first"} 1' in metrics
    if page == "retention.md":
        gone = (tmp_path / "work" / "plan").read_text().split("\0")[:-1]
        assert len(gone) > 10
        assert not [path for path in gone if (tmp_path / "work" / "run" / path).exists()]


def test_every_how_to_is_run() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(SAID)
    for page in SAID:
        assert blocks(FOLDER / page)

"""`rounds --sweep`: each failure by itself is what `--failed-nodes` says, the worst first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cklog.errors import NotFound
from cklog.rounds.answer import RoundsQuestion
from cklog.rounds.sweep import AFN100, SweepAnswer, SweepBy, SweepQuestion
from cklog.run import Options, open_run
from tests.conftest import SAMPLES

TOKENS = SAMPLES / "token-rounds"


def swept(folder: Path, by: SweepBy) -> SweepAnswer:
    with open_run(str(folder), Options()) as run:
        return run.sweep_rounds(SweepQuestion(by)).result


@pytest.mark.parametrize(("by", "count"), [("node", 5), ("pair", 10)])
def test_each_failure_is_what_failed_nodes_says(by: SweepBy, count: int) -> None:
    found = swept(TOKENS, by)
    assert len(found.domains) == count
    for row in found.domains:
        with open_run(str(TOKENS), Options()) as run:
            alone = run.rounds(RoundsQuestion(failed_nodes=row.nodes)).result
        left = [node for node in alone.nodes if not node.failed]
        assert row.round == alone.round
        assert row.restarts == sum(restart.fate == "restarts elsewhere" for restart in alone.restart)
        assert row.local_bytes + row.shared_bytes == alone.bytes
        assert row.shared_bytes == sum(node.shared_bytes for node in left)
        assert row.replayed == sum(preserved.preserved or 0 for preserved in alone.preserved)


@pytest.fixture
def local_only(tmp_path: Path) -> Path:
    """The sample with the only copy of HAU4's checkpoint of round 3 on the disk of n3."""
    folder = tmp_path / "run"
    shutil.copytree(TOKENS, folder)
    job = json.loads((folder / "job.json").read_text())
    del job["crc32c"]
    (folder / "job.json").write_text(json.dumps(job))
    for path in [*folder.glob("checkpoints/*.jsonl"), *folder.glob("system/*.jsonl")]:
        kept = []
        for line in path.read_text().splitlines():
            record = json.loads(line)
            record.pop("crc32c", None)
            mine = (record.get("operator"), record.get("round")) == ("HAU4", 3)
            if mine and record.get("event") == "checkpoint-stored":
                continue
            if mine and "uri" in record:
                record["uri"] = "file:///ckpt/HAU4/3"
            kept.append(json.dumps(record) + "\n")
        path.write_text("".join(kept))
    for left in folder.rglob(".*.crc"):
        left.unlink()
    return folder


def test_the_worst_failure_comes_first_and_says_what_went_with_it(local_only: Path) -> None:
    found = swept(local_only, "node")
    worst, *others = found.domains
    assert (worst.domain, worst.round, worst.rounds_lost, worst.unreachable) == ("n3", 2, 1, ("HAU4/0",))
    assert worst.lost_ms is not None
    assert worst.lost_ms > 0
    assert {(row.round, row.rounds_lost, row.unreachable) for row in others} == {(3, 0, ())}


def test_racks_fail_as_one(local_only: Path) -> None:
    """The sample's racks: n1, n2 and n5, which runs nothing; n3 and n4."""
    found = swept(local_only, "rack")
    assert [(row.domain, row.nodes, row.round, row.restarts) for row in found.domains] == [
        ("r2", ("n3", "n4"), 2, 3),
        ("r1", ("n1", "n2", "n5"), 3, 2),
    ]


def test_without_racks_none_can_fail(local_only: Path) -> None:
    job = json.loads((local_only / "job.json").read_text())
    del job["racks"]
    (local_only / "job.json").write_text(json.dumps(job))
    with pytest.raises(NotFound, match="racks"):
        swept(local_only, "rack")


def test_the_papers_model_of_node_failures() -> None:
    """Table I, Google's data center: over 300, 100 to 150, about 100, 1.7 to 8.6, and 1.3 in a year of 100 nodes."""
    network = 0.05 * 2400 + 20 * 80 + 5 * 80 + (15 + 8) * 240
    assert network == 7640
    assert 300 <= AFN100["network"] < network / 2400 * 100
    assert 503 < sum(AFN100.values()) < 560
    assert swept(TOKENS, "node").per_year == pytest.approx(5 * sum(AFN100.values()) / 100)

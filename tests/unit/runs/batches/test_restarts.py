"""What a restart of a Spark query reads and removes, where a plan that looks right would fail or lose results."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cklog.runs.batches.line import removal_command
from tests.builders.spark import Memory
from tests.builders.spark_state import (
    HDFS,
    ROCKS,
    by_ids,
    changelog,
    checkpoint,
    deltas,
    hdfs,
    memory,
    operator,
    plan_without,
    snapshot,
)
from tests.reading.spark import said

ENTRY = b'v1\n{"path":"file:///out/part-0","size":1,"action":"add"}'


def stateful(batches: int) -> Memory:
    """Batches that are all committed and one in flight, each version of state by its delta."""
    return memory(checkpoint(HDFS, batches), operator(), deltas(range(1, batches + 1)))


def test_before_batch_0_the_folders_of_batches_go_whole() -> None:
    """Spark lists offsets/, commits/ and state/, and empty folders or a temporary file in them stop it."""
    root = stateful(3)
    root.files["offsets/.3.4711.tmp"] = b"v1"
    plan = plan_without(root, "state/0/0/1.delta")
    assert plan.committed == -1
    assert plan.remove_folders == ("commits", "offsets", "state")
    assert "offsets/.3.4711.tmp" in plan.remove
    assert removal_command(plan.remove, plan.remove_folders) == "rm -r -- ./commits ./offsets ./state"
    assert plan_without(root, "state/0/0/3.delta").remove_folders == ()


def with_sink(*entries: str, without: tuple[str, ...] = ("commits/4",), batches: int = 5) -> Memory:
    """State checkpoint format 2, batch 4 in flight, and a file sink's log."""
    files = {f"ck/{path}": data for path, data in by_ids(batches).files.items() if path not in without}
    return memory(files, {f"out/_spark_metadata/{name}": ENTRY for name in entries})


ALL = ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("entries", "remove"), [((*ALL, "4"), "4"), ((*ALL, "4.compact"), "4.compact"), (("4.compact",), "")]
)
def test_an_entry_leaves_the_log_of_a_sink_only_if_its_results_stay_listed(
    entries: tuple[str, ...], remove: str
) -> None:
    plan = with_sink(*entries).plan()
    assert (plan.committed, plan.planned, plan.fails) == (3, 4, True)
    assert plan.remove == ((f"out/_spark_metadata/{remove}",) if remove else ())
    told = next(finding.message for finding in plan.findings if finding.id == "sink-log-ahead")
    assert ("Do not remove" in told) is not bool(remove)


def test_a_damaged_entry_is_no_list_of_results_either() -> None:
    root = with_sink(*ALL, "4.compact")
    root.files["out/_spark_metadata/2"] = b""
    assert (root.plan().fails, root.plan().remove) == (True, ())


def test_a_restart_that_skips_batches_loads_what_the_last_of_them_left() -> None:
    """Without commits/3 Spark runs batch 4 alone, which stands on version 4."""
    root = stateful(4)
    assert plan_without(root, "commits/3").fails is False
    plan = plan_without(root, "commits/3", "state/0/1/4.delta")
    assert (plan.committed, plan.planned, plan.fails) == (2, 4, True)
    assert ("error", "missing-state-file", "state/0/1/4.delta") in said(plan)


def test_with_ids_no_batch_can_be_skipped_and_the_sink_keeps_what_it_has() -> None:
    """The commit that is gone alone names the states that batch 4 loads."""
    plan = with_sink(*ALL, without=("commits/3", "commits/4")).plan()
    assert (plan.committed, plan.planned, plan.fails, plan.remove) == (2, 4, True, ())
    assert ("error", "missing-batch-file", "ck/commits/3") in said(plan)
    assert [severity for severity, id, _ in said(plan) if id == "sink-log-ahead"] == ["info"]


def test_state_that_commits_name_is_missed_without_a_watermark_too() -> None:
    root = by_ids()
    root = root.with_files({path: data for path, data in root.files.items() if not path.startswith("state/")})
    assert "commits name states" in root.plan().unjudged


@pytest.mark.parametrize(
    ("path", "data", "fails"),
    [
        ("commits/6", b'v1\n{"nextBatchWatermarkMz":0}', False),
        ("commits/6", b"v1\n", False),
        ("commits/6", b'v1\n{"nextBatchWatermarkMs":"x"}', True),
        ("commits/6", b'v1\n{"nextBatchWatermarkMs":0', True),
        ("offsets/7", b'v1\n{"batchWatermarkMz":0}\n7', False),
        ("offsets/7", b'v1\n{"batchWatermarkMz":0}\n{', True),
    ],
)
def test_a_number_that_is_not_there_stops_no_restart(path: str, data: bytes, fails: bool) -> None:
    """Spark takes 0 for it; nothing is believed of the file all the same."""
    root = hdfs()
    root.files[path] = data
    plan = root.plan()
    assert (plan.fails, plan.committed) == (fails, 5 if fails and path == "commits/6" else 6)
    assert ("error", "torn-batch-file", path) in said(plan)


@dataclass(frozen=True)
class Guarded(Memory):
    """A root in which nobody may read checksum files of tables."""

    def read(self, path: str, limit: int | None = None) -> bytes:
        if path.endswith(".sst.crc"):
            raise PermissionError(path)
        return super().read(path, limit)


def test_a_table_that_may_not_be_read_is_unread_for_every_snapshot() -> None:
    files = checkpoint(ROCKS, 2, partitions=1) | operator(partitions=1)
    place = "state/0/0/"
    files |= {f"{place}{v}.zip": snapshot(("a.sst", 60)) for v in (1, 2)}
    files |= {
        f"{place}SSTs/a.sst": bytes(60),
        f"{place}SSTs/.a.sst.crc": b"crc",
        f"{place}2.changelog": changelog(1, []),
    }
    unread = {path for _, id, path in said(Guarded("memory", (), files).plan()) if id == "unreadable-file"}
    assert unread == {f"{place}1.zip", f"{place}2.zip"}

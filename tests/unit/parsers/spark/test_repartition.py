"""State that was repartitioned offline: the number of partitions is that of each batch."""

from __future__ import annotations

import json

import pytest

from cklog.chains.restorable import chains_of
from tests.builders.spark import Memory
from tests.builders.spark_state import ROCKS, checkpoint, memory, operator, plan_without, snapshot
from tests.reading.spark import said


def repartitioned(*partitions: int, metadata: int | None = None) -> Memory:
    """A zip of each version and partition; where the number changes, the plan repeats that of the batch before."""
    files = checkpoint(ROCKS, len(partitions)) | operator(partitions=metadata or partitions[0])
    del files[f"offsets/{len(partitions)}"]
    end = -1
    for n, count in enumerate(partitions):
        end += n == 0 or count == partitions[n - 1]
        files[f"offsets/{n}"] = plan(count, end)
        files |= {f"state/0/{p}/{n + 1}.zip": snapshot() for p in range(count)}
    return memory(files)


def plan(partitions: int, end: int) -> bytes:
    version, head, _ = checkpoint(ROCKS, 1, partitions=partitions)["offsets/0"].split(b"\n")
    return b"\n".join([version, head, b"%d" % end])


@pytest.mark.parametrize("partitions", [(2, 2, 4, 4), (3, 3, 2, 2), (1, 1, 3, 3), (3, 3, 1, 1), (2, 3, 1, 4, 4)])
@pytest.mark.parametrize("metadata", [True, False])
def test_each_batch_needs_its_own_partitions(partitions: tuple[int, ...], metadata: bool) -> None:
    root = repartitioned(*partitions)
    if not metadata:
        root.remove("state/0/_metadata/metadata")
    assert (root.plan().committed, root.plan().fails) == (len(partitions) - 1, False)
    for batch, count in enumerate(partitions):
        target = root.plan(at=batch)
        assert (target.committed, [row["partitions"] for row in target.stores]) == (batch, [count])
        for lost in range(count):
            newest = plan_without(
                root, *(f"state/0/{lost}/{n + 1}.zip" for n in range(batch, len(partitions)) if lost < partitions[n])
            )
            broken = [n for n in range(batch, len(partitions)) if lost < partitions[n]]
            assert newest.fails == (broken[-1:] == [len(partitions) - 1])
            if newest.fails:
                assert newest.committed == max((n for n in range(len(partitions)) if n not in broken), default=-1)


def test_plans_from_before_the_repartition_need_not_be_there() -> None:
    root = repartitioned(4, 4, metadata=2)
    assert root.plan().committed == 1
    assert plan_without(root, "state/0/3/2.zip").committed == 0
    shrunk = memory(repartitioned(2, 2, metadata=4).files, {"state/0/3/1.zip": snapshot()})
    assert (shrunk.plan().committed, shrunk.plan().fails) == (1, False)


def test_a_partition_that_has_the_version_counts_whatever_the_settings_say() -> None:
    root = memory(repartitioned(2, 2).files, {"state/0/2/2.zip": b"damaged", "state/0/2/1.zip": snapshot()})
    assert (root.plan().committed, root.plan().fails) == (0, True)


def test_chains_of_partitions_that_are_given_up_are_left_out() -> None:
    table = repartitioned(3, 3, 2, 2).pieces()[0]
    assert set(chains_of(table).common("run")) == {4}


def test_a_plan_without_a_commit_and_with_another_number_stops_every_start() -> None:
    root = memory(repartitioned(2, 2, 3).files, {"state/0/0/4.zip": snapshot()})
    root.remove("commits/2")
    found = root.plan()
    assert (found.committed, found.planned, found.fails) == (1, None, True)
    assert said(found) == [("error", "unfinished-repartition", "offsets/2")]
    wrote = [f"state/0/{p}/3.zip" for p in range(3)]
    assert set(found.remove) == {"offsets/2", "state/0/0/4.zip", *wrote}
    mended = plan_without(root, *found.remove)
    assert (mended.committed, mended.fails, said(mended)) == (1, False, [])


def test_a_plan_with_new_input_and_the_same_number_is_run_again() -> None:
    root = memory(repartitioned(2, 2).files, {"offsets/2": plan(2, 2)})
    assert (root.plan().planned, root.plan().fails) == (2, False)


def test_a_batch_that_a_repartition_passed_over_was_not_done() -> None:
    """`enforce_exactly_once_sink=False` writes a commit for it, and takes the plan of the batch before."""
    root = repartitioned(2, 2, 2, 3, 3)
    root.files["offsets/3"] = plan(3, 1)
    root.files["offsets/4"] = plan(3, 2)
    assert said(root.plan()) == []
    back = root.plan(at=2)
    assert (back.committed, said(back)) == (1, [("error", "unreachable-batch", "commits/2")])


def test_the_plan_of_a_repartition_is_no_way_back() -> None:
    """A restart would run it again, and refuses."""
    root = repartitioned(2, 2, 3)
    assert plan_without(root, "offsets/0").batches[0].batch == 0
    assert root.plan(at=1).committed == 1
    root.remove("offsets/0")
    assert [f.id for f in root.plan(at=1).findings if f.severity == "error"] == ["unreachable-batch"]


def test_ids_in_commits_say_how_many_partitions_a_batch_has() -> None:
    files = dict(repartitioned(2, 2, 3).files)
    for n, count in enumerate((2, 2, 3)):
        ids = {"0": [[f"i{n}-{p}"] for p in range(count)]}
        files[f"commits/{n}"] = b"v2\n" + json.dumps({"nextBatchWatermarkMs": 0, "stateUniqueIds": ids}).encode()
        for p in range(count):
            files[f"state/0/{p}/{n + 1}_i{n}-{p}.zip"] = files.pop(f"state/0/{p}/{n + 1}.zip")
    root = memory(files)
    assert (root.plan().committed, root.plan().fails) == (2, False)
    lost = plan_without(root, "state/0/2/3_i2-2.zip")
    assert (lost.committed, lost.fails) == (1, True)

"""State stores of Spark: which files must be there, which count, and to which batch all can go back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cklog.chains.restorable import chains_of
from cklog.parsers.codecs.hadoop_crc import encode
from tests.builders.spark import Memory
from tests.builders.spark_state import (
    DELTA,
    HDFS,
    NEWER,
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


def by_definition(root: Memory, place: str, version: int) -> bool:
    """The newest snapshot S <= V that is there, and every delta S+1 … V; version 0 is empty."""
    bases = [v for v in range(1, version + 1) if f"{place}/{v}.snapshot" in root.files]
    return any(all(f"{place}/{v}.delta" in root.files for v in range(base + 1, version + 1)) for base in [0, *bases])


@given(st.integers(1, 7), st.data())
def test_the_line_is_by_definition_whatever_is_gone(commits: int, data: st.DataObject) -> None:
    """Of a query that has done one batch, too."""
    root = hdfs(commits)
    stored = sorted(path for path in root.files if path.startswith("state/0/"))
    gone = data.draw(st.sets(st.sampled_from(stored), max_size=9))
    whole = data.draw(st.sets(st.sampled_from(["state/0/1/", "state/0/_metadata/"])))
    for path in gone | {path for path in stored if path.startswith(tuple(whole))}:
        root.remove(path)
    left = [path for path in root.files if path.startswith("state/0/")]
    told = "state/0/0/_metadata/schema" in left or any(path.startswith("state/0/1/") for path in left)
    assert bool(root.plan().unjudged) == (bool(left) and not told)
    assume(told)  # else nothing tells of partition 1
    can = [all(by_definition(root, f"state/0/{p}", b + 1) for p in (0, 1)) for b in range(commits)]
    plan = root.plan()
    assert plan.committed == max((b for b in range(commits) if can[b]), default=-1)
    assert plan.fails == (not can[-1])
    assert plan.rolled_back == tuple(range(plan.committed + 1, commits)) * plan.fails


@pytest.mark.parametrize("path", ["state/0/0/1.delta", "state/0/1/1.delta"])
def test_the_first_batch_is_not_the_line_if_its_state_is_gone(path: str) -> None:
    plan = plan_without(hdfs(1), path)
    assert (plan.committed, plan.fails, said(plan)) == (-1, True, [("error", "missing-state-file", path)])


@pytest.mark.parametrize("left", [0, 3])
def test_commits_ahead_of_offsets_are_told_with_what_the_restart_does(left: int) -> None:
    plan = plan_without(hdfs(), *(f"offsets/{n}" for n in range(left, 8)))
    [message] = [f.message for f in plan.findings if f.id == "commit-ahead-of-offsets"]
    begins = f"The restart runs batch {left - 1} again and fails" if left else "The restart begins at batch 0"
    assert begins in message


@given(st.data())
def test_pieces_agree_with_the_line(data: st.DataObject) -> None:
    root = hdfs()
    for path in data.draw(st.sets(st.sampled_from(sorted(p for p in root.files if p.startswith("state/0/0/"))))):
        root.files[path] = data.draw(st.sampled_from([b"", DELTA[:-1], DELTA]))
    plan = root.plan()
    chains = chains_of(root.pieces()[0])
    assert set(chains.common("run")) == {plan.committed + 1 if plan.committed >= 0 else None}


def test_a_missing_delta_sends_the_query_back() -> None:
    plan = plan_without(hdfs(), "state/0/1/7.delta")
    assert (plan.committed, plan.planned, plan.fails, plan.rolled_back) == (5, None, True, (6,))
    assert said(plan) == [("error", "missing-state-file", "state/0/1/7.delta")]
    assert "Partition 1 of operator 0 (stateStoreSave) cannot load version 7" in plan.findings[0].message
    assert plan.remove == ("commits/6", "offsets/6", "offsets/7", "state/0/0/7.delta")


def test_a_partition_that_is_gone_altogether_is_missed() -> None:
    gone = [path for path in hdfs().files if path.startswith("state/0/1/")]
    plan = plan_without(hdfs(), *gone)
    assert (plan.committed, plan.fails) == (-1, True)
    assert said(plan) == [("error", "missing-state-file", "state/0/1/7.delta")]
    without = plan_without(hdfs(), *gone, "state/0/_metadata/metadata")
    assert (without.committed, without.fails, without.unjudged) == (-1, True, "")
    assert ("info", "missing-state-file", "state/0/_metadata") in said(without)
    assert ("error", "missing-state-file", "state/0/1/7.delta") in said(without)
    three = memory(hdfs().files, checkpoint(HDFS, 7, partitions=3))  # the settings count, not the metadata
    assert said(three.plan()) == [("error", "missing-state-file", "state/0/2/7.delta")]


def test_an_operator_that_is_gone_altogether_leaves_a_hole() -> None:
    root = memory(checkpoint(HDFS, 7), operator(1), deltas(range(1, 8), place="state/1/{}"))
    plan = root.plan()
    assert plan.fails
    assert ("error", "missing-state-file", "state/0/0/7.delta") in said(plan)


def test_a_restart_after_a_batch_loads_the_version_behind_it() -> None:
    root = memory(checkpoint(HDFS, 7), operator(), deltas(range(1, 8)))  # batch 0 writes version 1
    for gone in range(1, 9):
        plan = root.plan() if gone == 8 else plan_without(root, f"state/0/1/{gone}.delta")
        assert (plan.committed, [row["loads_version"] for row in plan.stores]) == (gone - 2, [gone - 1])


def test_without_metadata_there_are_as_many_partitions_as_the_settings_say_or_are_seen() -> None:
    whole = {path: data for path, data in hdfs().files.items() if path != "state/0/_metadata/metadata"}
    assert memory(whole).plan().committed == 6
    three = {path: data.replace(b'partitions": "2"', b'partitions": "3"') for path, data in whole.items()}
    assert ("error", "missing-state-file", "state/0/2/7.delta") in said(memory(three).plan())
    gap = {path.replace("/0/1/", "/0/2/"): data.replace(b'"2"}', b'""}') for path, data in whole.items()}
    assert ("error", "missing-state-file", "state/0/1/7.delta") in said(memory(gap).plan())


def test_a_store_of_zips_alone_misses_a_zip() -> None:
    root = memory(
        checkpoint(ROCKS, 5, partitions=1), operator(), {f"state/0/0/{v}.zip": snapshot() for v in range(1, 6)}
    )
    assert said(plan_without(root, "state/0/0/5.zip")) == [("error", "missing-state-file", "state/0/0/5.zip")]


def test_all_stores_of_a_join_count() -> None:
    names = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")
    stores = [deltas(range(1, 8), place=f"state/0/{{}}/{name}") for name in names]
    root = memory(checkpoint(HDFS, 7), operator(stores=names), *stores)
    plan = root.plan()
    assert (plan.committed, plan.fails, len(plan.stores)) == (6, False, 4)
    assert said(plan) == []
    lost = plan_without(root, f"state/0/0/{names[3]}/5.delta")
    assert (lost.committed, lost.rolled_back) == (3, (4, 5, 6))


def test_damage_is_told_from_absence_and_a_snapshot_can_be_done_without() -> None:
    for damaged in (b"", DELTA[:30], DELTA[:-5], DELTA[:-22] + b"\x01" + DELTA[-21:]):
        root = hdfs()
        root.files["state/0/0/7.delta"] = damaged
        assert (root.plan().committed, said(root.plan())) == (5, [("error", "corrupt-file", "state/0/0/7.delta")])
        root = hdfs()
        root.files["state/0/0/6.snapshot"] = damaged
        plan = root.plan()
        assert (plan.committed, plan.fails) == (6, False)
        assert said(plan) == [("warning", "corrupt-file", "state/0/0/6.snapshot")]


@pytest.mark.parametrize("newer", [(), NEWER[:1], NEWER])
def test_a_damaged_snapshot_stops_what_may_be_a_spark_before_4_1(newer: tuple[str, ...]) -> None:
    root = memory(hdfs().files, checkpoint(HDFS, 7, newer=newer))
    root.files["state/0/0/6.snapshot"] = b"damaged"
    plan = root.plan()
    assert (plan.committed, plan.fails, plan.planned) == (6, not newer, 7)
    assert plan.remove == (() if newer else ("state/0/0/6.snapshot",))
    assert said(plan) == [("warning" if newer else "error", "corrupt-file", "state/0/0/6.snapshot")]
    older = root.copy()
    older.files["state/0/0/3.snapshot"] = b"damaged"
    assert len(older.plan().remove) == (0 if newer else 2)  # the next one that is tried
    back = plan_without(root, "state/0/1/7.delta")  # what is removed to go back lets the older batch be loaded, too
    assert (back.committed, back.fails, "state/0/0/6.snapshot" in back.remove) == (5, True, not newer)
    root.files["state/0/0/7.snapshot"] = DELTA
    assert not root.plan().fails


def test_ids_need_4_2_to_pass_over_a_damaged_snapshot() -> None:
    for newer, fails in ((NEWER[:1], True), (NEWER, False)):
        root = by_ids()
        plans = {path: data for path, data in checkpoint(ROCKS, 4, newer=newer).items() if path in root.files}
        root.files.update({path: data for path, data in plans.items() if path.startswith("offsets/")})
        root.files["state/0/0/4_i4.zip"] = b"damaged"
        assert root.plan().fails == fails


def test_a_checksum_file_proves_and_refutes() -> None:
    root = hdfs()
    root.files["state/0/0/.7.delta.crc"] = encode(DELTA)
    assert said(root.plan()) == []
    root.files["state/0/0/.7.delta.crc"] = encode(DELTA + b"!")
    assert said(root.plan()) == [("error", "checksum-mismatch", "state/0/0/7.delta")]
    root.files["state/0/0/.7.delta.crc"] = b"?"  # Hadoop passes over it
    assert said(root.plan()) == []


def test_files_that_no_restart_reads_are_not_read() -> None:
    root = hdfs()
    for path in ("state/0/0/1.delta", "state/0/0/3.snapshot", "state/0/1/6.delta"):
        root.files[path] = b"damaged"
    assert said(root.plan()) == []
    findings = root.pieces()[1]
    assert [(f.severity, f.subject) for f in findings] == [
        ("warning", path) for path in ("state/0/0/1.delta", "state/0/0/3.snapshot", "state/0/1/6.delta")
    ]


def test_state_of_the_batch_in_flight_does_not_count() -> None:
    root = memory(hdfs().files, deltas(range(8, 9)))
    root.files["state/0/0/8.delta"] = b"half written"
    assert said(root.plan()) == []
    assert root.plan().committed == 6
    assert max(root.pieces()[0]["version"].to_pylist()) == 7


def test_what_cannot_be_judged_is_said_to_be_unjudged() -> None:
    own = memory(checkpoint("com.example.OwnProvider", 7), operator(), {"state/0/0/7.own": b"state"})
    plan = own.plan()
    assert (plan.committed, plan.fails) == (6, False)
    assert "com.example.OwnProvider" in plan.unjudged
    assert said(plan) == [("warning", "unjudged-state", "state")]
    other = memory(checkpoint(HDFS, 7, codec="lzf"), operator(), deltas(range(1, 8), (6,)))
    for path in other.files:
        if path.startswith(("state/0/0/", "state/0/1/")) and "_metadata" not in path:
            other.files[path] = b"ZV..."
    assert said(other.plan()) == [("warning", "unjudged-state", "state/0/0/6.snapshot")]
    assert other.plan().committed == 6


@pytest.mark.parametrize("left", [b"", b"half", b"value", bytes(99), b"\0\2v9"])
def test_a_damaged_schema_stops_a_restart_that_goes_on_without_it(left: bytes) -> None:
    """Read off Spark 4.3, of both providers; one of an unknown version is not judged."""
    path = "state/0/0/_metadata/schema"
    root = memory(checkpoint(HDFS, 7), operator(), deltas(range(1, 8)))
    whole = root.files[path]
    root.files[path] = {b"half": whole[: len(whole) // 2], b"value": whole[:-9]}.get(left, left)
    plan = root.plan()
    unknown = left.endswith(b"v9")
    id = "unknown-version" if unknown else "torn-batch-file" if left else "empty-batch-file"
    assert [(f.severity, f.id, f.subject, f.effect) for f in plan.findings] == [
        ("error", id, path, "unknown" if unknown else "restart-fails")
    ]
    assert (plan.committed, plan.fails, plan.remove) == (6, not unknown, () if unknown else (path,))
    root.files["state/0/0/_metadata/.schema.crc"] = encode(whole)
    assert root.plan().remove == (() if unknown else ("state/0/0/_metadata/.schema.crc", path))
    del root.files[path], root.files["state/0/0/_metadata/.schema.crc"]
    assert not root.plan().fails


def test_damaged_metadata_of_an_operator_stops_no_restart() -> None:
    root = hdfs()
    root.files["state/0/_metadata/metadata"] = b"v1\n{"
    assert not root.plan().fails
    assert said(root.plan()) == [("warning", "torn-batch-file", "state/0/_metadata/metadata")]


def test_zstd_streams_are_read_to_their_end() -> None:
    root = memory(checkpoint(HDFS, 7, codec="zstd"), operator(), deltas(range(1, 8)))
    packed = pa.Codec("zstd").compress(b"\0\0\0\1k\0\0\0\1v" + b"\xff" * 4, asbytes=True)
    for path in root.files:
        if path.endswith(".delta"):
            root.files[path] = packed
    assert said(root.plan()) == [("warning", "unjudged-state", "state/0/0/1.delta")]  # its frames carry no checksums
    root.files["state/0/1/7.delta"] = packed[:-3]
    assert root.plan().committed == 5


def test_without_a_state_folder_the_answer_says_so() -> None:
    plan = memory(checkpoint(HDFS, 7)).plan()
    assert any("There is no state folder" in note for note in plan.notes)
    watermarked = memory(checkpoint(HDFS, 7, watermark=9)).plan()
    assert said(watermarked) == [("warning", "unjudged-state", "state")]
    assert "has a watermark" in watermarked.unjudged


def test_the_id_in_the_commit_says_which_file_counts() -> None:
    root = by_ids()
    assert said(root.plan()) == []
    root.files["state/0/0/4_other.changelog"] = root.files.pop("state/0/0/4_i4.changelog")
    plan = root.plan()
    assert (plan.committed, said(plan)) == (2, [("error", "missing-state-file", "state/0/0/4_i4.changelog")])
    root = by_ids()
    root.files["state/0/0/3_other.changelog"] = b"left over"
    assert said(root.plan()) == []


def test_where_a_commit_is_gone_the_lineage_says_which_file_counts() -> None:
    root = by_ids()
    del root.files["commits/1"]
    root.files["state/0/0/2_other.changelog"] = b"left over"
    assert said(root.plan()) == [("warning", "batch-gap", "commits/1")]
    root.files["state/0/0/3_i3.changelog"] = changelog(3, [(1, "i1"), (2, "else")])
    assert root.plan().committed == 0


def test_a_lineage_on_another_state_breaks_the_chain() -> None:
    root = by_ids()
    root.files["state/0/0/4_i4.changelog"] = changelog(3, [(1, "i1"), (2, "i2"), (3, "x")])
    plan = root.plan()
    assert (plan.committed, said(plan)) == (2, [("error", "missing-state-file", "state/0/0/4_i4.changelog")])


@pytest.mark.parametrize("names", [[], [1], [1, 2], [1, 3], [2, 3, 4], [4]])
def test_the_lineage_of_another_version_is_damage(names: list[int]) -> None:
    root = by_ids()
    root.files["state/0/0/4_i4.changelog"] = changelog(3, [(v, f"i{v}") for v in names])
    assert (root.plan().committed, said(root.plan())) == (2, [("error", "corrupt-file", "state/0/0/4_i4.changelog")])


def test_a_changelog_of_a_later_release_is_not_judged() -> None:
    root = by_ids()
    root.files["state/0/0/4_i4.changelog"] = changelog(9, [])
    plan = root.plan()
    assert (plan.committed, plan.fails, bool(plan.unjudged)) == (3, False, True)  # what is not known sends nobody back
    assert ("error", "unknown-version", "state/0/0/4_i4.changelog") in said(plan)


def rocks() -> Memory:
    """Zips 2 and 4 and changelogs 1 to 5; both zips need the first SST."""
    files = operator(partitions=1) | {f"state/0/0/{v}.changelog": DELTA for v in range(1, 6)}
    files |= {"state/0/0/SSTs/a.blob": b"aa", "state/0/0/SSTs/b.blob": b"bbb"}
    files |= {"state/0/0/2.zip": snapshot(("a.blob", 2)), "state/0/0/4.zip": snapshot(("a.blob", 2), ("b.blob", 3))}
    return memory(checkpoint(ROCKS, 5, partitions=1), files)


@pytest.mark.parametrize(
    ("gone", "committed", "findings"),
    [
        (["5.changelog"], 3, [("error", "missing-state-file", "5.changelog")]),
        (["4.zip"], 4, []),
        (["SSTs/b.blob"], 4, [("warning", "missing-state-file", "4.zip")]),
        (["SSTs/a.blob"], 4, [("warning", "missing-state-file", "2.zip"), ("warning", "missing-state-file", "4.zip")]),
        (["1.changelog"], 4, []),
        (["4.zip", "3.changelog"], 1, [("error", "missing-state-file", "3.changelog")]),
    ],
)
def test_a_zip_needs_its_files_and_can_be_done_without(
    gone: list[str], committed: int, findings: list[tuple[str, str, str]]
) -> None:
    plan = plan_without(rocks(), *(f"state/0/0/{path}" for path in gone))
    assert plan.committed == committed
    assert said(plan) == [(severity, id, f"state/0/0/{path}") for severity, id, path in findings]


def test_the_bytes_to_read_are_those_of_the_zip_and_its_files() -> None:
    table = rocks().pieces()[0]
    sizes = dict(zip(table["path"].to_pylist(), table["bytes"].to_pylist(), strict=True))
    zip_size = len(rocks().files["state/0/0/4.zip"])
    assert sizes["state/0/0/4.zip"] == zip_size + 5


def test_ids_need_a_snapshot_where_the_lineage_begins_at_one() -> None:
    """Restarted for real: with all zips deleted the restart fails, with all of them damaged it goes on."""
    root = by_ids(6)
    root.files["state/0/0/6_i6.changelog"] = changelog(3, [(4, "i4"), (5, "i5")])
    root.files["state/0/0/5_i5.changelog"] = changelog(3, [(4, "i4")])
    plan = root.plan()
    assert (plan.committed, said(plan)) == (3, [("error", "missing-state-file", "state/0/0/6_i6.changelog")])
    root.files["state/0/0/4_i4.zip"] = b"damaged"
    plan = root.plan()
    assert (plan.committed, said(plan)) == (5, [("warning", "corrupt-file", "state/0/0/4_i4.zip")])
    root.files["state/0/0/4_i4.zip"] = snapshot()
    assert said(root.plan()) == []


def test_a_source_that_is_read_twice_has_one_log() -> None:
    """Restarted for real: a file stream that is joined with itself."""
    root = hdfs()
    for n in range(8):
        end = b'{"logOffset":%d}' % n
        lines = root.files[f"offsets/{n}"].split(b"\n")
        root.files[f"offsets/{n}"] = b"\n".join([*lines[:2], end, end])
        root.files[f"sources/0/{n}"] = b'v1\n{"path":"file:///in/%d","timestamp":1,"batchId":%d}' % (n, n)
    plan = root.plan()
    assert not plan.fails
    assert ("error", "unjudged-source", "sources/1") in said(plan), "or the log of another source is lost"
    assert plan.unjudged


@pytest.mark.parametrize(
    "path",
    [
        "state/0/0/x.delta",
        "state/0/999999999999999999/1.delta",
        "state/0/0/999999999999999999.delta",
        "state/0/0/00.delta",
        "state/0/0/a/b/1.delta",
        "state/0/-1/1.delta",
        "state/0/0/\u0663.delta",
        "state/0",
    ],
)
def test_names_that_no_spark_writes_are_left_out(path: str) -> None:
    """A partition beyond those of the batch, too."""
    assert memory(hdfs().files, {path: DELTA}).plan().committed == 6

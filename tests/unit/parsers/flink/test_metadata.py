"""Flink's `_metadata`: real files by the facts that are known of them, and damage that is placed and told."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Damage, Scan, Split
from cklog.errors import OverBudget
from cklog.inputs.snapshots import COLUMNS, SNAPSHOTS
from cklog.parsers.flink import metadata as flink_metadata
from cklog.parsers.flink.derived import operator_id
from cklog.parsers.flink.java import Malformed
from cklog.parsers.flink.metadata import READER, read
from tests.builders import flink as fb
from tests.builders.flink import Built
from tests.builders.flink_folders import of_subtask, written
from tests.reading.flink import of, said, scanned, split_of


def why(folder: Path, data: Built | bytes) -> tuple[str, int | None, str]:
    """Id, offset and reason of the one damage of a file that has no rows."""
    rows, damage = scanned(written(folder, data))
    assert not rows
    assert [d.path for d in damage] == ["_metadata"]
    return damage[0].id, damage[0].offset, damage[0].detail


# Real files


def real(shared_data: Path) -> list[Path]:
    found = sorted(
        [*shared_data.glob("flink-checkpoints/**/_metadata"), *shared_data.glob("flink-metadata/**/_metadata")]
    )
    assert len(found) >= 40
    return found


def run(shared_data: Path, name: str) -> Path:
    """The one job's folder of a run."""
    found = shared_data / "flink-checkpoints" / name
    if not found.is_dir():
        pytest.skip(f"run {name} is not among the shared data")
    return next(one for one in sorted(found.iterdir()) if one.is_dir())


def test_every_real_file_is_read(shared_data: Path) -> None:
    for path in real(shared_data):
        rows = said(path, str(path.relative_to(shared_data)))
        snapshot = rows[-1]
        assert (snapshot["entry"], snapshot["bytes"]) == ("snapshot", path.stat().st_size)
        chk = re.fullmatch("chk-([0-9]+)", path.parent.name)
        assert chk is None or snapshot["checkpoint"] == int(chk[1])
        version = re.match("v([0-9])__", path.parent.name)
        known = {"f120-unaligned": 4}.get(path.parts[-4], 6) if chk else version and int(version[1])
        assert known is None or snapshot["version"] == known
        assert ("name" in snapshot) == (snapshot["version"] >= 4)
        assert not of(rows, "unread")


def test_every_file_that_a_checkpoint_names_relative_to_itself_has_the_size_it_says(shared_data: Path) -> None:
    checked = 0
    for path in real(shared_data):
        if "f39964" in path.parts or "flink-metadata" in path.parts:
            continue  # broken by a bug of Flink's; copied without its files
        for handle in of(said(path), "handle", name="relative"):
            assert (path.parent / handle["file"]).stat().st_size == handle["bytes"]
            checked += 1
    assert checked > 50


def test_a_segment_lies_inside_its_file_and_a_change_before_its_end(shared_data: Path) -> None:
    root, checked = shared_data / "flink-checkpoints", Counter[str]()
    for name in ("filemerge", "changelog"):
        for path in run(shared_data, name).glob("chk-*/_metadata"):
            for handle in of(said(path), "handle", at_least=True):
                place = root / handle["file"].removeprefix("file:/mnt/flink/prod/checkpts/")
                more = 0 if handle["name"] == "segment" else 1
                if place.exists():
                    assert handle["start"] + handle["bytes"] + more <= place.stat().st_size
                    checked[handle["name"]] += 1
    assert min(checked["segment"], checked["absolute"]) > 10


def test_kafka_sources_resume_where_they_should(shared_data: Path) -> None:
    rows = said(run(shared_data, "kafka") / "chk-8" / "_metadata")
    kafka = of(rows, "operator", uid="kafka-src")[0]["operator"]
    assert kafka == operator_id("kafka-src") == "2cfff4cfdc12cf3ce3a313acc56edab3"
    splits = of(rows, "source", operator=kafka, kind="kafka")
    assert {s["name"]: s["offset"] for s in splits} == {
        "orders-0": 1637, "orders-1": 1624, "orders-2": 1637, "orders-3": 812
    }  # fmt: skip
    assert all("stop" not in s for s in splits)
    known = of(rows, "enumerator", operator=kafka)
    assert {e["name"]: e["kind"] for e in known} == dict.fromkeys(
        ["orders-0", "orders-1", "orders-2", "orders-3"], "assigned"
    )


@pytest.mark.parametrize("chk", [8])
def test_in_flight_bytes_of_merged_channels(shared_data: Path, chk: int) -> None:
    rows = said(run(shared_data, "unaligned") / f"chk-{chk}" / "_metadata")
    totals = {side: sum(c["bytes"] for c in of(rows, "channel", kind=side)) for side in ("output", "input")}
    assert totals == {"output": 421380, "input": 6859}
    merged = [h for h in of(rows, "handle") if h["kind"] in ("input-channel", "output-channel")]
    assert len(merged) == 6
    assert {h["bytes"] for h in merged} == {428243}
    assert len({h["file"] for h in merged}) == 1


def test_in_flight_bytes_of_single_channels(shared_data: Path) -> None:
    """Flink 1.20 lets several subtasks share a file, too, and says of each channel where its part of it is."""
    for path in run(shared_data, "f120-unaligned").glob("chk-*/_metadata"):
        rows = said(path)
        files = {h["file"]: h["bytes"] for h in of(rows, "handle") if h["kind"].endswith("-channel")}
        channels = of(rows, "channel")
        assert (len(files), len(channels)) == (1, 7)
        assert 0.95 * sum(files.values()) < sum(c["bytes"] for c in channels) < sum(files.values())


def test_the_files_of_an_incremental_chain(shared_data: Path) -> None:
    paths = sorted(run(shared_data, "rocksdb-incr").glob("chk-*/_metadata"))
    by_file: dict[str, set[str]] = {}
    count = 0
    for path in paths:
        for handle in of(said(path), "handle"):
            if "file" in handle:
                count += 1
                by_file.setdefault(handle["file"], set()).add(path.parent.name)
    shared = sum(len(checkpoints) > 1 for checkpoints in by_file.values())
    assert (len(paths), count, len(by_file), shared) == (3, 72, 46, 14)


def test_finished_operators_and_settings(shared_data: Path) -> None:
    rows = said(run(shared_data, "finished") / "chk-12" / "_metadata")
    assert [o["uid"] for o in of(rows, "operator", kind="finished")] == ["orders-src"]
    assert rows[-1]["detail"] == "discardFinished,discardSubsumed"
    assert (rows[-1]["name"], rows[-1]["kind"]) == ("Checkpoint", "FORWARD_BACKWARD")


def test_a_savepoint_says_so(shared_data: Path) -> None:
    paths = list(shared_data.glob("flink-checkpoints/sp-*/*/_metadata"))
    assert paths
    for path in paths:
        rows = said(path)
        assert (rows[-1]["name"], rows[-1]["detail"]) == ("Savepoint", "forced")
        assert rows[-1]["kind"] in ("NATIVE", "CANONICAL")
        assert {h["name"] for h in of(rows, "handle")} <= {"relative", "inline"}


def test_a_snapshot_tells_where_its_folder_was(shared_data: Path) -> None:
    job = run(shared_data, "kafka")
    rows = said(job / "chk-8" / "_metadata")
    assert rows[-1]["file"] == f"file:/mnt/flink/prod/checkpts/kafka/{job.name}/chk-8"
    two_jobs = said(run(shared_data, "rocksdb-restored") / "chk-12" / "_metadata")
    assert "file" not in two_jobs[-1]


def test_task_owned_files_and_changes_are_told_apart(shared_data: Path) -> None:
    rows = said(run(shared_data, "changelog") / "chk-8" / "_metadata")
    changes = of(rows, "handle", detail="changelog")
    assert changes
    assert all("/dstl/" in h["file"] and h["at_least"] and h["start"] == 0 for h in changes)
    assert all("/taskowned/" in h["file"] for h in of(rows, "handle", detail="task-owned"))
    assert of(rows, "handle", detail="task-owned")


def test_master_hooks_are_state_without_an_operator(shared_data: Path) -> None:
    path = shared_data / "flink-metadata" / "v5__table-state" / "_metadata"
    if not path.exists():
        pytest.skip("v5__table-state is not among the shared data")
    masters = of(said(path), "handle", kind="master")
    assert masters
    assert all("operator" not in m and m["name"] == "inline" and m["detail"] for m in masters)


@pytest.mark.quarter
@pytest.mark.parametrize("rest", range(4))
def test_no_part_of_a_real_file_is_read(rest: int, shared_data: Path, tmp_path: Path) -> None:
    """Every truncation is damage: it is either short of something, or the end of a longer count."""
    seen: dict[int, Path] = {}
    for path in sorted(real(shared_data), key=lambda path: path.stat().st_size):
        seen.setdefault(path.read_bytes()[7], path)
    assert sorted(seen) == [2, 3, 4, 5, 6]
    for path in seen.values():
        data = path.read_bytes()
        for cut in range(rest, len(data), 4):
            split = Split(str(tmp_path / "_metadata"), "_metadata", READER, 0, cut, cut)
            with pytest.raises(Malformed) as caught:
                for _ in flink_metadata.rows(split, data[:cut]):
                    pass
            assert 0 <= caught.value.at <= cut


def test_both_engines_can_name_the_reader(tmp_path: Path) -> None:
    path = written(tmp_path, fb.metadata(6, [fb.operator(6)]))
    columns = ("entry", "checkpoint", "_path", "_offset")
    scan = Scan((split_of(path),), "snapshots", columns, _same, pa.schema([(c, pa.string()) for c in columns]), None)
    found = LocalEngine().run(scan)
    assert found.records == {"_metadata": 2}
    assert found.table["entry"].to_pylist() == ["operator", "snapshot"]


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.cast(pa.schema([(name, pa.string()) for name in batch.schema.names]))


# By hand: damage, and what is unusual


def test_an_unknown_version_is_no_corruption(tmp_path: Path) -> None:
    for version in (1, 8, 1 << 30):
        data = fb.MAGIC + fb.i32(version) + fb.i64(8) + fb.i32(0, 0)
        assert why(tmp_path, data) == ("unknown-version", 4, f"version {version}; known are 2 to 7")


def test_a_version_that_never_was_is_corruption(tmp_path: Path) -> None:
    for version in (0, -1):
        data = fb.MAGIC + fb.i32(version) + fb.i64(8) + fb.i32(0, 0)
        assert why(tmp_path, data) == ("corrupt-metadata", 4, f"version {version}; there is none before 1")


@pytest.mark.parametrize(
    ("data", "at", "reason"),
    [
        (b"", 0, "the start of a metadata file of 4 bytes where 0 are left"),
        (b"PK\3\4aaaa", 0, "a metadata file begins with 4960672d, and here is 504b0304"),
        (fb.MAGIC + fb.i32(6) + fb.i64(-1), 8, "the checkpoint is -1"),
        (fb.MAGIC + fb.i32(6) + fb.i64(1) + fb.i32(1 << 30), 16, "1073741824 master hooks of at least 8 bytes"),
        (fb.MAGIC + fb.i32(6) + fb.i64(1) + fb.i32(-1), 16, "-1 master hooks"),
        (fb.MAGIC + fb.i32(6) + fb.i64(1) + fb.i32(1) + bytes(8), 20, "begins with c96b1696, and here is 00000000"),
        (fb.metadata(3).data + b"x", 24, "1 bytes behind the last operator"),
        (fb.metadata(6).data + b"x", 29, "1 bytes behind an object stream"),
        (fb.metadata(6).data[:-5], 24, "the start of an object stream of 4 bytes where 0 are left"),
        (fb.metadata(6).data[:-5] + b"nope!", 24, "6e6f7065 is not how an object stream begins"),
    ],
)
def test_a_file_that_cannot_be_one(tmp_path: Path, data: bytes, at: int, reason: str) -> None:
    found = why(tmp_path, data)
    assert found[:2] == ("corrupt-metadata", at)
    assert reason in found[2]


@pytest.mark.parametrize(
    ("built", "reason"),
    [
        (of_subtask(keyed=Built(b"\xff")), "a handle of keyed state of unknown type 255"),
        (of_subtask(managed=Built(b"\x05")), "a handle of operator state of unknown type 5"),
        (of_subtask(keyed=fb.key_groups(3, Built(b"\x04"))), "a stream handle of unknown type 4"),
        (of_subtask(keyed=fb.key_groups(3, fb.absolute("file:/a", -2))), "the size of a file is -2"),
        (of_subtask(keyed=fb.key_groups(3, fb.segment("file:/a", -1, 2, 0))), "the start of a segment is -1"),
        (of_subtask(keyed=Built(b"\x0f" + fb.i64(0, 0) + fb.i32(2))), "a handle of keyed state of unknown type 15"),
        (of_subtask(managed=fb.states(fb.null(), {"s": (255, [])})), "state s has the unknown mode 255"),
        (of_subtask(inputs=[fb.channel(2, 0, 0, 1, fb.null())]), "a handle of input channels of unknown type 2"),
        (of_subtask(inputs=[fb.channel(1, 0, 0, -1, fb.null())]), "the size of channel state is -1"),
        (of_subtask(index=4), "subtask 4 where the parallelism is 4"),
        (of_subtask(version=2, index=-1), "subtask -1 where the parallelism is 4"),
        (fb.metadata(6, [fb.operator(6, [fb.finished(4)])]), "subtask 4 where the parallelism is 4"),
        (fb.metadata(6, [fb.operator(6, [fb.finished(0)] * 5)]), "5 subtasks where the parallelism is 4"),
        (fb.metadata(2, [fb.operator(2, None)]), "-1 subtasks"),
        (fb.metadata(6, [fb.operator(6, parallelism=129)]), "a parallelism of 129, 128 at the most"),
        (fb.metadata(6, [fb.operator(6, parallelism=0)]), "a parallelism of 0"),
    ],
)
def test_state_that_cannot_be(tmp_path: Path, built: Built, reason: str) -> None:
    id, at, told = why(tmp_path, built)
    assert id == "corrupt-metadata"
    assert reason in told
    assert at is not None
    assert 24 <= at < len(built.data)


def test_a_flag_of_more_than_one_bit(tmp_path: Path) -> None:
    good = of_subtask(managed=fb.states(fb.null(), merged=True)).data
    at = good.index(b"\x11" + fb.i32(0)) + 9
    assert why(tmp_path, good[:at] + b"\2" + good[at + 1 :]) == (
        "corrupt-metadata", at, "whether the state is empty is 2, neither 0 nor 1"
    )  # fmt: skip


def test_state_of_flink_1_2_is_refused(tmp_path: Path) -> None:
    good = of_subtask(version=2).data
    at = good.index(fb.i64(12)) + 8
    assert why(tmp_path, good[:at] + fb.i32(1) + good[at + 4 :])[1:] == (at, "state of Flink 1.2 or before")


def test_a_coordinator_s_state_is_always_inlined(tmp_path: Path) -> None:
    good = fb.metadata(6, [fb.operator(6, coordinator=b"")])
    data = good.data.replace(fb.inline(b"").data, fb.absolute("file:/a", 1).data)
    assert why(tmp_path, data)[2] == "the state of a coordinator is absolute, and not inlined"


@pytest.mark.parametrize(
    ("first", "count", "fits"),
    [(0, 1, True), (31, 9, True), (0, 128, True), (32, 8, False), (-1, 10, False), (5, 0, False)],
)
def test_nested_state_has_some_of_the_subtask_s_key_groups(tmp_path: Path, first: int, count: int, fits: bool) -> None:
    nested = fb.incremental(fb.inline(b"meta"))
    data = nested.data.replace(fb.ITS_GROUPS, fb.i32(first, count))
    built = of_subtask(keyed=fb.changelog([replace(nested, data=data)], []))
    if fits:
        assert [row["form"] for row in of(said(written(tmp_path, built)), "handle")] == ["keyed-meta"]
    else:
        assert f"{count} key groups from {first} on, where the subtask has 32 from 0 on" in why(tmp_path, built)[2]


def test_handles_are_not_followed_for_ever(tmp_path: Path) -> None:
    deep = fb.null()
    for _ in range(5000):
        deep = fb.changelog([deep], [])
    assert "nested more than 8 deep" in why(tmp_path, of_subtask(keyed=deep))[2]
    grouped = Built(b"\x03" + fb.i32(0, 0)).data * 50_000  # these need no recursion, and no limit
    rows = said(written(tmp_path, of_subtask(keyed=fb.key_groups(3, Built(grouped) + fb.empty()))))
    assert [h["name"] for h in of(rows, "handle")] == ["empty"]


def test_files_of_unknown_size(tmp_path: Path) -> None:
    rows = said(written(tmp_path, of_subtask(keyed=fb.key_groups(3, fb.absolute("file:/a", -1)))))
    assert "bytes" not in of(rows, "handle")[0]


def test_version_7_says_whose_state_it_is(tmp_path: Path) -> None:
    rows = said(written(tmp_path, of_subtask(version=7, index=2, older=5)))
    assert of(rows, "reference") == [
        {"entry": "reference", "operator": bytes(range(16)).hex(), "subtask": 2, "checkpoint": 5}
    ]
    assert [u["kind"] for u in of(rows, "unread")] == ["unreleased-version"]


def test_a_file_shared_by_channels_is_told_once_a_subtask(tmp_path: Path) -> None:
    file = fb.relative("aa-bb", 90)
    subtasks = [
        fb.subtask(
            6, i, outputs=[fb.channel(2, 0, n, 5, file) for n in range(3)], inputs=[fb.channel(1, 0, 0, 2, file)]
        )
        for i in range(2)
    ]
    rows = said(written(tmp_path, fb.metadata(6, [fb.operator(6, subtasks)])))
    assert [(h["subtask"], h["kind"]) for h in of(rows, "handle")] == [
        (0, "input-channel"), (0, "output-channel"), (1, "input-channel"), (1, "output-channel")
    ]  # fmt: skip
    assert sum(c["bytes"] for c in of(rows, "channel")) == 2 * (3 * 5 + 2)


def test_merged_channels_fill_their_bytes(tmp_path: Path) -> None:
    good = of_subtask(inputs=[fb.merged_channels(3, [(0, 1, 7)], fb.null())]).data
    at = good.index(fb.i32(1, 0, 1) + fb.i64(7)) - 4
    wrong = good[:at] + fb.i32(41) + good[at + 4 : at + 44] + b"\0" + good[at + 44 :]
    assert why(tmp_path, wrong)[2] == "1 bytes behind merged channels"


def test_a_file_that_cannot_be_opened_is_unread(tmp_path: Path) -> None:
    split = Split(str(tmp_path / "_metadata"), "_metadata", READER, 0, 9, 9)
    found = [*read(split, "snapshots", COLUMNS)]
    assert [(type(d), d.id) for d in found if isinstance(d, Damage)] == [(Damage, "unreadable-file")]
    huge = Split(str(tmp_path / "_metadata"), "_metadata", READER, 0, 1 << 40, 1 << 40)
    with pytest.raises(OverBudget, match="_metadata: metadata of 1099511627776 bytes is over the budget"):
        [*read(huge, "snapshots", COLUMNS)]


def test_only_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, fb.metadata(6, [fb.operator(6)]))
    for columns in (("entry",), ("_offset", "bytes"), ("detail", "_path", "at_least")):
        (batch,) = read(split_of(path), "snapshots", columns)
        assert isinstance(batch, pa.RecordBatch)
        assert batch.schema.names == list(columns)
        typed = {f.name: f.type for f in batch.schema if f.name in SNAPSHOTS.names}
        assert all(kind == SNAPSHOTS.field(name).type for name, kind in typed.items())


def test_folders_of_absurd_names_tell_nothing(tmp_path: Path) -> None:
    for folder in ("/chk-" + "9" * 20, "/chk-8x", "/" + "ab" * 16 + "/shared" * 2000):
        rows = said(written(tmp_path, of_subtask(keyed=fb.key_groups(3, fb.inline(b"", f"{folder}/1")))))
        assert rows[-1].get("file", "/").startswith("/")
    rows = said(written(tmp_path, of_subtask(keyed=fb.key_groups(3, fb.inline(b"", "s3://b/chk-8/1")))))
    assert rows[-1]["file"] == "s3://b/chk-8"


def test_the_folder_is_the_one_with_the_checkpoint_s_number_before_any_job_s(tmp_path: Path) -> None:
    """Shared files may be another job's; two jobs, and no folder of this checkpoint, tell nothing."""
    one, other = (fb.absolute(f"file:/r/{job * 16}/shared/1", 1) for job in ("0a", "0b"))
    own = fb.inline(b"", f"file:/r/{'0b' * 16}/chk-8/2")
    older = fb.absolute(f"file:/r/{'0a' * 16}/chk-7/3", 1)
    for files, folder in (
        ([one, own, older], f"file:/r/{'0b' * 16}/chk-8"),
        ([one, older], f"file:/r/{'0a' * 16}/chk-8"),
        ([one, other], None),
        ([older], None),
    ):
        rows = said(written(tmp_path, of_subtask(keyed=fb.incremental(fb.null(), files))))
        assert rows[-1].get("file") == folder

"""Every moment at which a crash can interrupt a compaction, held against what a starting broker does to the files.

`start_broker` is the rule of Kafka's LogLoader, written down as what it does to a folder: it deletes and renames. What
cklog says of a folder that it may not touch must be what it says of the folder that this rule leaves.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cklog.inputs.partitions import Partition
from cklog.parsers.kafka.log import reconcile
from cklog.storage import Root
from tests.builders.kafka import Row, batch
from tests.builders.kafka_broker import TopicLog, broker_files, snapshot
from tests.program import cklog
from tests.reading.kafka_broker import logs_of

SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
"""In the order in which a broker renames the files of a segment."""

Ends = dict[int, int]
"""The offset behind the last batch of each new segment, by its base."""


def named(base: int, suffix: str) -> str:
    return f"{base:020}{suffix}"


def start_broker(folder: Path, ends: Ends) -> None:
    """What a broker does first: drop temporary files, delete what `.swap` files replace, and rename those."""
    for path in folder.glob("*.deleted"):
        path.unlink()
    cleaned = [*folder.glob("*.cleaned")]
    lowest = min((int(path.name[:20]) for path in cleaned), default=1 << 63)
    for path in [*folder.glob("*.swap")]:
        if int(path.name[:20]) >= lowest:
            path.unlink()
    for path in cleaned:
        path.unlink()
    logs = [int(path.name[:20]) for path in folder.glob("*.log.swap")]
    low, high = min(logs, default=1 << 63), max((ends[base] for base in logs), default=-1)
    for path in [*folder.iterdir()]:
        offset = path.name.partition(".")[0]
        if offset.isdigit() and path.suffix != ".swap" and low <= int(offset) < high:
            path.unlink()
    for path in [*folder.glob("*.swap")]:
        path.rename(path.with_suffix(""))


def compaction(folder: Path, old: list[int], new: dict[int, bytes]) -> Iterator[str]:
    """Compact the segments `old` of a folder to those of `new`, stopping after each step on the disk."""
    for base, data in new.items():
        for suffix in SUFFIXES:
            (folder / named(base, f"{suffix}.cleaned")).write_bytes(data if suffix == ".log" else b"")
            yield f"{suffix}.cleaned of {base} is written"
    for base in sorted(new, reverse=True):
        for suffix in SUFFIXES:
            (folder / named(base, f"{suffix}.cleaned")).rename(folder / named(base, f"{suffix}.swap"))
            yield f"{suffix} of {base} is ready"
    for base in sorted(old):
        for suffix in SUFFIXES:
            path = folder / named(base, suffix)
            if path.exists():
                path.rename(folder / f"{path.name}.deleted")
                yield f"{suffix} of {base} is let go"
    for base in sorted(new):
        for suffix in SUFFIXES:
            (folder / named(base, f"{suffix}.swap")).rename(folder / named(base, suffix))
            yield f"{suffix} of {base} is in its place"


def kept(base: int, *deltas: int, last: int) -> bytes:
    """A batch that compaction left: the offsets base + delta, up to base + last."""
    return batch(base, [Row(b"kept", delta=delta) for delta in deltas], last_delta=last)


CASES: dict[str, tuple[list[int], dict[int, bytes], Ends]] = {
    "two segments become one": ([0, 10], {0: kept(0, 3, 9, last=9) + kept(10, 4, last=9)}, {0: 20}),
    "one of them ends before the old ones did": ([0, 10], {0: kept(0, 3, 9, last=9)}, {0: 10}),
    "nothing is left of two": ([0, 10], {0: b""}, {0: 0}),
    "the middle one alone": ([10], {10: kept(10, 1, last=9)}, {10: 20}),
    "one is split in two": ([10], {10: kept(10, 1, last=4), 15: kept(15, 0, 4, last=4)}, {10: 15, 15: 20}),
    "two groups at once": ([0, 10], {0: kept(0, 0, last=9), 10: kept(10, 9, last=9)}, {0: 10, 10: 20}),
}


def three_segments(folder: Path) -> Path:
    """Offsets 0 to 9, 10 to 19, and 20 to 24, which is still written to and never compacted."""
    log = TopicLog()
    log.data(10)
    log.roll()
    log.data(10)
    log.roll()
    log.data(5)
    log.write(folder / "t-0")
    for base in (0, 10, 20):
        (folder / "t-0" / named(base, ".index")).write_bytes(b"")
        (folder / "t-0" / named(base, ".timeindex")).write_bytes(b"")
        (folder / "t-0" / named(base, ".snapshot")).write_bytes(snapshot())
    broker_files(folder, replication={"t-0": 25}, recovery_point={"t-0": 20}, cleaner={"t-0": 20})
    return folder


def told(p: Partition) -> dict[str, Any]:
    """What is known of a partition, with a segment that is yet to be renamed as one that is."""
    found = asdict(p)
    del found["folder"]
    found["segments"] = [(s.path.removesuffix(".swap"), s.base, s.size) for s in p.folder.segments]
    found["gaps"] = [(gap.start, gap.end, gap.path.removesuffix(".swap")) for gap in p.gaps]
    found["snapshot"] = p.folder.snapshot
    return found


def images(tmp_path: Path, case: str) -> Iterator[tuple[str, Path]]:
    """A copy of the folder at every moment of a compaction."""
    old, new, _ = CASES[case]
    running = three_segments(tmp_path / "running")
    for i, what in enumerate(compaction(running / "t-0", old, new)):
        yield what, Path(shutil.copytree(running, tmp_path / f"crash{i}"))


@pytest.mark.parametrize("case", CASES)
def test_a_crashed_compaction_is_read_as_a_broker_leaves_it(tmp_path: Path, case: str) -> None:
    moments = 0
    for what, crashed in images(tmp_path, case):
        found = told(logs_of(crashed).partitions()["t-0"])
        start_broker(crashed / "t-0", CASES[case][2])
        assert found == told(logs_of(crashed).partitions()["t-0"]), what
        moments += 1
    assert moments >= 4 * len(SUFFIXES) - 2


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_lost_or_read_twice_at_any_moment(tmp_path: Path, case: str) -> None:
    """Either all old records are there or those that compaction kept, and the offsets of the log never change."""
    old, new, _ = CASES[case]
    whole = {0: 10, 10: 10, 20: 5}
    before = sum(whole.values())
    after = sum(count for base, count in whole.items() if base not in old) + sum(
        data.count(b"kept") for data in new.values()
    )
    seen = set()
    for what, crashed in images(tmp_path, case):
        p = logs_of(crashed).partitions()["t-0"]
        assert (p.log_start, p.restart_end, p.damage) == (0 if 0 in old or 0 in whole else 10, 25, ()), what
        seen.add(p.records)
    both = {before, after}
    assert both <= seen
    # a `.swap` that ends before the old segments does not take the place of those behind it until they are let go
    assert seen == both or case in ("one of them ends before the old ones did", "nothing is left of two")


def test_what_is_done_to_the_files_is_said(tmp_path: Path) -> None:
    ready = dropped = 0
    for what, crashed in images(tmp_path, "two segments become one"):
        findings = logs_of(crashed).layout.findings
        said = [finding.message for finding in findings if finding.id == "interrupted-compaction"]
        swaps, cleaned = [*crashed.glob("t-0/*.log.swap")], [*crashed.glob("t-0/*.cleaned")]
        if cleaned:
            assert len(said) == 1, what
            assert "drops what it had made" in said[0]
            dropped += 1
        elif swaps:
            assert len(said) == 1, what
            assert "completes it" in said[0]
            still = [path.name for base in (0, 10) for path in crashed.glob(f"t-0/{named(base, '.log')}")]
            assert ("in place of" in said[0]) == bool(still)
            assert all(name in said[0] for name in still)
            ready += 1
        else:
            assert not said, what
    assert ready >= 6
    assert dropped == 7


def test_a_damaged_swap_is_judged_as_the_segment_that_it_becomes(tmp_path: Path) -> None:
    at = ".log of 10 is let go"
    crashed = next(folder for what, folder in images(tmp_path, "two segments become one") if what == at)
    path = crashed / "t-0" / named(0, ".log.swap")
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    found = cklog("recovery-line", crashed)
    assert found.code == 3
    assert f"t-0/{path.name}" in found.out
    assert "unchecked-damage" in found.out


def test_a_large_swap_is_read_in_splits(tmp_path: Path) -> None:
    data = b"".join(kept(base, 0, 1, last=1) for base in range(0, 2000, 2))
    folder = three_segments(tmp_path) / "t-0"
    (folder / named(0, ".log")).rename(folder / named(0, ".log.deleted"))
    (folder / named(0, ".log.swap")).write_bytes(data)
    (folder / named(10, ".log")).unlink()
    (folder / named(20, ".log")).rename(folder / named(2000, ".log"))
    whole = logs_of(tmp_path).partitions()["t-0"]
    assert whole.records == 2000 + 5
    assert told(logs_of(tmp_path, split_bytes=1000).partitions()["t-0"]) == told(whole)


def test_the_real_folder_of_a_crashed_compaction(shared_data: Path) -> None:
    """A broker's rule, read in its source: log start 50, as its own checkpoint says; the records are those deleted."""
    folder = shared_data / "engine-verified" / "kafka-swap"
    p = logs_of(folder).partitions()["ck-none-0"]
    assert (p.log_start, p.restart_end, p.records, p.damage, p.gaps) == (50, 1500, 1500, (), ())
    assert {finding.id for finding in logs_of(folder).layout.findings} == {"deleted-segment", "interrupted-compaction"}


def test_a_table_of_a_run_folder_says_what_it_does_not_read(tmp_path: Path) -> None:
    folder = three_segments(tmp_path) / "t-0"
    root = Root(str(folder))
    assert not [finding for finding in reconcile(root.read, root.uri, root.list()) if finding.severity == "error"]
    (folder / named(0, ".log.swap")).write_bytes(kept(0, 3, last=19))
    root = Root(str(folder))
    (found,) = [finding for finding in reconcile(root.read, root.uri, root.list()) if finding.severity == "error"]
    assert (found.id, found.subject) == ("interrupted-compaction", named(0, ".log.swap"))

"""A checkpoint's number stands in its folder's name and in its metadata: where they disagree, neither is believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.flink_folders import OLD, Snapshot, checkpoint, job, savepoint, torn, uri
from tests.reading.flink_folders import asked, fates, restored, verdicts

ID = range(8, 16)
"""The bytes of the number in a metadata file."""


def flip(root: Path, number: int, bit: int) -> int:
    """Flip a bit of the number that a checkpoint's metadata holds; return what it holds then."""
    return flip_in(root / OLD / f"chk-{number}" / "_metadata", bit)


def flip_in(path: Path, bit: int) -> int:
    data = bytearray(path.read_bytes())
    data[ID.start + bit // 8] ^= 128 >> bit % 8
    path.write_bytes(data)
    return int.from_bytes(data[ID.start : ID.stop], "big", signed=True)


def severities(answer: dict[str, Any]) -> list[str]:
    return [finding["severity"] for finding in answer["findings"] if finding["id"] == "renamed-snapshot"]


@pytest.mark.parametrize("number", [5, 6, 7])
def test_no_flipped_bit_of_a_number_makes_an_old_checkpoint_the_newest(tmp_path: Path, number: int) -> None:
    """The newest whole one is restored, or an older one where it is the newest itself that now seems older."""
    job(tmp_path)
    for bit in range(64):
        held = flip(tmp_path, number, bit)
        answer = asked("recovery-line", tmp_path, root=tmp_path)
        newest = 7 if number < 7 or held > 7 else 6
        assert restored(answer) == {OLD: uri(OLD, f"chk-{newest}")}, bit
        assert answer["result"]["line"][0]["checkpoint"] == newest
        if bit == 0:
            assert verdicts(answer)[f"{OLD}/chk-{number}"] == "corrupt"
        else:
            serious = number == 7 or held > 7
            assert severities(answer) == ["error" if serious else "warning"], bit
            assert answer["exit"] == (3 if serious else 0)
        flip(tmp_path, number, bit)


@pytest.mark.parametrize(
    ("old", "new", "newest", "severity"),
    [(5, 50, 7, "error"), (5, 4, 7, "warning"), (7, 70, 70, "error"), (7, 2, 6, "error")],
)
def test_no_renamed_folder_makes_an_old_checkpoint_the_newest(
    tmp_path: Path, old: int, new: int, newest: int, severity: str
) -> None:
    job(tmp_path)
    (tmp_path / OLD / f"chk-{old}").rename(tmp_path / OLD / f"chk-{new}")
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    (place,) = restored(answer).values()
    assert str(place).endswith(f"/chk-{newest}")
    assert severities(answer) == [severity]


def test_a_checkpoint_of_two_numbers_is_found_by_either(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / OLD / "chk-5").rename(tmp_path / OLD / "chk-50")
    for number in (5, 50):
        (place,) = restored(asked("recovery-line", tmp_path, "--at", f"{OLD}={number}", root=tmp_path)).values()
        assert str(place).endswith("/chk-50")


def test_no_line_is_called_maximal_while_another_may_be_newer(tmp_path: Path) -> None:
    job(tmp_path)
    line = tmp_path / "line.json"
    line.write_text(f'{{"{OLD}/0": 7}}', encoding="utf-8")
    for bit, code in ((None, 0), (63, 0), (59, 5)):  # 5, then 4, then 20
        if bit is not None:
            flip(tmp_path, 5, bit)
        assert asked("verify", tmp_path, "--line", str(line), "--maximal", root=tmp_path)["exit"] == code


@pytest.mark.parametrize("options", [("--keep", "1"), ("--keep", "2")])
@pytest.mark.parametrize("number", [5, 6, 7])
def test_no_flipped_bit_of_a_number_makes_more_deletable(tmp_path: Path, number: int, options: tuple[str, ...]) -> None:
    job(tmp_path)

    def plan() -> dict[str, tuple[str, str]]:
        return fates(asked("retention", tmp_path, *options, "--jobs-stopped", root=tmp_path))

    kept = {path for path, (fate, _) in plan().items() if fate != "OBSOLETE"}
    assert f"{OLD}/chk-5/p5" not in kept
    for bit in (1, 20, 60, 61, 62, 63):
        flip(tmp_path, number, bit)
        told = plan()
        assert not {path for path in kept if told[path][0] == "OBSOLETE"}, bit
        assert told[f"{OLD}/chk-{number}/p{number}"][1] in ("disputed", "restorable")
        flip(tmp_path, number, bit)


def test_a_renamed_checkpoint_finishes_no_torn_one(tmp_path: Path) -> None:
    """A folder without metadata stays while it may be completed: a larger number by name alone says nothing."""
    job(tmp_path)
    torn(tmp_path, OLD, 8, {"x": 3})
    assert fates(asked("retention", tmp_path, root=tmp_path))[f"{OLD}/chk-8/x"][1] == "unfinished"
    (tmp_path / OLD / "chk-5").rename(tmp_path / OLD / "chk-50")
    assert fates(asked("retention", tmp_path, root=tmp_path))[f"{OLD}/chk-8/x"][1] == "unfinished"


SAVED = f"savepoint-{OLD[:6]}-0123456789ab"
SPLITS = ("orders", 0), ("orders", 1)


def reading_job(root: Path, saved: int, *, numbers: tuple[int, ...] = (5, 7, 9), at: int | None = None) -> None:
    """Checkpoints of a job that reads two partitions, and a savepoint of it; the n-th has read 100 n of each."""

    def read(number: int) -> tuple[tuple[str, int, int], ...]:
        return tuple((topic, partition, 100 * number + partition) for topic, partition in SPLITS)

    for number in numbers:
        checkpoint(root, OLD, number, Snapshot(own={f"p{number}": 9}, sources=(read(number),)))
    savepoint(root, SAVED, saved, Snapshot(own={"s": 9}, savepoint=True, sources=(read(saved if at is None else at),)))


@pytest.mark.quarter
@pytest.mark.parametrize("saved", [4, 6, 8, 10])
def test_no_flipped_bit_of_a_savepoints_number_makes_it_the_newest(tmp_path: Path, saved: int) -> None:
    """Its folder has no number: what it has read tells where the number cannot be right."""
    reading_job(tmp_path, saved)
    whole = restored(asked("recovery-line", tmp_path, root=tmp_path))
    assert whole == {OLD: uri(SAVED) if saved == 10 else uri(OLD, "chk-9")}
    for bit in range(1, 64):
        held = flip_in(tmp_path / SAVED / "_metadata", bit)
        answer = asked("recovery-line", tmp_path, root=tmp_path)
        between = [number for number in (5, 7, 9) if min(held, saved) <= number <= max(held, saved)]
        if between:
            serious = saved == 10 or held > 9
            assert severities(answer) == ["error" if serious else "warning"], bit
            assert answer["exit"] == (3 if serious else 0)
            assert restored(answer) == {OLD: uri(OLD, "chk-9")}, bit
        else:
            assert restored(answer) == whole, bit
            assert severities(answer) == []
        flip_in(tmp_path / SAVED / "_metadata", bit)


@pytest.mark.parametrize("saved", [4, 10])
def test_a_savepoint_that_cannot_be_read_may_be_the_newest(tmp_path: Path, saved: int) -> None:
    reading_job(tmp_path, saved)
    metadata = tmp_path / SAVED / "_metadata"
    metadata.write_bytes(metadata.read_bytes()[:-5])
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert (answer["exit"], restored(answer)) == (3, {OLD: uri(OLD, "chk-9")})
    [found] = [finding for finding in answer["findings"] if finding["id"] == "corrupt-metadata"]
    assert found["severity"] == "error"
    assert found["message"].endswith("Its number cannot be read, so it may be the newest")


@pytest.mark.parametrize("bit", [60, 59, 30])
def test_a_savepoint_with_a_larger_number_ends_no_restart(tmp_path: Path, bit: int) -> None:
    """Of two savepoints alone, neither is believed where they disagree."""
    reading_job(tmp_path, 4, numbers=())
    other = f"savepoint-{OLD[:6]}-ba9876543210"
    savepoint(tmp_path, other, 6, Snapshot(savepoint=True, sources=((("orders", 0, 600), ("orders", 1, 601)),)))
    before = asked("recovery-line", tmp_path, root=tmp_path)
    assert severities(before) == []
    flip_in(tmp_path / SAVED / "_metadata", bit)
    assert asked("recovery-line", tmp_path, root=tmp_path)["findings"] != before["findings"]


def test_a_job_that_reads_no_further_contradicts_nothing(tmp_path: Path) -> None:
    """Offsets that stay are no contradiction, and neither are those of another partition."""
    reading_job(tmp_path, 10, at=9)
    assert severities(asked("recovery-line", tmp_path, root=tmp_path)) == []
    for number, partition in ((11, 2), (12, 3)):
        split = ("orders", partition, 5)
        checkpoint(tmp_path, OLD, number, Snapshot(own={f"p{number}": 9}, sources=((split,),)))
    assert severities(asked("recovery-line", tmp_path, root=tmp_path)) == []


def test_jobs_of_one_id_contradict_no_savepoint_of_each_other(tmp_path: Path) -> None:
    """In application mode with high availability every job has the id 0: of two, nothing says whose it is."""
    reading_job(tmp_path, 12)
    for number in (9, 11):
        split = ("orders", 0, 5000 + number)
        checkpoint(tmp_path, f"staging/{OLD}", number, Snapshot(own={"p": 9}, sources=((split,),)))
        assert severities(asked("recovery-line", tmp_path, root=tmp_path)) == []

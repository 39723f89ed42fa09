"""A first segment that is gone, by each of the broker's own files that shows that it was there; and no false alarm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cklog.model.question import Question
from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.program import cklog
from tests.reading.kafka_broker import log_of


def four_segments(folder: Path, without: int | None = None, epochs: str | None = None) -> Path:
    """Segments of ten offsets each from 0 on, each with its index, but the one that begins at `without`."""
    log = TopicLog()
    for _ in range(3):
        log.data(10)
        log.roll()
    log.data(5)
    log.write(folder / "t-0")
    for base in log.segments:
        (folder / "t-0" / f"{base:020}.index").write_bytes(b"")
    if without is not None:
        for path in [*(folder / "t-0").glob(f"{without:020}.*")]:
            path.unlink()
    if epochs is not None:
        (folder / "t-0" / "leader-epoch-checkpoint").write_text(epochs)
    return folder


def missing(folder: Path) -> list[str]:
    found = log_of(folder).recovery_line(Question()).findings
    return [finding.message for finding in found if finding.id == "missing-segment"]


KNOWN: dict[str, tuple[str | None, dict[str, Any]]] = {
    "leader-epoch-checkpoint": ("0\n2\n0 0\n3 25\n", {}),
    "log-start-offset-checkpoint": (None, {"log_start": {"t-0": 4}}),
    "recovery-point-offset-checkpoint": (None, {"recovery_point": {"t-0": 9}}),
}


@pytest.mark.parametrize("file", KNOWN)
def test_each_file_shows_that_the_first_segment_was_there(tmp_path: Path, file: str) -> None:
    epochs, files = KNOWN[file]
    broker_files(tmp_path, **files)
    assert not missing(four_segments(tmp_path, epochs=epochs))
    four_segments(tmp_path, without=0, epochs=epochs)
    (told,) = missing(tmp_path)
    assert f"by its {file}" in told
    assert "its first segment begins at 10" in told


def test_epochs_alone_in_a_folder_that_was_copied_without_its_broker(tmp_path: Path) -> None:
    folder = four_segments(tmp_path, without=0, epochs="0\n1\n0 0\n") / "t-0"
    (told,) = missing(folder)
    assert "should begin at offset 0" in told


@pytest.mark.parametrize(
    ("epochs", "files"),
    [
        # retention took the first segment and noted it everywhere; no start is noted where it is a segment's own
        ("0\n1\n3 10\n", {"log_start": {}, "recovery_point": {"t-0": 30}}),
        # records were deleted up to inside the second segment
        ("0\n1\n3 12\n", {"log_start": {"t-0": 12}, "recovery_point": {"t-0": 30}}),
        # a copy that began anew at its leader's start: its recovery point is older than its log
        ("0\n1\n3 10\n", {"recovery_point": {"t-0": 0}}),
        # the epochs were not cut yet when the broker died; the log's start had been noted
        ("0\n1\n0 0\n", {"log_start": {"t-0": 10}}),
        # nobody knows anything of this log
        (None, {"recovery_point": {"u-7": 0}}),
    ],
)
def test_a_log_that_begins_where_it_should_is_not_called_short(
    tmp_path: Path, epochs: str | None, files: dict[str, Any]
) -> None:
    broker_files(tmp_path, **files)
    assert not missing(four_segments(tmp_path, without=0, epochs=epochs))


@pytest.mark.parametrize("base", [0, 10, 20, 30])
def test_an_index_without_its_segment(tmp_path: Path, base: int) -> None:
    """The last one is the worst: without it the log just ends earlier."""
    broker_files(four_segments(tmp_path))
    assert not missing(tmp_path)
    (tmp_path / "t-0" / f"{base:020}.log").unlink()
    told = [message for message in missing(tmp_path) if "index" in message]
    assert len(told) == 1
    assert f"begins at offset {base} " in told[0]


def test_a_segment_that_is_being_deleted_still_has_its_index(tmp_path: Path) -> None:
    broker_files(four_segments(tmp_path))
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.rename(path.with_suffix(".log.deleted"))
    assert not missing(tmp_path)


LEADS = ("outside", "nowhere", "itself")


def linked(folder: Path, base: int, leads: str) -> str:
    """A broker's folder in which the segment that begins at `base` is a link; its name."""
    inside = four_segments(folder / "kafka") / "t-0" / f"{base:020}.log"
    target = {"outside": folder / "elsewhere.log", "nowhere": folder / "none", "itself": inside}[leads]
    data = inside.read_bytes()
    inside.unlink()
    if leads == "outside":
        target.write_bytes(data)
    inside.symlink_to(target)
    commits = TopicLog()
    rows = [("early", "t", 0, 3), ("late", "t", 0, 34), ("gone", "t", 0, 99)]
    commits.add(commit_batch(0, rows), range(3), 3, "data")
    commits.write(folder / "kafka" / "__consumer_offsets-0")
    broker_files(folder / "kafka")
    return f"t-0/{base:020}.log"


@pytest.mark.parametrize("leads", LEADS)
@pytest.mark.parametrize("base", [0, 10, 30])
def test_a_segment_that_is_a_link_is_there_and_unknown(tmp_path: Path, base: int, leads: str) -> None:
    """It was not read, so the log does not begin behind it, and nothing is said of offsets that it may hold."""
    name = linked(tmp_path, base, leads)
    ended = cklog("recovery-line", tmp_path / "kafka", "--json")
    answer = json.loads(ended.out)
    assert (ended.code, answer["verdict"]) == (5, "indeterminate")
    told = {(finding["id"], finding["subject"]) for finding in answer["findings"]}
    assert {("unreadable-file", name), ("unfollowed-link", name)} <= told
    assert not {"missing-segment", "retention-hole", "committed-beyond-log-end"} & {id for id, _ in told}
    (row,) = answer["result"]["details"]["partitions"]
    assert (row["log_start"], row["restart_end"]) == (0, 30 if base == 30 else 35)
    assert [entry["checkpoint"] for entry in answer["result"]["line"]] == [
        base
    ]  # a broker may cut there for all we know
    assert "is not known" in answer["result"]["details"]["headline"]


@pytest.mark.parametrize("base", [0, 10])
def test_nothing_is_called_maximal_while_a_segment_is_unread(tmp_path: Path, base: int) -> None:
    """The end of the log that can be read is its last segment's: 35; what is unread may change what is restored."""
    linked(tmp_path, base, "outside")
    other = TopicLog()
    other.data(2, producer=7)
    other.write(tmp_path / "kafka" / "u-0")
    line = tmp_path / "line.json"
    line.write_text('{"t/0": 35}')
    ended = cklog("verify", tmp_path / "kafka", "--line", line, "--maximal", "--json")
    answer = json.loads(ended.out)
    assert {check["check"]: check["holds"] for check in answer["result"]["checks"]}["maximal"] is None
    assert {"unreadable-file", "open-transaction"} <= {f["id"] for f in answer["findings"]}
    assert "line" not in {f["subject"] for f in answer["findings"]}
    assert (answer["verdict"], ended.code) == ("indeterminate", 5)


def test_with_links_followed_the_log_is_whole(tmp_path: Path) -> None:
    linked(tmp_path, 10, "outside")
    answer = json.loads(cklog("recovery-line", tmp_path / "kafka", "--follow-links", "--json").out)
    assert [row["restart_end"] for row in answer["result"]["details"]["partitions"]] == [35]
    assert {finding["id"] for finding in answer["findings"]} == {"committed-beyond-log-end"}


def test_a_partition_of_links_alone_is_one(tmp_path: Path) -> None:
    linked(tmp_path, 0, "outside")
    for path in (tmp_path / "kafka" / "t-0").iterdir():
        if not path.is_symlink():
            path.unlink()
    ended = cklog("recovery-line", tmp_path / "kafka", "--json")
    (row,) = json.loads(ended.out)["result"]["details"]["partitions"]
    assert (ended.code, row["log_start"], row["restart_end"]) == (5, 0, 0)


@pytest.mark.parametrize("base", [0, 10, 30])
def test_what_a_segment_that_was_not_read_holds_is_not_said_to_be_kept(tmp_path: Path, base: int) -> None:
    linked(tmp_path, base, "outside")
    result = json.loads(cklog("impact", tmp_path / "kafka", "--json").out)["result"]
    assert {row["reader"]: row["kept"] for row in result["again"]} == {"early": None, "late": None, "gone": None}
    assert "may-be-missing" not in {row["fate"] for row in result["intervals"]}
    assert {row["evidence"][0]["because"] for row in result["guarantees"]} == {"input-unknown"}
    read = json.loads(cklog("impact", tmp_path / "kafka", "--follow-links", "--json").out)["result"]
    assert {row["reader"]: row["kept"] for row in read["again"]} == {"early": True, "late": True, "gone": False}


def test_offsets_that_no_segment_has_are_kept_only_where_compaction_is_known_to_have_taken_them(tmp_path: Path) -> None:
    checkpoints: dict[str, dict[str, int]] = {"unknown": {}, "compacted": {"t-0": 9}, "plain": {"u-0": 1}}
    for (name, cleaned), kept in zip(checkpoints.items(), (None, True, False), strict=True):
        folder = four_segments(tmp_path / name, without=10)
        commits = TopicLog()
        commits.add(commit_batch(0, [("before", "t", 0, 3), ("behind", "t", 0, 20)]), range(2), 2, "data")
        commits.write(folder / "__consumer_offsets-0")
        broker_files(folder)
        if cleaned:
            broker_files(folder, cleaner=cleaned)
        again = json.loads(cklog("impact", folder, "--json").out)["result"]["again"]
        assert {row["reader"]: row["kept"] for row in again} == {"before": kept, "behind": True}, name


def test_damage_where_a_starting_broker_does_not_look_keeps_nothing_for_sure(tmp_path: Path) -> None:
    folder = four_segments(tmp_path)
    path = folder / "t-0" / f"{10:020}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    commits = TopicLog()
    commits.add(commit_batch(0, [("g", "t", 0, 3)]), range(1), 1, "data")
    commits.write(folder / "__consumer_offsets-0")
    broker_files(folder, clean=True)
    result = json.loads(cklog("impact", folder, "--json").out)["result"]
    assert [row["kept"] for row in result["again"]] == [None]
    assert [row["guarantee"] for row in result["guarantees"]] == ["none"]


def test_nothing_is_advised_to_groups_whose_newest_commit_may_not_have_been_read(tmp_path: Path) -> None:
    four_segments(tmp_path / "kafka")
    commits = TopicLog()
    commits.add(commit_batch(0, [("g", "t", 0, 99)]), range(1), 1, "data")
    commits.roll()
    commits.add(commit_batch(1, [("g", "t", 0, 5)]), range(1), 2, "data")
    folder = commits.write(tmp_path / "kafka" / "__consumer_offsets-0")
    broker_files(tmp_path / "kafka")
    newest = folder / f"{1:020}.log"
    newest.rename(tmp_path / "away.log")
    for ids in ({"committed-beyond-log-end"}, {"unreadable-file", "unfollowed-link"}):
        ended = cklog("recovery-line", tmp_path / "kafka", "--json")
        assert {finding["id"] for finding in json.loads(ended.out)["findings"]} == ids
        newest.unlink(missing_ok=True)
        newest.symlink_to(tmp_path / "away.log")

"""State folders of Kafka Streams: which range of which changelog each store is restored from, and what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.errors import CorruptInput, NotFound, UsageError
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.parsers.kafka.streams import KafkaStreams, read_entries
from cklog.render.formats import render
from cklog.storage import Root
from tests.builders.stores import APP, checkpoint, put_log, put_task
from tests.conftest import REPOSITORY
from tests.reading.stores import opened


def rows(answer: Answer[Any]) -> dict[tuple[str, str | None], tuple[object, ...]]:
    keys = ("start", "restore_from", "restore_to", "records")
    return {(r["task"], r["store"]): tuple(r[k] for k in keys) for r in answer.result.details["stores"]}


def ids(answer: Answer[Any]) -> dict[str, str]:
    return {finding.id: finding.severity for finding in answer.findings}


def usual(folder: Path) -> Path:
    """Two tasks with stores, one global store."""
    app = folder / APP
    put_task(app, "0_0", ("counts",), {f"{APP}-counts-changelog 0": 41})
    put_task(app, "1_2", ("counts-big", "big"), {f"{APP}-counts-big-changelog 2": 7, f"{APP}-big-changelog 2": 99})
    put_task(app, "global", ("rates",), {"rates 0": 30, "rates 1": 12})
    (app / "kafka-streams-process-metadata").write_bytes(b"{}")
    (app / ".lock").write_bytes(b"")
    return app


def test_a_task_goes_on_behind_its_offset_and_a_global_store_at_it(tmp_path: Path) -> None:
    usual(tmp_path)
    answer = opened(tmp_path).line("recovery-line", Question())
    assert [(e.operator, e.subtask, e.checkpoint, e.state) for e in answer.result.line] == [
        ("0", 0, 42, "stored"),
        ("1", 2, 8, "stored"),
        ("global", 0, 12, "stored"),
    ]
    assert [(r["changelog"], r["restore_from"]) for r in answer.result.details["stores"]] == [
        (f"{APP}-counts-changelog-0", 42),
        (f"{APP}-big-changelog-2", 100),
        (f"{APP}-counts-big-changelog-2", 8),
        ("rates-0", 30),
        ("rates-1", 12),
    ]
    assert rows(answer)["1/2", "counts-big"] == ("checkpoint", 8, None, None)
    assert answer.exit_code == 0
    assert ids(answer) == {}


@pytest.mark.parametrize("path", [".", APP, f"{APP}/0_0"])
def test_path_may_be_any_of_the_three_folders(tmp_path: Path, path: str) -> None:
    usual(tmp_path)
    root = Root(str(tmp_path / path))
    assert KafkaStreams.recognises(root)
    answer = opened(tmp_path / path).line("recovery-line", Question())
    assert rows(answer)["0/0", "counts"] == ("checkpoint", 42, None, None)
    inspected = opened(tmp_path / path).inspect()
    assert (
        inspected.result["tasks"][0] | {"application": APP, "store_bytes": 26, "entries": 1}
        == (inspected.result["tasks"][0])
    )


def test_what_each_store_applies_again_is_counted_in_the_changelogs(tmp_path: Path) -> None:
    app, logs = usual(tmp_path), tmp_path / "kafka"
    put_log(logs, f"{APP}-counts-changelog", 0, 100)
    put_log(logs, f"{APP}-counts-big-changelog", 2, 8)
    put_log(logs, f"{APP}-big-changelog", 2, 130)
    put_log(logs, "rates", 0, 30)
    put_log(logs, "rates", 1, 50)
    answer = opened(app, logs).line("recovery-line", Question())
    assert rows(answer)["0/0", "counts"] == ("checkpoint", 42, 100, 58)
    assert rows(answer)["1/2", "counts-big"] == ("checkpoint", 8, 8, 0)
    assert rows(answer)["1/2", "big"] == ("checkpoint", 100, 130, 30)
    assert {(c.channel, c.replay_from, c.replay_to, c.messages) for c in answer.result.channels} == {
        (f"{APP}-counts-changelog-0", 42, 100, 58),
        (f"{APP}-counts-big-changelog-2", 8, 8, 0),
        (f"{APP}-big-changelog-2", 100, 130, 30),
        ("rates-0", 30, 30, 0),
        ("rates-1", 12, 50, 38),
    }
    assert answer.exit_code == 0
    assert answer.result.details["headline"].startswith("5 of 5 stores go on from their checkpoint: 126 records")


def test_a_log_that_was_cut_behind_the_store(tmp_path: Path) -> None:
    """A restarted broker ends the log at 40: the store holds records that no other copy will ever have."""
    app, logs = tmp_path / APP, tmp_path / "kafka"
    put_task(app, "0_0", ("counts",), {f"{APP}-counts-changelog 0": 41})
    put_log(logs, f"{APP}-counts-changelog", 0, 40)
    answer = opened(app, logs).line("recovery-line", Question())
    assert rows(answer)["0/0", "counts"] == ("checkpoint", 42, 40, 0)
    assert ids(answer)["store-beyond-log"] == "error"
    assert (answer.exit_code, answer.result.consistent) == (3, False)
    checks = opened(app, logs).verify({"0/0": 42}, False, Question()).result.checks
    assert [c.holds for c in checks] == [True, False]
    put_log(tmp_path / "whole", f"{APP}-counts-changelog", 0, 42)
    assert ids(opened(app, tmp_path / "whole").line("recovery-line", Question())) == {}


def test_a_log_whose_beginning_is_gone(tmp_path: Path) -> None:
    app, logs = tmp_path / APP, tmp_path / "kafka"
    put_task(app, "0_0", ("counts",), {f"{APP}-counts-changelog 0": 41})
    put_log(logs, f"{APP}-counts-changelog", 0, 90, start=50)
    answer = opened(app, logs).line("recovery-line", Question())
    assert rows(answer)["0/0", "counts"] == ("beginning", 50, 90, 40)
    assert ids(answer)["store-below-log"] == "warning"
    put_log(tmp_path / "level", f"{APP}-counts-changelog", 0, 90, start=42)
    assert rows(opened(app, tmp_path / "level").line("recovery-line", Question()))["0/0", "counts"][0] == "checkpoint"


def test_a_store_that_begins_anew_has_no_offset_that_could_be_reached(tmp_path: Path) -> None:
    """Where its changelog begins is not where the store is: it holds nothing."""
    app, logs = tmp_path / APP, tmp_path / "kafka"
    put_task(app, "0_0", ("counts",), {f"{APP}-counts-changelog 0": 41})
    put_log(logs, f"{APP}-counts-changelog", 0, 90, start=50)
    for offset in (42, 50, 90):
        checks = opened(app, logs).verify({"0/0": offset}, True, Question()).result.checks
        assert {c.check: c.holds for c in checks} == {"restorable": False, "consistent": True, "maximal": False}


def test_without_a_file_everything_is_restored(tmp_path: Path) -> None:
    app, logs = tmp_path / APP, tmp_path / "kafka"
    put_task(app, "0_0", ("counts", "sums"), None)
    put_log(logs, f"{APP}-counts-changelog", 0, 100, start=20)
    answer = opened(app, logs).line("recovery-line", Question())
    assert rows(answer)["0/0", "counts"] == ("beginning", 20, 100, 80)
    assert rows(answer)["0/0", "sums"] == ("beginning", None, None, None)
    cut = {"compacted-log-cut": "warning"}
    assert ids(answer) == cut | {"no-store-checkpoint": "warning", "missing-changelog": "warning"}
    assert (answer.exit_code, answer.result.line[0].state) == (4, "initial")


def test_an_offset_that_was_not_known(tmp_path: Path) -> None:
    app = tmp_path / APP
    put_task(app, "0_0", ("a", "b"), {f"{APP}-a-changelog 0": -4, f"{APP}-b-changelog 0": 5})
    answer = opened(app).line("recovery-line", Question())
    assert rows(answer)["0/0", "a"] == ("beginning", None, None, None)
    assert rows(answer)["0/0", "b"] == ("checkpoint", 6, None, None)
    assert ids(answer) == {}
    (app / "0_0" / ".checkpoint").write_bytes(checkpoint({f"{APP}-a-changelog 0": -1, f"{APP}-b-changelog 0": 5}))
    assert ids(opened(app).line("recovery-line", Question())) == {"negative-offset": "warning"}


def test_stores_and_entries_that_do_not_belong_together(tmp_path: Path) -> None:
    app = tmp_path / APP
    put_task(app, "0_0", ("kept", "new"), {f"{APP}-kept-changelog 0": 1, f"{APP}-gone-changelog 0": 5})
    answer = opened(app).line("recovery-line", Question())
    assert ids(answer) == {"entry-without-store": "error", "store-without-entry": "warning"}
    told = next(f for f in answer.findings if f.id == "entry-without-store")
    data = (app / "0_0" / ".checkpoint").read_bytes()
    assert data[told.where[0].offset :].startswith(b"shop-gone-changelog 0 5")
    assert rows(answer)["0/0", "new"] == ("beginning", None, None, None)


def test_a_source_topic_may_serve_as_changelog(tmp_path: Path) -> None:
    app = tmp_path / APP
    put_task(app, "0_0", ("prices",), {"price-updates 0": 9})
    assert ids(opened(app).line("recovery-line", Question())) == {}


def test_a_store_of_another_kind_is_found_by_its_folder(tmp_path: Path) -> None:
    app = tmp_path / APP
    task = put_task(app, "0_0", (), {f"{APP}-lucene-changelog 0": 9})
    (task / "lucene").mkdir()
    assert ids(opened(app).line("recovery-line", Question())) == {}


def test_named_topologies_and_several_applications(tmp_path: Path) -> None:
    put_task(tmp_path / APP / "__left__", "0_1", ("s",), {f"{APP}-left-s-changelog 1": 3})
    put_task(tmp_path / APP, "right__0_1", ("s",), {f"{APP}-right-s-changelog 1": 4})
    answer = opened(tmp_path).line("recovery-line", Question())
    assert [(e.operator, e.subtask, e.checkpoint) for e in answer.result.line] == [
        ("left__0", 1, 4),
        ("right__0", 1, 5),
    ]
    put_task(tmp_path / "other", "0_1", ("s",), {"other-s-changelog 1": 7})
    answer = opened(tmp_path).line("recovery-line", Question())
    assert [e.operator for e in answer.result.line] == ["other/0", f"{APP}/left__0", f"{APP}/right__0"]
    verified = opened(tmp_path).verify({"other/0/1": 8}, True, Question())
    assert [c.holds for c in verified.result.checks] == [True, None, True]


DAMAGED = {
    "nothing": b"",
    "no count": b"0\n",
    "count too high": checkpoint({"shop-s-changelog 0": 1}, count=2),
    "count too low": checkpoint({"shop-s-changelog 0": 1}, count=0),
    "twice": b"0\n2\nshop-s-changelog 0 1\nshop-s-changelog 0 1\n",
    "two words": b"0\n1\nshop-s-changelog 01\n",
    "no number": b"0\n1\nshop-s-changelog 0 x\n",
    "beyond 64 bits": b"0\n1\nshop-s-changelog 0 9223372036854775807\n",
    "partition": b"0\n1\nshop-s-changelog -1 5\n",
    "not UTF-8": b"0\n1\n\xff\xfe 0 5\n",
    "zeros": bytes(40),
    "huge": b"0\n1\nt 0 " + b"9" * 100_000 + b"\n",
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_file_that_kafka_streams_would_stop_on(tmp_path: Path, case: str) -> None:
    app = tmp_path / APP
    task = put_task(app, "0_0", ("s",), {})
    (task / ".checkpoint").write_bytes(DAMAGED[case])
    answer = opened(app).line("recovery-line", Question())
    assert ids(answer) == {"corrupt-file": "error"}
    assert rows(answer)["0/0", "s"] == ("beginning", None, None, None)
    with pytest.raises(CorruptInput):
        opened(app, strict=True).line("recovery-line", Question())


@pytest.mark.parametrize(
    ("instead", "action", "id"),
    [("folder", "repair-first", "corrupt-file"), ("link", "undetermined", "unreadable-file")],
)
def test_what_is_no_file_in_the_place_of_a_tasks_offsets(tmp_path: Path, instead: str, action: str, id: str) -> None:
    """Kafka Streams opens a folder, too, and stops on it; what a link leads to nobody has read."""
    folder = usual(tmp_path / "run")
    path = next(folder.rglob(".checkpoint"))
    path.rename(tmp_path / "elsewhere")
    path.mkdir() if instead == "folder" else path.symlink_to(tmp_path / "elsewhere")
    answer = opened(folder).line("recovery-line", Question())
    assert answer.result.action == action
    assert ids(answer)[id] == "error"


@pytest.mark.parametrize("linked", ["0_0/rocksdb/counts", "0_0/rocksdb"])
def test_stores_behind_a_link_are_not_missing(tmp_path: Path, linked: str) -> None:
    """Kafka Streams follows links, to a larger disk for example: nothing tells that it begins empty there."""
    folder = usual(tmp_path / "run")
    (tmp_path / "disk").mkdir()
    (folder / linked).rename(tmp_path / "disk" / "there")
    (folder / linked).symlink_to(tmp_path / "disk" / "there")
    answer = opened(folder).line("recovery-line", Question())
    assert answer.result.action == "undetermined"
    assert ids(answer) == {"unread-store": "error"}
    assert rows(answer)["0/0", "counts"] == ("unknown", None, None, None)
    assert all(run.command is None for run in answer.result.runs)


def test_a_task_whose_stores_lie_behind_a_link_is_there(tmp_path: Path) -> None:
    """Under exactly-once a crash leaves no file of offsets beside it."""
    folder = usual(tmp_path / "run")
    (folder / "0_0" / ".checkpoint").unlink()
    (folder / "0_0" / "rocksdb").rename(tmp_path / "there")
    (folder / "0_0" / "rocksdb").symlink_to(tmp_path / "there")
    answer = opened(folder).line("recovery-line", Question())
    assert rows(answer)["0/0", "*"] == ("unknown", None, None, None)
    assert answer.result.action == "undetermined"


def test_another_version_is_not_guessed(tmp_path: Path) -> None:
    task = put_task(tmp_path / APP, "0_0", ("s",), {})
    (task / ".checkpoint").write_bytes(checkpoint({"shop-s-changelog 0": 1}, version=1))
    assert ids(opened(tmp_path).line("recovery-line", Question())) == {"unknown-version": "error"}


@given(
    st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,30}", fullmatch=True), st.integers(0, 2**31 - 1)),
        st.integers(0, 2**63 - 2) | st.just(-4),
        max_size=8,
    )
)
def test_what_is_written_is_read(entries: dict[tuple[str, int], int]) -> None:
    data = checkpoint({f"{topic} {partition}": offset for (topic, partition), offset in entries.items()})
    found, findings = read_entries("f", data)
    assert found is not None
    assert not findings
    assert {(e.topic, e.partition): -4 if e.offset is None else e.offset for e in found} == entries
    assert all(data[e.at :].startswith(f"{e.topic} {e.partition} ".encode()) for e in found)


@given(st.binary(max_size=200))
def test_any_bytes_are_entries_or_a_finding(data: bytes) -> None:
    for text in (data, b"0\n1\n" + data):
        found, findings = read_entries("f", text)
        assert found is not None or findings


def test_questions_that_a_state_folder_cannot_answer(tmp_path: Path) -> None:
    usual(tmp_path)
    with pytest.raises(UsageError, match="as-of"):
        opened(tmp_path).line("recovery-line", Question(as_of=1))
    with pytest.raises(NotFound, match="9/9"):
        opened(tmp_path).verify({"9/9": 1}, False, Question())
    with pytest.raises(UsageError):
        opened(tmp_path).verify({"0/0": None}, False, Question())
    (tmp_path / "empty").mkdir()
    assert not KafkaStreams.recognises(Root(str(tmp_path / "empty")))
    with pytest.raises(NotFound):
        opened(tmp_path / "empty").line("recovery-line", Question())


def test_proofs_are_of_every_store_of_the_task(tmp_path: Path) -> None:
    app = usual(tmp_path)

    def holds(offset: int, maximal: bool) -> list[bool | None]:
        return [c.holds for c in opened(app).verify({"1/2": offset}, maximal, Question()).result.checks]

    assert holds(8, True) == [True, None, True]
    assert holds(9, False) == [False, None]
    assert holds(7, True) == [True, None, False]


def test_the_sample_gives_its_expected_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    sample = Path("sample_logs/kafka-streams-state")
    answer = opened(sample / "state", sample / "kafka").line("recovery-line", Question())
    assert render(answer, "json").rstrip("\n") + "\n" == (sample / "expected.json").read_text()
    assert ids(answer) == {
        "compacted-log-cut": "warning",
        "store-below-log": "warning",
        "store-beyond-log": "error",
        "no-store-checkpoint": "warning",
    }


def test_a_task_with_a_store_that_nobody_read_is_at_no_offset(tmp_path: Path) -> None:
    """The lowest offset of its stores may be that one's: the others' is no bound."""
    folder = usual(tmp_path / "run")
    big = folder / "1_2" / "rocksdb" / "counts-big"
    big.rename(tmp_path / "there")
    big.symlink_to(tmp_path / "there")
    answer = opened(folder).line("recovery-line", Question())
    assert [(e.checkpoint, e.state) for e in answer.result.line if e.operator == "1"] == [(None, "stored")]
    assert rows(answer)["1/2", "big"][:2] == ("checkpoint", 100)

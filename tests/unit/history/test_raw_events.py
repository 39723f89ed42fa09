"""Raw events in small: what each finding is about, and what each damage costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cklog.errors import CorruptInput, NotFound
from cklog.model.findings import Finding
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.render.formats import plain
from cklog.run import open_run

AB = "a/0->b/0"
Record = dict[str, Any]


def events(subtask: str, told: str, channel: str = AB, numbered: bool = True) -> list[Record]:
    """`s0` sends message 0, `r0` receives it, `C1` is checkpoint 1, `-` skips a number of the local order."""
    operator, _, index = subtask.partition("/")
    records: list[Record] = []
    for lsn, word in enumerate(told.split()):
        kind = {"s": "send", "r": "receive", "C": "checkpoint"}.get(word[0])
        about = {"checkpoint": int(word[1:])} if word[0] == "C" else {"channel": channel, "seq": int(word[1:] or 0)}
        order = {"lsn": lsn} if numbered else {}
        record = {"event": kind, "operator": operator, "subtask": int(index), **order, **about, "time": 1000 + lsn}
        records += [record] if kind else []
    return records


def write(folder: Path, *parts: list[Record] | bytes, job: Record | None = None) -> Path:
    """A file for each part; bytes are written as they are."""
    (folder / "events").mkdir(parents=True, exist_ok=True)
    for i, part in enumerate(parts):
        data = part if isinstance(part, bytes) else "".join(json.dumps(r) + "\n" for r in part).encode()
        (folder / "events" / f"log-{i}.jsonl").write_bytes(data)
    if job is not None:
        (folder / "job.json").write_text(json.dumps(job))
    return folder


def ask(folder: Path, **question: Any) -> Answer[Any]:
    with open_run(str(folder)) as run:
        return run.recovery_line(Question(**question))


def line(answer: Answer[Any]) -> dict[str, int | None]:
    return {f"{e.operator}/{e.subtask}": e.checkpoint for e in answer.result.line}


def found(answer: Answer[Any], id: str) -> Finding:
    (one,) = [f for f in answer.findings if f.id == id]
    return one


def lines(*parts: list[Record]) -> bytes:
    return "".join(json.dumps(r) + "\n" for part in parts for r in part).encode()


# --- watermarks


def test_a_checkpoint_has_sent_and_received_what_its_subtask_did_before_it(tmp_path: Path) -> None:
    answer = ask(write(tmp_path, events("a/0", "s0 s1 C1 s2 C2"), events("b/0", "r0 C1 r1 r2 C2")))
    assert line(answer) == {"a/0": 2, "b/0": 2}
    assert (answer.verdict, answer.exit_code, answer.findings) == ("ok", 0, ())
    older = ask(write(tmp_path, events("a/0", "s0 s1 C1 s2"), events("b/0", "r0 C1 r1 r2 C2")))
    assert line(older) == {"a/0": 1, "b/0": 1}
    (row,) = older.result.channels
    assert (row.replay_from, row.replay_to, row.resent_from, row.resent_to) == (1, 2, 2, 3)


def test_numbers_count_and_not_the_place_in_the_file(tmp_path: Path) -> None:
    b = events("b/0", "r0 C1 r1 r2 C2")
    answer = ask(write(tmp_path, b[::-1], events("a/0", "s0 s1 C1 s2")[::-1]))
    assert line(answer) == {"a/0": 1, "b/0": 1}


def test_without_numbers_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    b = events("b/0", "r0 C1 r1 r2 C2", numbered=False)
    write(tmp_path, events("a/0", "s0 s1 C1 s2", numbered=False))
    for number, record in zip((2, 7, 10, 11, 30), b, strict=True):
        (tmp_path / "events" / f"log-{number}.jsonl").write_bytes(lines([record]))
    assert line(ask(tmp_path)) == {"a/0": 1, "b/0": 1}


def test_at_the_number_of_a_checkpoint_a_receive_is_before_and_a_send_after_it(tmp_path: Path) -> None:
    a, b = events("a/0", "s0 s1 C1"), events("b/0", "r0 r1 C1")
    a[2]["lsn"], b[2]["lsn"] = 1, 1
    answer = ask(write(tmp_path, a, b))
    assert line(answer) == {"a/0": 1, "b/0": 0}


def test_ports_and_self_channels_are_channels_too(tmp_path: Path) -> None:
    a = events("a/0", "s0 C1 s0 r0", f"{AB}#1")
    a[2:] = [{**e, "channel": "a/0->a/0"} for e in a[2:]]
    answer = ask(write(tmp_path, a, events("b/0", "r0 C1", f"{AB}#1")))
    assert [row.channel for row in answer.result.channels] == ["a/0->a/0", f"{AB}#1"]
    assert line(answer) == {"a/0": 1, "b/0": 1}


def test_a_subtask_without_checkpoints_is_at_its_initial_state(tmp_path: Path) -> None:
    answer = ask(write(tmp_path, events("a/0", "s0 s1"), events("b/0", "C1 r0 C2")))
    assert line(answer) == {"a/0": 0, "b/0": 1}
    nothing = ask(write(tmp_path, events("a/0", "s0 s1"), events("b/0", "r0 C1")))
    assert (line(nothing), nothing.exit_code) == ({"a/0": 0, "b/0": 0}, 4)


def test_survivors_keep_what_their_events_tell(tmp_path: Path) -> None:
    write(tmp_path, events("a/0", "s0 C1 s1"), events("b/0", "r0 C1 r1"))
    answer = ask(tmp_path, failed=("b",))
    assert line(answer) == {"a/0": None, "b/0": 1}
    (row,) = answer.result.channels
    assert (row.replay_from, row.replay_to, row.resent_from) == (1, 2, None)
    assert line(ask(tmp_path, failed=("a",))) == {"a/0": 1, "b/0": 1}


def test_as_of_leaves_out_what_came_later_or_at_no_known_time(tmp_path: Path) -> None:
    a, b = events("a/0", "s0 C1 s1 C2"), events("b/0", "r0 C1 r1 C2")
    del a[3]["time"]
    answer = ask(write(tmp_path, a, b), as_of=1002)
    assert line(answer) == {"a/0": 1, "b/0": 1}
    assert line(ask(tmp_path, as_of=5000)) == {"a/0": 1, "b/0": 1}
    assert line(ask(tmp_path)) == {"a/0": 2, "b/0": 2}


def test_checkpoints_lend_what_they_know_and_only_those_that_are_recorded_count(tmp_path: Path) -> None:
    write(tmp_path, events("a/0", "s0 C1 s1 C2"), events("b/0", "r0 C1 r1 C2"))
    (tmp_path / "checkpoints").mkdir()
    rows = [{"operator": o, "checkpoint": n, "uri": f"{o}{n}"} for o, n in (("a", 0), ("a", 1), ("b", 1), ("b", 2))]
    (tmp_path / "checkpoints" / "all.jsonl").write_bytes(lines(rows, [{"operator": "b", "checkpoint": 7}]))
    answer = ask(tmp_path)
    assert [(e.checkpoint, e.uri) for e in answer.result.line] == [(1, "a1"), (1, "b1")]
    assert "a/0=2" in found(answer, "unrecorded-checkpoint").message
    assert "b/0=7" in found(answer, "unplaced-checkpoint").message
    assert [used.path for used in answer.inputs] == ["checkpoints/", "events/"]


def test_checkpoints_with_watermarks_are_believed_and_not_the_events(tmp_path: Path) -> None:
    write(tmp_path, events("a/0", "s0 C1"), events("b/0", "r0 r1 r2 C1"))
    (tmp_path / "checkpoints").mkdir()
    rows = [
        {"operator": "a", "checkpoint": 1, "sent": {AB: 3}},
        {"operator": "b", "checkpoint": 1, "received": {AB: 3}},
    ]
    (tmp_path / "checkpoints" / "all.jsonl").write_bytes(lines(rows))
    assert line(ask(tmp_path)) == {"a/0": 1, "b/0": 1}


# --- channels that deliver out of order


def test_holes_are_replayed_where_messages_overtook_others(tmp_path: Path) -> None:
    write(tmp_path, events("a/0", "s0 s1 s2 s3 s4 s5 C1"), events("b/0", "r1 r4 C1 r0"))
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "ab.jsonl").write_bytes(
        lines([{"channel": AB, "seq": n, "bytes": 10**n} for n in range(5)])
    )
    answer = ask(tmp_path)
    assert line(answer) == {"a/0": 1, "b/0": 1}
    rows = [(r.replay_from, r.replay_to, r.messages, r.bytes, r.retained) for r in answer.result.channels]
    assert rows == [(0, 1, 1, 1, True), (2, 4, 2, 1100, True), (5, 6, 0, 0, False)]
    assert found(answer, "out-of-order-channel").severity == "info"
    assert "message 5 is gone" in found(answer, "retention-hole").message


def test_order_within_an_interval_is_nobodys_concern(tmp_path: Path) -> None:
    answer = ask(write(tmp_path, events("a/0", "s0 s1 s2 C1"), events("b/0", "r2 r0 r1 C1")))
    assert answer.findings == ()
    assert [(r.replay_from, r.replay_to) for r in answer.result.channels] == [(3, 3)]


def test_a_channel_may_have_everything_that_it_needs_although_out_of_order(tmp_path: Path) -> None:
    answer = ask(write(tmp_path, events("a/0", "s0 C1 s1 C2"), events("b/0", "C1 r1 C2 r0 C3")))
    assert line(answer) == {"a/0": 2, "b/0": 3}
    assert [(r.replay_from, r.replay_to) for r in answer.result.channels] == [(2, 2)]
    assert found(answer, "out-of-order-channel").subject == AB


# --- logs that contradict themselves


def test_numbers_that_are_sent_or_received_twice_are_findings(tmp_path: Path) -> None:
    answer = ask(write(tmp_path, events("a/0", "s0 s1 s1 C1 s2 C2"), events("b/0", "r0 C1 r0 r1 r2 C2")))
    assert found(answer, "duplicate-send").message == (
        f"{AB}: 1 message was sent under a number that was used before, first among numbers 0 to 1"
    )
    assert found(answer, "duplicate-receive").message == (
        f"{AB}: 1 message was received more than once, first among number 0"
    )
    assert (line(answer), answer.exit_code) == ({"a/0": 2, "b/0": 2}, 3)


def test_a_repeat_does_not_hide_a_hole(tmp_path: Path) -> None:
    """Three events, three numbers from the least to the highest, and yet message 1 is in flight."""
    answer = ask(write(tmp_path, events("a/0", "s0 s1 s2 C1"), events("b/0", "r0 r0 r2 C1")))
    assert [(r.replay_from, r.replay_to) for r in answer.result.channels] == [(1, 2)]
    assert {f.id for f in answer.findings} == {"duplicate-receive", "out-of-order-channel", "no-channel-log"}


def test_a_receive_of_what_was_never_sent_is_an_error(tmp_path: Path) -> None:
    answer = ask(write(tmp_path, events("a/0", "s0 s3 C1"), events("b/0", "r0 r1 r3 C1")))
    assert found(answer, "receive-without-send").message == (f"{AB}: 1 message was received and never sent, number 1")
    assert answer.exit_code == 3


def test_receives_behind_the_end_of_the_senders_log_are_what_a_crash_leaves(tmp_path: Path) -> None:
    answer = ask(write(tmp_path, events("a/0", "s0 C1"), events("b/0", "r0 C1 r1 r2 C2")))
    assert (line(answer), answer.exit_code) == ({"a/0": 1, "b/0": 1}, 0)
    assert found(answer, "unlogged-sends").severity == "info"
    (row,) = answer.result.channels
    assert (row.resent_from, row.resent_to) == (1, 3)


def test_sends_that_are_numbered_backwards_make_the_line_older(tmp_path: Path) -> None:
    answer = ask(write(tmp_path, events("a/0", "s0 s2 C1 s1"), events("b/0", "r0 r1 C1")))
    assert "message 1 was sent in interval 1" in found(answer, "order-backwards").message
    assert line(answer) == {"a/0": 1, "b/0": 0}


def test_checkpoint_numbers_and_times_that_fall_are_findings(tmp_path: Path) -> None:
    b = events("b/0", "r0 C2 r1 C1")
    answer = ask(write(tmp_path, events("a/0", "s0 C1 s1 C2"), b))
    told = found(answer, "order-backwards")
    assert (told.severity, told.subject) == ("error", "b/0")
    assert [(w.path, w.offset) for w in told.where] == [
        ("events/log-1.jsonl", lines(b).index(json.dumps(b[1]).encode())),
        ("events/log-1.jsonl", lines(b).index(json.dumps(b[3]).encode())),
    ]
    clock = events("b/0", "C1 C2")
    clock[1]["time"] = 5
    answer = ask(write(tmp_path / "clock", clock))
    assert found(answer, "order-backwards").severity == "warning"
    assert line(answer) == {"b/0": 2}


def test_two_checkpoints_at_one_number_of_the_local_order(tmp_path: Path) -> None:
    b = events("b/0", "C1 C2")
    b[1]["lsn"] = 0
    assert found(ask(write(tmp_path, b)), "order-backwards").severity == "error"
    again = ask(write(tmp_path / "again", [*b[:1], *b[:1]]))
    assert (again.findings, line(again)) == ((), {"b/0": 1})


def test_events_that_are_numbered_in_part_are_taken_as_they_lie(tmp_path: Path) -> None:
    b = events("b/0", "r0 C1")
    b[0] |= {"lsn": 9}
    del b[1]["lsn"]
    answer = ask(write(tmp_path, events("a/0", "s0"), b))
    assert found(answer, "mixed-local-order").subject == "b/0"
    assert line(answer) == {"a/0": 0, "b/0": 0}


def test_events_of_other_peoples_channels_count_as_missing(tmp_path: Path) -> None:
    b = events("b/0", "C1 r0 C2")
    b[1]["channel"] = "a/0->c/0"
    answer = ask(write(tmp_path, events("a/0", "s0 C1", "a/0->c/0"), b))
    told = found(answer, "foreign-channel")
    assert [(w.path, w.offset) for w in told.where] == [("events/log-1.jsonl", len(lines(b[:1])))]
    assert found(answer, "missing-events").subject == "b/0"
    assert line(answer) == {"a/0": 1, "b/0": 1, "c/0": 0}


@pytest.mark.parametrize("lacks", ["channel", "seq"])
def test_events_that_say_too_little_count_as_missing(tmp_path: Path, lacks: str) -> None:
    b = events("b/0", "C1 r0 C2")
    del b[1][lacks]
    answer = ask(write(tmp_path, events("a/0", "s0 C1"), b))
    assert found(answer, "incomplete-event").where[0].offset == len(lines(b[:1]))
    assert line(answer) == {"a/0": 1, "b/0": 1}


def test_a_checkpoint_event_without_a_number_counts_as_missing(tmp_path: Path) -> None:
    b = events("b/0", "C1 C2 C3")
    del b[1]["checkpoint"]
    answer = ask(write(tmp_path, b))
    assert found(answer, "incomplete-event").subject == "events/"
    assert line(answer) == {"b/0": 1}


# --- what is missing


def test_numbers_that_are_missing_end_what_can_be_known_of_a_receiver(tmp_path: Path) -> None:
    a, b = events("a/0", "s0 - s1 C1"), events("b/0", "r0 C1 - C2 r1 C3")
    job = {"operators": [{"name": "a", "kind": "source"}, {"name": "b"}]}
    answer = ask(write(tmp_path, a, b, job=job))
    assert line(answer) == {"a/0": 1, "b/0": 1}
    assert [f.subject for f in answer.findings if f.id == "missing-events"] == ["a/0", "b/0"]
    assert answer.exit_code == 3
    assert line(ask(write(tmp_path, a, b, job={"operators": []}))) == {"a/0": 0, "b/0": 0}  # no source: a may receive


def test_a_log_that_begins_late_was_trimmed(tmp_path: Path) -> None:
    a, b = events("a/0", "- - - s7 C1 s8"), events("b/0", "- - - C1 r7 C2 r8 C3")
    answer = ask(write(tmp_path, a, b))
    assert line(answer) == {"a/0": 1, "b/0": 2}
    assert [f.subject for f in answer.findings if f.id == "trimmed-events"] == ["a/0", "b/0"]
    assert [(r.replay_from, r.replay_to) for r in answer.result.channels] == [(8, 8)]
    behind = ask(write(tmp_path / "behind", events("a/0", "s0 s1 C1 s2 s3"), events("b/0", "- - C1 r3 C2")))
    assert line(behind) == {"a/0": 1, "b/0": 0}  # at C1 b had received all up to 2
    silent = ask(write(tmp_path / "silent", events("a/0", "s0 s1 C1 s2"), events("b/0", "- - C4")))
    assert line(silent) == {"a/0": 1, "b/0": 0}  # b may have received all three before


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_may_begin_at_one(tmp_path: Path, first: int) -> None:
    a, b = events("a/0", "s0 C1"), events("b/0", "r0 C1")
    for record in (*a, *b):
        record["lsn"] += first
    assert ask(write(tmp_path, a, b)).findings == ()
    damaged = ask(write(tmp_path / "damaged", a, lines(b) + b"#\n"))
    assert line(damaged) == {"a/0": 1, "b/0": 1}


def test_a_damaged_first_event_costs_all_that_follow(tmp_path: Path) -> None:
    """Unlike a log that was trimmed: what is lost may have been any message."""
    a, b = events("a/0", "s0 C1 s1"), events("b/0", "r1 C1 r0 C2")
    answer = ask(write(tmp_path, a, b"#\n" + lines(b[1:])))
    assert line(answer) == {"a/0": 1, "b/0": 0}
    assert "from number 0 on" in found(answer, "missing-events").message


def test_where_everybody_has_lost_the_first_event_numbers_do_not_begin_at_one(tmp_path: Path) -> None:
    a, b = events("a/0", "s0 C1 s1"), events("b/0", "r1 C1")
    assert line(ask(write(tmp_path, b"#\n" + lines(a[1:]), b"#\n" + lines(b[1:])))) == {"a/0": 0, "b/0": 0}


def test_a_damaged_line_costs_what_comes_behind_it(tmp_path: Path) -> None:
    a = events("a/0", "s0 s1 C1", numbered=False)
    b = events("b/0", "r0 C1 r1 C2", numbered=False)
    answer = ask(write(tmp_path, a, lines(b[:2]) + b"#####\n" + lines(b[3:])))
    assert line(answer) == {"a/0": 1, "b/0": 1}
    assert found(answer, "bad-record").where[0].offset == len(lines(b[:2]))
    shared = ask(write(tmp_path / "one", lines(b[:2]) + b"#####\n" + lines(a, b[3:])))
    assert line(shared) == {"a/0": 0, "b/0": 0}  # it may have been a receive of a's


def test_a_torn_tail_is_an_earlier_crash(tmp_path: Path) -> None:
    a, b = events("a/0", "s0 C1", numbered=False), events("b/0", "r0 C1", numbered=False)
    write(tmp_path, lines(a) + b'{"event":', lines(b) + b'{"event":')
    assert line(ask(tmp_path)) == {"a/0": 1, "b/0": 1}
    survived = ask(tmp_path, failed=("a",))
    assert (survived.verdict, line(survived)) == ("indeterminate", {"a/0": 1, "b/0": 1})


@pytest.mark.parametrize("stored", [False, True])
def test_a_survivor_whose_events_are_damaged_is_treated_as_failed(tmp_path: Path, stored: bool) -> None:
    write(tmp_path, events("a/0", "s0 C1 s1"), lines(events("b/0", "r0 C1")) + b"#\n")
    if stored:
        (tmp_path / "checkpoints").mkdir()
        rows = [{"operator": "a", "checkpoint": 1, "sent": {AB: 1}}, {"operator": "b", "checkpoint": 1}]
        rows[1]["received"] = {AB: 1}
        (tmp_path / "checkpoints" / "all.jsonl").write_bytes(lines(rows))
    answer = ask(tmp_path, failed=("a",))
    assert (answer.exit_code, line(answer)) == (5, {"a/0": 1, "b/0": 1})
    assert found(answer, "no-current-state").subject == "b/0"
    assert line(ask(tmp_path, failed=("b",))) == {"a/0": None, "b/0": 1}


def test_nothing_that_can_be_read_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(CorruptInput):
        ask(write(tmp_path, b"#\n#\n"))
    with pytest.raises(NotFound):
        ask(write(tmp_path / "nothing", b"\n"))


def test_inspect_counts_events_by_kind(tmp_path: Path) -> None:
    write(tmp_path, events("a/0", "s0 s1 C1"), events("b/0", "r0 C1"))
    with open_run(str(tmp_path)) as run:
        result = plain(run.inspect().result)
    assert result["events"] == [
        {"event": "checkpoint", "records": 2},
        {"event": "receive", "records": 1},
        {"event": "send", "records": 2},
    ]
    assert result["channels"][0]["sent"] == 2
    assert "2 checkpoint records (uncoordinated) made of 5 raw events" in result["summary"]


def test_large_numbers_overflow_nothing(tmp_path: Path) -> None:
    top = 2**63 - 2
    a, b = events("a/0", f"s{top} C1"), events("b/0", f"r{top} C1")
    for record in (*a, *b):
        record |= {"lsn": top - 1 + record["lsn"], "subtask": 10**9 - 1}
    names = {"channel": "a/999999999->b/999999999"}
    answer = ask(
        write(
            tmp_path, [r | names if "channel" in r else r for r in a], [r | names if "channel" in r else r for r in b]
        )
    )
    assert list(line(answer).values()) == [1, 1]

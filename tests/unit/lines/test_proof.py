"""The proof of a line, on histories that can be checked by eye."""

from __future__ import annotations

from cklog.lines.proof import ChannelMarks, newer_line, refute

CHAIN = {
    "a/0->b/0": ChannelMarks("a/0", "b/0", [0, 2, 4], [0, 2, 4]),
    "b/0->c/0": ChannelMarks("b/0", "c/0", [0, 2, 4], [0, 1, 3]),
}
NEWEST = {"a/0": 2, "b/0": 2, "c/0": 2}


def test_orphans_are_named_by_channel_with_their_numbers() -> None:
    line = {"a/0": 0, "b/0": 1, "c/0": 2}
    assert refute(CHAIN, line) == [("a/0->b/0", 0, 2), ("b/0->c/0", 2, 3)]


def test_what_a_running_subtask_sent_is_no_orphan() -> None:
    assert refute({"a/0->b/0": ChannelMarks("a/0", "b/0", [0, 2], [0, 7])}, {"a/0": 1, "b/0": 1}, running={"a/0"}) == []


def test_raising_a_receiver_raises_its_senders_all_the_way_up() -> None:
    low = {"a/0": 0, "b/0": 0, "c/0": 0}
    pinned = {"a/0": 2, "b/0": 2, "c/0": 0}
    assert newer_line(CHAIN, low, NEWEST) == {"a/0": 1, "b/0": 0, "c/0": 0}
    assert newer_line(CHAIN, {"a/0": 2, "b/0": 1, "c/0": 0}, NEWEST) == {"a/0": 2, "b/0": 2, "c/0": 0}
    assert newer_line(CHAIN, pinned, NEWEST) == {"a/0": 2, "b/0": 2, "c/0": 1}
    assert newer_line(CHAIN, NEWEST, NEWEST) is None


def test_a_sender_that_has_no_newer_checkpoint_holds_its_receivers_back() -> None:
    line = {"a/0": 1, "b/0": 1, "c/0": 1}
    assert newer_line(CHAIN, line, {"a/0": 1, "b/0": 2, "c/0": 2}) is None
    assert newer_line(CHAIN, line, {"a/0": 1, "b/0": 2, "c/0": 2}, survivors={"a/0"}) == {
        "a/0": 1,
        "b/0": 2,
        "c/0": 1,
    }


def test_two_that_wait_for_each_other_are_raised_together_up_to_their_newest() -> None:
    ring = {
        "a/0->b/0": ChannelMarks("a/0", "b/0", [0, 2], [0, 2]),
        "b/0->a/0": ChannelMarks("b/0", "a/0", [0, 2], [0, 2]),
    }
    assert newer_line(ring, {"a/0": 0, "b/0": 0}, {"a/0": 1, "b/0": 1}) == {"a/0": 1, "b/0": 1}

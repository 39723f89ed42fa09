"""Useless checkpoints, the other kinds, failures over time and index audits: exact small cases through the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.native import checkpoint, write
from tests.conftest import SAMPLES
from tests.program import Ended, cklog

DOMINO = SAMPLES / "domino-cycle"
AB, BA = "a/0->b/0", "b/0->a/0"


def result(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended.out)["result"]
    return found


def ping_pong(folder: Path, **more: Any) -> Path:
    """a/0=1 lies between the answer that it got and the question that it sent: a Z-cycle of two messages."""
    a = checkpoint("a/0", 1, sent={AB: 0}, received={BA: 1}, **more)
    b = checkpoint("b/0", 1, sent={BA: 1}, received={AB: 1}, **more)
    write(folder, "checkpoints", [a, b])
    return folder


def test_figure_5_of_checkmate() -> None:
    """CheckMate, Figure 5: three of eight checkpoints are useless, five are rolled past."""
    found = result(cklog("z-cycles", DOMINO, "--json"))
    assert [(u["operator"], u["checkpoint"]) for u in found["useless"]] == [("op1", 2), ("op2", 2), ("op3", 2)]
    assert found["checkpoints"] == 8
    assert found["counts"] == {"useless": 3, "rolled_past": 5, "unusable": 5, "obsolete": 3}
    # m4 and m5 of the figure, then m3: each channel numbers its own messages from 0
    first = found["useless"][0]["witness"]
    assert [(m["channel"], m["seq"]) for m in first] == [("op1/0->op2/0", 1), ("op2/0->op3/0", 1), ("op3/0->op1/0", 0)]


def test_limits_and_single_witnesses() -> None:
    limited = result(cklog("z-cycles", DOMINO, "--limit", "1", "--json"))
    assert [u["witness"] is None for u in limited["useless"]] == [False, True, True]
    one = result(cklog("z-cycles", DOMINO, "--witness", "op2/0=2", "--json"))
    assert [u["operator"] for u in one["useless"]] == ["op2"]
    none = cklog("z-cycles", DOMINO, "--witness", "op2/0=1")
    assert none.code == 0
    assert none.out.startswith("op2/0=1 is on no Z-cycle")


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["--witness", "op9/0=1"], 66, "no subtask op9/0"),
        (["--witness", "op1/0=9"], 66, "no usable checkpoint 9"),
        (["--witness", "op1/0"], 2, "expected OP/SUB=CKPT"),
        (["--limit", "-1"], 2, "0 or more"),
        (["--audit-cic", "--witness", "op1/0=1"], 2, "not with --witness"),
        (["--audit-cic"], 66, "has an index"),
    ],
)
def test_what_cannot_be_asked(args: list[str], code: int, told: str) -> None:
    ended = cklog("z-cycles", DOMINO, *args)
    assert ended.code == code
    assert told in ended.err


def test_two_checkpoints_of_one_subtask_are_not_asked_for() -> None:
    ended = cklog("recovery-line", DOMINO, "--at", "op1/0=1,op1/0=2")
    assert (ended.code, "two checkpoints of one subtask" in ended.err) == (2, True)


@pytest.mark.parametrize("command", ["z-cycles", "graph", "compare"])
def test_micro_batches_and_output_queues_have_no_graph(command: str) -> None:
    more = [DOMINO] if command == "compare" else []
    for sample, told in (("spark-wordcount", "restarts as a whole"), ("cec-aggregate", "without checkpoints")):
        ended = cklog(command, SAMPLES / sample, *more)
        assert ended.code == 66
        assert told in ended.err


def test_an_acyclic_job_has_none_and_says_why() -> None:
    ended = cklog("z-cycles", SAMPLES / "uncoordinated-join")
    assert "None of 21 checkpoints is useless, nor can one be: the channels form no cycle." in ended.out


def test_at_names_the_z_path_that_forbids_it(tmp_path: Path) -> None:
    ended = cklog("recovery-line", ping_pong(tmp_path), "--at", "a/0=1")
    assert ended.code == 4
    assert "a/0=1 is on a Z-cycle: a/0 sent m0 after checkpoint 1, b/0 received it before checkpoint 1" in ended.out
    pair = cklog("recovery-line", DOMINO, "--at", "op1/0=1,op2/0=3")
    assert "a Z-path leads from op1/0=1 to op2/0=3" in pair.out


def test_the_earliest_line_through_a_choice() -> None:
    line = result(cklog("recovery-line", SAMPLES / "uncoordinated-join", "--at", "join/0=2", "--earliest", "--json"))
    chosen = {f"{e['operator']}/{e['subtask']}": e["checkpoint"] for e in line["line"]}
    assert chosen == {"join/0": 2, "join/1": 0, "orders/0": 2, "payments/0": 2, "sink/0": 0}
    offsets = cklog("replay", SAMPLES / "uncoordinated-join", "--at", "join/0=2", "--earliest", "--format", "kafka-csv")
    assert offsets.out == "orders,0,1017\npayments,0,1020\n"
    nothing = cklog("recovery-line", DOMINO, "--earliest")
    assert (nothing.code, "through which checkpoint" in nothing.err) == (2, True)


def test_failures_at_every_checkpoint_time_and_at_given_ones() -> None:
    every = result(cklog("recovery-line", DOMINO, "--failed-at", "all", "--json"))
    assert [m["rolled_past"] for m in every["moments"]] == [0, 0, 0, 1, 2, 3, 4, 5]
    assert (every["times"], every["worst"]["rolled_past"], every["total_dominoes"]) == (8, 5, 0)
    some = result(cklog("recovery-line", DOMINO, "--failed-at", "2026-01-01T00:00:12Z,1970-01-01", "--json"))
    assert [(m["stored"], m["rolled_past"]) for m in some["moments"]] == [(0, 0), (5, 2)]


@pytest.mark.parametrize(
    ("args", "told"),
    [(["--failed", "op1"], "a failure of everything"), (["--at", "op1/0=1"], "a failure of everything")],
)
def test_failures_over_time_are_of_everything(args: list[str], told: str) -> None:
    ended = cklog("recovery-line", DOMINO, "--failed-at", "all", *args)
    assert (ended.code, told in ended.err) == (2, True)


def test_a_history_without_times_has_no_moments(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [{"operator": "a", "checkpoint": 1, "sent": {AB: 1}}])
    ended = cklog("recovery-line", tmp_path, "--failed-at", "all")
    assert (ended.code, "no checkpoint record has a time" in ended.err) == (66, True)


def test_an_index_that_falls_is_named_with_its_message(tmp_path: Path) -> None:
    """a/0=1 (index 5) sends to b/0, which takes b/0=1 (index 3) after receiving it without a forced checkpoint."""
    a = checkpoint("a/0", 1, sent={AB: 0}, index=5)
    b = checkpoint("b/0", 1, received={AB: 1}, index=3)
    write(tmp_path, "checkpoints", [a, b])
    ended = cklog("z-cycles", tmp_path, "--audit-cic", "--json")
    assert ended.code == 3
    found = result(ended)
    assert (found["rule"], found["broken"], found["indexed"]) == ("none", 1, 2)
    assert found["breaches"][0]["end"] == {"operator": "b", "subtask": 0, "checkpoint": 1}
    assert [(m["channel"], m["seq"]) for m in found["breaches"][0]["path"]] == [(AB, 0)]
    told = cklog("z-cycles", tmp_path, "--audit-cic")
    assert "b/0=1 has index 3, not above 5 of a/0=1, from which a Z-path leads: a/0 sent m0" in told.out


def test_a_rising_index_and_one_that_rises_along_paths_only(tmp_path: Path) -> None:
    a = checkpoint("a/0", 1, sent={AB: 0}, index=5)
    write(tmp_path / "bcs", "checkpoints", [a, checkpoint("b/0", 1, received={AB: 1}, index=6)])
    assert result(cklog("z-cycles", tmp_path / "bcs", "--audit-cic", "--json"))["rule"] == "zigzag paths"
    b = [checkpoint("b/0", 1, received={AB: 0}, index=5), checkpoint("b/0", 2, received={AB: 1}, index=6)]
    write(tmp_path / "forced", "checkpoints", [a, *b])
    found = result(cklog("z-cycles", tmp_path / "forced", "--audit-cic", "--json"))
    assert (found["rule"], found["falling"], found["messages"]) == ("messages", 0, 1)


def test_checkpoints_without_an_index_are_counted(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1, index=1), checkpoint("a/0", 2), checkpoint("a/0", 3, index=1)])
    found = result(cklog("z-cycles", tmp_path, "--audit-cic", "--json"))
    assert (found["indexed"], found["not_indexed"], found["broken"]) == (2, 1, 1)


def test_initial_states_that_disagree_leave_only_the_useless_ones(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1, sent={AB: 0}), checkpoint("b/0", 0, received={AB: 3})])
    ended = cklog("z-cycles", tmp_path, "--json")
    assert ended.code == 4
    assert set(result(ended)["counts"]) == {"useless"}


def test_lost_records_leave_a_warning_and_an_unknown_message(tmp_path: Path) -> None:
    """b/0=2 is lost, and with it what b/0 had received by then: it counts as received, from whom is not known."""
    records = [checkpoint("a/0", n, sent={AB: n - 1}, received={BA: n}) for n in (1, 2, 3)]
    b = [checkpoint("b/0", 1, sent={BA: 2}, received={AB: 0}), checkpoint("b/0", 3, sent={BA: 9})]
    part = write(tmp_path, "checkpoints", [*records, *b])
    part.write_bytes(part.read_bytes() + b"{garbled\n")
    ended = cklog("z-cycles", tmp_path)
    assert ended.code == 3
    assert "delete nothing because of it" in ended.out
    assert "m? a/0->b/0" in ended.out

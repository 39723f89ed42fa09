"""Which of two positions comes first: by each system's own order, and unknown where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from cklog.errors import UsageError
from cklog.runs.connectors.taken import comes_again
from cklog.source_positions.gtids import NotGtids, gtids
from cklog.source_positions.positions import compare, system_of, unfinished_snapshot, words
from cklog.source_positions.retained import retained

U, V = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def at(file: str = "b.000002", pos: int = 10, **more: Any) -> dict[str, Any]:
    return {"file": file, "pos": pos, **more}


def lsn(commit: str, change: str | None = None, serial: int | None = None) -> dict[str, Any]:
    return {"commit_lsn": commit, "change_lsn": change} | ({} if serial is None else {"event_serial_no": serial})


L1, L2 = "00000027:00000ac0:0002", "00000027:00000ad0:0001"
ORDERS: list[tuple[dict[str, Any], dict[str, Any], int | None]] = [
    (at(), at(), 0),
    (at("b.000009", 900), at("b.000010", 4), -1),
    (at("b.999999", 4), at("b.1000000", 4), -1),
    (at(pos=900), at(pos=1000), -1),
    (at(event=2), at(event=10), -1),
    (at(event=2, row=3), at(event=2), 1),
    (at(), at("other.000009"), None),
    (at("relay"), at("relay"), None),
    (at(server_id=1), at(server_id=2, pos=99), None),
    (at(gtids=f"{U}:1-5"), at(gtids=f"{U}:1-7"), -1),
    (at(gtids=f"{U}:1-5"), at(gtids=f"{U}:1-3:5-7"), None),
    (at(gtids=f"{U}:1-5"), at(gtids=f"{V}:1-9"), None),
    (at("b.000009", gtids=f"{U}:1-5"), at("x.000001", gtids=f"{U}:1-5"), 0),
    (at(gtids=f"{U}:1-5", event=1), at(gtids=f"{U}:1-5"), 1),
    (at(gtids=f"{U}:1-5"), at(), None),
    (at(gtids=f"{U}:tag:1-5"), at(gtids=f"{U}:tag:1-5:7"), None),
    (at(gtids="0-1-270"), at(gtids="0-1-271,1-2-3"), -1),
    (at(gtids="0-1-270"), at(gtids="0-2-271"), None),
    ({"lsn": 9}, {"lsn": 10}, -1),
    ({"lsn": 99, "lsn_proc": 5}, {"lsn": 6, "lsn_proc": 6}, -1),
    ({"lsn": 300, "lsn_commit": 200}, {"lsn": 100, "lsn_commit": 250}, -1),
    (lsn(L1, L1), lsn(L2, L1), -1),
    (lsn(L1, L1, 1), lsn(L1, L1, 2), -1),
    (lsn(L1, L1, 2), lsn(L1, L1), None),
    (lsn(L1, "NULL"), lsn(L1, L1), None),
    (lsn(L1), lsn(L1 + "00", L1), None),
    ({"scn": "99", "commit_scn": None}, {"scn": "100"}, -1),
    ({"scn": "7", "commit_scn": "90:1:a"}, {"scn": "5", "commit_scn": "95:1:b"}, -1),
    ({"scn": "7", "commit_scn": "90:1:a,70:2:"}, {"scn": "5", "commit_scn": "95:1:b,60:2:"}, None),
    ({"lcr_position": "00ff"}, {"lcr_position": "0100"}, None),
    ({"sec": 9, "ord": 9}, {"sec": 10, "ord": 1}, -1),
    ({"resume_token": "82"}, {"resume_token": "83"}, None),
    ({"offset": 5}, {"offset": 6}, None),
    ({"offset": 5}, {"offset": 5}, 0),
    ({"offset": 5}, {"lsn": 6}, None),
]


@pytest.mark.parametrize(("one", "other", "order"), ORDERS)
def test_the_order_of_two_positions(one: dict[str, Any], other: dict[str, Any], order: int | None) -> None:
    assert compare(one, other) == order
    assert compare(other, one) == (None if order is None else -order)
    assert words(one)


@pytest.mark.parametrize("text", ["x", f"{U}", f"{U}:", f"{U}:0", f"{U}:5-3", f"{U}:1-", "0-1-2,0-1-3", f"{U}:1,0-1-2"])
def test_what_is_no_set_of_transactions(text: str) -> None:
    with pytest.raises(NotGtids):
        gtids(text)


def test_a_set_with_tags_is_refused_by_name() -> None:
    with pytest.raises(NotGtids, match="tag billing"):
        gtids(f"{U}:1-5:billing:1-3")


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        (at(snapshot=True), "initial"),
        (at(snapshot="true"), "initial"),
        (at(snapshot="INITIAL", snapshot_completed=False), "initial"),
        (at(snapshot="INITIAL", snapshot_completed=True), ""),
        ({"lsn": 5, "snapshot": True, "last_snapshot_record": True}, ""),
        ({"lsn": 5, "snapshot": "BLOCKING"}, "blocking"),
        ({"sec": 5, "ord": 1, "initsync": True}, "initial"),
        (at(snapshot=False), ""),
        (at(), ""),
    ],
)
def test_whether_a_snapshot_was_finished(offset: dict[str, Any], kind: str) -> None:
    assert unfinished_snapshot(offset) == kind


HELD: list[tuple[dict[str, Any], str, bool | None]] = [
    (at("b.000123", 4), "b.000123:4", True),
    (at("b.000123", 4), "b.000124:4", False),
    (at("b.000123", 900), "b.000123:1000", False),
    (at("b.000123", 4), "c.000001:4", None),
    (at(gtids=f"{U}:1-77"), f"{U}:1-50", True),
    (at(gtids=f"{U}:1-77"), f"{U}:1-80", False),
    (at(gtids=f"{U}:1-77"), f"{V}:1-3", False),
    (at(gtids=f"{U}:1-77"), "b.000001:4", None),
    (at(), f"{U}:1-50", None),
    ({"lsn": 38723552}, "0/24EDFE0", True),
    ({"lsn": 38723552}, "0/24EDFE1", False),
    (lsn(L1), L1, True),
    (lsn(L1), L2, False),
    (lsn(L1), "0x" + L2.replace(":", ""), False),
    ({"scn": "100"}, "100", True),
    ({"scn": "100"}, "101", False),
    ({"lcr_position": "00ff"}, "101", None),
    ({"sec": 100, "ord": 3}, "100:3", True),
    ({"sec": 100, "ord": 3}, "101", False),
    ({"offset": 5}, "5", None),
]


@pytest.mark.parametrize(("offset", "told", "held"), HELD)
def test_whether_the_source_still_has_a_position(offset: dict[str, Any], told: str, held: bool | None) -> None:
    assert retained(offset, told).held is held
    assert retained(offset, told).because


@pytest.mark.parametrize(
    ("offset", "told"),
    [(at(), "yesterday"), ({"lsn": 5}, "x"), (lsn(L1), "z"), ({"scn": 1}, "x"), ({"sec": 1, "ord": 1}, "x")],
)
def test_what_is_no_position_of_the_system_is_a_question_of_usage(offset: dict[str, Any], told: str) -> None:
    assert system_of(offset) != "other"
    with pytest.raises(UsageError):
        retained(offset, told)


AGAIN: list[tuple[dict[str, Any], dict[str, Any], bool | None]] = [
    (at(pos=100), at(pos=100), True),
    (at(pos=100), at(pos=99), False),
    (at(pos=100), at("x.000001"), None),
    (at(gtids=f"{U}:1-7"), {"gtid": f"{U}:7"}, False),
    (at(gtids=f"{U}:1-7"), {"gtid": f"{U}:8"}, True),
    (at(gtids=f"{U}:1-7"), {"gtid": None}, None),
    ({"lsn": 50}, {"lsn": 50}, False),
    ({"lsn": 50}, {"lsn": 51}, True),
    ({"lsn": 50, "lsn_commit": 40}, {"lsn": 45, "sequence": '["60","45"]'}, True),
    ({"lsn": 50, "lsn_commit": 40}, {"lsn": 45, "sequence": '["40","45"]'}, False),
    (lsn(L1, L1, 1), lsn(L1, L1, 1), False),
    (lsn(L1, L1, 1), lsn(L1, L1, 2), True),
    ({"sec": 5, "ord": 2}, {"ts_ms": 5000, "ord": 3}, True),
    ({"offset": 5}, {"lsn": 6}, None),
]


@pytest.mark.parametrize(("offset", "source", "again"), AGAIN)
def test_whether_a_record_comes_once_more(offset: dict[str, Any], source: dict[str, Any], again: bool | None) -> None:
    assert comes_again(offset, source) is again

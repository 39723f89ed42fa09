"""The sizes of the testbed's messages, held against messages that its own classes pickled."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest

from cklog.simulate.dataflow.wire import AUCTION, BID, PERSON, Entity, hmnr_bytes, message, pickled

TAG = b"\0\2"


class Recorded:
    """An object of a class of the testbed, which is not here."""


class Reader(pickle.Unpickler):
    """Reads a message whose only class is the one of a NexMark record."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.entity = ""

    def find_class(self, module: str, name: str) -> Any:
        assert module == "universalis.nexmark.entities"
        self.entity = name
        return Recorded


def frames(log: Path) -> list[tuple[int, Any, str]]:
    """Of each message of a sender's log: its size, the message, and the class of its record."""
    data, found = io.BytesIO(log.read_bytes()), []
    while (begun := data.tell()) < len(data.getbuffer()):
        assert data.read(2) == TAG
        reader = Reader(data)
        content = reader.load()
        found.append((data.tell() - begun, content, reader.entity))
    return found


@pytest.mark.parametrize("sample", ["checkmate-q1", "checkmate-q3"])
def test_a_message_is_as_large_as_the_testbed_logged_it(sample: str, shared_data: Path) -> None:
    """To the byte, of bids, persons, auctions and results, for the same values."""
    kinds = set()
    for log in sorted((shared_data / "engine-verified" / sample).glob("worker-*-logs/*.bin")):
        for size, content, entity in frames(log):
            told = content["__MSG__"]
            params = tuple(Entity(entity, vars(p)) if isinstance(p, Recorded) else p for p in told["__PARAMS__"])
            again = message(
                told["__SENT_FROM__"]["operator_name"],
                told["__OP_NAME__"],
                told["__FUN_NAME__"],
                params,
                key=told["__KEY__"],
                request=told["__RQ_ID__"],
                time=told["__TIMESTAMP__"],
                **told["__SENT_TO__"],
            )
            assert size == len(TAG) + pickled(again), log
            kinds.add(entity)
    assert kinds == ({"Bid", ""} if sample == "checkmate-q1" else {"Auction", "Person", ""})


def test_records_are_as_large_as_the_generator_makes_them() -> None:
    """Beam's NexMark fills each up to 100, 200 or 500 bytes on average, numbers counted as 8 (a city as its text)."""
    for entity, size in ((BID, 100), (PERSON, 200), (AUCTION, 500)):
        counted = [len(v) if isinstance(v, str) else 8 for name, v in entity.fields.items() if name != "dateTime"]
        assert sum(counted) + 8 * (entity is not PERSON) == size + 8 * (entity is AUCTION)


def test_hmnr_adds_what_its_tables_pickle_to() -> None:
    """About 600 bytes for 30 instances and 2,520 for 150: three values for each instance, and the names once."""
    names = ("bidsSource", "count", "sink")
    assert hmnr_bytes(names, 10) == pytest.approx(600, rel=0.03)
    assert hmnr_bytes(names, 50) == pytest.approx(2520, rel=0.01)
    whole = {w: {name: bool(w % 2) for name in names} for w in range(1, 51)}
    counts = {w: dict.fromkeys(names, w % 7) for w in range(1, 51)}
    copies = [{w: dict(of) for w, of in table.items()} for table in (whole, whole, counts)]
    tables = dict(zip(("__GREATER__", "__TAKEN__", "__CHECKPOINT_CLOCKS__"), copies, strict=True))
    alone = len(pickle.dumps({"__LC__": 17, **tables}, 4))
    assert hmnr_bytes(names, 50) == pytest.approx(alone + len("__CIC_DETAILS__"), abs=15)  # less a frame of its own

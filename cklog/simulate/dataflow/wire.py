"""How large the messages of CheckMate's testbed are, from what it pickles.

A message is a pickled dict: what to call on which partition of which operator, the arguments, from whom and to whom.
NexMark's records travel as objects of the testbed's own classes, so each brings the names of its class and of its
fields; results travel as tuples. HMNR adds its logical clock and three tables, each a dict by worker of a dict by
operator. Sizes are taken by pickling such dicts of typical values: strings as long as Beam's NexMark generator makes
them on average (persons of 200, auctions of 500, bids of 100 bytes), and numbers of the usual five bytes. Nothing is
fitted to a result.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_PICKLE = 4
"""The pickle protocol of the testbed's Python."""

_TAG_BYTES = 2
"""In front of the pickle: which serializer it was."""

_NUMBER = 100_000
"""An id, a price or a time: five bytes in a pickle."""

_MODULE = "universalis.nexmark.entities"


@dataclass(frozen=True, slots=True)
class Entity:
    """A record of NexMark as an object of the testbed's class `name`, with the values of its fields."""

    name: str
    fields: dict[str, Any]

    def reference_bytes(self) -> int:
        """Return what the pickled object has beside the dict of its fields: its class by name, and opcodes.

        Two short strings (2 bytes and the text, memoized: 1), the class found (1) and memoized (1), no arguments (1),
        the object made (1) and memoized (1), its fields set (1).
        """
        return (3 + len(_MODULE)) + (3 + len(self.name)) + 6

    def as_row(self) -> tuple[tuple[str, Any], ...]:
        """Return the pairs of field and value, which is how joins keep and send it."""
        return tuple(self.fields.items())


BID = Entity("Bid", {"auction": _NUMBER, "bidder": _NUMBER, "price": _NUMBER, "dateTime": _NUMBER, "extra": "x" * 68})

AUCTION = Entity(
    "Auction",
    {
        "id": _NUMBER,
        "itemName": "n" * 11,
        "description": "d" * 51,
        "initialBid": _NUMBER,
        "reserve": _NUMBER,
        "dateTime": _NUMBER,
        "expires": _NUMBER,
        "seller": _NUMBER,
        "category": 12,
        "extra": "x" * 390,
    },
)

PERSON = Entity(
    "Person",
    {
        "id": _NUMBER,
        "name": "n" * 11,
        "emailAddress": "e" * 13,
        "creditCard": "c" * 19,
        "city": "x" * 7,
        "state": "OR",
        "dateTime": _NUMBER,
        "extra": "x" * 140,
    },
)


def pickled(value: Any) -> int:
    """Return the size of a pickled value; entities may be anywhere in its tuples.

    >>> pickled((BID,)) - pickled((BID.fields,)) == BID.reference_bytes()
    True
    """
    return len(pickle.dumps(_without_classes(value), _PICKLE)) + _references(value)


def _without_classes(value: Any) -> Any:
    """The value with dicts of fields in place of the objects, whose classes are not here."""
    if isinstance(value, Entity):
        return value.fields
    if isinstance(value, tuple):
        return tuple(_without_classes(part) for part in value)
    if isinstance(value, dict):
        return {name: _without_classes(part) for name, part in value.items()}
    return value


def _references(value: Any) -> int:
    if isinstance(value, Entity):
        return value.reference_bytes()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return sum(_references(part) for part in parts)


def message(
    sender: str,
    receiver: str,
    function: str,
    params: tuple[Any, ...],
    *,
    key: Any = _NUMBER,
    request: bytes = b"\xcf" + b"r" * 8,
    time: int = 1_700_000_000_000,
    host: str = "172.18.0.10",
    port: int = 8888,
) -> dict[str, Any]:
    """Return a message between two operators as the testbed has it before it pickles it.

    The request id is a number of 64 bits in MessagePack, as the testbed's generator makes it.
    """
    return {
        "__COM_TYPE__": "RUN_FUN_REMOTE",
        "__MSG__": {
            "__OP_NAME__": receiver,
            "__PARTITION__": 5,
            "__KEY__": key,
            "__FUN_NAME__": function,
            "__PARAMS__": params,
            "__TIMESTAMP__": time,
            "__RQ_ID__": request,
            "__SENT_FROM__": {
                "operator_name": sender,
                "operator_partition": 5,
                "sender_id": 5,
                "kafka_offset": None,
            },
            "__SENT_TO__": {"host": host, "port": port},
            "__REC_CYC__": 0,
        },
    }


def message_bytes(sender: str, receiver: str, function: str, *params: Any) -> int:
    """Return the size of a message between two operators, without what a protocol adds.

    >>> message_bytes("bidsSource", "currencyMapper", "dollarToEuro", BID)
    572
    """
    return _TAG_BYTES + pickled(message(sender, receiver, function, params))


def hmnr_bytes(operators: Sequence[str], workers: int) -> int:
    """Return what HMNR adds to every message: the name of the member, the logical clock and three tables.

    >>> hmnr_bytes(("bidsSource", "currencyMapper", "sink"), 10)
    606
    """
    values = (("__GREATER__", True), ("__TAKEN__", True), ("__CHECKPOINT_CLOCKS__", 9))
    tables = {name: {w: dict.fromkeys(operators, of) for w in range(1, workers + 1)} for name, of in values}
    details = {"__LC__": 9, **tables}
    bare, full = message("a", "b", "c", ()), message("a", "b", "c", ())
    full["__MSG__"]["__CIC_DETAILS__"] = details
    return pickled(full) - pickled(bare)

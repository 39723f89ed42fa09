"""Dumps as the CheckMate testbed leaves them, made with Python's own pickler from a few words about a run."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

START = 1_700_000_000_000
BUCKET = "universalis-snapshots"
Marks = Mapping[str, int]


def put_snapshot(
    folder: Path,
    worker: int,
    operator: str,
    stamp: int,
    sent: Marks | None = None,
    received: Marks | None = None,
    taken: Marks | None = None,
    state: Any = None,
    clock: int | None = None,
) -> Path:
    """One object. Numbers are those of last messages; no `sent` and no `received` makes a coordinated one."""
    body: dict[str, Any] = {"local_state_data": {} if state is None else state}
    if sent is not None or received is not None:
        body |= {"last_messages_sent": dict(sent or {}), "last_messages_processed": dict(received or {})}
    if taken:
        body["last_kafka_consumed"] = dict(taken)
    if clock is not None:
        body["cic_clock"] = clock
    path = folder / BUCKET / f"snapshot_{worker}_{operator}_{stamp}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(body))
    return path


def put_log(folder: Path, worker: int, channel: str, counters: Sequence[int], times: Sequence[int] = ()) -> Path:
    """The log of a channel: a message for each recovery counter."""
    path = folder / f"worker-{worker}-logs" / f"{channel}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(framed(message(i, counter, times[i : i + 1])) for i, counter in enumerate(counters)))
    return path


def message(number: int, counter: int, time: Sequence[int] = ()) -> dict[str, Any]:
    """What is logged of a message."""
    return {
        "__COM_TYPE__": "RUN_FUN_REMOTE",
        "__MSG__": {
            "__RQ_ID__": number.to_bytes(8, "big"),
            "__OP_NAME__": "next",
            "__FUN_NAME__": "run",
            "__KEY__": number % 7,
            "__PARTITION__": 0,
            "__TIMESTAMP__": time[0] if time else START + number,
            "__PARAMS__": ({"auction": number, "seller": f"person {number % 5}"}, 0.5),
            "__SENT_FROM__": {"operator_name": "a", "operator_partition": 0, "sender_id": 1, "kafka_offset": None},
            "__SENT_TO__": {"host": "worker", "port": 5000},
            "__REC_CYC__": counter,
        },
    }


def framed(value: Any) -> bytes:
    """A record of a log."""
    return b"\x00\x02" + pickle.dumps(value)

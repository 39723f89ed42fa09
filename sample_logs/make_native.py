"""Make the native samples: `python sample_logs/make_native.py`. The same bytes every time.

domino-cycle             Figure 5 of the CheckMate paper, event by event
uncoordinated-join       two sources, two join subtasks, a sink; every subtask checkpoints when it likes
uncoordinated-join-parquet   the same records as Parquet, with Hadoop checksum side files
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from cklog.model.schemas import CHECKPOINTS, EVENTS, MESSAGES

HERE = Path(__file__).parent
START = 1_767_225_600_000  # 2026-01-01T00:00:00Z
Record = dict[str, Any]

FIGURE_5 = {  # C: a checkpoint, s: send, r: receive (paper, Figure 5)
    "op1": "C1 s(m1) r(m3) C2 s(m4) r(m6) C3",
    "op2": "C1 r(m1) s(m2) C2 r(m4) s(m5) C3",
    "op3": "C1 r(m2) s(m3) r(m5) C2 s(m6)",
}
RING = {"op1": "op2", "op2": "op3", "op3": "op1"}
IN_TIME = "op1:C1 op2:C1 op3:C1 op1:s(m1) op2:r(m1) op2:s(m2) op3:r(m2) op3:s(m3) op1:r(m3) op1:C2 op2:C2 \
op1:s(m4) op2:r(m4) op2:s(m5) op3:r(m5) op3:C2 op3:s(m6) op1:r(m6) op1:C3 op2:C3"


def line(record: Record) -> bytes:
    """A JSON line that ends with the CRC-32C of what comes before."""
    body = json.dumps(record, separators=(",", ":"))[:-1].encode()
    return body + b',"crc32c":"%08x"}\n' % crc32c.crc32c(body)


def write_jsonl(path: Path, records: Iterable[Record]) -> None:
    """Write records as lines with checksums."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(line, records)))
    write_checksums(path)


def write_parquet(path: Path, records: list[Record], schema: pa.Schema) -> None:
    """Write records as Parquet with page checksums, and a Hadoop checksum file beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{f.name: _arrow(record.get(f.name), f) for f in schema} for record in records]
    used = [f for f in schema if any(row[f.name] is not None for row in rows)]
    table = pa.Table.from_pylist(rows, schema=pa.schema(used))
    pq.write_table(table, path, compression="zstd", store_schema=False, write_page_checksum=True)
    write_checksums(path)


def write_checksums(path: Path) -> None:
    """A Hadoop checksum file beside `path`: with it, a file that was cut between two lines is seen to be cut."""
    data = path.read_bytes()
    sums = (zlib.crc32(data[i : i + 512]) for i in range(0, len(data), 512))
    side = b"crc\0" + struct.pack(">I", 512) + b"".join(struct.pack(">I", s) for s in sums)
    path.with_name(f".{path.name}.crc").write_bytes(side)


def _arrow(value: Any, field: pa.Field) -> Any:
    return sorted(value.items()) if pa.types.is_map(field.type) and value is not None else value


class Execution:
    """A run as it happens: every subtask's watermarks, and the records that it would leave."""

    def __init__(self) -> None:
        self.now = START
        self.sent: dict[str, int] = {}
        self.received: dict[str, int] = {}
        self.sources: dict[str, int] = {}
        self.checkpoints: dict[str, list[Record]] = {}
        self.messages: dict[str, list[Record]] = {}
        self.events: dict[str, list[Record]] = {}

    def send(self, sender: str, receiver: str, size: int = 100) -> int:
        """The next message of a channel: logged, and an event of the sender."""
        channel = f"{sender}->{receiver}"
        seq = self.sent.get(channel, 0)
        self.sent[channel] = seq + 1
        self.messages.setdefault(sender.split("/")[0], []).append(
            {"channel": channel, "seq": seq, "time": self.now, "bytes": size}
        )
        self._event(sender, {"event": "send", "channel": channel, "seq": seq, "bytes": size})
        return seq

    def receive(self, sender: str, receiver: str) -> None:
        """The next message of a channel arrives."""
        channel = f"{sender}->{receiver}"
        seq = self.received.get(channel, 0)
        self.received[channel] = seq + 1
        self._event(receiver, {"event": "receive", "channel": channel, "seq": seq})

    def checkpoint(self, subtask: str, number: int, **more: Any) -> None:
        """A local checkpoint with the watermarks of now."""
        operator, index = subtask.split("/")
        record: Record = {"operator": operator, "subtask": int(index), "checkpoint": number, "time": self.now}
        sent = {c: n for c, n in sorted(self.sent.items()) if c.startswith(f"{subtask}->")}
        received = {c: n for c, n in sorted(self.received.items()) if c.endswith(f"->{subtask}")}
        record |= {"sent": sent} if sent else {}
        record |= {"received": received} if received else {}
        self.checkpoints.setdefault(operator, []).append(record | more)
        self._event(subtask, {"event": "checkpoint", "checkpoint": number})

    def _event(self, subtask: str, event: Record) -> None:
        operator, index = subtask.split("/")
        rows = self.events.setdefault(operator, [])
        lsn = sum(1 for row in rows if row["subtask"] == int(index))
        rows.append({"operator": operator, "subtask": int(index), "lsn": lsn, **event, "time": self.now})


def domino_cycle() -> Execution:
    """Figure 5, in one order of time that agrees with the three local orders."""
    run = Execution()
    done: dict[str, list[str]] = {op: [] for op in FIGURE_5}
    for step in IN_TIME.split():
        op, _, what = step.partition(":")
        done[op].append(what)
        run.now += 1000
        if what[0] == "C":
            run.checkpoint(f"{op}/0", int(what[1:]), bytes=4096)
        elif what[0] == "s":
            run.send(f"{op}/0", f"{RING[op]}/0")
        else:
            run.receive(f"{next(a for a, b in RING.items() if b == op)}/0", f"{op}/0")
    assert {op: " ".join(steps) for op, steps in done.items()} == FIGURE_5
    return run


def uncoordinated_join() -> Execution:
    """Orders and payments, joined by key in two subtasks, into one sink."""
    rng = random.Random(20260101)
    run = Execution()
    edges = [(f"{s}/0", f"join/{j}") for s in ("orders", "payments") for j in (0, 1)]
    edges += [(f"join/{j}", "sink/0") for j in (0, 1)]
    taken: dict[str, int] = {"orders": 0, "payments": 0}
    number = dict.fromkeys(("orders/0", "payments/0", "join/0", "join/1", "sink/0"), 0)
    due = {subtask: START + rng.randint(3_000, 5_000) for subtask in number}
    for _ in range(110):
        run.now += rng.randint(100, 300)
        source = rng.choice(["orders", "payments"])
        taken[source] += 1
        run.send(f"{source}/0", f"join/{rng.randrange(2)}", rng.randint(60, 240))
        for sender, receiver in edges:
            channel = f"{sender}->{receiver}"
            waiting = run.sent.get(channel, 0) - run.received.get(channel, 0)
            if waiting > rng.randrange(4):
                run.receive(sender, receiver)
                if receiver.startswith("join") and rng.random() < 0.6:
                    run.send(receiver, "sink/0", rng.randint(100, 300))
        for subtask in sorted(due):
            if run.now >= due[subtask]:
                due[subtask] += rng.randint(3_000, 6_000)
                number[subtask] += 1
                name = subtask.split("/")[0]
                more: Record = {
                    "kind": "local",
                    "duration_ms": rng.randint(20, 90),
                    "bytes": rng.randint(2, 60) * 1024,
                }
                more |= {"sources": {f"{name}-0": 1000 + taken[name]}} if name in taken else {}
                run.checkpoint(subtask, number[subtask], uri=f"ck/{subtask}/{number[subtask]}", **more)
    return run


def write(run: Execution, folder: Path, job: Record, parquet: bool = False) -> None:
    """One run folder: a file per operator in each place."""
    for place, by_operator, schema in (
        ("checkpoints", run.checkpoints, CHECKPOINTS),
        ("channels", run.messages, MESSAGES),
        ("events", run.events, EVENTS),
    ):
        for operator, records in sorted(by_operator.items()):
            if parquet:
                write_parquet(folder / place / f"{operator}.parquet", records, schema)
            else:
                write_jsonl(folder / place / f"{operator}.jsonl", records)
    (folder / "job.json").write_bytes(line(job))


def main() -> None:
    """Write the three samples."""
    ring = {"job": "domino", "operators": [{"name": op, "parallelism": 1} for op in FIGURE_5]}
    write(domino_cycle(), HERE / "domino-cycle", ring)
    operators = {"orders": 1, "payments": 1, "join": 2, "sink": 1}
    job = {"job": "join", "operators": [{"name": n, "parallelism": p} for n, p in operators.items()]}
    write(uncoordinated_join(), HERE / "uncoordinated-join", job)
    write(uncoordinated_join(), HERE / "uncoordinated-join-parquet", job, parquet=True)


if __name__ == "__main__":
    main()

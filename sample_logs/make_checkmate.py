"""Make sample_logs/checkmate-uncoordinated: `python sample_logs/make_checkmate.py`. The same bytes every time.

A dump as the CheckMate testbed leaves it: auctions and bids are joined, two workers host a partition of each operator,
and every worker takes the snapshots of its operators when it likes. Made without the testbed, in its layout.
"""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "checkmate-uncoordinated"
START = 1_767_225_600_000  # 2026-01-01T00:00:00Z
WORKERS = (1, 2)
EDGES = (("auctions", "join"), ("bids", "join"), ("join", "sink"))
OPERATORS = ("auctions", "bids", "join", "sink")
TAG = b"\x00\x02"  # what follows is a pickle
STEPS = 260
PROTOCOL = 4


class Job:
    """The job as it runs: numbers of last messages by channel, -1 for none; `fresh` those since a snapshot."""

    def __init__(self) -> None:
        self.now = START
        self.sent = {self.channel(a, i, b, j): -1 for a, b in EDGES for i in WORKERS for j in WORKERS}
        self.received = dict.fromkeys(self.sent, -1)
        self.fresh: dict[tuple[int, str], dict[str, int]] = {(w, op): {} for w in WORKERS for op in OPERATORS}
        self.taken = {(w, op): -1 for w in WORKERS for op in ("auctions", "bids")}
        self.seen = {(w, op): 0 for w in WORKERS for op in OPERATORS}

    @staticmethod
    def channel(sender: str, i: int, receiver: str, j: int) -> str:
        """The testbed's name: worker w has partition w - 1."""
        return f"{sender}_{receiver}_{(i - 1) * len(WORKERS) + j - 1}"

    def send(self, sender: str, i: int, receiver: str, j: int) -> None:
        """The next message of a channel, logged by its sender."""
        name = self.channel(sender, i, receiver, j)
        self.sent[name] += 1
        message = {
            "__OP_NAME__": receiver,
            "__FUN_NAME__": "run",
            "__KEY__": self.sent[name],
            "__PARTITION__": j - 1,
            "__TIMESTAMP__": self.now,
            "__PARAMS__": (f"{sender} {self.sent[name]}",),
            "__SENT_FROM__": {
                "operator_name": sender,
                "operator_partition": i - 1,
                "sender_id": i,
                "kafka_offset": None,
            },
            "__SENT_TO__": {"host": f"worker-{j}", "port": 5000},
            "__REC_CYC__": 0,
        }
        with (HERE / f"worker-{i}-logs" / f"{name}.bin").open("ab") as log:
            log.write(TAG + pickle.dumps({"__COM_TYPE__": "RUN_FUN_REMOTE", "__MSG__": message}, PROTOCOL))

    def receive(self, sender: str, i: int, receiver: str, j: int) -> bool:
        """Take the next message of a channel, if there is one."""
        name = self.channel(sender, i, receiver, j)
        if self.received[name] >= self.sent[name]:
            return False
        self.received[name] += 1
        self.fresh[j, receiver][name] = self.received[name]
        self.seen[j, receiver] += 1
        return True

    def snapshot(self, worker: int) -> None:
        """One object for each operator of a worker."""
        for operator in OPERATORS:
            body: dict[str, Any] = {
                "local_state_data": {"seen": self.seen[worker, operator]},
                "last_messages_sent": {
                    self.channel(a, worker, b, j): self.sent[self.channel(a, worker, b, j)]
                    for a, b in EDGES
                    for j in WORKERS
                    if a == operator
                },
                "last_messages_processed": dict(self.fresh[worker, operator]),
            }
            self.fresh[worker, operator] = {}
            if (worker, operator) in self.taken:
                body["last_kafka_consumed"] = {str(worker - 1): self.taken[worker, operator]}
            name = f"snapshot_{worker}_{operator}_{self.now}.bin"
            (HERE / "universalis-snapshots" / name).write_bytes(pickle.dumps(body, PROTOCOL))


def run(rng: random.Random) -> None:
    """Everything happens in small steps; a worker's snapshots are 4 to 6 seconds apart."""
    job = Job()
    due = {w: START + rng.randint(3_000, 6_000) for w in WORKERS}
    for _ in range(STEPS):
        job.now += rng.randint(40, 120)
        source, worker = rng.choice(["auctions", "bids"]), rng.choice(WORKERS)
        if rng.random() < 0.5:
            job.taken[worker, source] += 1
            job.send(source, worker, "join", rng.choice(WORKERS))
        for sender, receiver in EDGES:
            i, j = rng.choice(WORKERS), rng.choice(WORKERS)
            if rng.random() < 0.7 and job.receive(sender, i, receiver, j) and receiver == "join" and rng.random() < 0.5:
                job.send("join", j, "sink", rng.choice(WORKERS))
        for w in WORKERS:
            if job.now >= due[w]:
                due[w] += rng.randint(4_000, 6_000)
                job.snapshot(w)


def main() -> None:
    """Write the dump anew: objects and logs of an earlier one are replaced."""
    for folder in ("universalis-snapshots", *(f"worker-{w}-logs" for w in WORKERS)):
        (HERE / folder).mkdir(parents=True, exist_ok=True)
        for path in (HERE / folder).glob("*.bin"):
            path.unlink()
    for a, b in EDGES:
        for i in WORKERS:
            for j in WORKERS:
                (HERE / f"worker-{i}-logs" / f"{Job.channel(a, i, b, j)}.bin").touch()
    run(random.Random(20260104))


if __name__ == "__main__":
    main()

"""Make the sample of raw events: `python sample_logs/make_raw_events.py`. The same bytes every time.

raw-events   a pipeline that logs sends, receives and checkpoints, and no watermarks; express orders overtake others
"""

from __future__ import annotations

import random
from pathlib import Path

from make_native import START, Record, line, write_jsonl

HERE = Path(__file__).parent
SEED = 11
OPERATORS = {"orders": 1, "route": 2, "pack": 1}
ROUTED = ("route/0->pack/0", "route/1->pack/0")


class Log:
    """Every subtask's events in its own order, the channels' messages, and what is under way."""

    def __init__(self) -> None:
        self.now = START
        self.events: dict[str, list[Record]] = {}
        self.messages: dict[str, list[Record]] = {}
        self.sent: dict[str, int] = {}
        self.waiting: dict[str, list[int]] = {}

    def event(self, subtask: str, **what: object) -> None:
        """The next event of a subtask."""
        operator, index = subtask.split("/")
        rows = self.events.setdefault(operator, [])
        lsn = sum(row["subtask"] == int(index) for row in rows)
        about = {"operator": operator, "subtask": int(index), "lsn": lsn}
        rows.append({**about, **what, "time": self.now})

    def send(self, channel: str, size: int) -> None:
        """The next message of a channel: logged, and under way."""
        sender, _, _ = channel.partition("->")
        seq = self.sent.get(channel, 0)
        self.sent[channel] = seq + 1
        self.waiting.setdefault(channel, []).append(seq)
        self.event(sender, event="send", channel=channel, seq=seq, bytes=size)
        message = {"channel": channel, "seq": seq, "time": self.now, "bytes": size}
        self.messages.setdefault(sender.split("/")[0], []).append(message)

    def receive(self, channel: str, which: int = 0) -> None:
        """A message under way arrives: by default the oldest."""
        _, _, receiver = channel.partition("->")
        self.event(receiver, event="receive", channel=channel, seq=self.waiting[channel].pop(which))


def pipeline() -> Log:
    """Orders are routed by two subtasks and packed by one, which takes express orders of route/1 first."""
    rng = random.Random(SEED)
    log = Log()
    taken = dict.fromkeys(("orders/0", "route/0", "route/1", "pack/0"), 0)
    due = {subtask: START + rng.randint(2_000, 5_000) for subtask in taken}
    while log.now < START + 20_000:
        log.now += rng.randint(50, 400)
        router = rng.randrange(2)
        log.send(f"orders/0->route/{router}", rng.randint(60, 240))
        for i in (0, 1):
            channel = f"orders/0->route/{i}"
            if log.waiting.get(channel) and rng.random() < 0.6:
                log.receive(channel)
                log.send(ROUTED[i], rng.randint(100, 300))
        for channel in ROUTED:
            under_way = len(log.waiting.get(channel, ()))
            if under_way > 1 and rng.random() < 0.7:
                log.receive(channel, under_way - 1 if channel == ROUTED[1] and rng.random() < 0.5 else 0)
        for subtask in sorted(due):
            if log.now >= due[subtask]:
                due[subtask] += rng.randint(2_500, 5_000)
                taken[subtask] += 1
                log.event(subtask, event="checkpoint", checkpoint=taken[subtask])
    return log


def main() -> None:
    """Write the sample: a file per operator, the manifest."""
    folder, log = HERE / "raw-events", pipeline()
    for place, by_operator in (("events", log.events), ("channels", log.messages)):
        for operator, records in sorted(by_operator.items()):
            write_jsonl(folder / place / f"{operator}.jsonl", records)
    operators: list[Record] = [{"name": name, "parallelism": n} for name, n in OPERATORS.items()]
    operators[0]["kind"] = "source"
    (folder / "job.json").write_bytes(line({"job": "packing", "operators": operators}))


if __name__ == "__main__":
    main()

"""Token rounds as they happen: a random application of HAUs, event by event, in either variant of Meteor Shower."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

Record = dict[str, Any]
Channel = tuple[int, int]


@dataclass(frozen=True)
class Event:
    """`kind`: preserve, send, receive (channel), sent, received (token: channel, round), begun, stored (hau, round)."""

    kind: str
    hau: int = -1
    channel: Channel = (-1, -1)
    round: int = -1


@dataclass
class Application:
    """HAUs 0 … n-1 and channels from lower to higher ones; `events` in the order in which they happened."""

    haus: int
    channels: list[Channel]
    parallel: bool
    events: list[Event] = field(default_factory=list)

    @property
    def sources(self) -> list[int]:
        return [i for i in range(self.haus) if not self.into(i)]

    def into(self, hau: int) -> list[Channel]:
        return [c for c in self.channels if c[1] == hau]

    def out_of(self, hau: int) -> list[Channel]:
        return [c for c in self.channels if c[0] == hau]


class _Running:
    """An application in motion: its queues, what each HAU waits for, and the actions that are possible."""

    def __init__(self, of: Application, random: Random) -> None:
        self._of, self._random = of, random
        self._queue: dict[Channel, deque[int]] = {c: deque() for c in of.channels}  # 0: a tuple, else a token's round
        self._blocked: dict[int, set[Channel]] = {i: set() for i in range(of.haus)}
        self._round = 0
        self._commanded: set[int] = set()
        self._begun: set[int] = set()
        self._stored: set[int] = set(range(of.haus))

    def step(self) -> None:
        """One action, by chance."""
        of, random = self._of, self._random
        actions: list[tuple[Any, Any]] = [(self._emit, i) for i in of.sources]
        for c, queue in self._queue.items():
            if queue and c not in self._blocked[c[1]]:
                actions += [(self._take, c)] * 2
        actions += [(self._store, i) for i in sorted(self._begun - self._stored)]
        if self._round:
            actions += [(self._command, i) for i in range(of.haus) if i not in self._commanded and self._reached(i)]
        if len(self._stored) == of.haus and random.random() < 0.3:
            actions = [(self._begin, 0)]
        act, argument = random.choice(actions)
        act(argument)

    def _reached(self, hau: int) -> bool:
        """Whether the order to checkpoint goes to an HAU directly."""
        return self._of.parallel or not self._of.into(hau)

    def _begin(self, _: int) -> None:
        self._round += 1
        self._commanded, self._begun, self._stored = set(), set(), set()

    def _emit(self, hau: int) -> None:
        for c in self._of.out_of(hau):
            self._send(c)

    def _send(self, c: Channel) -> None:
        if c[0] in self._of.sources:
            self._log("preserve", channel=c)
        self._log("send", channel=c)
        self._queue[c].append(0)

    def _take(self, c: Channel) -> None:
        if self._queue[c][0]:
            self._log("received", channel=c, round=self._queue[c][0])
            self._blocked[c[1]].add(c)
            self._checkpoint_if_due(c[1])
            return
        self._queue[c].popleft()
        self._log("receive", channel=c)
        for out in self._of.out_of(c[1]):
            for _ in range(self._random.randrange(3)):
                self._send(out)

    def _command(self, hau: int) -> None:
        self._commanded.add(hau)
        if self._of.parallel:
            self._tokens(hau)
        self._checkpoint_if_due(hau)

    def _tokens(self, hau: int) -> None:
        for c in self._of.out_of(hau):
            self._log("sent", channel=c, round=self._round)
            self._queue[c].append(self._round)

    def _checkpoint_if_due(self, hau: int) -> None:
        commanded = hau in self._commanded or not self._reached(hau)
        if not commanded or len(self._blocked[hau]) < len(self._of.into(hau)):
            return
        for c in self._blocked[hau]:
            self._queue[c].popleft()
        self._blocked[hau] = set()
        self._begun.add(hau)
        self._log("begun", hau, round=self._round)
        if not self._of.parallel:
            self._store(hau)
            self._tokens(hau)

    def _store(self, hau: int) -> None:
        self._stored.add(hau)
        self._log("stored", hau, round=self._round)

    def _log(self, kind: str, hau: int = -1, channel: Channel = (-1, -1), round: int = -1) -> None:
        self._of.events.append(Event(kind, hau, channel, round))


def application(random: Random, parallel: bool, steps: int = 120) -> Application:
    """A random application that has run for so many steps, cut at a random moment."""
    haus = random.randint(2, 5)
    pairs = [(a, b) for b in range(haus) for a in range(b)]
    channels = [pair for pair in pairs if random.random() < 0.5 or pair == (0, 1)]
    found = Application(haus, channels, parallel)
    running = _Running(found, random)
    for _ in range(steps):
        running.step()
    found.events = found.events[: random.randint(0, len(found.events))]
    return found


def name(channel: Channel) -> str:
    return f"hau{channel[0]}/0->hau{channel[1]}/0"


def count(events: list[Event], kind: str, channel: Channel) -> int:
    return sum(e.kind == kind and e.channel == channel for e in events)


def records_of(run: Application) -> dict[str, list[Record]]:
    """What the run leaves, by place; the checkpoint records hold watermarks as of their beginning."""
    found: dict[str, list[Record]] = {"checkpoints": [], "system": [], "channels": []}
    for at, e in enumerate(run.events):
        if e.kind == "preserve":
            seq = count(run.events[:at], "preserve", e.channel)
            found["channels"].append({"channel": name(e.channel), "seq": seq, "bytes": 10, "time": at})
        elif e.kind in ("sent", "received"):
            kind = "send" if e.kind == "sent" else "receive"
            seq = count(run.events[:at], kind, e.channel)
            token = {"event": f"token-{e.kind}", "channel": name(e.channel), "round": e.round, "seq": seq, "time": at}
            found["system"].append(token)
        elif e.kind in ("begun", "stored"):
            event = {"event": f"checkpoint-{e.kind}", "operator": f"hau{e.hau}", "round": e.round, "time": at}
            found["system"].append(event)
            if e.kind == "stored":
                found["checkpoints"].append(checkpoint_of(run, e, at))
                found["system"] += tuples_of(run, e, at)
    return found


def begun_at(run: Application, hau: int, round: int) -> int:
    return next(k for k, e in enumerate(run.events) if (e.kind, e.hau, e.round) == ("begun", hau, round))


def checkpoint_of(run: Application, stored: Event, at: int) -> Record:
    before = run.events[: begun_at(run, stored.hau, stored.round)]
    return {
        "operator": f"hau{stored.hau}",
        "checkpoint": stored.round,
        "kind": "coordinated",
        "round": stored.round,
        "time": at,
        "bytes": 100,
        "sent": {name(c): count(before, "send", c) for c in run.out_of(stored.hau)},
        "received": {name(c): count(before, "receive", c) for c in run.into(stored.hau)},
    }


def tuples_of(run: Application, stored: Event, at: int) -> list[Record]:
    """Of MS-src+ap: what the HAU has sent between its token and its checkpoint."""
    begun = begun_at(run, stored.hau, stored.round)
    found = []
    for c in run.out_of(stored.hau) if run.parallel else []:
        token = next(k for k, e in enumerate(run.events) if (e.kind, e.channel, e.round) == ("sent", c, stored.round))
        low, high = count(run.events[:token], "send", c), count(run.events[:begun], "send", c)
        if low < high:
            saved = {"event": "tuples-stored", "channel": name(c), "round": stored.round, "time": at}
            found.append(saved | {"seq": low, "tuples": high - low, "bytes": 10 * (high - low)})
    return found


def write(folder: Path, run: Application, records: dict[str, list[Record]]) -> Path:
    """As a native run folder, with a manifest that names every HAU and channel; what never happened has no file."""
    manifest: Record = {
        "operators": [{"name": f"hau{i}", "parallelism": 1} for i in range(run.haus)],
        "channels": [{"channel": name(c)} for c in run.channels],
    }
    (folder / "job.json").write_text(json.dumps(manifest))
    for place, rows in records.items():
        if not rows:  # a file of no bytes may have been cut, so that nothing newer could be ruled out
            continue
        (folder / place).mkdir(exist_ok=True)
        (folder / place / "part.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder

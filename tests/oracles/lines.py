"""The slow truth: executions message by message, and the definitions on every combination of checkpoints.

Nothing here uses watermarks to decide anything, and nothing comes from the code under test: a checkpoint is
the set of messages that its subtask had sent and received before it. Small executions only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

from hypothesis import strategies as st

from cklog.history.history import History, history_of

Line = dict[str, int]
"""Subtask → checkpoint index; 0 = initial state, number of checkpoints + 1 = current state."""

EPOCH = 1_700_000_000_000
"""Milliseconds; event number e of an execution happens at EPOCH + 10 * e."""


class Event(NamedTuple):
    """`seq` is the message's number, or the checkpoint's (from 1; `channel` is then empty)."""

    kind: Literal["send", "recv", "ckpt"]
    subtask: str
    channel: str
    seq: int


@dataclass(frozen=True)
class Execution:
    """What happened, in one global order. `channels`: name → (sender, receiver)."""

    subtasks: tuple[str, ...]
    channels: dict[str, tuple[str, str]]
    events: tuple[Event, ...]

    def checkpoints(self, subtask: str) -> int:
        """How many checkpoints `subtask` took, without the initial state."""
        return sum(e.kind == "ckpt" and e.subtask == subtask for e in self.events)


class Message(NamedTuple):
    """A received message and the intervals (number of checkpoints before) of its sending and its receipt."""

    channel: str
    seq: int
    sender: str
    receiver: str
    send: int
    receive: int


# --- what to draw


@st.composite
def executions(draw: st.DrawFn, most_events: int = 40, *, fifo: bool | None = None) -> Execution:
    """Two to four subtasks, some of one operator; FIFO or not unless said; cycles, self-channels and ports or none."""
    subtasks = draw(st.sampled_from(_JOBS))
    acyclic = draw(st.booleans())
    fifo = draw(st.booleans()) if fifo is None else fifo
    pairs = [(a, b) for i, a in enumerate(subtasks) for j, b in enumerate(subtasks) if i < j or (i > j and not acyclic)]
    if draw(st.booleans()):
        pairs += [(a, a) for a in subtasks]
    count = draw(st.integers(1, 8))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=count, max_size=count))
    channels: dict[str, tuple[str, str]] = {}
    for a, b in chosen:
        channels[f"{a}->{b}" if f"{a}->{b}" not in channels else f"{a}->{b}#1"] = (a, b)
    length = 3 * draw(st.integers(0, most_events) | st.just(most_events))  # lists would be of three moves on average
    drawn = draw(st.binary(min_size=length, max_size=length))
    triples = zip(drawn[::3], drawn[1::3], drawn[2::3], strict=True)
    moves: list[tuple[str, int, int]] = [(_MOVES[kind % len(_MOVES)], where, which) for kind, where, which in triples]
    return Execution(subtasks, channels, tuple(_play(subtasks, channels, fifo, moves)))


_MOVES = ("send", "recv", "recv", "ckpt")


_JOBS = (
    ("a/0", "b/0"),
    ("a/0", "a/1"),
    ("a/0", "b/0", "b/1"),
    ("a/0", "b/0", "c/0"),
    ("a/0", "a/1", "b/0", "c/0"),
)


def continued(execution: Execution, future: Execution) -> Execution:
    """`execution`, and then what of `future` can still happen to its subtasks: more messages, more checkpoints."""
    moves: list[tuple[str, int, int]] = [(e.kind, number, e.seq) for number, e in enumerate(future.events)]
    sent = {c: sum(e.kind == "send" and e.channel == c for e in execution.events) for c in execution.channels}
    got = {(e.channel, e.seq) for e in execution.events if e.kind == "recv"}
    flying = {c: [m for m in range(sent[c]) if (c, m) not in got] for c in execution.channels}
    taken = {s: execution.checkpoints(s) for s in execution.subtasks}
    more = _happen(execution.subtasks, execution.channels, sent, flying, taken, moves)
    return Execution(execution.subtasks, execution.channels, (*execution.events, *more))


def failures(execution: Execution) -> st.SearchStrategy[frozenset[str]]:
    """Some of the subtasks, at least one."""
    return st.sets(st.sampled_from(execution.subtasks), min_size=1).map(frozenset)


def _play(
    subtasks: tuple[str, ...],
    channels: dict[str, tuple[str, str]],
    fifo: bool,
    moves: list[tuple[str, int, int]],
) -> Iterator[Event]:
    """Turn random moves into events that can happen; moves that cannot are passed over."""
    names = list(channels)
    drawn = [(kind, where, 0 if fifo else which) for kind, where, which in moves]
    taken = dict.fromkeys(subtasks, 0)
    flying: dict[str, list[int]] = {name: [] for name in names}
    yield from _happen(subtasks, channels, dict.fromkeys(names, 0), flying, taken, drawn)


def _happen(
    subtasks: tuple[str, ...],
    channels: dict[str, tuple[str, str]],
    sent: dict[str, int],
    flying: dict[str, list[int]],
    taken: dict[str, int],
    moves: list[tuple[str, int, int]],
) -> Iterator[Event]:
    """The events of `moves` from a state on: next numbers, numbers under way, checkpoints taken (four at most)."""
    names = list(channels)
    for kind, where, which in moves:
        subtask, channel = subtasks[where % len(subtasks)], names[where % len(names)]
        if kind == "ckpt" and taken[subtask] < 4:
            taken[subtask] += 1
            yield Event("ckpt", subtask, "", taken[subtask])
        elif kind == "send":
            yield Event("send", channels[channel][0], channel, sent[channel])
            flying[channel].append(sent[channel])
            sent[channel] += 1
        elif kind == "recv" and any(flying.values()):
            busy = [name for name in names if flying[name]]
            channel = busy[where % len(busy)]
            seq = flying[channel].pop(which % len(flying[channel]))
            yield Event("recv", channels[channel][1], channel, seq)


# --- the definitions


def messages(execution: Execution) -> list[Message]:
    """Every received message, with its intervals."""
    interval = dict.fromkeys(execution.subtasks, 0)
    send: dict[tuple[str, int], int] = {}
    found = []
    for kind, subtask, channel, seq in execution.events:
        if kind == "ckpt":
            interval[subtask] += 1
        elif kind == "send":
            send[channel, seq] = interval[subtask]
        else:
            sender = execution.channels[channel][0]
            found.append(Message(channel, seq, sender, subtask, send[channel, seq], interval[subtask]))
    return found


def orphans(execution: Execution, line: Line) -> set[tuple[str, int]]:
    """Messages (channel, number) that a checkpoint of `line` has received and none has sent."""
    sent, received = _exchanged(execution, line)
    return received - sent


def in_flight(execution: Execution, line: Line) -> set[tuple[str, int]]:
    """Messages (channel, number) that a checkpoint of `line` has sent and none has received."""
    sent, received = _exchanged(execution, line)
    return sent - received


def _exchanged(execution: Execution, line: Line) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """What was sent, and what received, before the checkpoints of `line`."""
    sent: set[tuple[str, int]] = set()
    received: set[tuple[str, int]] = set()
    interval = dict.fromkeys(execution.subtasks, 0)
    for kind, subtask, channel, seq in execution.events:
        if kind == "ckpt":
            interval[subtask] += 1
        elif interval[subtask] < line[subtask]:
            (sent if kind == "send" else received).add((channel, seq))
    return sent, received


def lines(execution: Execution, failed: Collection[str]) -> Iterator[Line]:
    """Every combination of stored checkpoints, and of current states of subtasks that did not fail."""
    tops = [execution.checkpoints(s) + (s not in failed) for s in execution.subtasks]
    for chosen in product(*(range(top + 1) for top in tops)):
        yield dict(zip(execution.subtasks, chosen, strict=True))


def consistent_lines(execution: Execution, failed: Collection[str]) -> list[Line]:
    """Those of `lines` without an orphan message. Tests the messages' intervals, which `orphans` need not."""
    received = messages(execution)
    return [
        line
        for line in lines(execution, failed)
        if not any(m.send >= line[m.sender] and m.receive < line[m.receiver] for m in received)
    ]


def latest_line(execution: Execution, failed: Collection[str]) -> Line:
    """The componentwise maximum of all consistent lines, which is one of them."""
    every = consistent_lines(execution, failed)
    latest = {s: max(line[s] for line in every) for s in execution.subtasks}
    assert latest in every
    return latest


def useless_by_enumeration(execution: Execution) -> set[tuple[str, int]]:
    """Checkpoints (subtask, index) in no consistent combination, current states allowed for the others."""
    every = consistent_lines(execution, failed=())
    used = {(s, line[s]) for line in every for s in execution.subtasks}
    return {(s, x) for s in execution.subtasks for x in range(execution.checkpoints(s) + 1)} - used


def useless_by_zigzag(execution: Execution) -> set[tuple[str, int]]:
    """Checkpoints on a zigzag cycle, by Netzer and Xu's definition, searched message by message."""
    received = messages(execution)
    found = set()
    for s in execution.subtasks:
        for x in range(execution.checkpoints(s) + 1):
            path = [m for m in received if m.sender == s and m.send >= x]  # m1 is sent after the checkpoint
            reached = set(path)
            while path:
                last = path.pop()  # the next is sent by its receiver in the same or a later interval
                following = {m for m in received if m.sender == last.receiver and m.send >= last.receive}
                path += following - reached
                reached |= following
            if any(m.receiver == s and m.receive < x for m in reached):  # the last is received before it
                found.add((s, x))
    return found


# --- the same execution, as cklog reads it


def without_lost_receipts(execution: Execution, failed: Collection[str]) -> Execution:
    """What a failure leaves: what failed subtasks received since their last checkpoint never happened."""
    left = {s: execution.checkpoints(s) for s in execution.subtasks}
    kept = []
    for event in execution.events:
        if event.kind == "ckpt":
            left[event.subtask] -= 1
        if not (event.kind == "recv" and event.subtask in failed and left[event.subtask] == 0):
            kept.append(event)
    return Execution(execution.subtasks, execution.channels, tuple(kept))


def history(execution: Execution, failed: Collection[str]) -> History:
    """The checkpoints as arrays; subtasks that did not fail survive with their current state."""
    alive = frozenset(execution.subtasks) - frozenset(failed)
    marks = {s: _watermarks(execution, s) for s in execution.subtasks}
    stored = {s: rows if s in alive else rows[:-1] for s, rows in marks.items()}
    return history_of(
        {s: list(range(1, execution.checkpoints(s) + 1)) for s in execution.subtasks},
        {c: [row["sent"][c] for row in stored[a]] for c, (a, _) in execution.channels.items()},
        {c: [row["received"][c] for row in stored[b]] for c, (_, b) in execution.channels.items()},
        alive,
    )


def checkpoint_records(execution: Execution, current: Collection[str] = ()) -> list[dict[str, Any]]:
    """Records for `checkpoints/` of a run folder, in the global order; then `volatile` ones of `current`."""
    rows = {s: _watermarks(execution, s) for s in execution.subtasks}
    records = []
    for number, event in enumerate(execution.events):
        if event.kind == "ckpt":
            records.append(_record(event.subtask, event.seq, EPOCH + 10 * number, rows[event.subtask][event.seq]))
    now = EPOCH + 10 * len(execution.events)
    for s in sorted(current):
        label = execution.checkpoints(s) + 1
        records.append({**_record(s, label, now, rows[s][-1]), "kind": "volatile"})
    return records


def event_records(execution: Execution) -> list[dict[str, Any]]:
    """Records for `events/` of a run folder; `lsn` counts per subtask."""
    lsn = dict.fromkeys(execution.subtasks, 0)
    records = []
    for number, (kind, s, channel, seq) in enumerate(execution.events):
        operator, subtask = _split(s)
        about = {"checkpoint": seq} if kind == "ckpt" else {"channel": channel, "seq": seq}
        word = {"send": "send", "recv": "receive", "ckpt": "checkpoint"}[kind]
        time = EPOCH + 10 * number
        records.append({"event": word, "operator": operator, "subtask": subtask, "lsn": lsn[s], **about, "time": time})
        lsn[s] += 1
    return records


def message_records(execution: Execution) -> list[dict[str, Any]]:
    """Records for `channels/` of a run folder: every sent message; message m has 100 + m bytes."""
    return [
        {"channel": event.channel, "seq": event.seq, "time": EPOCH + 10 * number, "bytes": 100 + event.seq}
        for number, event in enumerate(execution.events)
        if event.kind == "send"
    ]


def _watermarks(execution: Execution, subtask: str) -> list[dict[str, dict[str, int]]]:
    """Next numbers of the subtask's channels: at the initial state, at each checkpoint, and now."""
    sent = {c: 0 for c, (a, _) in execution.channels.items() if a == subtask}
    received = {c: 0 for c, (_, b) in execution.channels.items() if b == subtask}
    rows = [{"sent": dict(sent), "received": dict(received)}]
    for kind, s, channel, seq in execution.events:
        if s != subtask:
            continue
        if kind == "send":
            sent[channel] = max(sent[channel], seq + 1)
        elif kind == "recv":
            received[channel] = max(received[channel], seq + 1)
        else:
            rows.append({"sent": dict(sent), "received": dict(received)})
    return [*rows, {"sent": sent, "received": received}]


def _record(name: str, checkpoint: int, time: int, row: dict[str, dict[str, int]]) -> dict[str, Any]:
    operator, subtask = _split(name)
    return {"operator": operator, "subtask": subtask, "checkpoint": checkpoint, "time": time, **row}


def _split(name: str) -> tuple[str, int]:
    operator, _, number = name.rpartition("/")
    return operator, int(number)


Island = tuple[Any, ...]


def islands_of(records: list[tuple[Any, int, int | None]]) -> list[Island]:
    """(key, from, to, rows, bytes) of every island, one number after the other."""
    found: list[list[Any]] = []
    for key, seq in sorted({(key, seq) for key, seq, _ in records}):
        sizes = [size or 0 for k, s, size in records if (k, s) == (key, seq)]
        if not found or found[-1][0] != key or found[-1][2] != seq:
            found.append([key, seq, seq, 0, 0])
        found[-1][2:] = [seq + 1, found[-1][3] + len(sizes), found[-1][4] + sum(sizes)]
    return [tuple(island) for island in found]


Run = tuple[Execution, frozenset[str], History]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """An execution, who failed in it, and what is left on disk."""
    execution = draw(executions())
    failed = draw(failures(execution))
    return execution, failed, history(execution, failed)

"""Which messages force a checkpoint, by what the protocols mean: causal pasts as sets, no vector is carried.

BCS (SRDS 1984): no message is taken in an interval with a lower index than that it was sent in. HMNR (Distributed
Computing 13(1), 2000): before a message m is taken by i, i checkpoints if

- there is a causal path from i's present interval to the sending of m with a checkpoint on its way, or
- m's clock is above i's, and i sent in its present interval to some k of whose clock the sending of m knows less than
  m's: a zigzag path would lead from a higher clock to a lower one.
"""

from __future__ import annotations

from dataclasses import replace

from tests.oracles.lines import Event, Execution


def forced_by_bcs(execution: Execution) -> tuple[int, Execution]:
    """Checkpoints forced by the index of messages, and the execution with them: the protocol in its own words."""
    clock = dict.fromkeys(execution.subtasks, 0)
    carried: dict[tuple[str, int], int] = {}
    events: list[Event] = []
    for event in execution.events:
        if event.kind == "ckpt":
            clock[event.subtask] += 1
        elif event.kind == "send":
            carried[event.channel, event.seq] = clock[event.subtask]
        elif carried[event.channel, event.seq] > clock[event.subtask]:
            clock[event.subtask] = carried[event.channel, event.seq]
            events.append(Event("ckpt", event.subtask, "", 0))
        events.append(event)
    return len(events) - len(execution.events), replace(execution, events=tuple(events))


def forced_by_hmnr(execution: Execution) -> tuple[int, Execution]:
    """Checkpoints that HMNR forces, and the execution with them."""
    events: list[Event] = []
    clocks: list[int] = []  # of the subtask of each event, after it
    pasts: list[set[int]] = []  # the events before each, and itself
    last: dict[str, int] = {}  # the last event of each subtask
    sent: dict[tuple[str, int], int] = {}

    def add(event: Event, clock: int, *causes: int) -> None:
        before = {last[event.subtask]} if event.subtask in last else set()
        pasts.append({len(events)}.union(*(pasts[cause] for cause in before.union(causes))))
        last[event.subtask] = len(events)
        events.append(event)
        clocks.append(clock)

    def clock_of(subtask: str) -> int:
        return clocks[last[subtask]] if subtask in last else 0

    def present(subtask: str) -> list[int]:
        """The events of the subtask since its last checkpoint."""
        own = [n for n, event in enumerate(events) if event.subtask == subtask]
        begun = max((n for n in own if events[n].kind == "ckpt"), default=-1)
        return [n for n in own if n > begun]

    def forces(sending: int, me: str) -> bool:
        past, now = pasts[sending], present(me)
        between = [n for n in past if events[n].kind == "ckpt" and events[n].subtask != me]
        if any(pasts[checkpoint].intersection(now) for checkpoint in between):
            return True
        if clocks[sending] <= clock_of(me):
            return False
        told = {execution.channels[events[n].channel][1] for n in now if events[n].kind == "send"}
        known = {k: max((clocks[n] for n in past if events[n].subtask == k), default=-1) for k in told}
        return any(clock < clocks[sending] for clock in known.values())

    for event in execution.events:
        if event.kind == "ckpt":
            add(event, clock_of(event.subtask) + 1)
        elif event.kind == "send":
            sent[event.channel, event.seq] = len(events)
            add(event, clock_of(event.subtask))
        else:
            sending = sent[event.channel, event.seq]
            if forces(sending, event.subtask):
                add(Event("ckpt", event.subtask, "", 0), clock_of(event.subtask) + 1)
            add(event, max(clock_of(event.subtask), clocks[sending]), sending)
    return len(events) - len(execution.events), replace(execution, events=tuple(events))

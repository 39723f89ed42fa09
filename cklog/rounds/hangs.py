"""Hangs: why subtasks have no checkpoint of an incomplete round, and which of these causes the others.

A subtask waits for the tokens of all channels into it. Under MS-src a sender sends its tokens only behind its own
checkpoint, so that one missing token may keep all subtasks behind it waiting: these are not causes but what follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from cklog.arrays.types import Mask
from cklog.history.history import History
from cklog.rounds.token_rounds import TokenRounds

HangReason = Literal[
    "token-not-sent", "token-under-way", "checkpoint-not-begun", "checkpoint-not-stored", "no-checkpoint"
]


@dataclass(frozen=True, slots=True)
class Hang:
    """What keeps a subtask from its individual checkpoint, `depth` steps behind the cause (0: it is one).

    `why` is one of these:

    token-not-sent : `channel` has not brought its token, and its sender has not sent it
    token-under-way : the token of `channel` was sent and has not been taken
    checkpoint-not-begun, checkpoint-not-stored : all tokens have come
    no-checkpoint : all before it have stored theirs, and no tokens are logged
    """

    round: int
    operator: str
    subtask: int
    why: HangReason
    channel: str | None
    depth: int


class _Obstacle(NamedTuple):
    """What a subtask waits for: a `channel`, as an index, or -1; `follows`: its sender itself waits for something."""

    why: HangReason
    channel: int
    follows: bool


def hangs_of(of: TokenRounds, place: int) -> list[Hang]:
    """Say why each subtask without a checkpoint of the round at `place` has none: causes first, then what follows."""
    lacking = of.rounds.line[place] < 0
    obstacles: dict[int, list[_Obstacle]] = {i: [] for i in np.flatnonzero(lacking).tolist()}
    if of.log.logged:
        _missing_tokens(of, place, lacking, obstacles)
    else:
        _waiting_senders(of, lacking, obstacles)
    begun = of.begun(place)
    for i, mine in obstacles.items():
        if not mine:
            waiting: HangReason = "checkpoint-not-begun" if of.log.logged else "no-checkpoint"
            mine.append(_Obstacle("checkpoint-not-stored" if begun[i] else waiting, -1, follows=False))
    depth = _depths(obstacles, of.history)
    found = [_hang(of, place, i, obstacle, depth) for i, mine in obstacles.items() for obstacle in mine]
    return sorted(found, key=lambda h: (h.depth, h.operator, h.subtask, h.channel or ""))


def _missing_tokens(of: TokenRounds, place: int, lacking: Mask, obstacles: dict[int, list[_Obstacle]]) -> None:
    """Add the channels whose token is missing; `lacking`, (n,), are the subtasks without a checkpoint."""
    history = of.history
    channels = of.missing(place)
    sent = of.log.sent.of(place * len(history.src) + channels) >= 0
    behind_checkpoint = of.variant_of(place) != "MS-src+ap"  # whether tokens are sent behind the sender's checkpoint
    for k, was_sent in zip(channels.tolist(), sent.tolist(), strict=True):
        waits = behind_checkpoint and bool(lacking[history.src[k]])
        why: HangReason = "token-under-way" if was_sent else "token-not-sent"
        obstacles[int(history.dst[k])].append(_Obstacle(why, k, follows=waits and not was_sent))


def _waiting_senders(of: TokenRounds, lacking: Mask, obstacles: dict[int, list[_Obstacle]]) -> None:
    """Add the channels whose sender has no checkpoint itself: without a log of tokens nothing else is known."""
    history = of.history
    for k in np.flatnonzero(lacking[history.src] & lacking[history.dst] & of.between).tolist():
        obstacles[int(history.dst[k])].append(_Obstacle("token-not-sent", k, follows=True))


def _hang(of: TokenRounds, place: int, i: int, obstacle: _Obstacle, depth: dict[int, int]) -> Hang:
    subtask, k = of.history.subtasks[i], obstacle.channel
    return Hang(
        round=int(of.rounds.number[place]),
        operator=subtask.operator,
        subtask=subtask.subtask,
        why=obstacle.why,
        channel=None if k < 0 else of.history.channels[k],
        depth=1 + depth[int(of.history.src[k])] if obstacle.follows else 0,
    )


def _depths(obstacles: dict[int, list[_Obstacle]], history: History) -> dict[int, int]:
    """Count the steps from the nearest cause to each subtask; on a cycle of channels that waits for itself, 0.

    E.g. a has begun no checkpoint, b waits for a, c waits for b → a 0, b 1, c 2.
    """
    after: dict[int, list[int]] = {}  # who waits for each subtask
    for i, mine in obstacles.items():
        for obstacle in mine:
            if obstacle.follows:
                after.setdefault(int(history.src[obstacle.channel]), []).append(i)
    depth = {i: 0 for i, mine in obstacles.items() if not all(obstacle.follows for obstacle in mine)}
    front = list(depth)
    while front:
        reached = [(j, depth[i] + 1) for i in front for j in after.get(i, ()) if j not in depth]
        for j, steps in reached:
            depth.setdefault(j, steps)
        front = list(dict.fromkeys(j for j, _ in reached))
    return {i: depth.get(i, 0) for i in obstacles}

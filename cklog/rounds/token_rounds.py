"""Token rounds: how each went, which individual checkpoints it has, and where an incomplete one hangs.

Meteor Shower (ICDE 2012) checkpoints a whole application by tokens. A subtask (the paper's HAU) takes its individual
checkpoint when the tokens of all channels into it have come. What it does with its own tokens tells the variants apart:

    MS-src      they follow its checkpoint: nothing is sent between the two (section III-A)
    MS-src+ap   they go out at once, at the controller's command; what it sends from then until its own checkpoint
                belongs to that checkpoint (section III-B)

Which rounds are complete is `cklog.lines.rounds`' business and rests on checkpoint records alone: tokens only explain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import Ints
from cklog.errors import CorruptInput
from cklog.history.arrays import History
from cklog.history.records import CheckpointRecords
from cklog.history.tokens import NEVER, TokenLog
from cklog.history.watermarks import MOST_WATERMARKS
from cklog.lines.rounds import HistoryRounds, described_rounds, round_numbers
from cklog.model.lines import Round

Variant = Literal["MS-src", "MS-src+ap"]


@dataclass(frozen=True, slots=True)
class TokenRound:
    """A round, and how its tokens fared; times in ms. None: not known.

    `late_ms` : how long the slowest subtask came after the last but one; `tokens_missing` : channels into subtasks
    without a checkpoint whose token is not known to have come; `alignment_ms` : the longest wait of a subtask from its
    first token to its last, which `aligned` had
    """

    round: int
    state: Literal["complete", "straggling", "incomplete"]
    checkpoints: int
    subtasks: int
    missing: str
    tokens_missing: int | None
    first_time: int | None
    last_time: int | None
    span_ms: int | None
    slowest: str | None
    late_ms: int | None
    slowest_channel: str | None
    alignment_ms: int | None
    aligned: str | None
    variant: Variant | None


@dataclass(frozen=True, slots=True)
class Individual:
    """The individual checkpoint of a subtask in a round; `tokens` of `channels` into it have come. None: not known.

    `state` incomplete: it was begun, or its record cannot be used. `slowest_channel` brought the last token.
    """

    round: int
    operator: str
    subtask: int
    state: Literal["stored", "incomplete", "missing"]
    checkpoint: int | None
    time: int | None
    bytes: int | None
    tokens: int | None
    channels: int
    first_token: int | None
    last_token: int | None
    alignment_ms: int | None
    slowest_channel: str | None


@dataclass(frozen=True, slots=True)
class Hang:
    """What keeps a subtask from its individual checkpoint, `depth` steps behind the cause (0: it is one).

    token-not-sent : `channel` has not brought its token, its sender has not sent it; token-under-way : it was sent and
    has not been taken; checkpoint-not-begun, checkpoint-not-stored : all tokens have come; no-checkpoint : all before
    it have stored theirs, and no tokens are logged
    """

    round: int
    operator: str
    subtask: int
    why: Literal["token-not-sent", "token-under-way", "checkpoint-not-begun", "checkpoint-not-stored", "no-checkpoint"]
    channel: str | None
    depth: int


def with_tokens(rounds: HistoryRounds, numbers: Ints, subtasks: int) -> HistoryRounds:
    """The rounds with those that only tokens name: nobody has a checkpoint of them.

    Raises
    ------
    CorruptInput : there are more than can be held
    """
    every = np.union1d(rounds.number, numbers).astype(np.int64)
    if len(every) * max(subtasks, 1) > MOST_WATERMARKS:
        message = f"{len(every)} rounds of {subtasks} subtasks do not fit"
        raise CorruptInput(message, "analyse a part of the history: move old records out of a copy")
    line = np.full((len(every), subtasks), -1)
    line[np.searchsorted(every, rounds.number)] = rounds.line
    return HistoryRounds(every, line)


class TokenRounds:
    """The rounds of a history with the tokens that made them."""

    def __init__(self, records: CheckpointRecords, history: History, rounds: HistoryRounds, log: TokenLog) -> None:
        self.history = history
        self.rounds = rounds
        self.log = log
        self._records = records
        self._between = history.src != history.dst  # a channel to itself carries no token
        self._aligned = _alignments(log, history)

    @cached_property
    def variants(self) -> tuple[Variant | None, ...]:
        """The variant of each round, None where nothing tells."""
        return tuple(_from_tokens(self) if self.log.logged else _from_lines(self))

    def variant_of(self, place: int) -> Variant | None:
        """The variant of a round (-1: of none), or of the newest round that tells."""
        if place >= 0 and self.variants[place] is not None:
            return self.variants[place]
        return next((v for v in reversed(self.variants) if v is not None), None)

    def rows(self) -> list[TokenRound]:
        """Every round, in order."""
        plain = described_rounds(self.history, self.rounds)
        longest = self._aligned.longest(len(self.history.subtasks), len(plain))
        return [self._row(place, row, int(longest[place])) for place, row in enumerate(plain)]

    def _row(self, place: int, row: Round, longest: int) -> TokenRound:
        """`longest` is the row of the longest alignment in it, -1 for none."""
        subtasks, aligned = self.history.subtasks, self._aligned
        slowest = None if row.slowest is None else self._last_token(place, row.slowest)
        return TokenRound(
            round=row.round,
            state=row.state,
            checkpoints=row.checkpoints,
            subtasks=len(subtasks),
            missing=row.missing,
            tokens_missing=len(self.missing(place)) if self.log.logged else None,
            first_time=row.first_time,
            last_time=row.last_time,
            span_ms=row.span_ms,
            slowest=row.slowest,
            late_ms=self._late(place),
            slowest_channel=row.slowest_channel if slowest is None else slowest,
            alignment_ms=None if longest < 0 else int(aligned.last[longest] - aligned.first[longest]),
            aligned=None if longest < 0 else str(subtasks[int(aligned.key[longest]) % len(subtasks)]),
            variant=self.variants[place],
        )

    def _last_token(self, place: int, name: str) -> str | None:
        i = self._names[name]
        row = self._aligned.of(place * len(self._names) + i)
        return None if row < 0 else self.history.channels[self._aligned.channel[row]]

    @cached_property
    def _names(self) -> dict[str, int]:
        return {str(subtask): i for i, subtask in enumerate(self.history.subtasks)}

    def _late(self, place: int) -> int | None:
        line = self.rounds.line[place]
        there = np.flatnonzero(line >= 0)
        time = self.history.time[self.history.first[there] + line[there]]
        time = time[time >= 0]
        if len(time) < 2:
            return None
        last = np.partition(time, -2)[-2:]
        return int(last[1] - last[0])

    def missing(self, place: int) -> Ints:
        """Channels into subtasks without a checkpoint of a round whose token is not known to have come."""
        waiting = np.flatnonzero((self.rounds.line[place] < 0)[self.history.dst] & self._between)
        return waiting[self.log.received.of(place * len(self.history.src) + waiting) < 0]

    def individual(self, place: int, size: Callable[[int], int | None]) -> list[Individual]:
        """Every subtask's checkpoint of a round; `size` gives that of a row of the history, in bytes."""
        begun = self._begun(place)
        into = np.bincount(self.history.dst[self._between], minlength=len(self.history.subtasks))
        came = np.zeros(len(into), np.int64)
        channel = np.flatnonzero(self._between)
        received = self.log.received.of(place * len(self.history.src) + channel) >= 0
        np.add.at(came, self.history.dst[channel[received]], 1)
        return [self._individual(place, i, bool(begun[i]), int(came[i]), int(into[i]), size) for i in range(len(into))]

    def _begun(self, place: int) -> NDArray[np.bool_]:
        """Subtasks that began a checkpoint of a round, whether it can be used or not."""
        n = len(self.history.subtasks)
        begun = np.zeros(n, np.bool_)
        for keys in (self.log.begun, self.log.stored):
            begun[keys[(keys >= place * n) & (keys < (place + 1) * n)] % n] = True
        begun[self._records.subtask[self._number == self.rounds.number[place]]] = True
        return begun

    @cached_property
    def _number(self) -> Ints:
        """The round of each record."""
        return round_numbers(self._records)

    def _individual(
        self, place: int, i: int, begun: bool, came: int, into: int, size: Callable[[int], int | None]
    ) -> Individual:
        x, aligned = int(self.rounds.line[place, i]), self._aligned
        row = int(self.history.first[i]) + x
        time = int(self.history.time[row]) if x >= 0 else -1
        at = aligned.of(place * len(self.history.subtasks) + i)
        first, last = (None, None) if at < 0 else (int(aligned.first[at]), int(aligned.last[at]))
        return Individual(
            int(self.rounds.number[place]),
            *self.history.subtasks[i],
            state="stored" if x >= 0 else "incomplete" if begun else "missing",
            checkpoint=int(self.history.label[row]) if x >= 0 else None,
            time=time if time >= 0 else None,
            bytes=size(row) if x >= 0 else None,
            tokens=came if self.log.logged else None,
            channels=into,
            first_token=first,
            last_token=last,
            alignment_ms=None if first is None or last is None or came < into else last - first,
            slowest_channel=None if at < 0 else self.history.channels[aligned.channel[at]],
        )

    def unrecorded(self) -> list[tuple[int, int]]:
        """(round, subtask) that the system log calls stored and that no checkpoint record tells of."""
        if not len(self.log.stored):
            return []
        n = len(self.history.subtasks)
        here = self._number >= 0
        recorded = np.sort(np.searchsorted(self.rounds.number, self._number[here]) * n + self._records.subtask[here])
        at = np.searchsorted(recorded, self.log.stored)
        lost = self.log.stored[np.append(recorded, -1)[at] != self.log.stored]
        return [divmod(key, n) for key in np.unique(lost).tolist()]

    def hangs(self, place: int) -> list[Hang]:
        """Why each subtask without a checkpoint of a round has none: causes first, then what follows from them."""
        lacking = self.rounds.line[place] < 0
        begun, follows = self._begun(place), self.variant_of(place) != "MS-src+ap"
        causes: dict[int, list[tuple[str, int, bool]]] = {i: [] for i in np.flatnonzero(lacking).tolist()}
        silent = not self.log.logged
        channels = np.flatnonzero(lacking[self.history.dst] & self._between) if silent else self.missing(place)
        sent = self.log.sent.of(place * len(self.history.src) + channels) >= 0
        for k, was_sent in zip(channels.tolist(), sent.tolist(), strict=True):
            waits = bool(lacking[self.history.src[k]]) and (follows or silent)
            if waits or not silent:
                why = "token-under-way" if was_sent else "token-not-sent"
                causes[int(self.history.dst[k])].append((why, k, waits and not was_sent))
        for i, mine in causes.items():
            if not mine:
                why = "no-checkpoint" if silent else "checkpoint-not-begun"
                mine.append(("checkpoint-not-stored" if begun[i] else why, -1, False))
        depth = _depths(causes, self.history)
        found = [self._hang(place, i, cause, depth) for i, mine in causes.items() for cause in mine]
        return sorted(found, key=lambda h: (h.depth, h.operator, h.subtask, h.channel or ""))

    def _hang(self, place: int, i: int, cause: tuple[str, int, bool], depth: dict[int, int]) -> Hang:
        why, k, follows = cause
        after = 1 + depth[int(self.history.src[k])] if follows else 0
        channel = None if k < 0 else self.history.channels[k]
        return Hang(int(self.rounds.number[place]), *self.history.subtasks[i], why, channel, after)  # type: ignore[arg-type]


def _depths(causes: dict[int, list[tuple[str, int, bool]]], history: History) -> dict[int, int]:
    """Steps from the nearest cause of each subtask; on a cycle of channels that waits for itself, 0."""
    after: dict[int, list[int]] = {}
    for i, mine in causes.items():
        for _, k, follows in mine:
            if follows:
                after.setdefault(int(history.src[k]), []).append(i)
    depth = {i: 0 for i, mine in causes.items() if not all(follows for *_, follows in mine)}
    front = list(depth)
    while front:
        reached = [(j, depth[i] + 1) for i in front for j in after.get(i, ()) if j not in depth]
        for j, steps in reached:
            depth.setdefault(j, steps)
        front = list(dict.fromkeys(j for j, _ in reached))
    return {i: depth.get(i, 0) for i in causes}


@dataclass(frozen=True, slots=True, eq=False)
class _Alignments:
    """First and last token of a round that came to a subtask; `key` rises: round · n + subtask, shape (m,) as all.

    `channel` brought the last one.
    """

    key: Ints
    first: Ints
    last: Ints
    channel: Ints

    def of(self, key: int) -> int:
        """The row of a key, -1 for none."""
        at = int(np.searchsorted(self.key, key))
        return at if at < len(self.key) and self.key[at] == key else -1

    def last_of(self, keys: Ints) -> Ints:
        """When the last token came, -1 where not known."""
        at = np.searchsorted(self.key, keys)
        found: Ints = np.where(np.append(self.key, -1)[at] == keys, np.append(self.last, -1)[at], -1)
        return found

    def longest(self, subtasks: int, rounds: int) -> Ints:
        """The row of the longest alignment of each round, the first of equals; -1 for none, shape (rounds,)."""
        place = self.key // max(subtasks, 1)
        order = np.lexsort((-self.key, self.last - self.first, place))
        found = np.full(rounds, -1)
        found[place[order]] = order  # the last of each round stays
        return found


def _alignments(log: TokenLog, history: History) -> _Alignments:
    received = log.received
    timed = np.flatnonzero(received.time != NEVER)
    place, channel = np.divmod(received.key[timed], max(len(history.src), 1))
    key = place * len(history.subtasks) + history.dst[channel]
    time = received.time[timed]
    order = np.lexsort((-channel, time, key))
    key, time, channel = key[order], time[order], channel[order]
    new = np.ones(len(key), np.bool_)
    new[1:] = key[1:] != key[:-1]
    low = np.flatnonzero(new)
    high = np.append(low[1:], len(key))[: len(low)] - 1
    return _Alignments(key[low], time[low], time[high], channel[high])


def _from_tokens(of: TokenRounds) -> list[Variant | None]:
    """By where a sender's token stands: before what its checkpoint has sent, or before the last token came to it."""
    history, sent = of.history, of.log.sent
    place, channel = np.divmod(sent.key, max(len(history.src), 1))
    owner = history.src[channel]
    x = of.rounds.line[place, owner]
    mark = history.sent[history.sent_at[channel] + np.maximum(x, 0)]
    known = (x >= 0) & (sent.seq >= 0)
    came = of._aligned.last_of(place * len(history.subtasks) + owner)
    ordered = (came >= 0) & (sent.time != NEVER)
    early = (known & (mark > sent.seq)) | (ordered & (sent.time < came))
    told = known | ordered
    found: list[Variant | None] = [None] * len(of.rounds.number)
    for p in np.unique(place[told]).tolist():
        found[p] = "MS-src"
    for p in np.unique(place[early]).tolist():
        found[p] = "MS-src+ap"
    return found


def _from_lines(of: TokenRounds) -> list[Variant | None]:
    """Without tokens: by whether anything is in flight across a complete round."""
    found: list[Variant | None] = [None] * len(of.rounds.number)
    for place in of.rounds.complete.tolist():
        line = of.rounds.line[place]
        flying = (of.history.sent_of(line) > of.history.received_of(line)).any()
        found[place] = "MS-src+ap" if flying else "MS-src"
    return found

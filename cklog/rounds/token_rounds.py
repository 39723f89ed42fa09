"""Token rounds: how each went, which individual checkpoints it has, and by which variant it was made.

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

from cklog.arrays.types import Ints, Mask
from cklog.errors import CorruptInput
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.tokens import NEVER, TokenLog
from cklog.history.watermarks import MOST_WATERMARKS
from cklog.lines.rounds import HistoryRounds, described_rounds, round_numbers
from cklog.model.lines import Round

Variant = Literal["MS-src", "MS-src+ap"]


@dataclass(frozen=True, slots=True)
class TokenRound:
    """A round, and how its tokens fared; times in ms. None: not known.

    Attributes
    ----------
    checkpoints, subtasks : how many subtasks have stored a checkpoint of it, and how many there are
    missing : the subtasks without one, in words
    tokens_missing : channels into these whose token is not known to have come
    first_time, last_time, span_ms : when its first and last checkpoint was taken, and the time between
    slowest, late_ms : the subtask whose checkpoint came last, and how long after the last but one
    slowest_channel : the channel that brought that subtask's last token
    alignment_ms, aligned : the longest wait of a subtask from its first token to its last, and which subtask had it
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
    """The individual checkpoint of a subtask in a round; times in ms. None: not known.

    Attributes
    ----------
    state : "incomplete" if it was begun, or if its record cannot be used
    checkpoint : its number among those of the subtask
    bytes : its own size
    tokens, channels : how many tokens have come, and how many channels lead into the subtask
    first_token, last_token, alignment_ms : when the first and the last token came, and the time between
    slowest_channel : the channel that brought the last one
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


def with_tokens(rounds: HistoryRounds, numbers: Ints, subtasks: int) -> HistoryRounds:
    """Add the rounds that only tokens name, of which no subtask has a checkpoint.

    `numbers` are the rounds that tokens name, (k,), of a history of so many `subtasks`.

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
    """The rounds of a history with the tokens that made them.

    A round is given by its `place`, an index into `rounds.number`. `between`, (c,), says which channels carry tokens:
    all but those from a subtask to itself.
    """

    def __init__(self, records: CheckpointRecords, history: History, rounds: HistoryRounds, log: TokenLog) -> None:
        self.history = history
        self.rounds = rounds
        self.log = log
        self._records = records
        self.between = history.src != history.dst
        self.alignments = _alignments(log, history)

    @cached_property
    def variants(self) -> tuple[Variant | None, ...]:
        """The variant of each round, None where nothing shows it."""
        return tuple(_variants_by_tokens(self) if self.log.logged else _variants_by_lines(self))

    def variant_of(self, place: int) -> Variant | None:
        """Return the variant of a round (place -1: of none), else that of the newest round that shows one."""
        if place >= 0 and self.variants[place] is not None:
            return self.variants[place]
        return next((v for v in reversed(self.variants) if v is not None), None)

    def rows(self) -> list[TokenRound]:
        """Return every round, in order."""
        plain = described_rounds(self.history, self.rounds)
        longest = self.alignments.longest(len(self.history.subtasks), len(plain))
        return [self._described_round(place, row, int(longest[place])) for place, row in enumerate(plain)]

    def _described_round(self, place: int, row: Round, longest: int) -> TokenRound:
        """Describe a round; `longest` is the row of its longest alignment, -1 for none."""
        subtasks, aligned = self.history.subtasks, self.alignments
        slowest = None if row.slowest is None else self._channel_of_last_token(place, row.slowest)
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
            late_ms=self._late_ms(place),
            slowest_channel=row.slowest_channel if slowest is None else slowest,
            alignment_ms=None if longest < 0 else int(aligned.last[longest] - aligned.first[longest]),
            aligned=None if longest < 0 else str(subtasks[int(aligned.key[longest]) % len(subtasks)]),
            variant=self.variants[place],
        )

    def _channel_of_last_token(self, place: int, name: str) -> str | None:
        """Return the channel that brought the last token to a subtask; None: not known."""
        i = self._subtask_index[name]
        row = self.alignments.of(place * len(self._subtask_index) + i)
        return None if row < 0 else self.history.channels[self.alignments.channel[row]]

    @cached_property
    def _subtask_index(self) -> dict[str, int]:
        return {str(subtask): i for i, subtask in enumerate(self.history.subtasks)}

    def _late_ms(self, place: int) -> int | None:
        """Return how long the last checkpoint came after the last but one; None without two times."""
        line = self.rounds.line[place]
        there = np.flatnonzero(line >= 0)
        time = self.history.time[self.history.first[there] + line[there]]
        time = time[time >= 0]
        if len(time) < 2:
            return None
        before, last = np.partition(time, -2)[-2:].tolist()
        return int(last - before)

    def missing(self, place: int) -> Ints:
        """Return the channels into subtasks without a checkpoint of a round whose token is not known to have come."""
        waiting = np.flatnonzero((self.rounds.line[place] < 0)[self.history.dst] & self.between)
        return waiting[self.log.received.of(place * len(self.history.src) + waiting) < 0]

    def individual(self, place: int, size: Callable[[int], int | None]) -> list[Individual]:
        """Return every subtask's checkpoint of a round; `size` gives the bytes of a row of the history."""
        begun = self.begun(place)
        into = np.bincount(self.history.dst[self.between], minlength=len(self.history.subtasks))
        came = np.zeros(len(into), np.int64)  # tokens that have come to each subtask
        channel = np.flatnonzero(self.between)
        received = self.log.received.of(place * len(self.history.src) + channel) >= 0
        np.add.at(came, self.history.dst[channel[received]], 1)
        return [
            self._individual_of(place, i, bool(begun[i]), int(came[i]), int(into[i]), size) for i in range(len(into))
        ]

    def begun(self, place: int) -> Mask:
        """Tell which subtasks began a checkpoint of a round, whether it can be used or not; shape (n,)."""
        n = len(self.history.subtasks)
        begun = np.zeros(n, np.bool_)
        for keys in (self.log.begun, self.log.stored):
            begun[keys[(keys >= place * n) & (keys < (place + 1) * n)] % n] = True
        begun[self._records.subtask[self._round_of_record == self.rounds.number[place]]] = True
        return begun

    @cached_property
    def _round_of_record(self) -> Ints:
        """The round of each record, -1 for none; shape (records,)."""
        return round_numbers(self._records)

    def _individual_of(
        self, place: int, i: int, begun: bool, came: int, into: int, size: Callable[[int], int | None]
    ) -> Individual:
        """Describe subtask `i`'s checkpoint: whether it was `begun`, and that `came` of `into` tokens have come."""
        x, aligned = int(self.rounds.line[place, i]), self.alignments
        subtask, row = self.history.subtasks[i], int(self.history.first[i]) + x
        time = int(self.history.time[row]) if x >= 0 else -1
        at = aligned.of(place * len(self.history.subtasks) + i)
        first, last = (None, None) if at < 0 else (int(aligned.first[at]), int(aligned.last[at]))
        state: Literal["stored", "incomplete", "missing"] = "incomplete" if begun else "missing"
        if x >= 0:
            state = "stored"
        return Individual(
            round=int(self.rounds.number[place]),
            operator=subtask.operator,
            subtask=subtask.subtask,
            state=state,
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
        """Return the (place, subtask) of checkpoints that the system log calls stored and that have no record."""
        if not len(self.log.stored):
            return []
        n = len(self.history.subtasks)
        here = self._round_of_record >= 0
        place = np.searchsorted(self.rounds.number, self._round_of_record[here])
        recorded = np.sort(place * n + self._records.subtask[here])  # keys as those of `log.stored`
        at = np.searchsorted(recorded, self.log.stored)
        lost = self.log.stored[np.append(recorded, -1)[at] != self.log.stored]
        return [divmod(key, n) for key in np.unique(lost).tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class _Alignments:
    """When the first and the last token of a round came to each of n subtasks, in ms; `channel` brought the last one.

    `key` rises: place of the round · n + subtask. All have shape (m,).
    """

    key: Ints
    first: Ints
    last: Ints
    channel: Ints

    def of(self, key: int) -> int:
        """Return the row of a key, -1 for none."""
        at = int(np.searchsorted(self.key, key))
        return at if at < len(self.key) and self.key[at] == key else -1

    def last_of(self, keys: Ints) -> Ints:
        """Return when the last token of each key came, -1 where not known; shape as `keys`."""
        at = np.searchsorted(self.key, keys)
        found: Ints = np.where(np.append(self.key, -1)[at] == keys, np.append(self.last, -1)[at], -1)
        return found

    def longest(self, subtasks: int, rounds: int) -> Ints:
        """Return the row of the longest alignment of each round, the first of equals; -1 for none, shape (rounds,)."""
        place = self.key // max(subtasks, 1)
        order = np.lexsort((-self.key, self.last - self.first, place))
        found = np.full(rounds, -1)
        found[place[order]] = order  # the last of each round stays
        return found


def _alignments(log: TokenLog, history: History) -> _Alignments:
    """Find the first and the last token of each round and subtask, among those with a time.

    E.g. tokens of one round come to one subtask by channels 0, 2, 1 at 5, 9, 9 ms → first 5, last 9, channel 1.
    """
    received = log.received
    timed = np.flatnonzero(received.time != NEVER)
    place, channel = np.divmod(received.key[timed], max(len(history.src), 1))
    key = place * len(history.subtasks) + history.dst[channel]
    time = received.time[timed]
    order = np.lexsort((-channel, time, key))  # by key, then time; of one time the first channel is last
    key, time, channel = key[order], time[order], channel[order]
    new = np.ones(len(key), np.bool_)
    new[1:] = key[1:] != key[:-1]
    low = np.flatnonzero(new)  # the first token of each key
    high = np.append(low[1:], len(key))[: len(low)] - 1  # and its last
    return _Alignments(key=key[low], first=time[low], last=time[high], channel=channel[high])


def _variants_by_tokens(of: TokenRounds) -> list[Variant | None]:
    """Tell variants by the tokens, one of each round.

    A token of MS-src+ap goes out early: it stands before messages that the sender's checkpoint has sent, or was sent
    before the last token came to the sender.
    """
    history, sent = of.history, of.log.sent
    place, channel = np.divmod(sent.key, max(len(history.src), 1))  # of the t tokens sent, (t,) each
    owner = history.src[channel]
    x = of.rounds.line[place, owner]
    mark = history.sent[history.sent_at[channel] + np.maximum(x, 0)]  # (t,): what the checkpoint has sent by then
    known = (x >= 0) & (sent.seq >= 0)
    came = of.alignments.last_of(place * len(history.subtasks) + owner)
    ordered = (came >= 0) & (sent.time != NEVER)
    early = (known & (mark > sent.seq)) | (ordered & (sent.time < came))
    found: list[Variant | None] = [None] * len(of.rounds.number)
    for p in np.unique(place[known | ordered]).tolist():
        found[p] = "MS-src"
    for p in np.unique(place[early]).tolist():
        found[p] = "MS-src+ap"
    return found


def _variants_by_lines(of: TokenRounds) -> list[Variant | None]:
    """Tell variants without tokens, by whether anything is in flight across a complete round."""
    found: list[Variant | None] = [None] * len(of.rounds.number)
    for place in of.rounds.complete.tolist():
        line = of.rounds.line[place]
        flying = (of.history.sent_of(line) > of.history.received_of(line)).any()
        found[place] = "MS-src+ap" if flying else "MS-src"
    return found

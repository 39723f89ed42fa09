"""Messages that an individual checkpoint holds itself: under MS-src+ap they are in no channel's log.

A checkpoint that was taken while tokens went on already contains the tuples between its outgoing tokens and itself
(Meteor Shower, ICDE 2012, section III-B). A restart takes them from there, so they count as logged.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cklog.engine.reading import Reading
from cklog.history.records import CheckpointRecords
from cklog.history.tokens import TokensRead, read_tokens
from cklog.inputs.offers import OffersRecords
from cklog.lines.replay_ranges import StoredRange
from cklog.lines.rounds import round_numbers
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import parse_channel


def stored_tuples(
    tables: OffersRecords,
    reading: Reading,
    records: CheckpointRecords,
    line: Mapping[str, int | None],
    as_of: int | None,
) -> tuple[dict[str, list[StoredRange]], list[Finding], list[InputUsed]]:
    """The messages that the checkpoints of a line hold, by channel, in order and apart.

    `line`: the checkpoint of each subtask, None: its current state; what happened after `as_of` (ms) does not count.
    """
    read = read_tokens(tables, reading, as_of)
    held: dict[str, list[StoredRange]] = {}
    for name, low, high, size in sorted(_spans(read, _rounds(records, line))):
        before = held.setdefault(name, [])
        at = max(low, before[-1].end) if before else low
        if at < high:
            before.append(StoredRange(start=at, end=high, rows=high - at, bytes=size))
    return held, read.findings, read.inputs


def _rounds(records: CheckpointRecords, line: Mapping[str, int | None]) -> dict[str, int]:
    """The round of each subtask's checkpoint in the line; none of one that is in no round."""
    chosen = np.array([-1 if (n := line.get(str(s))) is None else n for s in records.subtasks] or [-1], np.int64)
    rows = np.flatnonzero(records.number == chosen[records.subtask])
    number = round_numbers(records)
    return {str(records.subtasks[records.subtask[i]]): int(number[i]) for i in rows.tolist() if number[i] >= 0}


def _spans(read: TokensRead, rounds: Mapping[str, int]) -> set[tuple[str, int, int, int]]:
    """What the senders' checkpoints of these rounds hold: channel, from, to, bytes."""
    found = set()
    for row in read.on_channels.to_pylist():
        channel = parse_channel(row["channel"]) if row["event"] == "tuples-stored" else None
        if channel is not None and row["round"] == rounds.get(str(channel.sender), -1):
            found.add((row["channel"], row["seq"], row["seq"] + row["tuples"], row["bytes"] or 0))
    return found

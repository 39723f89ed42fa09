"""Token events of a system log (`cklog.model.schemas`), over the channels, subtasks and rounds of a history.

A token stands in its channel between two messages; one passes each end of a channel once a round (Meteor Shower, ICDE
2012, section III-A). Of several records of one passage the earliest counts.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes, holds, plain_strings
from cklog.arrays.spans import Spans, joined_spans
from cklog.arrays.types import Ints, Mask
from cklog.engine.reading import Reading
from cklog.engine.scan import Kernel
from cklog.history.history import History
from cklog.inputs.offers import OffersRecords
from cklog.inputs.tables import read_table
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask, parse_channel
from cklog.model.schemas import OF_SUBTASKS, ON_CHANNELS, SYSTEM
from cklog.model.wording import many

NEVER = np.iinfo(np.int64).max
"""A time behind all others: not known."""


class TokensRead(NamedTuple):
    """Usable token events, as rows of `SYSTEM`: those on channels, and those of subtasks (individual checkpoints)."""

    on_channels: pa.Table
    of_subtasks: pa.Table
    findings: list[Finding]
    inputs: list[InputUsed]

    @property
    def logged(self) -> bool:
        """Whether any token was logged."""
        return len(self.on_channels) > 0

    def channels(self) -> list[str]:
        """Return the channels that token events name, in order."""
        return codes(self.on_channels["channel"].unify_dictionaries())[1]

    def subtasks(self) -> list[Subtask]:
        """Return the subtasks that events of individual checkpoints name, in order."""
        table = self.of_subtasks
        pairs = table.group_by(["operator", "subtask"], use_threads=False).aggregate([]) if len(table) else table
        rows = zip(pairs["operator"].to_pylist(), pairs["subtask"].to_pylist(), strict=True)
        return sorted({Subtask(operator, number or 0) for operator, number in rows})

    def rounds(self) -> Ints:
        """Return the rounds that any of the events names, rising."""
        some = {*pc.unique(self.on_channels["round"]).to_pylist(), *pc.unique(self.of_subtasks["round"]).to_pylist()}
        return np.array(sorted(some), np.int64)


def read_tokens(tables: OffersRecords, reading: Reading, as_of: int | None = None) -> TokensRead:
    """Scan the system log for token events; with `as_of` (ms), later ones and those without a time do not count."""
    if not tables.has("system"):
        return TokensRead(SYSTEM.empty_table(), SYSTEM.empty_table(), list(tables.findings("system")), [])
    table, findings, inputs = read_table(tables, reading, "system", tuple(SYSTEM.names), _token_kernel(as_of), SYSTEM)
    on_channels, of_subtasks, unusable = _usable_events(table)
    if unusable:
        message = (
            f"{many(unusable, 'token event')} without a round, or of a channel or a subtask that there is not: not used"
        )
        findings = [*findings, Finding("bad-token", "warning", "system/", message)]
    return TokensRead(on_channels, of_subtasks, findings, inputs)


def _token_kernel(as_of: int | None) -> Kernel:
    return functools.partial(_token_events, as_of)


def _token_events(as_of: int | None, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch that are about tokens and individual checkpoints."""
    wanted = _is_one_of(batch["event"], (*ON_CHANNELS, *OF_SUBTASKS))
    if as_of is not None:
        wanted = pc.and_(wanted, pc.fill_null(pc.less_equal(batch["time"], as_of), False))
    return batch.filter(wanted)


def _is_one_of(column: pa.Array, words: tuple[str, ...]) -> pa.Array:
    return pc.is_in(plain_strings(column), value_set=pa.array(words, pa.string()))


def _usable_events(table: pa.Table) -> tuple[pa.Table, pa.Table, int]:
    """Return the rows on channels, the rows of subtasks, and how many rows lack what their event needs."""
    event = plain_strings(table["event"])
    on = _is_one_of(event, ON_CHANNELS)
    rounds = pc.is_valid(table["round"])
    counted = pc.and_(pc.is_valid(table["seq"]), pc.is_valid(table["tuples"]))
    whole = pc.and_(rounds, pc.or_(pc.not_equal(event, "tuples-stored"), counted))
    on_channels = table.filter(pc.and_(pc.and_(on, whole), _names_channel(table["channel"])))
    of_subtasks = table.filter(pc.and_(pc.and_(pc.invert(on), rounds), pc.is_valid(table["operator"])))
    return on_channels, of_subtasks, len(table) - len(on_channels) - len(of_subtasks)


def _names_channel(column: pa.ChunkedArray) -> pa.Array:
    """Return where a column holds a channel's name; each distinct value is parsed once."""
    names = plain_strings(column)
    good = [name for name in names.unique().to_pylist() if name is not None and parse_channel(name) is not None]
    return pc.is_in(names, value_set=pa.array(good, pa.string()))


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """The t tokens that are known to have passed one end of the c channels.

    Attributes
    ----------
    key : round · c + channel of each, rising, shape (t,)
    seq : the message that comes next, -1 if not known, shape (t,)
    time : when it passed, in ms, `NEVER` if not known, shape (t,)
    """

    key: Ints
    seq: Ints
    time: Ints

    def of(self, keys: Ints) -> Ints:
        """Return the row of each key, -1 where no token is known to have passed."""
        if not len(self.key):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        return np.where(self.key[at] == keys, at, -1)

    def seq_of(self, keys: Ints) -> Ints:
        """Return the message behind the token of each key, -1 where not known."""
        found: Ints = np.append(self.seq, -1)[self.of(keys)]
        return found

    def time_of(self, keys: Ints) -> Ints:
        """Return when the token of each key passed, in ms, `NEVER` where not known."""
        found: Ints = np.append(self.time, NEVER)[self.of(keys)]
        return found


class StoredCopy(NamedTuple):
    """A copy of an individual checkpoint: the subtask's index, and the URI or the node on whose disk it is stored."""

    subtask: int
    uri: str | None
    node: str | None


class PreservedSpans(NamedTuple):
    """The tuples of a channel that checkpoints of one round hold, and their bytes (None: not all known)."""

    spans: Spans
    bytes: int | None


@dataclass(frozen=True, slots=True, eq=False)
class TokenLog:
    """Token events of r rounds over n subtasks and c channels; rounds are numbered 0 to r - 1.

    Attributes
    ----------
    logged : whether any token was logged
    sent, received : tokens that passed the senders' and the receivers' ends of channels
    begun, stored : keys round · n + subtask of individual checkpoints that were begun, or stored; rising
    copies : of stored checkpoints, by round
    tuples : what checkpoints hold of channels, by (round, channel)
    """

    logged: bool
    sent: Passed
    received: Passed
    begun: Ints
    stored: Ints
    copies: dict[int, list[StoredCopy]]
    tuples: dict[tuple[int, int], PreservedSpans]


def token_log(read: TokensRead, history: History, numbers: Ints) -> TokenLog:
    """Put the token events in order, over the subtasks and channels of a history that has them all.

    `numbers` are the rounds by their own numbers, rising, shape (r,).
    """
    table = read.on_channels
    channel, names = codes(table["channel"].unify_dictionaries())
    index = {name: k for k, name in enumerate(history.channels)}
    place = np.array([index[name] for name in names] or [0], np.int64)
    key = np.searchsorted(numbers, table["round"].to_numpy()) * len(index) + place[channel]
    mine = read.of_subtasks
    owner = _owners_of(mine, history)
    keys = np.searchsorted(numbers, mine["round"].to_numpy()) * len(history.subtasks) + owner
    begun, stored = (np.sort(keys[holds(mine["event"], name)]) for name in OF_SUBTASKS)
    return TokenLog(
        logged=read.logged,
        sent=_earliest_passed(table, key, holds(table["event"], "token-sent")),
        received=_earliest_passed(table, key, holds(table["event"], "token-received")),
        begun=begun,
        stored=stored,
        copies=_copies_by_round(mine, numbers, owner),
        tuples=_tuples_by_round_and_channel(table, key, index),
    )


def _earliest_passed(table: pa.Table, key: Ints, mask: Mask) -> Passed:
    """Return the earliest of the rows of each key in `mask`; those without a time come last. Shapes (rows,)."""
    key = key[mask]
    seq = pc.fill_null(table["seq"], -1).to_numpy()[mask]
    time = pc.fill_null(table["time"], NEVER).to_numpy()[mask]
    order = np.lexsort((seq, time, key))
    key, seq, time = key[order], seq[order], time[order]
    first = np.ones(len(key), np.bool_)
    first[1:] = key[1:] != key[:-1]
    return Passed(key[first], seq[first], time[first])


def _owners_of(table: pa.Table, history: History) -> Ints:
    """Return the index of each row's subtask, shape (rows,); each distinct (operator, number) is looked up once."""
    operator, names = codes(table["operator"].unify_dictionaries())
    part, numbers = _number_codes(pc.fill_null(table["subtask"], 0).combine_chunks())
    both, pairs = _number_codes(pa.array(operator * max(len(numbers), 1) + part))
    index = {subtask: i for i, subtask in enumerate(history.subtasks)}
    known = [divmod(pair, len(numbers)) for pair in pairs]
    place = [index[Subtask(names[o], numbers[k])] for o, k in known]
    found: Ints = np.array(place or [0], np.int64)[both]
    return found


def _number_codes(column: pa.Array) -> tuple[Ints, list[int]]:
    """Return each number as a place among the few distinct ones, and those: 7, 5, 7 → [0, 1, 0], [7, 5]."""
    encoded = column.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _copies_by_round(table: pa.Table, numbers: Ints, owner: Ints) -> dict[int, list[StoredCopy]]:
    """Return the copies that events of stored checkpoints name: those with a `uri` or a `node`."""
    placed = pc.or_(pc.is_valid(table["uri"]), pc.is_valid(table["node"])).to_numpy()
    rows = np.flatnonzero(holds(table["event"], "checkpoint-stored") & placed)
    place = np.searchsorted(numbers, table["round"].to_numpy())[rows].tolist()
    some = table.select(["uri", "node"]).take(rows).to_pydict()
    found: dict[int, set[StoredCopy]] = {}
    for at, i, uri, node in zip(place, owner[rows].tolist(), some["uri"], some["node"], strict=True):
        found.setdefault(at, set()).add(StoredCopy(i, uri, node))

    def order(copy: StoredCopy) -> tuple[int, str, str]:
        return copy.subtask, copy.uri or "", copy.node or ""

    return {at: sorted(copies, key=order) for at, copies in found.items()}


def _tuples_by_round_and_channel(
    table: pa.Table, key: Ints, index: dict[str, int]
) -> dict[tuple[int, int], PreservedSpans]:
    """Return the spans of tuples that individual checkpoints hold; `key` is round · c + channel of each row."""
    rows = np.flatnonzero(holds(table["event"], "tuples-stored"))
    some = table.select(["seq", "tuples", "bytes"]).take(rows).to_pydict()
    found: dict[tuple[int, int], set[tuple[int, int, int | None]]] = {}
    for at, seq, count, size in zip(key[rows].tolist(), some["seq"], some["tuples"], some["bytes"], strict=True):
        found.setdefault(divmod(at, len(index)), set()).add((seq, seq + count, size))
    return {at: _joined(parts) for at, parts in found.items()}


def _joined(parts: set[tuple[int, int, int | None]]) -> PreservedSpans:
    """Join (from, to, bytes) of one round and channel."""
    sizes = [size for _, _, size in parts if size is not None]
    total = sum(sizes) if len(sizes) == len(parts) else None
    return PreservedSpans(joined_spans((low, high) for low, high, _ in parts), total)

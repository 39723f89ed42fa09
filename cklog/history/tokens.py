"""Token events of a system log (`cklog.model.schemas`), over the channels, subtasks and rounds of a history.

A token stands in its channel between two messages; one passes each end of a channel once a round (Meteor Shower, ICDE
2012, section III-A). Of records that tell it twice the earliest counts.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.columns import codes
from cklog.arrays.spans import Spans, joined_spans
from cklog.arrays.types import Ints
from cklog.engine import Kernel
from cklog.engine.reading import Reading
from cklog.history.arrays import History
from cklog.inputs.offers import OffersRecords
from cklog.inputs.tables import read_table
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask, parse_channel
from cklog.model.schemas import OF_SUBTASKS, ON_CHANNELS, SYSTEM

NEVER = np.iinfo(np.int64).max
"""A time behind all others: not known."""


@dataclass(frozen=True, slots=True)
class TokensRead:
    """Usable token events: `on_channels` and `of_subtasks` hold rows of `SYSTEM` of those two kinds."""

    on_channels: pa.Table
    of_subtasks: pa.Table
    findings: list[Finding]
    inputs: list[InputUsed]

    @property
    def logged(self) -> bool:
        """Whether tokens were logged at all."""
        return len(self.on_channels) > 0

    def channels(self) -> list[str]:
        """The channels that token events name, in order."""
        return codes(self.on_channels["channel"].unify_dictionaries())[1]

    def subtasks(self) -> list[Subtask]:
        """The subtasks that events of individual checkpoints name, in order."""
        table = self.of_subtasks
        pairs = table.group_by(["operator", "subtask"], use_threads=False).aggregate([]) if len(table) else table
        rows = zip(pairs["operator"].to_pylist(), pairs["subtask"].to_pylist(), strict=True)
        return sorted({Subtask(operator, number or 0) for operator, number in rows})

    def rounds(self) -> Ints:
        """The rounds that they name, rising."""
        some = {n for table in (self.on_channels, self.of_subtasks) for n in pc.unique(table["round"]).to_pylist()}
        return np.array(sorted(some), np.int64)


def read_tokens(tables: OffersRecords, reading: Reading, as_of: int | None = None) -> TokensRead:
    """Scan the system log; events after `as_of` (ms), or without a time then, do not count."""
    if not tables.has("system"):
        return TokensRead(SYSTEM.empty_table(), SYSTEM.empty_table(), list(tables.findings("system")), [])
    table, findings, inputs = read_table(tables, reading, "system", tuple(SYSTEM.names), _kernel(as_of), SYSTEM)
    on_channels, of_subtasks, unusable = _usable(table)
    if unusable:
        message = f"{unusable} token events name no round, no such channel or no subtask; they are not used"
        findings = [*findings, Finding("bad-token", "warning", "system/", message)]
    return TokensRead(on_channels, of_subtasks, findings, inputs)


def _kernel(as_of: int | None) -> Kernel:
    return functools.partial(_token_events, as_of)


def _token_events(as_of: int | None, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a batch that tell of tokens and individual checkpoints."""
    wanted = _is_one_of(batch["event"], (*ON_CHANNELS, *OF_SUBTASKS))
    if as_of is not None:
        wanted = pc.and_(wanted, pc.fill_null(pc.less_equal(batch["time"], as_of), False))
    return batch.filter(wanted)


def _is_one_of(column: pa.Array, words: tuple[str, ...]) -> pa.Array:
    return pc.is_in(_plain(column), value_set=pa.array(words, pa.string()))


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _usable(table: pa.Table) -> tuple[pa.Table, pa.Table, int]:
    """Rows on channels, rows of subtasks, and how many rows lack what their event needs."""
    event = _plain(table["event"])
    on = _is_one_of(event, ON_CHANNELS)
    rounds = pc.is_valid(table["round"])
    counted = pc.and_(pc.is_valid(table["seq"]), pc.is_valid(table["tuples"]))
    whole = pc.and_(rounds, pc.or_(pc.not_equal(event, "tuples-stored"), counted))
    on_channels = table.filter(pc.and_(pc.and_(on, whole), _well_named(table["channel"])))
    of_subtasks = table.filter(pc.and_(pc.and_(pc.invert(on), rounds), pc.is_valid(table["operator"])))
    return on_channels, of_subtasks, len(table) - len(on_channels) - len(of_subtasks)


def _well_named(column: pa.ChunkedArray) -> pa.Array:
    names = _plain(column)
    good = [name for name in names.unique().to_pylist() if name is not None and parse_channel(name) is not None]
    return pc.is_in(names, value_set=pa.array(good, pa.string()))


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """Tokens that passed one end of the channels. `key` rises: round · c + channel of c channels, shape (t,) as all.

    `seq` : the message that comes next, -1 if not known; `time` : ms, `NEVER` if not known
    """

    key: Ints
    seq: Ints
    time: Ints

    def of(self, keys: Ints) -> Ints:
        """The row of each key, -1 where no token is known to have passed."""
        if not len(self.key):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        return np.where(self.key[at] == keys, at, -1)

    def seq_of(self, keys: Ints) -> Ints:
        """The message behind each token, -1 where not known."""
        found: Ints = np.append(self.seq, -1)[self.of(keys)]
        return found

    def time_of(self, keys: Ints) -> Ints:
        """When each token passed, `NEVER` where not known."""
        found: Ints = np.append(self.time, NEVER)[self.of(keys)]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class TokenLog:
    """Token events of r rounds over n subtasks and c channels.

    `begun`, `stored` : keys round · n + subtask of events of individual checkpoints, in order. `copies` : (subtask,
    uri, node or None) by round, `tuples` : by (round, channel) the spans that checkpoints hold, and their bytes (None:
    not all known)
    """

    logged: bool
    sent: Passed
    received: Passed
    begun: Ints
    stored: Ints
    copies: dict[int, list[tuple[int, str | None, str | None]]]
    tuples: dict[tuple[int, int], tuple[Spans, int | None]]


def token_log(read: TokensRead, history: History, numbers: Ints) -> TokenLog:
    """Put what was read in order; `numbers` (r,) are all rounds, and the history has all subtasks and channels."""
    table = read.on_channels
    channel, names = codes(table["channel"].unify_dictionaries())
    index = {name: k for k, name in enumerate(history.channels)}
    place = np.array([index[name] for name in names] or [0], np.int64)
    key = np.searchsorted(numbers, table["round"].to_numpy()) * len(index) + place[channel]
    event = _plain(table["event"])
    sent, received = (_passed(table, key, _mask(event, name)) for name in ("token-sent", "token-received"))
    mine = read.of_subtasks
    owner = _owner(mine, history)
    keys = np.searchsorted(numbers, mine["round"].to_numpy()) * len(history.subtasks) + owner
    event_of = _plain(mine["event"])
    begun, stored = (np.sort(keys[_mask(event_of, name)]) for name in OF_SUBTASKS)
    return TokenLog(
        read.logged, sent, received, begun, stored, _copies(mine, numbers, owner), _tuples(table, key, index)
    )


def _mask(event: pa.ChunkedArray, word: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.equal(event, word).to_numpy()
    return found


def _passed(table: pa.Table, key: Ints, mask: NDArray[np.bool_]) -> Passed:
    """The earliest of each key."""
    key = key[mask]
    seq = pc.fill_null(table["seq"], -1).to_numpy()[mask]
    time = pc.fill_null(table["time"], NEVER).to_numpy()[mask]
    order = np.lexsort((seq, time, key))
    key, seq, time = key[order], seq[order], time[order]
    first = np.ones(len(key), np.bool_)
    first[1:] = key[1:] != key[:-1]
    return Passed(key[first], seq[first], time[first])


def _owner(table: pa.Table, history: History) -> Ints:
    """The subtask of each row."""
    operator, names = codes(table["operator"].unify_dictionaries())
    part, numbers = _coded(pc.fill_null(table["subtask"], 0).combine_chunks())
    both, pairs = _coded(pa.array(operator * max(len(numbers), 1) + part))
    index = {subtask: i for i, subtask in enumerate(history.subtasks)}
    known = [divmod(pair, len(numbers)) for pair in pairs]
    place = [index[Subtask(names[o], numbers[k])] for o, k in known]
    found: Ints = np.array(place or [0], np.int64)[both]
    return found


def _coded(column: pa.Array) -> tuple[Ints, list[int]]:
    """Numbers as places among their few distinct values."""
    encoded = column.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _copies(table: pa.Table, numbers: Ints, owner: Ints) -> dict[int, list[tuple[int, str | None, str | None]]]:
    """Copies that events of stored checkpoints tell of: those with a `uri` or a `node`."""
    told = pc.and_(
        _is_one_of(table["event"], OF_SUBTASKS[1:]), pc.or_(pc.is_valid(table["uri"]), pc.is_valid(table["node"]))
    )
    rows = np.flatnonzero(told.to_numpy())
    place = np.searchsorted(numbers, table["round"].to_numpy())[rows].tolist()
    some = table.select(["uri", "node"]).take(rows).to_pydict()
    found: dict[int, list[tuple[int, str | None, str | None]]] = {}
    for at, i, uri, node in zip(place, owner[rows].tolist(), some["uri"], some["node"], strict=True):
        found.setdefault(at, []).append((i, uri, node))
    return {at: sorted(set(copies), key=lambda c: (c[0], c[1] or "", c[2] or "")) for at, copies in found.items()}


def _tuples(table: pa.Table, key: Ints, index: dict[str, int]) -> dict[tuple[int, int], tuple[Spans, int | None]]:
    """Spans of tuples that individual checkpoints hold, by (round, channel)."""
    rows = np.flatnonzero(_mask(_plain(table["event"]), "tuples-stored"))
    some = table.select(["seq", "tuples", "bytes"]).take(rows).to_pydict()
    found: dict[tuple[int, int], set[tuple[int, int, int | None]]] = {}
    for at, seq, count, size in zip(key[rows].tolist(), some["seq"], some["tuples"], some["bytes"], strict=True):
        found.setdefault(divmod(at, len(index)), set()).add((seq, seq + count, size))
    return {at: (joined_spans((a, b) for a, b, _ in spans), _total(spans)) for at, spans in found.items()}


def _total(spans: set[tuple[int, int, int | None]]) -> int | None:
    sizes = [size for _, _, size in spans]
    return None if any(size is None for size in sizes) else sum(size or 0 for size in sizes)

"""The records of many Kafka batches at once, as arrays; `cklog.parsers.kafka.batches.records` gives them one by one.

    payload = record*
    record  = length  attributes:i8  timestampDelta  offsetDelta  bytes(key)  bytes(value)  n  (name bytes(value))*n

A record says how long it is, so that two questions can be asked one after the other. Where records begin: their lengths
are followed in all batches side by side, the k-th record of every batch in one step. What they hold: each field of all
records in one step, since by then every place is known. Keys, values and headers stay where they lie and are given by
position and length.

The careful decoder is `batches.records`: a batch that anything speaks against is given to it, and is a fault with its
reason, or stays. Messages of formats 0 and 1 are decoded by `cklog.parsers.kafka.legacy` and join the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.buffers import unfilled
from cklog.arrays.types import Bytes, Ints, Mask
from cklog.parsers.codecs.varints import BadVarint
from cklog.parsers.kafka.batches import Header, headers_at, records
from cklog.parsers.kafka.joined import ARRAYS, Fault, HeaderAndBytes, JoinedPayloads, join_payloads
from cklog.parsers.kafka.payloads import BadBatch, Budget
from cklog.parsers.kafka.varints import varint, varints

_SIDE_BY_SIDE = 32
"""Fewer batches than these are followed one by one: a step costs as much for one as for a hundred."""

_HEADERS = 64
"""Headers of one record that are followed at once; records with more are given to the careful decoder."""

_SMALLEST = 7
"""Bytes of a record at least: its length and six fields."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Records in the order of the batches, each array of shape (n,); positions are places in `data`.

    A key or value of length -1 is null. `headers` of them begin at `headers_at`; `size` is the encoded length
    before compression, with the length field, in bytes. `batch` is the place of a record's batch in the input.
    """

    data: bytes
    batch: Ints
    offset: Ints
    timestamp: Ints
    key: Ints
    key_length: Ints
    value: Ints
    value_length: Ints
    headers: Ints
    headers_at: Ints
    size: Ints
    faults: tuple[Fault, ...]

    def headers_of(self, i: int) -> tuple[tuple[str, bytes | None], ...]:
        """Return the names and values of record `i`'s headers."""
        return headers_at(self.data, int(self.headers_at[i]), int(self.headers[i]))

    def to_table(self) -> pa.Table:
        """Return columns batch, offset, timestamp, key, value, headers (their number) and size."""
        return pa.table(
            {
                "batch": self.batch,
                "offset": self.offset,
                "timestamp": self.timestamp,
                "key": slices(self.data, self.key, self.key_length),
                "value": slices(self.data, self.value, self.value_length),
                "headers": self.headers,
                "size": self.size,
            }
        )


def decode(batches: Sequence[HeaderAndBytes]) -> Decoded:
    """Decode the records of whole batches of any format, all at once; no CRC is looked at.

    Some thousand batches, or some 16 MB, are a good measure: what is worked on then fits the caches.
    """
    return _decoded(batches, join_payloads(batches, None), None)


class DecodedPart(NamedTuple):
    """The records of the batches [start, end) of the input; their places in `records` count from `start`."""

    start: int
    end: int
    records: Decoded


def decode_parts(batches: Sequence[HeaderAndBytes], budget: Budget) -> Iterator[DecodedPart]:
    """Yield the records of whole batches part by part; no CRC is looked at.

    A part ends behind the batch with which it gets too large, so that memory depends neither on how well batches are
    compressed nor on how many records they hold.
    """
    start = 0
    while start < len(batches):
        payloads = join_payloads(batches[start:], budget)
        end = start + len(payloads.counts)
        yield DecodedPart(start, end, _decoded(batches[start:end], payloads, budget))
        start = end


def _decoded(batches: Sequence[HeaderAndBytes], payloads: JoinedPayloads, budget: Budget | None) -> Decoded:
    """Decode the records of joined payloads, which are those of `batches`."""
    data = np.frombuffer(payloads.data, np.uint8)
    begin, end, whose, suspects = _record_bounds(payloads, data)
    found, bad = _decode_fields(payloads.data, data, begin, end, whose, [head for head, _ in batches])
    suspects |= set(whose[bad].tolist())
    faults = payloads.faults + [fault for i in sorted(suspects) if (fault := _find_fault(i, batches[i], budget))]
    if faults:
        found = found[:, ~np.isin(found[0], [fault.batch for fault in faults])]
    if payloads.old:
        found = np.concatenate([found, *payloads.old], axis=1)
        found = found[:, np.argsort(found[0], kind="stable")]
    arrays = dict(zip(ARRAYS, found, strict=True))
    return Decoded(payloads.data, **arrays, faults=tuple(sorted(faults)))


def slices(data: bytes, at: Ints, length: Ints) -> pa.Array:
    """Return slices of `data` as a binary array, null where the length is -1; they ascend and do not overlap.

    Slices and the gaps between them are one array over the data, of which every other element is taken; nothing is
    copied but what is taken.

    >>> slices(b"key=value", np.array([0, 4, 9]), np.array([3, 5, -1])).to_pylist()
    [b'key', b'value', None]
    """
    bounds = unfilled(2 * len(at) + 1, np.int64)
    bounds[0:-1:2], bounds[1::2] = at, at + np.maximum(length, 0)
    bounds[-1] = bounds[-2] if len(at) else 0
    whole = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2 * len(at), [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    return whole.take(pa.array(np.arange(0, 2 * len(at), 2), mask=length < 0))


def _find_fault(i: int, batch: HeaderAndBytes, budget: Budget | None) -> Fault | None:
    """Return what the careful decoder says against a batch, if anything."""
    head, data = batch
    try:
        for _ in records(head, bytes(data), budget):
            pass
    except BadBatch as reason:
        return Fault(i, str(reason), reason.id)
    return None


def _record_bounds(payloads: JoinedPayloads, data: Bytes) -> tuple[Ints, Ints, Ints, set[int]]:
    """Return where each record begins and ends, and its batch, shapes (n,); and the batches whose lengths do not fit.

    E.g. of two batches, with records of 9 and 8 bytes in the first and one of 10 in the second: begins [0, 9, 17],
    ends [9, 17, 27], batches [0, 0, 1].
    """
    start, end = payloads.start[:-1], payloads.start[1:]
    fits = payloads.counts * _SMALLEST <= end - start
    count = np.where(fits, payloads.counts, 0)
    first = np.cumsum(count + 1) - (count + 1)  # of a batch in `bounds`: begins of its records, and the end of the last
    bounds = _follow_lengths(payloads, data, count, first)
    fits &= (bounds[first + count] == end) | (count == 0)
    count = np.where(fits, count, 0)
    whose = np.repeat(np.arange(len(count)), count)
    # the place in `bounds` of each record: its batch's first place, and how many records of the batch come before it
    here = np.arange(len(whose)) + np.repeat(first - np.cumsum(count) + count, count)
    return bounds[here], bounds[here + 1], whose, set(np.flatnonzero(~fits).tolist())


def _follow_lengths(payloads: JoinedPayloads, data: Bytes, count: Ints, first: Ints) -> Ints:
    """Return, for each batch from its place `first` on, the begins of `count` records and the end of the last.

    Where lengths lead out of a payload or are negative, all that follow are its end plus one. E.g. of two batches with
    records of 9 and 8 bytes in the first and one of 10 in the second: [0, 9, 17, 17, 27].
    """
    bounds = unfilled(int((count + 1).sum()), np.int64)
    order = np.argsort(-count, kind="stable")  # the longest first: batches that go on are a prefix
    at, end, count, first = payloads.start[:-1][order], payloads.start[1:][order], count[order], first[order]
    k = 0
    while (going := int(np.searchsorted(-count, -k))) >= _SIDE_BY_SIDE:
        bounds[first[:going] + k] = at[:going]
        length, after, bad = varints(data, at[:going], 32)
        after += length
        at[:going] = np.where(bad | (length < 0) | (after > end[:going]), end[:going] + 1, after)
        k += 1
    bounds[first + count] = at
    for i in range(going):
        places = _follow_payload(payloads.data, int(at[i]), int(end[i]), int(count[i]) - k)
        bounds[first[i] + k : first[i] + count[i] + 1] = places
    return bounds


def _follow_payload(data: bytes, at: int, end: int, count: int) -> list[int]:
    """Return the begins of `count` records of one payload, and the end of the last, as `_follow_lengths` has them."""
    places = [end + 1] * (count + 1)
    for i in range(count):
        places[i] = at
        byte = data[at]
        if byte < 0x80 and not byte & 1:
            at += 1 + (byte >> 1)
        else:
            try:
                length, at = varint(data, at)
            except BadVarint:
                return places
            at = at + length if length >= 0 else end + 1
        if at > end:
            return places
    places[count] = at
    return places


def _decode_fields(
    packed: bytes, data: Bytes, begin: Ints, end: Ints, whose: Ints, heads: list[Header]
) -> tuple[Ints, Mask]:
    """Decode the records at [begin, end), shapes (n,), of which `whose` says the batch.

    Returns their arrays, shape (10, n), and those records that do not decode or are left to the careful decoder, (n,).
    """
    _, at, _ = varints(data, begin, 32)
    time, at, bad = varints(data, at + 1, 64)  # one byte of attributes, which say nothing
    delta, at, worse = varints(data, at, 32)
    bad |= worse
    key, key_length, at = _bytes_places(data, at, end, bad)
    value, value_length, at = _bytes_places(data, at, end, bad)
    headers, at, worse = varints(data, at, 32)
    bad |= worse | (headers < 0) | (headers > end - at) | ((headers == 0) & (at != end))
    if headers.any():
        _mark_bad_headers(packed, data, at, end, headers, bad)
    offset, time, worse = _offsets_and_times(time, delta, whose, heads)
    bad |= worse
    arrays = [whose, offset, time, key, key_length, value, value_length, headers, at, end - begin]
    return np.array(arrays, np.int64).reshape(len(ARRAYS), -1), bad


def _bytes_places(data: Bytes, at: Ints, end: Ints, bad: Mask) -> tuple[Ints, Ints, Ints]:
    """Return where the bytes of a field begin, how many they are, and where they end; shapes (n,).

    Its length stands at `at`; `bad` is marked where the bytes cannot end by `end`. E.g. "abc" with its length at 4:
    5, 3 and 8; null at 4: 5, -1 and 5.
    """
    length, at, worse = varints(data, at, 32)
    worse |= (length < -1) | ((length >= 0) & (length > end - at))
    bad |= worse
    if worse.any():
        length[worse] = -1
    return at, length, at + np.maximum(length, 0)


def _offsets_and_times(time: Ints, delta: Ints, whose: Ints, heads: list[Header]) -> tuple[Ints, Ints, Mask]:
    """Return offsets and timestamps, computed from their deltas, and which of them cannot be; shapes (n,).

    The offset deltas of a batch ascend, up to the header's last: [0, 2, 1] of one batch marks [False, False, True].
    """
    names = ("base", "last_delta", "base_time", "max_time", "log_append_time")
    base, last, base_time, max_time, appended = (
        np.array([getattr(head, name) for head in heads], np.int64)[whose] for name in names
    )
    before = np.concatenate([[-1], delta[:-1]])
    before[np.flatnonzero(np.diff(whose, prepend=-1))] = -1  # nothing comes before the first record of a batch
    bad = (delta <= before) | (delta > last)
    found = base_time + time
    overflown = ((base_time ^ found) & (time ^ found)) < 0  # the sum's sign is neither number's
    return base + delta, np.where(appended != 0, max_time, found), bad | (overflown & (appended == 0))


def _mark_bad_headers(packed: bytes, data: Bytes, at: Ints, end: Ints, count: Ints, bad: Mask) -> None:
    """Mark in `bad` the records whose headers do not decode, or are more than is worth following here; shapes (n,).

    The `count` headers of a record begin at `at` and must end at `end`: header h of all records that have one is
    passed in step h.
    """
    going = np.flatnonzero((count > 0) & ~bad)  # records that have a header h, and were right so far
    at, names = at[going], []
    for h in range(_HEADERS):
        wrong = np.zeros(len(going), np.bool_)
        name, length, at = _bytes_places(data, at, end[going], wrong)
        wrong |= length < 0
        names.append((name[~wrong], length[~wrong], going[~wrong]))
        _, _, at = _bytes_places(data, at, end[going], wrong)
        last = count[going] == h + 1
        wrong |= last & (at != end[going])
        bad[going[wrong]] = True
        at, going = at[~(wrong | last)], going[~(wrong | last)]
        if not len(going):
            break
    bad[going] = True
    at, length, whose = (np.concatenate(parts) for parts in zip(*names, strict=True))
    _mark_bad_names(packed, at, length, whose, bad)


def _mark_bad_names(packed: bytes, at: Ints, length: Ints, whose: Ints, bad: Mask) -> None:
    """Mark in `bad` the records with a header whose name is not UTF-8; name i lies at `at` and is record whose[i]'s."""
    order = np.argsort(at)
    names = slices(packed, at[order], length[order])
    strange = [name for name in names.unique().to_pylist() if not _is_utf8(name)]
    if strange:
        found = pc.is_in(names, value_set=pa.array(strange, names.type)).to_numpy(zero_copy_only=False)
        bad[whose[order][found]] = True


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

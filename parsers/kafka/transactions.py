"""How the transactions of a Kafka log ended: by markers, which come behind the data and maybe in a later segment.

A producer has one transaction at a time; it ends with the first marker of that producer id behind its data. The
epoch is no part of the match: newer brokers raise it when a transaction ends.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Literal, NamedTuple

from cklog.engine.scan import Damage, Split
from cklog.parsers.kafka.batches import marker, verify
from cklog.parsers.kafka.payloads import BadBatch
from cklog.parsers.kafka.segment import PlacedHeader, Segment, segments, walk

MarkerFate = Literal["commit", "abort"] | None
"""How a transaction ended; None: it did not."""


class _Marker(NamedTuple):
    """A control batch: its place (segments counted from the split's, byte), its producer, and what it says."""

    place: tuple[int, int]
    producer: int
    fate: MarkerFate


class SplitTransactions:
    """The fates of a split's transactions: markers are looked for forward, once, and only as far as needed."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self._ahead: Iterator[_Marker] | None = None
        """The markers that nobody has looked at yet."""
        self._seen: dict[int, deque[_Marker]] = defaultdict(deque)
        """By producer: markers that were met in search of another's, and may be needed yet."""

    def fate(self, producer: int, at: int) -> MarkerFate:
        """Return how the transaction ended whose batch begins at byte `at`; to be asked in ascending order."""
        if self._ahead is None:
            self._ahead = self._markers(at)
        seen = self._seen[producer]
        while seen and seen[0].place < (0, at):
            seen.popleft()
        if seen:
            return seen[0].fate
        for ahead in self._ahead:
            if ahead.producer != producer or ahead.place > (0, at):
                self._seen[ahead.producer].append(ahead)
                if ahead.producer == producer:
                    return ahead.fate
        return None

    def _markers(self, start: int) -> Iterator[_Marker]:
        """Yield every marker from byte `start` of the split's segment to the log's end."""
        for number, (uri, path, size) in enumerate(self._files()):
            with Segment(uri, path, size) as segment:
                for found in walk(segment, 0 if number else start, size, check=False):
                    if not isinstance(found, Damage) and found.head.control:
                        fate = _read_marker(segment, found)
                        yield _Marker((number, found.at), found.head.producer, fate)

    def _files(self) -> Iterator[tuple[str, str, int]]:
        """Yield (uri, path, size) of the split's segment and of those behind it."""
        split = self._split
        yield split.uri, split.path, split.size
        root, folder = split.root(), posixpath.dirname(split.path)
        for entry in segments(entry for entry in root.list(folder) if posixpath.dirname(entry.path) == folder):
            if entry.path > split.path:
                yield root.uri(entry.path), entry.path, entry.size


def _read_marker(segment: Segment, found: PlacedHeader) -> MarkerFate:
    """Return what a marker says; a corrupt one says nothing, and leaves the transaction open."""
    at, head = found
    batch = segment.bytes(at, head.size)
    try:
        verify(head, batch)
        return marker(head, batch)
    except BadBatch:
        return None

"""How the transactions of a Kafka log ended: by markers, which come behind the data and maybe in a later segment.

A producer has one transaction at a time; it ends with the first marker of that producer id behind its data. The
epoch is no part of the match: newer brokers raise it when a transaction ends.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Literal

from cklog.engine import Damage, Split
from cklog.parsers.kafka.batches import BadBatch, Header, marker, verify
from cklog.parsers.kafka.segment import Segment, segments, walk
from cklog.storage import Root

MarkerFate = Literal["commit", "abort"] | None
"""How a transaction ended; None: it did not."""


class SplitTransactions:
    """The fates of a split's transactions: markers are looked for forward, once, and only as far as needed."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self._ahead: Iterator[tuple[tuple[int, int], int, MarkerFate]] | None = None
        self._seen: dict[int, deque[tuple[tuple[int, int], MarkerFate]]] = defaultdict(deque)

    def fate(self, producer: int, at: int) -> MarkerFate:
        """How the transaction ended whose batch begins at byte `at`; to be asked in ascending order."""
        if self._ahead is None:
            self._ahead = self._markers(at)
        seen = self._seen[producer]
        while seen and seen[0][0] < (0, at):
            seen.popleft()
        if seen:
            return seen[0][1]
        for where, whose, kind in self._ahead:
            if whose != producer or where > (0, at):
                self._seen[whose].append((where, kind))
                if whose == producer:
                    return kind
        return None

    def _markers(self, start: int) -> Iterator[tuple[tuple[int, int], int, MarkerFate]]:
        """((file, position), producer, fate) of every marker from `start` to the log's end."""
        for number, (uri, path, size) in enumerate(self._files()):
            with Segment(uri, path, size) as segment:
                for found in walk(segment, 0 if number else start, size, check=False):
                    if not isinstance(found, Damage) and found[1].control:
                        yield (number, found[0]), found[1].producer, _ended(segment, *found)

    def _files(self) -> Iterator[tuple[str, str, int]]:
        """(uri, path, size) of the split's segment and of those behind it."""
        split = self._split
        yield split.uri, split.path, split.size
        folder = Root(_parent(split.uri))
        name = posixpath.basename(split.path)
        for entry in segments(entry for entry in folder.list() if "/" not in entry.path):
            if entry.path > name:
                yield folder.uri(entry.path), posixpath.join(posixpath.dirname(split.path), entry.path), entry.size


def _ended(segment: Segment, at: int, head: Header) -> MarkerFate:
    """What a marker says; a corrupt one says nothing, and leaves the transaction open."""
    batch = segment.bytes(at, head.size)
    try:
        verify(head, batch)
        return marker(head, batch)
    except BadBatch:
        return None


def _parent(uri: str) -> str:
    """The folder of a file, for `Root`.

    >>> _parent("/a/q-0/0.log"), _parent("s3://b/q-0/0.log?region=x")
    ('/a/q-0', 's3://b/q-0?region=x')
    """
    bare, mark, query = uri.partition("?") if "://" in uri else (uri, "", "")
    return posixpath.dirname(bare) + mark + query

"""Sets of transactions by their global ids: which of two holds the other, exactly or not at all.

    MySQL    set = source ":" interval+ ("," source ":" interval+)*      interval = ":" first ["-" last]
    MariaDB  set = domain "-" server "-" sequence ("," …)*               all of a domain up to the sequence

Sources are UUIDs. From MySQL 8.3 on transactions may have tags (`UUID:tag:1-5`): such a set is refused, not guessed at.
Of MariaDB, sequences of one domain that were written by two servers are compared with nothing: without strict mode they
need not rise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_INTERVAL = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")
_MARIADB = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})")
_LARGEST = (1 << 63) - 1

Intervals = tuple[tuple[int, int], ...]
"""(first, last) inclusive, rising, none of which touch."""


class NotGtids(ValueError):
    """Why a text is no set of ids that can be compared."""


class Gtids(NamedTuple):
    """A set of transactions: of MySQL by source, of MariaDB by domain (server, sequence); one of both is empty."""

    sources: Mapping[str, Intervals]
    domains: Mapping[str, tuple[str, int]]

    def holds(self, other: Gtids) -> bool | None:
        """Say whether all of another set is in this one; None: nothing tells."""
        if (self.sources and other.domains) or (self.domains and other.sources):
            return None
        if not all(_covers(self.sources.get(source, ()), spans) for source, spans in other.sources.items()):
            return False
        unsure = False
        for domain, (server, sequence) in other.domains.items():
            mine = self.domains.get(domain)
            if mine is None:
                return False
            if mine[0] != server:
                unsure = True
            elif mine[1] < sequence:
                return False
        return None if unsure else True


def gtids(text: str) -> Gtids:
    """Read a set.

    >>> gtids("6b2d6b0e-0000-0000-0000-000000000001:1-5:7:6").sources
    {'6b2d6b0e-0000-0000-0000-000000000001': ((1, 7),)}

    Raises
    ------
    NotGtids : it is none, or holds tags
    """
    sources: dict[str, list[tuple[int, int]]] = {}
    domains: dict[str, tuple[str, int]] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if found := _MARIADB.fullmatch(part):
            if found[1] in domains:
                raise NotGtids(f"domain {found[1]} is in a MariaDB set twice")
            domains[found[1]] = found[2], int(found[3])
            continue
        source, _, spans = part.partition(":")
        if not _UUID.fullmatch(source.strip()) or not spans:
            raise NotGtids(f"{part[:80]!r} is not a GTID of MySQL or MariaDB")
        sources.setdefault(source.strip().lower(), []).extend(_interval(span.strip()) for span in spans.split(":"))
    if sources and domains:
        raise NotGtids("GTIDs of MySQL and of MariaDB in one set")
    return Gtids({source: _merged(spans) for source, spans in sources.items()}, domains)


def _interval(text: str) -> tuple[int, int]:
    found = _INTERVAL.fullmatch(text)
    if not found:
        tagged = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,31}", text) is not None
        raise NotGtids(
            f"cklog does not compare tagged GTIDs (MySQL 8.3 and newer): tag {text}"
            if tagged
            else f"{text[:80]!r}, no span"
        )
    first, last = int(found[1]), int(found[2] or found[1])
    if not 1 <= first <= last <= _LARGEST:
        raise NotGtids(f"the span {text}")
    return first, last


def _merged(spans: list[tuple[int, int]]) -> Intervals:
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def _covers(mine: Intervals, others: Intervals) -> bool:
    """Whether each span lies within one of mine; both rise, so that one pass is enough."""
    i = 0
    for first, last in others:
        while i < len(mine) and mine[i][1] < first:
            i += 1
        if i == len(mine) or mine[i][0] > first or mine[i][1] < last:
            return False
    return True

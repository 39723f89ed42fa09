"""Output queues as bytes, whole or damaged."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from tests.oracles.operators import Choose, Record


class Damaged(NamedTuple):
    """What is left, and the positions of what is not. The first and the last record are always left."""

    records: list[Record]
    lost: list[int]


def damage(log: Sequence[Record], choose: Choose, most: int = 6) -> Damaged:
    """Lose one to `most` consecutive records from the middle of `log`, which has three or more.

    Write `records` for a log from which they were removed; the whole log with `broken=lost` for one where they
    cannot be read.
    """
    first = 1 + choose(len(log) - 2)
    lost = list(range(first, min(first + 1 + choose(most), len(log) - 1)))
    return Damaged([r for i, r in enumerate(log) if i not in lost], lost)


def to_jsonl(
    records: Sequence[Record],
    with_pos: bool = True,
    with_input: bool = True,
    broken: Collection[int] = (),
    torn: int | None = None,
) -> bytes:
    """One JSON object a line. `broken`: indices in `records` to overwrite with garbage of the same length.

    `torn`: cut the last line somewhere inside; any number will do, and another number cuts at another byte.
    """
    left_out = ({"pos"} if not with_pos else set()) | ({"input"} if not with_input else set())
    lines = [json.dumps({m: v for m, v in r.items() if m not in left_out}).encode() + b"\n" for r in records]
    for i in broken:
        lines[i] = _garbage(len(lines[i]))
    if torn is not None and lines:
        lines[-1] = lines[-1][: 1 + torn % (len(lines[-1]) - 2)]  # more than the newline is gone, less than all
    return b"".join(lines)


def _garbage(size: int) -> bytes:
    """No JSON, no UTF-8, no newline but the last."""
    return (b"\x00\xffgarbage{" * size)[: size - 1] + b"\n"

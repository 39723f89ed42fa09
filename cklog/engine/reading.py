"""How a run is read: one value for every analysis that reads anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cklog.engine.scan import Engine


class Reading(NamedTuple):
    """How a run is read.

    `engine_for` gives the engine that scans so many bytes; asking may start Spark. `split_bytes` of a file go to one
    task. `strict`: no answer is given, and nothing written, where any byte is damaged.
    """

    engine_for: Callable[[int], Engine]
    split_bytes: int
    strict: bool = False

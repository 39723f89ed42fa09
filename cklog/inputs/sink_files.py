"""What lies in the folder of a file sink, held against the log that says which files are results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SinkFiles:
    """`listed` are files by the batch whose log lists them, `unlisted` lie there and are in no log that can be read.

    Paths are relative to PATH. A compacted log lists all before under its own batch. `newest` is the newest batch of
    the log, -1 for none; `lacking` are batches below it whose log is gone or cannot be read.
    """

    listed: Mapping[int, tuple[str, ...]]
    unlisted: tuple[str, ...]
    newest: int
    lacking: tuple[int, ...]

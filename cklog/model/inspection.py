"""What `inspect` answers whatever lies there; each kind of run adds lists of rows of its own (docs/json.md)."""

from __future__ import annotations

from typing import TypedDict


class Inspection(TypedDict):
    """What is here: in a sentence, and the formats of the files."""

    summary: str
    formats: list[str]


class RunRow(TypedDict):
    """A run below PATH: its folder, as `--run` takes it, and its format."""

    run: str
    format: str


class SeveralRuns(Inspection):
    """Several runs below PATH: no one of them is looked into."""

    runs: list[RunRow]


TimeSpan = TypedDict("TimeSpan", {"from": int, "to": int})
"""The first and the last time of anything, in ms since the epoch."""

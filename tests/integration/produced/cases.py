"""Cases: a small folder, a command, and the findings that the command prints about it."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.builders.native import checkpoint
from tests.conftest import SAMPLES

Record = dict[str, Any]
Asked = Sequence[str | Path]
AB, BA = "a/0->b/0", "b/0->a/0"


@dataclass(frozen=True)
class Case:
    """`make` fills an empty folder and returns the command to ask, which ends with `exit` and prints all of `ids`."""

    ids: tuple[str, ...]
    exit: int
    make: Callable[[Path], Asked]


CASES: list[Case] = []


TOPICS = (
    *("records", "raw_events", "queues", "chains", "rounds", "stores"),
    *("spark", "flink", "kafka", "streams", "impact", "connectors", "tables"),
)


def all_cases() -> list[Case]:
    """Return the cases of all topics."""
    for topic in TOPICS:
        importlib.import_module(f"tests.integration.produced.{topic}")
    return CASES


def produces(*ids: str, exit: int) -> Callable[[Callable[[Path], Asked]], Callable[[Path], Asked]]:
    """Write down that a command prints findings and ends with an exit code."""

    def kept(make: Callable[[Path], Asked]) -> Callable[[Path], Asked]:
        CASES.append(Case(ids, exit, make))
        return make

    return kept


def sample(name: str, folder: Path) -> Path:
    """A copy of a sample, to be changed."""
    return Path(shutil.copytree(SAMPLES / name, folder / name))


def put(path: Path, *records: Record | str) -> Path:
    """A file of JSON lines; texts are written as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (one if isinstance(one, str) else json.dumps(one) + "\n" for one in records)
    path.write_text("".join(lines))
    return path


def checkpoints(folder: Path, *records: Record | str) -> Path:
    """A run folder with records of checkpoints."""
    put(folder / "checkpoints" / "part.jsonl", *records)
    return folder


def job(folder: Path, **members: Any) -> Path:
    """A run folder with a manifest."""
    put(folder / "job.json", json.dumps(members))
    return folder


def base(name: str, number: int, **more: Any) -> Record:
    """A base checkpoint that says what it cost."""
    return checkpoint(name, number, **{"form": "base", "bytes": 1000, "duration_ms": 100.0} | more)


def delta(name: str, number: int, parent: int, **more: Any) -> Record:
    """A delta on another checkpoint."""
    return checkpoint(name, number, **{"form": "delta", "parent": parent, "bytes": 100, "duration_ms": 10.0} | more)


def pair(sent: int, received: int, number: int = 1) -> tuple[Record, Record]:
    """A checkpoint of `a`, which has sent so many messages to `b`, and one of `b`, which has received so many."""
    return checkpoint("a/0", number, sent={AB: sent}), checkpoint("b/0", number, received={AB: received})


def events(folder: Path, *more: Record | str, numbered: bool = True, **told: str) -> Path:
    """Raw events of subtasks: `s0` sends message 0, `r0` receives it, `C1` is checkpoint 1, `-` skips a number.

    Messages are those of the channel from `a` to `b`. `more` are lines behind them.
    """
    records: list[Record | str] = []
    for operator, words in told.items():
        for lsn, word in enumerate(words.split()):
            kind = {"s": "send", "r": "receive", "C": "checkpoint"}.get(word[0])
            about = {"checkpoint": int(word[1:])} if word[0] == "C" else {"channel": AB, "seq": int(word[1:] or 0)}
            order = {"lsn": lsn} if numbered else {}
            if kind:
                records.append(
                    {"event": kind, "operator": operator, "subtask": 0, **order, **about, "time": 1000 + lsn}
                )
    put(folder / "events" / "part.jsonl", *records, *more)
    return folder


def log(folder: Path, *numbers: int, channel: str = AB, **more: Any) -> Path:
    """The log of a channel: a message for each number."""
    put(folder / "channels" / "part.jsonl", *({"channel": channel, "seq": n, "bytes": 10, **more} for n in numbers))
    return folder


def cut(path: Path, left: float = 0.5) -> None:
    """Leave the first part of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * left)])


def flip(path: Path, at: int) -> None:
    """Flip a bit of the byte at an offset, from the end if it is negative."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)

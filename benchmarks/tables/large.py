"""Whole commands on large inputs, and on many small files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data import size_of
from benchmarks.registry import Room, Row, Table
from benchmarks.timing import cklog

ENDINGS = (0, 3, 4)
"""A total domino has no line but where the run began: its exit code says so."""


def large(room: Room, sizes: Sequence[tuple[str, tuple[int, ...]]]) -> Iterator[Row]:
    """A row for each input: `acyclic` or `cyclic` of subtasks, channels and checkpoints, or so many `messages`."""
    for kind, numbers in sizes:
        if kind == "messages":
            folder = room.data.messages(numbers[0])
            question, name = "inspect", f"`inspect`, channel logs of {numbers[0]:,} messages"
        else:
            folder = room.data.history(*numbers, cyclic=kind == "cyclic")
            subtasks, channels, each = numbers
            said = f"{subtasks:,} subtasks, {channels:,} channels, {each:,} checkpoints each, {kind}"
            question, name = "recovery-line", f"`recovery-line`, {said}"
        command = cklog(name, question, folder, "--json", "--engine", "local", codes=ENDINGS)
        runs = room.pairs_of(command, pairs=5)
        took = (f"{runs.median(name, what):.1f}" for what in ("wall", "cpu"))
        yield (name, *took, f"{runs.median(name, 'peak'):,.0f}")


WIDE = 10_000
"""Subtasks of each source."""


def _channel_files(folder: Path, count: int) -> None:
    """A run whose channel logs are so many files of 1 kB of JSON lines: a channel each, its numbers without a gap."""
    place = folder / "channels"
    place.mkdir(parents=True)
    sources = [f'{{"name": "src{k}", "parallelism": {WIDE}}}' for k in range(-(-count // WIDE))]
    (folder / "job.json").write_text(f'{{"operators": [{", ".join(sources)}, {{"name": "join", "parallelism": 1}}]}}\n')
    for number in range(count):
        row = '{"channel":"src%d/%d->join/0","seq":%d,"time":%d,"bytes":100}\n'
        lines = [row % (*divmod(number, WIDE), seq, 1_767_225_600_000 + seq) for seq in range(14)]
        (place / f"{number:06}.jsonl").write_text("".join(lines))


def files(room: Room, sizes: Sequence[tuple[int, str]]) -> Iterator[Row]:
    """A row for each number of files and engine."""
    for count, engine in sizes:
        folder = room.data.made(f"channel-files-{count}", lambda place, n=count: _channel_files(place, n))  # type: ignore[misc]
        command = cklog(f"`inspect --engine {engine}`", "inspect", folder, "--json", "--engine", engine)
        runs = room.pairs_of(command, pairs=3)
        took = (f"{runs.median(command.name, what):.1f}" for what in ("wall", "cpu"))
        each = f"{size_of(folder / 'channels') / count:,.0f} bytes"
        yield (f"{count:,} of {each}", command.name, *took, f"{runs.median(command.name, 'peak'):,.0f}")


BIG = (500, 10_000, 1_000)

TABLES = (
    Table(
        name="large",
        columns=("command (`--json`)", "wall s", "CPU s", "peak MiB"),
        rows=large,
        quick=(("acyclic", (20, 100, 50)), ("cyclic", (20, 100, 50)), ("messages", (1_000_000,))),
        full=(
            ("acyclic", BIG),
            ("cyclic", BIG),
            ("messages", (16_000_000,)),
            ("messages", (160_000_000,)),
        ),
    ),
    Table(
        name="files",
        columns=("files of channel logs", "command", "wall s", "CPU s", "peak MiB"),
        rows=files,
        quick=((500, "local"), (500, "spark")),
        full=((20_000, "local"), (100_000, "local"), (100_000, "spark")),
        needs=("java",),
    ),
)

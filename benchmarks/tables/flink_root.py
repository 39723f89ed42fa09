"""A root of Flink checkpoints, incremental ones of one job, whole `recovery-line` with its files looked into or not.

The peer is `find`, which looks at every file and opens none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.registry import Room, Row, Table
from benchmarks.timing import Command, cklog
from tests.builders import flink as fb
from tests.builders.rocksdb import table

JOB = "0123456789abcdef" * 2
ORIGIN = "file:/mnt/flink/checkpoints"
NEW = 10


def write_root(root: Path, checkpoints: int, handles: int) -> None:
    """The checkpoints of one job, each with `handles` files: all but NEW of them those of the one before."""
    shared = root / JOB / "shared"
    shared.mkdir(parents=True)
    count = handles + NEW * (checkpoints - 1)
    names = [f"{number:08x}-0000-4000-8000-{number:012x}" for number in range(count)]
    state = table(root / "table.sst", entries=1)
    for name in names:
        (shared / name).write_bytes(state)
    files = [fb.absolute(f"{ORIGIN}/{JOB}/shared/{name}", len(state)).data for name in names]
    for number in range(checkpoints):
        keyed = incremental(files[number * NEW : number * NEW + handles])
        folder = root / JOB / f"chk-{number + 1}"
        folder.mkdir()
        operator = fb.operator(6, [fb.subtask(6, keyed=keyed)], uid="count", name="Count")
        (folder / "_metadata").write_bytes(fb.metadata(6, [operator], checkpoint=number + 1).data)


def incremental(files: list[bytes]) -> fb.Built:
    """Keyed state of these files, as `fb.incremental` makes it of a few."""
    empty = fb.incremental(fb.inline(b"meta")).data
    names = b"".join(fb.utf(f"{number:06}.sst") + file for number, file in enumerate(files))
    end = len(fb.i32(0, 0) + fb.utf("id"))
    return fb.Built(empty[:-end] + fb.i32(len(files)) + names + fb.i32(0) + fb.utf("id"))


def root_of(room: Room, checkpoints: int, handles: int) -> Path:
    """The folder of such a root."""
    return room.data.made(f"flink-{checkpoints}-{handles}", lambda place: write_root(place, checkpoints, handles))


def line_of(root: Path, *more: str) -> Command:
    """`cklog recovery-line` on a root that has moved."""
    name = " ".join(("`recovery-line", *more)) + "`"
    return cklog(name, "recovery-line", root, "--map", f"{ORIGIN}={root}", "--json", *more)


def flink_root(room: Room, sizes: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """A row for each way to look at files; a size is how many checkpoints, of how many files each."""
    for checkpoints, handles in sizes:
        root = root_of(room, checkpoints, handles)
        find = Command("`find`", ("find", str(root), "-type", "f", "-printf", "%s\n"))
        ways = [line_of(root, *more) for more in ((), ("--no-check-files",), ("--check-contents",))]
        runs = room.pairs_of(*ways, find, pairs=3)
        for way in (*ways, find):
            took = (f"{runs.median(way.name, what):.2f}" for what in ("wall", "cpu"))
            peak = f"{runs.median(way.name, 'peak'):,.0f}"
            yield (f"{checkpoints:,} of {handles:,} files", way.name, *took, peak)


TABLES = (
    Table(
        name="flink-root",
        columns=("checkpoints", "command", "wall s", "CPU s", "peak MiB"),
        rows=flink_root,
        quick=((30, 40),),
        full=((1000, 400), (10_000, 40), (1, 40_000), (1, 200_000)),
        needs=("find",),
    ),
)

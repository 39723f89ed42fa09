"""Folders that a file sink of Spark wrote to: its log, and the part files that the log lists."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from cklog.inputs.batches import FileLog
from cklog.inputs.sink_files import LostResult, SinkFiles
from cklog.parsers.spark.metadata_log import list_log, read_file_log
from cklog.storage import FileEntry, Root

SINK_LOG = "_spark_metadata"


def read_sink_log(root: Root, entries: Iterable[FileEntry], folder: str, everything: bool = False) -> FileLog:
    """Read the log of the file sink that wrote to a folder."""
    return read_file_log(root, list_log(entries, f"{folder}/{SINK_LOG}"), everything=everything)


def find_sinks(entries: Iterable[FileEntry], prefix: str) -> tuple[str, ...]:
    """Find the folders beside the checkpoint that hold a file sink's log; none if PATH is the checkpoint itself."""
    if not prefix:
        return ()
    parts = (entry.path.split("/") for entry in entries)
    return tuple(sorted({path[0] for path in parts if len(path) == 3 and path[1] == SINK_LOG}))


def find_bare_sinks(entries: Iterable[FileEntry], prefix: str) -> tuple[str, ...]:
    """Find the folders beside the checkpoint with part files as a file sink writes them, and no log of any kind.

    A batch writer leaves `_SUCCESS`, a table format its own folder.
    """
    inside: dict[str, set[str]] = {}
    for entry in entries:
        first, _, rest = entry.path.partition("/")
        if prefix and rest and first + "/" != prefix:
            inside.setdefault(first, set()).add(rest)
    return tuple(sorted(folder for folder, names in inside.items() if _looks_written(names)))


def _looks_written(names: set[str]) -> bool:
    """Return whether these are the names in a folder that a file sink without a log wrote to."""
    parts = any(name.startswith("part-") and "/" not in name for name in names)
    return parts and not any(name.startswith(("_", ".hoodie/")) for name in names)


def sink_files(root: Root, entries: Iterable[FileEntry], folder: str, log: FileLog) -> SinkFiles:
    """List the files of a sink's folder, and compare them with its log."""
    unread = {*root.refused(), *root.unfollowed()}
    found = [entry for entry in entries if _is_result(entry.path, folder)]
    here = {entry.path.removeprefix(f"{folder}/"): entry for entry in found}
    lines = [(number, line) for number, read in sorted(log.reads.items()) for line in read.value or ()]
    known = {line.path for _, line in lines if line.deleted}
    listed: dict[int, list[str]] = {}
    lost: list[LostResult] = []
    for number, line in lines:
        if line.path in known:
            continue
        known.add(line.path)
        path = unquote(line.path)
        there = _found_as(path, here)
        if there is not None:
            listed.setdefault(number, []).append(there.path)
        if there is None or (line.size not in (None, there.size) and there.path not in unread):
            place, size = (_place_in(path, folder), None) if there is None else (there.path, there.size)
            lost.append(LostResult(place, size, line.size, number, number in log.listing.compacts))
    names = {posixpath.basename(unquote(line.path)) for _, line in lines}
    whole = {number for number, read in log.reads.items() if read.flaw is None}
    first = log.listing.base if log.listing.compacts else 0
    hidden = (p for p in unread if (p == folder or _is_result(p, folder)) and posixpath.basename(p) not in names)
    return SinkFiles(
        listed={number: tuple(sorted(paths)) for number, paths in listed.items()},
        unlisted=tuple(sorted({entry.path for entry in found}.difference(*listed.values()))),
        lost=tuple(sorted(lost, key=lambda file: file.path)),
        newest=log.listing.newest,
        lacking=tuple(n for n in range(first, log.listing.newest) if n not in whole),
        unseen=min(hidden, default=""),
    )


def _found_as(stored: str, here: Mapping[str, FileEntry]) -> FileEntry | None:
    """Return the file that has a stored path, of those by their paths in the sink's folder, which may be a copy."""
    start = 0
    while start := stored.find("/", start) + 1:
        if stored[start:] in here:
            return here[stored[start:]]
    return None


def _place_in(stored: str, folder: str) -> str:
    """Return where a file of a sink's folder would lie below PATH, by its stored path."""
    _, found, inside = stored.rpartition(f"/{folder}/")
    return f"{folder}/{inside if found else posixpath.basename(stored)}"


def _is_result(path: str, folder: str) -> bool:
    """Return whether readers of a folder take a file for data: no part of its path begins with a dot or underscore."""
    inside = path.removeprefix(f"{folder}/").split("/")
    return path.startswith(f"{folder}/") and not any(part.startswith((".", "_")) for part in inside)

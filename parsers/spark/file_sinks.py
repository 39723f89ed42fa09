"""Folders that a file sink of Spark wrote to: its log, and the part files that the log lists."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from urllib.parse import unquote

from cklog.inputs.batches import FileLog
from cklog.inputs.sink_files import SinkFiles
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


def sink_files(root: Root, entries: list[FileEntry], folder: str) -> SinkFiles:
    """List the files of a sink's folder, by the batches whose log lists them."""
    log = read_sink_log(root, entries, folder)
    here = {posixpath.basename(e.path): e.path for e in entries if _is_result(e.path, folder)}
    listed: dict[int, tuple[str, ...]] = {}
    for number, found in log.reads.items():
        names = (posixpath.basename(unquote(line.path)) for line in found.value or ())
        listed[number] = tuple(sorted(here[name] for name in names if name in here))
    known = set().union(*listed.values())
    whole = {number for number, found in log.reads.items() if found.flaw is None}
    first = log.listing.base if log.listing.compacts else 0
    lacking = tuple(n for n in range(first, log.listing.newest) if n not in whole)
    return SinkFiles(listed, tuple(sorted(set(here.values()) - known)), log.listing.newest, lacking)


def _is_result(path: str, folder: str) -> bool:
    """Return whether readers of a folder take a file for data: no part of its path begins with a dot or underscore."""
    inside = path.removeprefix(f"{folder}/").split("/")
    return path.startswith(f"{folder}/") and not any(part.startswith((".", "_")) for part in inside)

"""The files that hold stored checkpoints, as rows of a plan: those below PATH that a record's `uri` leads to."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from cklog.retention.plan import RetentionRow
from cklog.storage import FileEntry, Root

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_RECORDS = re.compile(
    r"(?s)job\.json|(checkpoints|channels|events|outputs|state|system)/.*\.(jsonl(\.gz|\.zst)?|parquet|log)"
)
_STRENGTH = {"VALID": 0, "KEEP": 1, "OBSOLETE": 2}
"""Of several checkpoints that name a file, the one whose fate comes first here decides."""


class StoredFiles:
    """The files below a root, listed when they are first asked for."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @cached_property
    def _size_by_path(self) -> dict[str, int]:
        return {entry.path: entry.size for entry in self._root.list()}

    @cached_property
    def _sorted_paths(self) -> list[str]:
        return sorted(self._size_by_path)

    def of(self, uri: str | None) -> list[FileEntry]:
        """Return the files that a `uri` leads to: one, or all of a folder; none if it is not there, or not below PATH.

        Files that hold the records themselves are none of a checkpoint's.
        """
        path = None if not uri else self._path_below_root(uri)
        if not path:
            return []
        found = [path] if path in self._size_by_path else self._files_below(path + "/")
        return [FileEntry(one, self._size_by_path[one]) for one in found if not _RECORDS.fullmatch(one)]

    def _path_below_root(self, uri: str) -> str | None:
        """A stored path relative to the root, None if it is not below it."""
        if _ABSOLUTE.match(uri):
            found = self._root.resolve(uri.rstrip("/"))
            return None if found is None else self._root.inside(found)
        path = posixpath.normpath(uri)
        return None if path.startswith("..") else path

    def _files_below(self, folder: str) -> list[str]:
        """The paths that begin with `folder`, which ends in a slash."""
        start = bisect_left(self._sorted_paths, folder)
        end = bisect_left(self._sorted_paths, folder[:-1] + "0")  # "0" comes right after "/"
        return self._sorted_paths[start:end]


@dataclass(frozen=True, slots=True)
class CheckpointFate:
    """The fate of a checkpoint, as a row without a file, and where its state is stored."""

    row: RetentionRow
    uri: str | None


def rows_of(judged: Iterable[CheckpointFate], files: StoredFiles) -> Iterator[RetentionRow]:
    """Yield one row per file, sorted by path, then one per checkpoint without a file below PATH, in order.

    A file that several checkpoints name has the fate of the one that needs it most.
    """
    by_path: dict[str, RetentionRow] = {}
    bare: list[RetentionRow] = []
    for checkpoint in judged:
        entries = files.of(checkpoint.uri)
        for entry in entries:
            made = replace(checkpoint.row, path=entry.path, bytes=entry.size, file=True)
            known = by_path.get(entry.path)
            if known is None or _STRENGTH[made.fate] < _STRENGTH[known.fate]:
                by_path[entry.path] = made
        if not entries:
            bare.append(checkpoint.row)
    yield from (by_path[path] for path in sorted(by_path))
    yield from bare

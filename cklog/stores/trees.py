"""What was listed below a place: files and folders, sorted by path."""

from __future__ import annotations

import bisect
import operator
from typing import NamedTuple


class FileEntry(NamedTuple):
    """A file below the root: its relative path and its size in bytes."""

    path: str
    size: int


class Tree(NamedTuple):
    """The files and the folders below a place, each sorted by path."""

    files: tuple[FileEntry, ...]
    folders: tuple[str, ...]


def moved_below(tree: Tree, folder: str) -> Tree:
    """Return what of a tree lies below a folder, by paths relative to that."""
    found, cut = part_below(tree, folder), len(folder.rstrip("/")) + 1
    files = tuple(FileEntry(path[cut:], size) for path, size in found.files)
    return Tree(files, tuple(path[cut:] for path in found.folders))


def part_below(tree: Tree, folder: str) -> Tree:
    """Return what of a tree lies below a folder, by the same paths."""
    ends = (f"{folder.rstrip('/')}/", f"{folder.rstrip('/')}0")  # "0" comes after "/"
    a, b = (bisect.bisect_left(tree.files, end, key=operator.attrgetter("path")) for end in ends)
    c, d = (bisect.bisect_left(tree.folders, end) for end in ends)
    return Tree(tree.files[a:b], tree.folders[c:d])

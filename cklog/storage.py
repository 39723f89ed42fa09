"""Files of a run, local or at any `pyarrow.fs` URI: listed and read under one root, never outside it.

Paths inside a run are relative, with `/`. A stored absolute path (Spark and Flink write them) is looked at only
if it lies under the root or `--map OLD=NEW` says where it is now (`docs/command-line.md`).
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from pyarrow import fs

from cklog.errors import NotFound, UsageError, first_line

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://")

READ_LIMIT = 64 << 20
"""Bytes of a metadata file that are read at the most; a larger one is not metadata."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file below the root: its relative path and its size in bytes."""

    path: str
    size: int


class Tree(NamedTuple):
    """The files and the folders below a place, each sorted by path."""

    files: tuple[FileEntry, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Root:
    """The folder that PATH names, with the rewrites of `--map` (old prefix, new prefix).

    Each folder of it is listed once: a job that goes on writing does not change an answer in the making.
    """

    path: str
    maps: tuple[tuple[str, str], ...] = ()
    _listed: dict[str, Tree] = field(default_factory=dict, init=False, repr=False, compare=False)

    def require(self) -> None:
        """Raise `NotFound` unless the root, and where maps lead, can be looked at."""
        try:
            kind = _file_info(self.path).type
        except (OSError, pa.ArrowException) as error:
            raise NotFound(f"{self.path}: {first_line(error)}", _URI_HINT) from None
        if kind == fs.FileType.NotFound:
            raise NotFound(f"{self.path}: no such folder")
        if kind != fs.FileType.Directory:
            raise NotFound(f"{self.path}: not a folder", "PATH is the folder that holds the run")
        for old, new in self.maps:
            if _file_info(new).type == fs.FileType.NotFound:
                raise NotFound(f"--map {old}={new}: no such folder", "every file there would seem to be missing")

    def list(self, prefix: str = "") -> list[FileEntry]:
        """Return every file below `prefix`, sorted by path; [] if there is no such folder."""
        return [*self.tree(prefix).files]

    def tree(self, prefix: str = "") -> Tree:
        """Return every file and every folder below `prefix`, each sorted by path; they are listed once."""
        if prefix not in self._listed:
            self._listed[prefix] = self._list_tree(prefix)
        return self._listed[prefix]

    def _list_tree(self, prefix: str) -> Tree:
        """List everything below `prefix` in the file system."""
        system, base = file_system(self.path)
        found = system.get_file_info(
            fs.FileSelector(posixpath.join(base, prefix), recursive=True, allow_not_found=True)
        )
        cut = len(base.rstrip("/")) + 1
        files = [FileEntry(f.path[cut:], f.size) for f in found if f.is_file]
        folders = sorted(f.path[cut:] for f in found if not f.is_file and f.type == fs.FileType.Directory)
        return Tree(tuple(sorted(files, key=lambda entry: entry.path)), tuple(folders))

    def original(self, path: str) -> str | None:
        """Return the stored path that `resolve` makes this path of, or None if no map leads there."""
        for old, new in self.maps:
            base = os.path.abspath(_without_file_scheme(new)) if not _SCHEME.match(new) else new.rstrip("/")
            plain = os.path.abspath(_without_file_scheme(path)) if not _SCHEME.match(path) else path
            if plain == base or plain.startswith(base + "/"):
                return old.rstrip("/") + plain[len(base) :]
        return None

    def inside(self, path: str) -> str | None:
        """Return the relative path of an absolute one that lies below the root ("" is the root), else None."""
        if _SCHEME.match(self.path) and not self.path.startswith("file:"):
            root, path = self.path.partition("?")[0].rstrip("/"), path.partition("?")[0].rstrip("/")
        else:
            root = os.path.abspath(_without_file_scheme(self.path))
            path = os.path.abspath(_without_file_scheme(path))
        if path == root:
            return ""
        return path[len(root) :].lstrip("/") if path.startswith(root.rstrip("/") + "/") else None

    def below(self, folder: str) -> Root:
        """Return a folder below this one as a root of its own; "" is this one."""
        if not folder:
            return self
        bare, mark, query = self.path.partition("?") if _SCHEME.match(self.path) else (self.path, "", "")
        return Root(posixpath.join(bare, folder) + mark + query, self.maps)

    def parent(self) -> tuple[Root, str]:
        """Return the folder that holds this one, and this one's name in it."""
        bare, mark, query = self.path.partition("?") if _SCHEME.match(self.path) else (self.path, "", "")
        if not _SCHEME.match(bare):
            bare = os.path.abspath(_without_file_scheme(bare))
        above, _, name = bare.rstrip("/").rpartition("/")
        return Root((above or "/") + mark + query, self.maps), name

    def read(self, path: str, limit: int | None = READ_LIMIT) -> bytes:
        """Return the bytes of a file, `limit` of them at the most."""
        with open_file(self.uri(path)) as file:
            data: bytes = file.read(limit)
            return data

    def uri(self, path: str) -> str:
        """Return the path or URI by which `open_file` opens a relative path."""
        if _SCHEME.match(self.path):
            bare, mark, query = self.path.partition("?")
            return f"{bare.rstrip('/')}/{path}{mark}{query}"
        return os.path.join(os.path.abspath(_without_file_scheme(self.path)), path)

    def exists_outside(self, stored: str) -> int | Literal["outside"] | None:
        """Return the size in bytes of a stored absolute path, None if it is missing, or "outside": not looked at."""
        found = self.resolve(stored)
        if found is None:
            return "outside"
        info = _file_info(found)
        return int(info.size) if info.type == fs.FileType.File else None

    def resolve(self, stored: str) -> str | None:
        """Return where a stored absolute path is now, or None if that is outside the root and of every map."""
        plain = _without_file_scheme(stored)
        for old, new in self.maps:
            prefix = _without_file_scheme(old).rstrip("/")
            if plain == prefix or plain.startswith(prefix + "/"):
                rest = posixpath.normpath(plain[len(prefix) :].lstrip("/"))
                return None if rest.startswith("..") else posixpath.join(new, rest)
        root = _without_file_scheme(self.path if _SCHEME.match(self.path) else os.path.abspath(self.path)).rstrip("/")
        inside = posixpath.normpath(plain) == plain and plain.startswith(root + "/")
        return plain if inside else None


def parse_map(option: str) -> tuple[str, str]:
    """Read OLD=NEW of `--map` as a pair.

    >>> parse_map("file:///mnt/prod=copy")
    ('file:///mnt/prod', 'copy')
    """
    old, equals, new = option.partition("=")
    if not (old and equals and new):
        raise UsageError(f"--map {option}: expected OLD=NEW")
    return old, new


def open_file(uri: str) -> Any:
    """Open a path or URI as a random-access, read-only file of `pyarrow.fs`."""
    system, path = file_system(uri)
    return system.open_input_file(path)


def file_system(path: str) -> tuple[Any, str]:
    """Return the file system of a path or URI, and the path inside it."""
    if _SCHEME.match(path) and not path.startswith("file://"):
        bare, _, query = path.partition("?")
        scheme, _, rest = bare.partition("://")
        system, inner = _remote_file_system(f"{scheme}://{rest.split('/', 1)[0]}/" + (f"?{query}" if query else ""))
        rest = rest if inner.rstrip("/") == rest.split("/", 1)[0] else rest.partition("/")[2]
        return system, rest.rstrip("/")
    return _local_file_system(), os.path.abspath(_without_file_scheme(path))


def _file_info(path: str) -> Any:
    system, inner = file_system(path)
    return system.get_file_info([inner])[0]


@functools.cache
def _local_file_system() -> Any:
    return fs.LocalFileSystem()


@functools.cache
def _remote_file_system(uri: str) -> tuple[Any, str]:
    """Open one connection per scheme, authority and query, and return it with the path of its root: a bucket or ""."""
    system, inner = fs.FileSystem.from_uri(uri)
    return system, inner


def _without_file_scheme(path: str) -> str:
    """Return one path for `file:///a`, `file:/a` and `/a`; other schemes stay.

    >>> [_without_file_scheme(path) for path in ("file:///mnt/a", "file:/mnt/a", "s3://b/a")]
    ['/mnt/a', '/mnt/a', 's3://b/a']
    """
    if path.startswith("file:"):
        return "/" + path[len("file:") :].lstrip("/")
    return path


_URI_HINT = "PATH is a folder, or a URI that pyarrow.fs opens (s3://, gs://, hdfs://, abfss://)"

"""Files of a run, local or at any `pyarrow.fs` URI: listed and read under one root, never outside it.

Paths inside a run are relative, with `/`. A stored absolute path (Spark and Flink write them) is looked at only
if it lies under the root or `--map OLD=NEW` says where it is now (`docs/command-line.md`). What cannot be read, and
links that lead out of the root, a root remembers as trouble: every answer says so.
"""

from __future__ import annotations

import bisect
import errno
import operator
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cklog.budgets import budgets, over
from cklog.destinations import note_named
from cklog.errors import NotFound, Unreadable, first_line
from cklog.local_files import (
    CutSince,
    Trouble,
    UnfollowedLink,
    absolute,
    is_inside,
    is_local,
    joined,
    os_name,
    reason,
    walk,
    why_unreadable,
    without_file_scheme,
    without_query,
)
from cklog.progress import Stage, stage
from cklog.stores.files import FileInfo
from cklog.stores.local import note_listed
from cklog.stores.opening import file_info, remote_entries
from cklog.stores.opening import file_system as file_system
from cklog.stores.opening import open_file as open_file
from cklog.stores.patience import hint_of
from cklog.stores.places import located, numbered
from cklog.stores.store import store_numbered
from cklog.stores.trees import FileEntry as FileEntry
from cklog.stores.trees import Tree as Tree
from cklog.stores.trees import moved_below, part_below

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Root:
    """The folder that PATH names, with the rewrites of `--map` (old prefix, new prefix).

    Each folder of it is listed once: a job that goes on writing does not change an answer in the making. Links are
    followed out of it only with `follow_links`. `trouble` is what could not be looked at, by path or URI; the roots
    made of this one share it.
    """

    path: str
    maps: tuple[tuple[str, str], ...] = ()
    follow_links: bool = field(default=False, kw_only=True)
    store: str = field(default="", kw_only=True)
    trouble: Trouble = field(default_factory=Trouble, repr=False, compare=False, kw_only=True)
    _listed: dict[str, Tree] = field(default_factory=dict, init=False, repr=False, compare=False)
    _sizes: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Take the number of the store out of a URI that `uri` made: it is on no path that anybody sees."""
        found = located(self.path)
        if not is_local(self.path) and found.uri != self.path:
            object.__setattr__(self, "path", found.uri)
            object.__setattr__(self, "store", found.store or self.store)

    def require(self) -> None:
        """Raise an error unless the root, and where maps lead, can be looked at.

        Raises
        ------
        NotFound : there is no such folder, or what a map leads to cannot be reached
        Unreadable : the root is there, and may not be read
        OutputError : what the command writes would be in it
        """
        if self._is_local:
            note_named(os_name(without_file_scheme(self.path)))
        try:
            kind = file_info(self.path).kind if self._is_local else self._remote_kind()
        except PermissionError as error:
            raise Unreadable(f"{self.path}: {reason(error)}") from None
        except OSError as error:
            raise NotFound(f"{self.path}: {first_line(error)}", hint_of(error)) from None
        if kind == "nothing":
            raise NotFound(f"{self.path}: no such folder")
        if kind != "folder":
            raise NotFound(f"{self.path}: not a folder", "PATH is the folder that holds the run")
        why = why_unreadable(self.uri("")) if self._is_local else ""
        if why:
            raise Unreadable(f"{self.path}: {why}")
        for old, new in self.maps:
            self._require_map(old, new)

    def _remote_kind(self) -> Literal["file", "folder", "nothing"]:
        """Say what a URI leads to: its listing tells of a folder, and is needed anyhow."""
        if "" not in self._listed:
            self.take_listing(self._list_remote(Stage("", "files", None)))
        return "folder" if any(self._listed[""]) else file_info(self.uri("")).kind

    def _require_map(self, old: str, new: str) -> None:
        """Raise `NotFound` unless what a map leads to can be looked at: else every file there would seem missing."""
        hint = "otherwise every file under it would appear to be missing"
        try:
            there = file_info(self._numbered(new)).kind != "nothing"
        except OSError as error:
            raise NotFound(f"--map {old}={new}: {first_line(error)}", hint) from None
        if not there:
            raise NotFound(f"--map {old}={new}: no such folder", hint)

    def is_file(self) -> bool:
        """Return whether PATH is a file, and so no root of anything."""
        try:
            return (file_info(self.uri("")).kind if self._is_local else self._remote_kind()) == "file"
        except OSError:
            return False

    def list(self, prefix: str = "") -> list[FileEntry]:
        """Return every file below `prefix`, sorted by path; [] if there is no such folder."""
        return [*self.tree(prefix).files]

    def tree(self, prefix: str = "") -> Tree:
        """Return every file and every folder below `prefix`, each sorted by path; they are listed once."""
        if prefix not in self._listed:
            # of a store one request tells of a thousand files; and what was listed once is not listed otherwise later
            if prefix and ("" in self._listed or not self._is_local):
                self._listed[prefix] = part_below(self.tree(), prefix)
                return self._listed[prefix]
            with stage(f"listing {posixpath.join(self.path, prefix)}") as told:
                if self._is_local:
                    self._listed[prefix] = self._list_local(prefix, told)
                else:
                    try:
                        self.take_listing(self._list_remote(told))
                    except OSError as error:
                        raise Unreadable(f"{self.path}: {first_line(error)}") from None
        return self._listed[prefix]

    def _list_remote(self, told: Stage) -> Tree:
        """List everything below a URI."""
        found = remote_entries(self.uri(""))
        told.advance(len(found))
        self._require_few(len(found), "")
        files = [FileEntry(path, size) for path, size in found if size is not None]
        folders = sorted(path for path, size in found if size is None)
        return Tree(tuple(sorted(files, key=lambda entry: entry.path)), tuple(folders))

    def _list_local(self, prefix: str, told: Stage) -> Tree:
        """List everything below `prefix` on this machine; what cannot be listed becomes trouble."""
        here, base = Trouble(), self.uri("")
        note_listed(base, self.follow_links, (without_file_scheme(new) for _, new in self.maps if is_local(new)))
        found = []
        for entry in walk(base, prefix, self.follow_links, here):
            found.append(entry)
            told.advance(1)
            self._require_few(len(found), prefix)
        self.trouble.take(here, base)
        files = sorted((FileEntry(one.path, one.size) for one in found if one.size is not None), key=lambda e: e.path)
        return Tree(tuple(files), tuple(sorted(one.path for one in found if one.size is None)))

    def unfollowed(self) -> Iterator[str]:
        """Yield the paths of links that were not followed: out of the root, nowhere, or to a folder in it."""
        inside = map(self.inside, (*self.trouble.links, *self.trouble.aliases))
        yield from (path for path in inside if path)

    def unfollowed_files(self) -> tuple[FileEntry, ...]:
        """Return links that were not followed as files of no bytes: they are there, and reading one is refused."""
        return tuple(FileEntry(path, 0) for path in sorted(self.unfollowed()))

    def refused(self) -> Iterator[str]:
        """Yield the paths below the root that could not be listed or read so far."""
        yield from (path for path in map(self.inside, self.trouble.unread) if path)

    def refuse_link(self, path: str) -> None:
        """Raise `UnfollowedLink` if a path is a link that was listed and not followed."""
        if self.trouble.links and posixpath.join(self.uri(""), path) in self.trouble.links:
            raise UnfollowedLink(path)

    def _require_few(self, count: int, prefix: str) -> None:
        """Raise `OverBudget` for more files and folders than may be listed."""
        if count > (most := budgets().files):
            raise over("the number of files and folders below it", most, posixpath.join(self.path, prefix))

    @property
    def _is_local(self) -> bool:
        """Whether the root lies on this machine."""
        return is_local(self.path)

    def maps_anywhere(self) -> tuple[tuple[str, str], ...]:
        """Return the maps such that they lead to the same places from whatever folder a process runs in."""
        return tuple(
            (old, self._numbered(new) if _SCHEME.match(new) else os.path.abspath(without_file_scheme(new)))
            for old, new in self.maps
        )

    def original(self, path: str) -> str | None:
        """Return the stored path that `resolve` makes this path of, or None if no map leads there."""
        for old, new in self.maps:
            base = os.path.abspath(without_file_scheme(new)) if not _SCHEME.match(new) else without_query(new)
            plain = os.path.abspath(without_file_scheme(path)) if not _SCHEME.match(path) else without_query(path)
            if plain == base or plain.startswith(base + "/"):
                return old.rstrip("/") + plain[len(base) :]
        return None

    def inside(self, path: str) -> str | None:
        """Return the relative path of an absolute one that lies below the root ("" is the root), else None."""
        if _SCHEME.match(self.path) and not self.path.startswith("file:"):
            root, path = self.path.partition("?")[0].rstrip("/"), path.partition("?")[0].rstrip("/")
        else:
            root = os.path.abspath(without_file_scheme(self.path))
            path = os.path.abspath(without_file_scheme(path))
        if path == root:
            return ""
        return path[len(root) :].lstrip("/") if path.startswith(root.rstrip("/") + "/") else None

    def below(self, folder: str, **other: Any) -> Root:
        """Return a folder below this one as a root of its own; "" is this one. `other`: fields that it has instead."""
        if not folder:
            return self
        found, tree = replace(self, **{"path": joined(self.path, folder), **other}), self._listed.get("")
        if tree is not None and (not self._is_local or any(moved_below(tree, folder))):  # of links nothing is listed
            found.take_listing(moved_below(tree, folder))
        return found

    def with_maps(self, maps: tuple[tuple[str, str], ...]) -> Root:
        """Return this folder with more rewrites, which count after its own."""
        found = replace(self, maps=(*self.maps, *maps))
        if "" in self._listed:
            found.take_listing(self._listed[""])
        return found

    def listed_below(self, folder: str) -> Root:
        """Return a folder below this one as a root of its own that need not be listed again, with its own trouble."""
        tree, whole = self.tree(), self.uri("")
        own = Root(self.below(folder).path, self.maps, follow_links=self.follow_links, store=self.store)
        start = posixpath.join(whole, folder).rstrip("/")
        own.trouble.take_below(self.trouble, start)
        own.take_listing(moved_below(tree, folder) if folder else tree)
        return own

    def take_listing(self, tree: Tree) -> None:
        """Take what somebody has listed for what lies here."""
        self._listed[""] = tree
        if not self._is_local:
            self._sizes.update((entry.path, entry.size) for entry in tree.files)

    def parent(self) -> tuple[Root, str]:
        """Return the folder that holds this one, and this one's name in it."""
        bare, mark, query = (self.path, "", "") if self._is_local else self.path.partition("?")
        if not _SCHEME.match(bare):
            bare = os.path.abspath(without_file_scheme(bare))
        above, _, name = bare.rstrip("/").rpartition("/")
        if above.endswith(":/"):  # a bucket, which is no folder of anything
            return self, ""
        return replace(self, path=(above or "/") + mark + query), name

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the bytes of a file that is held whole, or only the first `limit` of them.

        Raises
        ------
        OverBudget : there are more, and it is not said how many are wanted
        """
        try:
            with self.open(path) as file:
                most = budgets().file if limit is None else limit
                data: bytes = file.read(min(file.size(), most))  # pyarrow allocates what it is asked for
                if limit is None and len(data) == most and file.read(1):
                    raise over("its size", most, path)
                return data
        except OSError as error:
            self.is_refused(path, error)
            raise

    def open(self, path: str) -> Any:
        """Open a file as a random-access, read-only one of `pyarrow.fs`; no link that was not followed."""
        self.refuse_link(path)
        try:
            return open_file(self.uri(path), self._listed_size(path))
        except CutSince as error:
            self.is_refused(path, error)
            raise

    def is_refused(self, path: str, error: Exception) -> bool:
        """Return whether an error says that the operating system refuses a file, which is remembered as trouble.

        A file that nobody listed need not be there.
        """
        if not isinstance(error, OSError) or error.errno is None:
            return False
        if isinstance(error, UnfollowedLink) and posixpath.join(self.uri(""), path) in self.trouble.links:
            return True  # reported as a link; one that was made since the listing is not
        if error.errno != errno.ENOENT or self._listed_size(path) is not None:
            self.trouble.unread[self.uri(path) if self._is_local else without_query(self.uri(path))] = reason(error)
        return True

    def uri(self, path: str) -> str:
        """Return the path or URI by which `open_file` opens a relative path; "" is the root itself.

        What is asked for is about to be read: where that cannot be, it is remembered as trouble.
        """
        if not self._is_local:
            bare, mark, query = self.path.partition("?")
            uri = f"{bare.rstrip('/')}/{path}{mark}{query}"
            return numbered(uri, self.store, self._sizes.get(path))
        whole = os.path.join(absolute(without_file_scheme(self.path)), path)
        if path:
            why = why_unreadable(whole)
            if why and (os.path.lexists(os_name(whole)) or self._listed_size(path) is not None):
                self.trouble.unread[whole] = why
        return whole

    def written(self, path: str) -> int | None:
        """Return when a file on this machine was last written, in ms since 1970; None: nothing says."""
        if not self._is_local:
            return None
        try:
            return os.stat(os_name(self.uri(path))).st_mtime_ns // 1_000_000
        except (OSError, ValueError):
            return None

    def _listed_size(self, path: str) -> int | None:
        """Return how many bytes a file had when it was listed, if it was: only then can it be gone since."""
        for tree in self._listed.values():
            at = bisect.bisect_left(tree.files, path, key=operator.attrgetter("path"))
            if tree.files[at : at + 1] and tree.files[at].path == path:
                return tree.files[at].size
        return None

    def look_outside(self, stored: str) -> FileInfo | None:
        """Return what stands at a stored absolute path, None: it was not looked at; what is refused becomes trouble."""
        found = self.resolve(stored)
        if found is None or self.leads_out(found):
            return None
        if not is_local(found):
            return None if "?" in stored else file_info(found)  # which would be options of a store
        try:
            return file_info(found)
        except OSError as error:
            self.trouble.unread[found] = reason(error)
            return None

    def exists_outside(self, stored: str) -> int | Literal["outside"] | None:
        """Return the size in bytes of a stored absolute path, None if it is missing, or "outside": not looked at."""
        info = self.look_outside(stored)
        if info is None:
            return "outside"
        return info.size if info.kind == "file" else None

    def leads_out(self, path: str) -> bool:
        """Return whether a link on the way to a path is not to be followed.

        It leads out of the root, and of every place that a map names.
        """
        if self.follow_links or not self._is_local:
            return False
        bases = [self.path, *(new for _, new in self.maps)]
        local = [os.path.realpath(os_name(without_file_scheme(base))) for base in bases if "://" not in base]
        return "://" not in path and not any(is_inside(os_name(path), base) for base in local)

    def resolve(self, stored: str) -> str | None:
        """Return where a stored absolute path is now, or None if that is outside the root and of every map."""
        plain = without_file_scheme(stored)
        for old, new in self.maps:
            prefix = without_file_scheme(old).rstrip("/")
            if plain == prefix or plain.startswith(prefix + "/"):
                rest = posixpath.normpath(plain[len(prefix) :].lstrip("/"))
                if rest.startswith(".."):
                    return None
                return joined(self._numbered(new), rest)
        if not self._is_local:
            inner = self.inside(stored) if "?" not in stored and ".." not in stored.split("/") else None
            return self.uri(inner) if inner else None
        root = without_file_scheme(os.path.abspath(self.path)).rstrip("/")
        inside = posixpath.normpath(plain) == plain and plain.startswith(root + "/")
        return plain if inside else None

    def _numbered(self, place: str) -> str:
        """Return a place beside this root as what opens it: in a store, by the same options."""
        return place if is_local(place) else numbered(place, self.store)

    def take_refused(self) -> None:
        """Remember as trouble what a store did not give, whoever asked for it."""
        if not self._is_local or self.store:
            for uri, why in store_numbered(self.store).refused.items():
                if self.inside(uri) is not None or any(uri.startswith(without_query(new)) for _, new in self.maps):
                    self.trouble.unread.setdefault(uri, why)

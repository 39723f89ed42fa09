"""Where the bytes of a piece of Flink's state are: in the metadata, or in a file that it names.

A relative name means a file beside the metadata. An absolute one is of the place where the snapshot was written: the
file is looked for where a map says; without one beside the metadata, and in the job's folder if that is above it, by
the same way on from the job's id. Nothing outside the folder that PATH names, and those that maps name, is opened.
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import budgets
from cklog.engine.scan import Split
from cklog.errors import first_line
from cklog.parsers.flink.java import Cursor
from cklog.storage import open_file
from cklog.stores.places import without_size

_JOB = re.compile(r"[0-9a-f]{32}")

_BEYOND_A_PATH = re.compile("[?#]")
"""A stored name must not become a part of a remote URI that says with whom to speak."""


class ByteStretch(NamedTuple):
    """A stretch of bytes: of a file, or (`at`) of the metadata itself. `bytes` None: the writer did not know."""

    name: str
    file: str | None
    start: int | None
    bytes: int | None
    scope: str | None = None
    at: int | None = None


class SnapshotContents:
    """A reader of pieces of state for one snapshot, `split` being its metadata; `Budgets.archive` bounds it."""

    def __init__(self, split: Split) -> None:
        self._split, self._root = split, split.root()
        self._left = budgets().archive

    def of(self, data: bytes, piece: ByteStretch) -> Cursor | str:
        """Return the bytes of a piece, `data` being the metadata; or a sentence why they are not there."""
        if piece.at is not None:
            return Cursor(data, piece.at, piece.at + (piece.bytes or 0))
        if piece.file is None:
            return Cursor(b"")
        found = candidates(self._split, piece.file)
        for uri in found.uris:
            if self._root.leads_out(uri):
                return f"{piece.file} lies behind a link that is not followed"
            try:
                with open_file(uri) as file:
                    start = piece.start or 0
                    size = max(file.size() - start, 0)
                    size = size if piece.bytes is None else min(size, piece.bytes)
                    if size > self._left:
                        return f"{size} bytes of state, more than is read"
                    self._left -= size
                    file.seek(start)
                    return Cursor(file.read(size))
            except FileNotFoundError:
                continue
            except (OSError, ValueError, *ARROW_ERRORS) as error:
                return f"{piece.file} cannot be read: {first_line(error)}"
        return _why_not_there(self._split, piece.file, found)


class StoredFilePlaces(NamedTuple):
    """Where a stored file may be, the likeliest first; `known`: a map, or its own name, says that it is there."""

    uris: list[str]
    known: bool


def candidates(split: Split, stored: str) -> StoredFilePlaces:
    """Return the URIs at which a stored file may be found: below PATH, or where a map leads.

    >>> split = Split("s3://b/copy/ab/chk-1/_metadata?region=x", "chk-1/_metadata", "", 0, 9, 9)
    >>> candidates(split, "77-88").uris
    ['s3://b/copy/ab/chk-1/77-88?region=x']
    >>> candidates(Split("/r/chk-1/_metadata", "chk-1/_metadata", "", 0, 9, 9, (("s3://b", "/s"),)), "s3://b/7").uris
    ['/s/7']
    """
    here = without_size(split.uri) if "://" in split.uri else split.uri
    bare, mark, query = here.partition("?") if "://" in here else (here, "", "")
    folder = posixpath.dirname(bare)
    if ":" not in stored and not stored.startswith("/"):
        inner = posixpath.normpath(stored)
        found, known = [] if inner.startswith("..") else [posixpath.join(folder, inner)], True
    else:
        mapped = split.root().resolve(stored)
        if mapped is not None:
            remote = "://" in mapped and _BEYOND_A_PATH.search(stored)
            return StoredFilePlaces([] if remote else [mapped], known=True)
        found, known = [posixpath.join(folder, posixpath.basename(stored))], False
        found += _places_below_job(split.path, bare, stored)
    safe = [one for one in found if "://" not in one or not _BEYOND_A_PATH.search(one.removeprefix(folder))]
    return StoredFilePlaces([one + mark + query for one in safe], known)


def _why_not_there(split: Split, stored: str, looked: StoredFilePlaces) -> str:
    """Say why a stored file was not found: it is missing, or nobody knows where it is."""
    bare, shown = split.uri, looked.uris
    if "://" in split.uri:
        bare, *shown = (uri.partition("?")[0] for uri in (split.uri, *looked.uris))
    places = " nor ".join(uri.removeprefix(bare.removesuffix(split.path)) for uri in shown)
    if not places:
        return f"{stored} leads out of the snapshot's folder, and was not looked at"
    if looked.known:
        return f"{stored} is missing: there is no {places}"
    return f"{stored} lies outside PATH, and there is no {places}: say where it is with --map OLD=NEW"


def _places_below_job(path: str, bare: str, stored: str) -> list[str]:
    """Return the place of an absolute file in the job's folder above the metadata, if that folder is PATH or below it.

    `bare` is the metadata's URI without a query, and ends in its `path`.

    >>> job = "0123456789abcdef0123456789abcdef"
    >>> path, stored = f"jobs/{job}/chk-1/_metadata", f"file:/mnt/{job}/taskowned/7"
    >>> _places_below_job(path, f"/copy/{path}", stored) == [f"/copy/jobs/{job}/taskowned/7"]
    True
    >>> _places_below_job("chk-1/_metadata", f"/copy/{job}/chk-1/_metadata", stored) == [f"/copy/{job}/taskowned/7"]
    True
    """
    if not bare.endswith("/" + path):
        return []
    root, _, name = bare[: -len(path) - 1].rpartition("/")
    above = [name, *path.split("/")[:-1]]
    jobs = [part for part in above if _JOB.fullmatch(part)]
    parts = stored.split("/")
    if not jobs or jobs[-1] not in parts:
        return []
    rest = parts[parts.index(jobs[-1]) + 1 :]
    if not rest or any(part in ("", ".", "..") for part in rest):
        return []
    last = len(above) - 1 - above[::-1].index(jobs[-1])
    return ["/".join([root, *above[: last + 1], *rest])]

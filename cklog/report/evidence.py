"""The files that decided, with their hashes: so that somebody else can tell that they look at the same input."""

from __future__ import annotations

import hashlib
from itertools import groupby

from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Answer
from cklog.report.model import EvidenceFile
from cklog.storage import FileEntry, Root

_MOST_BYTES = 64 << 20
_MOST_FILES = 5_000
_SINGLE = 1 << 20  # bytes of a file that gets a row of its own where it is named by what decided
_BLOCK = 1 << 20


def evidence_of(root: Root, line: Answer[RecoveryLine]) -> tuple[tuple[EvidenceFile, ...], int]:
    """Return what lies at the top of a run, hashed within a budget, and how many files are not hashed.

    Small metadata goes first, and what the answer says that it read; state, which may be of any size, last.
    """
    if root.is_file():
        return (), 0
    files = sorted(root.list(), key=lambda entry: entry.path.encode("utf-8", "surrogateescape"))
    named = {used.path for used in line.inputs}
    decided = {path for path in named if not path.endswith("/")} | {
        entry.path for entry in files if entry.path.rpartition("/")[2] == "_metadata"
    }
    single = [entry for entry in files if "/" not in entry.path or (entry.path in decided and entry.size <= _SINGLE)]
    rows = [(entry.path, [entry]) for entry in single]
    alone = {entry.path for entry in single}
    rest = (entry for entry in files if entry.path not in alone)
    rows += [(f"{top}/", list(group)) for top, group in groupby(rest, key=lambda entry: entry.path.partition("/")[0])]
    rows.sort(key=lambda row: (not any(row[0] == path or row[0].startswith(path) for path in named), len(row[1]) > 1))
    found, spent, count, left = [], 0, 0, 0
    for path, entries in rows:
        size = sum(entry.size for entry in entries)
        fits = spent + size <= _MOST_BYTES and count + len(entries) <= _MOST_FILES
        digest = _digest(root, path, entries) if fits else None
        if fits:
            spent, count = spent + size, count + len(entries)
        left += 0 if digest else len(entries)
        found.append(EvidenceFile(path, len(entries), size, digest))
    return tuple(sorted(found, key=lambda row: row.path)), left


def _digest(root: Root, path: str, entries: list[FileEntry]) -> str | None:
    """Return the hash of a file, or of what `sha256sum` prints of all files of a folder; None: one cannot be read."""
    try:
        if not path.endswith("/"):
            return _file_digest(root, path)
        listing = hashlib.sha256()
        for entry in entries:
            name = entry.path.encode("utf-8", "surrogateescape")
            listing.update(_file_digest(root, entry.path).encode() + b"  " + name + b"\n")
        return listing.hexdigest()
    except OSError as error:
        root.is_refused(path, error)
        return None


def _file_digest(root: Root, path: str) -> str:
    found = hashlib.sha256()
    with root.open(path) as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()

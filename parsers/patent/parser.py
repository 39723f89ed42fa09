"""Checkpoint stores in the layout of US patent 9,471,438 (adaptive incremental checkpointing): base and delta by key.

    {operator}/            a LevelDB with the checkpoints of an operator ("store entry"), or
    {operator}.jsonl       the same exported, a key and its value a line; .jsonl.gz, .jsonl.zst; PATH may be one LevelDB
    variables.json         optional: {operator: [names of its incremental variables, in the order of serialization]}

    of checkpoint K
    K NON                  the variables that are always stored in full, one behind the other
    K INCR                 the variables that are stored as base or delta, one behind the other
    K INDEX                an entry for each of these: form, start in K INCR; of a delta also the checkpoint with the
                           previous version, and the place of its entry in the INDEX of that checkpoint
    "K NON 0", …, "K NON H"   a large value instead in chunks of C bytes, and a header {C, last index, last size}

A part without variables is an empty value, so all three belong to every checkpoint. The patent has K NON deleted at
once when a checkpoint is to go, and the rest when no delta builds on it any longer: without its NON a checkpoint still
serves those that build on it. Which checkpoints are marked for deletion is kept in the memory of the writer and is not
in the store. Nothing in it has a checksum (LevelDB's blocks have): a changed digit of an export may go unseen. Index
data compressed or in columns, which the patent mentions, is not read. How numbers are encoded is in
`cklog.parsers.patent.keys`.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from cklog.budgets import reading
from cklog.engine.damage import DamageTally
from cklog.engine.scan import DAMAGE_LISTED, Damage, Split
from cklog.errors import UsageError
from cklog.inputs.damage import damage_findings
from cklog.inputs.offers import Format, KindName
from cklog.inputs.pieces import PIECES, PiecesRead, Together
from cklog.model.findings import Finding, InputUsed, Where
from cklog.model.names import Subtask
from cklog.model.verdict import UNKNOWN_VERSION, error_without_records
from cklog.parsers.patent import export as patent_export
from cklog.parsers.patent import leveldb as patent_leveldb
from cklog.parsers.patent.pieces import GatheredValues, rows_of
from cklog.parsers.patent.values import StoredValue
from cklog.parsers.tables.records import NotARecord, batch_of_rows, strict_json
from cklog.parsers.tables.records_parser import whole_folder
from cklog.progress import Stage, stage
from cklog.storage import FileEntry, Root

READER = "cklog.parsers.patent.parser:read"
NAMES = "variables.json"


class _Store(NamedTuple):
    """The store of one operator: the file of an export, or the files of a LevelDB. `unread`: why nobody looks at it."""

    operator: str
    path: str
    files: tuple[FileEntry, ...]
    leveldb: bool
    unread: str = ""

    def stored(self, root: Root) -> Iterator[StoredValue | Damage]:
        """Read all keys with their values, and what is damaged."""
        if self.unread:
            return iter([Damage(self.path, "unreadable-file", None, self.unread)])
        if self.leveldb:
            return patent_leveldb.stored_in(root, self.path, self.files)
        return patent_export.stored_in(root, self.files[0])


class PatentStore(Format):
    """A folder of checkpoint stores; see the module's head for the layout."""

    name = "patent-store"
    kind: KindName = "pieces"
    tables: ClassVar = {"pieces": PIECES}
    gathers = True
    restored_together: Together = "subtask"
    """Each operator numbers its checkpoints by itself, and its variables come and go."""

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether there is a LevelDB, or a file that begins as an export does."""
        entries = root.list()
        return any(map(patent_leveldb.is_whole, patent_leveldb.folders_of(entries).values())) or any(
            "/" not in entry.path and patent_export.suffix_of(entry.path) and patent_export.is_export(root, entry)
            for entry in entries
        )

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders that hold stores, one for each operator."""
        entries = root.list()
        stores = [f for f, files in patent_leveldb.all_folders(entries).items() if patent_leveldb.is_whole(files)]
        exports = [e for e in entries if patent_export.suffix_of(e.path) and patent_export.is_export(root, e)]
        return sorted({posixpath.dirname(f) for f in stores} | {posixpath.dirname(e.path) for e in exports})

    def __init__(self, root: Root) -> None:
        self._root = root

    def pieces(self) -> PiecesRead:
        """Read every variable of every checkpoint, and each checkpoint's NON and INDEX as the piece "".

        Raises
        ------
        CorruptInput, Unreadable : nothing of any store can be read
        """
        return self._stores_read

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return what is wrong with the stores."""
        return self._stores_read.findings

    def splits(self, table: str, split_bytes: int) -> tuple[Split, ...]:
        """Return one split, of all pieces."""
        return whole_folder(self._root, READER)

    @cached_property
    def _stores_read(self) -> PiecesRead:
        stores = _list_stores(self._root)
        names, findings = self._read_variable_names()
        rows: list[dict[str, Any]] = []
        used, bare = [], []
        for store in stores:
            size = sum(entry.size for entry in store.files)
            with stage(f"reading the store of {store.operator}", "bytes", size, size=size) as told:
                checkpoints, found, count = self._gather_values(store, told)
            findings += found
            unknown = any(finding.id == UNKNOWN_VERSION for finding in found)
            more, flaws = rows_of(store.operator, checkpoints, names.get(store.operator), unknown)
            rows += more
            findings += flaws
            bare += [] if more else [Subtask(store.operator, 0)]
            used.append(InputUsed(store.path or ".", self.name, size, count))
        for operator in sorted({*names} - {store.operator for store in stores}):
            message = f"{NAMES} names the variables of {operator}, and no store of it is here"
            findings.append(Finding("missing-file", "error", operator, message, (Where(NAMES),), effect="older-line"))
            bare.append(Subtask(operator, 0))
        if not rows:
            what = f"{self._root.path}: no checkpoint can be read{'' if findings else ': its stores are empty'}"
            hint = "of a damaged LevelDB, LevelDB's own repair of a copy may bring something back"
            raise error_without_records(what, findings, hint if any(s.leveldb for s in stores) else "")
        return PiecesRead(pa.Table.from_pylist(rows, PIECES), tuple(findings), tuple(used), bare=tuple(bare))

    def _gather_values(self, store: _Store, told: Stage) -> tuple[GatheredValues, list[Finding], int]:
        """Read the values of a store by checkpoint, what is damaged in it, and how many pairs there were."""
        checkpoints, tally, count = GatheredValues(), DamageTally(DAMAGE_LISTED), 0
        unknown: list[Damage] = []
        for item in store.stored(self._root):
            if isinstance(item, StoredValue):
                checkpoints.add(item)
                count += 1
                if store.leveldb:  # an export is counted as it is read
                    told.advance(item.size)
            elif item.id == "unknown-key":
                unknown += [item] if not unknown else []
            else:
                tally.add(item)
        findings = damage_findings(tally.damage())
        if not store.unread and not any(entry.size for entry in store.files):
            message = f"{store.path} holds nothing: written but never filled, or cut to 0"
            findings.append(Finding("empty-file", "warning", store.path, message, where=(Where(store.path),)))
        for first in unknown:
            message = f"{first.path}: {first.detail}; such keys are left out"
            places = (Where(first.path, first.offset),)
            findings.append(Finding("unknown-key", "warning", first.path, message, where=places))
        return checkpoints, findings, count

    def _read_variable_names(self) -> tuple[Mapping[str, Sequence[str]], list[Finding]]:
        """Read the names of variables by operator, if the folder gives any, and what is wrong with them."""
        if not any(entry.path == NAMES for entry in self._root.list()):
            return {}, []
        try:
            with reading(NAMES):
                return _check_variable_names(strict_json(self._root.read(NAMES).rstrip(b"\n"))), []
        except (NotARecord, OSError) as error:
            message = f"{NAMES}: {error}; it is ignored, and variables are named by their numbers"
            return {}, [Finding("bad-manifest", "error", NAMES, message, (Where(NAMES),), effect="unknown")]


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read all pieces; a `cklog.engine.scan.Reader`. What is wrong is among the findings."""
    pieces = PatentStore(split.folder()).pieces().table
    yield batch_of_rows(({**row, "_path": row["path"]} for row in pieces.to_pylist()), PIECES, columns)


def _list_stores(root: Root) -> list[_Store]:
    """List the stores below a root, by operator.

    An export is told by its suffix alone once the folder is known: damage at its beginning must not hide it. Neither
    must that a folder has its name, or that it is a link that is not followed, which any store may be.

    Raises
    ------
    UsageError : two stores of one operator
    """
    linked = root.unfollowed_files()
    entries = sorted([*root.list(), *linked], key=lambda entry: entry.path)
    stores = [
        _Store(folder or root.parent()[1], folder, tuple(files), leveldb=True)
        for folder, files in patent_leveldb.folders_of(entries).items()
    ]
    taken = {store.path for store in stores}
    unread = {path: "a folder lies where an export would" for path in root.tree().folders if path not in taken}
    for entry in (*root.list(), *(FileEntry(path, 0) for path in unread)):
        suffix = patent_export.suffix_of(entry.path)
        if suffix and "/" not in entry.path:
            why = unread.get(entry.path, "")
            stores.append(_Store(entry.path.removesuffix(suffix), entry.path, (entry,), leveldb=False, unread=why))
    for entry in linked:
        if "/" not in entry.path:
            name = entry.path.removesuffix(patent_export.suffix_of(entry.path) or "")
            stores.append(_Store(name, entry.path, (entry,), leveldb=False, unread="it is a link that is not followed"))
    stores.sort(key=lambda store: (store.operator, store.path))
    for store, after in pairwise(stores):
        if store.operator == after.operator:
            message = f"{store.path or '.'} and {after.path or '.'} are both a store of operator {store.operator}"
            raise UsageError(message, "PATH is a folder with one store for each operator")
    return stores


def _check_variable_names(found: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """Return the names of variables by operator, from the JSON of `NAMES`.

    Raises
    ------
    NotARecord : they are not lists of different names
    """
    for operator, names in found.items():
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise NotARecord(f"{json.dumps(operator)[:40]} is not a list of names")
        if not all(name.encode("utf-8", "replace") == name.encode("utf-8", "surrogatepass") for name in names):
            raise NotARecord("a name holds half a surrogate pair")
        if len(set(names)) < len(names):
            raise NotARecord(f"{json.dumps(operator)[:40]} names a variable twice")
    return found

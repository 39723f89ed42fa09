"""Column families of RocksDB folders, read without writing to them.

    STORE/  CURRENT  MANIFEST-N  OPTIONS-N  N.log  N.sst  …

Whoever opens a RocksDB writes to its folder. So it is another folder that is opened, a temporary one: a copy of the
small files, with links to the tables, which nobody ever changes (copies, too, if they are not on a local disk). It is
opened read-only, by a process of its own (`cklog.parsers.kafka.state.child`), and removed whatever happens. Which
column families there are is told by the manifest, without any library.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import os
import posixpath
import re
import select
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import PAIRS, VALUE_BYTES, budgets
from cklog.errors import first_line
from cklog.isolation import DEVNULL, PIPE, own_import_path, start_python
from cklog.parsers.codecs.record_log import check_record_log, joined_records
from cklog.parsers.kafka.state import child
from cklog.progress import stage
from cklog.storage import FileEntry, Root

if TYPE_CHECKING:
    import subprocess

LIBRARY = "rocksdict"
NOT_INSTALLED = "RocksDB is read with rocksdict, which is not installed: pip install 'cklog[rocksdb]'"
_FILE = re.compile(r"CURRENT|IDENTITY|(MANIFEST|OPTIONS)-\d+|\d+\.(log|sst|blob)")
_TABLES = (".sst", ".blob")
_CURRENT = re.compile(rb"MANIFEST-\d+\n")
_FAMILY_ADDED = b"\xc9\x01"
"""The tag of a manifest's record that adds a column family: its name follows, behind its length."""

_SECONDS = 60
_COPIED_BYTES = 8 << 20


class FamilyRead(NamedTuple):
    """The pairs of a column family; `why` they were not read, "" if they were."""

    pairs: Mapping[bytes, bytes]
    why: str = ""


def is_installed() -> bool:
    """Return whether the library is there that reads RocksDB."""
    return importlib.util.find_spec(LIBRARY) is not None


def databases(entries: Iterable[FileEntry]) -> dict[str, list[FileEntry]]:
    """Return {folder: the files of its RocksDB}, for every folder with a database that was begun."""
    return {folder: files for folder, files in folders(entries).items() if is_begun(files)}


def folders(entries: Iterable[FileEntry]) -> dict[str, list[FileEntry]]:
    """Return {folder: files} of every folder with files that are named as those of a RocksDB."""
    found: dict[str, list[FileEntry]] = {}
    for entry in entries:
        folder, _, name = entry.path.rpartition("/")
        if _FILE.fullmatch(name):
            found.setdefault(folder, []).append(entry)
    return found


def is_begun(files: Iterable[FileEntry]) -> bool:
    """Return whether RocksDB finds a database among these files: it begins at CURRENT, even an empty one."""
    return any(_name(entry) == "CURRENT" for entry in files)


class Flaw(NamedTuple):
    """What is wrong with a file of a RocksDB at byte `at`, and what RocksDB does then.

    `unknown`: a later RocksDB may have written it so.
    """

    path: str
    at: int
    why: str
    unknown: bool = False


def flaw_of(root: Root, files: Sequence[FileEntry]) -> Flaw | None:
    """Return what is wrong with the CURRENT of a database that was begun, or with its manifest; None: nothing is known.

    Of a folder with nothing but a CURRENT and logs the other files were not copied. OSError if a file cannot be read.
    """
    named = {_name(entry): entry for entry in files}
    current = named["CURRENT"].path
    data = root.read(current)
    if not _CURRENT.fullmatch(data):
        return Flaw(current, 0, "it does not name a manifest. RocksDB refuses to open the store")
    manifest = named.get(data.decode().rstrip())
    if manifest is None:
        why = f"it names {data.decode().rstrip()}, which is missing. RocksDB refuses to open the store"
        copied = any(name != "CURRENT" and not name.endswith(".log") for name in named)
        return Flaw(current, 0, why) if copied else None
    log = root.read(manifest.path)
    found = check_record_log(lambda at, count: log[at : at + count], len(log))
    reserved = found is not None and found.at > 0 and not any(log[found.at :])  # RocksDB stops there
    if found is None or reserved:
        return None
    if found.unknown:
        return Flaw(manifest.path, found.at, found.why, unknown=True)
    then = "RocksDB refuses to open the store, or opens it without its newest records"
    return Flaw(manifest.path, found.at, f"{found.why}. {then}")


def has_family(root: Root, files: Sequence[FileEntry], family: str) -> bool:
    """Return whether a manifest of the RocksDB names a column family; OSError if it cannot be read."""
    name = family.encode()
    added = _FAMILY_ADDED + bytes([len(name)]) + name
    manifests = (root.read(entry.path) for entry in files if _name(entry).startswith("MANIFEST-"))
    return any(added in data or added in joined_records(data) for data in manifests)


def read_family(root: Root, stores: Mapping[str, Sequence[FileEntry]], family: str) -> dict[str, FamilyRead]:
    """Read a column family of each RocksDB, given as {folder: files}; what cannot be read says why."""
    if not stores or not is_installed():
        return {folder: FamilyRead({}, NOT_INSTALLED) for folder in stores}
    found = {}
    with _ReadingChild() as reader, stage("reading offsets in stores", "stores", len(stores)) as told:
        for folder, files in stores.items():
            with tempfile.TemporaryDirectory(prefix="cklog-") as copy:
                try:
                    _copy(root, files, Path(copy))
                    found[folder] = reader.read(copy, family)
                except (OSError, *ARROW_ERRORS) as error:
                    found[folder] = FamilyRead({}, first_line(error).replace(copy, "the copy"))
            told.advance(1)
    return found


def _copy(root: Root, files: Sequence[FileEntry], copy: Path) -> None:
    """Put the files of a RocksDB into the folder `copy`: tables as links where that can be, all else as copies."""
    local = "://" not in root.path
    needed = sum(entry.size for entry in files if not (local and _name(entry).endswith(_TABLES)))
    free = shutil.disk_usage(copy).free
    if needed > free:
        raise OSError(f"a copy needs {needed} bytes of temporary space, and {free} are free: set TMPDIR")
    for entry in files:
        there = copy / _name(entry)
        if local and _name(entry).endswith(_TABLES):
            os.symlink(root.uri(entry.path), there)
            continue
        with root.open(entry.path) as file, there.open("wb") as out:
            while data := file.read(_COPIED_BYTES):
                out.write(data)
    if not _CURRENT.fullmatch((copy / "CURRENT").read_bytes()):
        raise OSError("CURRENT does not name a manifest")  # the library would follow it anywhere


class _ReadingChild:
    """The process that opens copies, begun when it is needed, and again if it ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _ReadingChild:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def read(self, copy: str, family: str) -> FamilyRead:
        """Return a column family of the RocksDB in the folder `copy`."""
        line = self._ask(json.dumps([copy, family]).encode() + b"\n")
        if line is None:
            self._end()
            return FamilyRead({}, "the process that read it ended, or took too long")
        answer = json.loads(line)
        if "error" in answer:
            why = next(iter(str(answer["error"]).splitlines()), "no reason given")
            return FamilyRead({}, why.replace(f"{copy}/", "").replace(copy, "the copy"))
        return FamilyRead({bytes.fromhex(key): bytes.fromhex(value) for key, value in answer["pairs"]})

    def _ask(self, question: bytes) -> bytes | None:
        """Return the answer to a line; None if there is none."""
        if self._process is None:
            # its source: inside a zip on an executor the module is not a file
            limits = (str(limit) for limit in (budgets().memory, PAIRS, VALUE_BYTES))
            self._process = start_python(
                ["-c", inspect.getsource(child), *limits],
                own_import_path(),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
            )
        asked, told = self._process.stdin, self._process.stdout
        assert asked is not None
        assert told is not None
        try:
            asked.write(question)
            asked.flush()
            ready, _, _ = select.select([told], [], [], _SECONDS)
            return (told.readline() or None) if ready else None
        except OSError:
            return None

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(OSError):
                self._process.communicate()
            self._process = None


def _name(entry: FileEntry) -> str:
    return posixpath.basename(entry.path)

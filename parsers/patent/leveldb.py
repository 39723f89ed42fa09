"""A store of the patent's layout in LevelDB: a folder with CURRENT, MANIFEST-*, *.log and *.ldb (or *.sst) files.

Whoever opens a LevelDB writes in its folder: it replays the log into a new table, begins a new manifest and deletes old
files. So it is a copy that is opened, in a temporary folder of its own, and never repaired. What CURRENT names is
looked at first, for LevelDB would follow it anywhere.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from cklog.budgets import budgets, inflated_of, over, reading
from cklog.engine.scan import Damage, damage_of
from cklog.errors import EngineError, UsageError
from cklog.model.findings import Where
from cklog.parsers.codecs.leveldb_table import claims_of
from cklog.parsers.codecs.sst_blocks import SstFlaw
from cklog.parsers.patent.export import no_key, stored
from cklog.parsers.patent.keys import key_of
from cklog.parsers.patent.values import StoredValue
from cklog.storage import FileEntry, Root
from cklog.unknown_formats import UnknownFormat

_FILE = re.compile(r"CURRENT|MANIFEST-\d+|\d+\.(?:log|ldb|sst)")
_CURRENT = re.compile(rb"MANIFEST-\d+\n")
_NOT_OURS = re.compile(r"IDENTITY|OPTIONS-\d+")
_TABLES = (".ldb", ".sst")
_NOT_KNOWN = re.compile("unknown record type|unknown tag|does not match existing comparator|bad block type")
_COPIED_BYTES = 8 << 20


def folders_of(entries: Sequence[FileEntry]) -> dict[str, list[FileEntry]]:
    """Return {folder: its LevelDB files} of the root ("") and the folders in it."""
    return {folder: files for folder, files in all_folders(entries).items() if "/" not in folder}


def all_folders(entries: Sequence[FileEntry]) -> dict[str, list[FileEntry]]:
    """Return {folder: its LevelDB files}, however deep; a folder with files that only RocksDB writes is none."""
    found: dict[str, list[FileEntry]] = {}
    foreign = set()
    for entry in entries:
        folder, _, name = entry.path.rpartition("/")
        if _NOT_OURS.fullmatch(name):
            foreign.add(folder)
        if _FILE.fullmatch(name):
            found.setdefault(folder, []).append(entry)
    return {folder: files for folder, files in found.items() if folder not in foreign and any(_has_beginning(files))}


def is_whole(files: Sequence[FileEntry]) -> bool:
    """Return whether both files are there from which LevelDB begins to read."""
    return all(_has_beginning(files))


def _has_beginning(files: Sequence[FileEntry]) -> tuple[bool, bool]:
    """Return whether there is a CURRENT, and whether there is a manifest."""
    names = [entry.path.rpartition("/")[2] for entry in files]
    return "CURRENT" in names, any(name.startswith("MANIFEST") for name in names)


def stored_in(root: Root, folder: str, files: Sequence[FileEntry]) -> Iterator[StoredValue | Damage]:
    """Read every key with its value, and as damage what of the store cannot be read.

    Raises
    ------
    EngineError : plyvel is not installed
    UsageError : there is no room for a copy
    """
    leveldb = _import_plyvel()
    with tempfile.TemporaryDirectory(prefix="cklog-") as copy:
        try:
            _copy_files(root, files, Path(copy))
            if not (Path(copy) / "CURRENT").exists():
                yield Damage(folder or ".", "corrupt-file", None, "it has no CURRENT, which names its manifest")
                return
            if not _CURRENT.fullmatch((Path(copy) / "CURRENT").read_bytes()):
                yield Damage(folder or ".", "corrupt-file", None, "CURRENT does not name a manifest")
                return
            wrong, strict = _look_at_tables(Path(copy), folder, sum(entry.size for entry in files))
            if wrong is not None:
                yield wrong
                return
            database, fault = _open_copy(leveldb, copy, strict)
        except (leveldb.Error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                yield damage_of(folder or ".", error)  # refused: nothing is known of the store
                return
            yield _refusal(folder, "cannot be opened", _reason_of(error, copy))
            return
        if fault:
            yield _refusal(folder, "what was written last is damaged", fault)
        try:
            pairs = _read_pairs(leveldb, database, folder, copy)
            yield from _within_budget(pairs, folder, sum(entry.size for entry in files))
        finally:
            database.close()


def _refusal(folder: str, what: str, why: str) -> Damage:
    """Return what is said of a store that LevelDB does not open, or not read on; LevelDB says what it does not know."""
    if _NOT_KNOWN.search(why):
        return Damage(folder or ".", UnknownFormat.id, None, why)
    return Damage(folder or ".", "corrupt-file", None, f"{what}: {why}")


def _import_plyvel() -> Any:
    """Import the library, which not everybody has; it ships no types."""
    try:
        import plyvel
    except ImportError:
        hint = "pip install 'cklog[leveldb]', or export the store as JSON lines"
        raise EngineError("a checkpoint store in LevelDB is read with plyvel, which is not installed", hint) from None
    return plyvel


def _copy_files(root: Root, files: Sequence[FileEntry], copy: Path) -> None:
    """Copy the files of a store into the folder `copy`, if there is room."""
    needed, free = sum(entry.size for entry in files), shutil.disk_usage(copy).free
    if needed > free:
        message = f"a LevelDB is read from a copy: that needs {needed} bytes of temporary space, and {free} are free"
        raise UsageError(message, "set TMPDIR to a folder with room, or export the store as JSON lines")
    for entry in files:
        with (
            root.open(entry.path) as file,
            (copy / entry.path.rpartition("/")[2]).open("wb") as out,
        ):
            while data := file.read(_COPIED_BYTES):
                out.write(data)


def _look_at_tables(copy: Path, folder: str, size: int) -> tuple[Damage | None, bool]:
    """Look at what the tables claim: return why LevelDB cannot be let at them, and whether only its strict mode can.

    Raises
    ------
    OverBudget : a block becomes more than all pairs may take
    """
    most, strict = _most_of(size), False
    for path in sorted(copy.iterdir()):
        if path.suffix not in _TABLES:
            continue
        name = f"{folder}/{path.name}" if folder else path.name
        with path.open("rb") as file, reading(name):
            try:
                claims = claims_of(lambda at, count: _read_at(file, at, count), path.stat().st_size, most)
            except UnknownFormat as error:
                return damage_of(name, error), strict
            except (SstFlaw, ValueError) as flaw:
                return Damage(name, "corrupt-file", None, f"LevelDB is not let at it: {flaw}"), strict
        if claims.block > most:
            raise over(f"a block that becomes {claims.block} bytes", most, name)
        strict = strict or not claims.sound
    return None, strict


def _read_at(file: BinaryIO, at: int, count: int) -> bytes:
    """Read so many bytes from an offset of a file on."""
    file.seek(at)
    return file.read(count)


def _open_copy(leveldb: Any, copy: str, strict: bool) -> tuple[Any, str]:
    """Open the database; return it, and what is wrong with its log, of which the damaged part is then left out.

    Not if LevelDB has to be `strict`: then that is an error.
    """
    try:
        return leveldb.DB(copy, create_if_missing=False, paranoid_checks=True), ""
    except leveldb.Error as error:
        if strict:
            raise
        return leveldb.DB(copy, create_if_missing=False), _reason_of(error, copy)


_Pair = tuple[bytes, bytes]


def _most_of(size: int) -> int:
    """Return how many bytes the pairs of a store of `size` bytes may take."""
    return min(budgets().held, inflated_of(size))


def _within_budget(pairs: Iterator[_Pair | Damage], folder: str, size: int) -> Iterator[StoredValue | Damage]:
    """Decode pairs as long as their bytes are within the budgets: all are kept, and a key may repeat the one before."""
    left = most = _most_of(size)
    for pair in pairs:
        if isinstance(pair, Damage):
            yield pair
            continue
        left -= len(pair[0]) + len(pair[1])
        if left < 0:
            raise over(f"what its {size} bytes of files become", most, folder or ".")
        yield _decode_pair(folder, *pair)


def _read_pairs(leveldb: Any, database: Any, folder: str, copy: str) -> Iterator[_Pair | Damage]:
    """Read all pairs by key; where blocks are damaged, those before the first and behind the last of these blocks."""
    seen = b""
    try:
        for key, value in database.iterator(verify_checksums=True):
            seen = key
            yield key, value
        return
    except leveldb.Error as error:
        yield _refusal(folder, f"keys behind {_printable_key(seen)} cannot be read", _reason_of(error, copy))
    try:
        for key, value in database.iterator(start=seen, include_start=False, reverse=True, verify_checksums=True):
            yield key, value
    except leveldb.Error:
        return


def _decode_pair(folder: str, key: bytes, value: bytes) -> StoredValue | Damage:
    known = key_of(key)
    if known is None:
        return no_key(folder or ".", None, key, _printable_key(key))
    place = f"{folder or '.'}:{known}"
    return stored(known, value, place, Where(place))


def _printable_key(key: bytes) -> str:
    return ascii(key[:40].decode("utf-8", "backslashreplace"))


def _reason_of(error: Exception, copy: str) -> str:
    """Return a message of LevelDB without the place of the copy."""
    text = error.args[0] if error.args else ""
    plain = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(error)
    return plain.replace(f"{copy}/", "").replace(copy, "the store").splitlines()[0] if plain else "no reason given"

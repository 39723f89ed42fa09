"""Whole tables of RocksDB, against RocksDB itself, which takes them into a store and reads every entry.

What a data block holds nobody decodes here: that its checksum holds is all that is said of it. So checksums of other
blocks alone are set right again after damage. Tables differ from run to run, in an id of the process that wrote them
and in what follows from it; both are made the same.
"""

from __future__ import annotations

import functools
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any

from cklog.errors import OverBudget
from cklog.parsers.codecs.block_checksums import CHECKSUMS
from cklog.parsers.codecs.sst import UncheckedTable, _Table, check_sst
from cklog.parsers.codecs.sst_blocks import Handle, SstFlaw
from tests.builders.rocksdb import CHECKSUMS as CHECKSUM_NAMES
from tests.builders.rocksdb import COMPRESSIONS, VERSIONS, TableKind, rocksdict, table
from tests.differential.mutations import Damage
from tests.differential.verdicts import Decoder, Excuse, Outcome

_FOOTER = 53
_VERSIONS = VERSIONS[:-1]
"""The library writes the newest one without reading it."""

_SESSION = b"session.identity"  # of a key, whose beginning is that of the one before
_MASK = (1 << 32) - 1


class _Blocks(_Table):
    """A look at a table that keeps which blocks it was led to."""

    def __init__(self, data: bytes) -> None:
        super().__init__(lambda at, count: data[at : at + count], len(data))
        self.found: list[tuple[Handle, str]] = []

    def _checked(self, handles: list[Handle], what: str) -> Any:
        self.found += [(handle, what) for handle in handles]
        yield from super()._checked(handles, what)


def _blocks(data: bytes) -> list[tuple[Handle, str]]:
    """Return the blocks of a table, as far as one leads to the other."""
    look = _Blocks(data)
    try:
        look.check_ends(True)
        look.check_all()
    except (SstFlaw, UncheckedTable, OverBudget, struct.error, IndexError, KeyError):
        pass
    return look.found


def _summed(data: bytes, blocks: list[tuple[Handle, str]]) -> bytes:
    """Return a table with the checksums of these blocks, and of its footer, that its bytes have."""
    found = bytearray(data)
    if len(found) < _FOOTER:
        return data
    footer = bytes(found[-_FOOTER:])
    check = CHECKSUMS.get(footer[0])
    if check is None:
        return data
    extended = footer[1:5] == b"\x3e\0\x7a\0"
    base = struct.unpack_from("<I", footer, 9)[0] if extended else 0

    def turned(at: int) -> int:
        return base ^ ((at & _MASK) + (at >> 32) & _MASK) if base else 0

    for handle, _ in blocks:
        body = bytes(found[handle.at : handle.at + handle.size + 1])
        if handle.end <= len(found) and len(body) == handle.size + 1:
            struct.pack_into("<I", found, handle.end - 4, (check(body) + turned(handle.at)) & _MASK)
    if extended:
        at = len(found) - _FOOTER
        held = bytes(found[at : at + 5]) + bytes(4) + bytes(found[at + 9 :])
        struct.pack_into("<I", found, at + 5, (check(held) + turned(at)) & _MASK)
    return bytes(found)


@functools.cache
def _table(kind: TableKind, entries: int) -> bytes:
    with tempfile.TemporaryDirectory(dir=_shm()) as folder:
        data = table(Path(folder, "t.sst"), kind, entries)
    blocks = _blocks(data)
    found = bytearray(data)
    at = found.find(_SESSION)
    if at >= 0:
        found[at + len(_SESSION) : at + len(_SESSION) + 20] = b"A" * 20
    if found[-_FOOTER + 1 : -_FOOTER + 5] == b"\x3e\0\x7a\0":
        struct.pack_into("<I", found, len(found) - _FOOTER + 9, 77)
    return _summed(bytes(found), blocks)


def _shm() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _made(damage: Damage) -> bytes:
    chance = damage.chance
    kind = TableKind(
        version=chance.choice(_VERSIONS),
        checksum=chance.choice(CHECKSUM_NAMES[1:]),
        compression=chance.choice(COMPRESSIONS),
        parts=chance.random() < 0.3,
    )
    data = _table(kind, chance.choice((1, 5, 40, 90)))
    if damage.kind != "inside":
        return data
    blocks = [(handle, what) for handle, what in _blocks(data) if what != "data"]
    handle, _ = chance.choice(blocks)
    end = handle.at + handle.size
    part = damage.inside(data[handle.at : end], 1.0)
    part = part.ljust(handle.size, b"\0")[: handle.size]
    return _summed(data[: handle.at] + part + data[end:], blocks)


def _repaired(data: bytes) -> bytes:
    return _summed(data, [(handle, what) for handle, what in _blocks(data) if what != "data"])


def _read(data: bytes) -> Outcome:
    def read(at: int, count: int) -> bytes:
        return data[at : at + count]

    try:
        quick, whole = check_sst(read, len(data), False), check_sst(read, len(data), True)
    except OverBudget as reason:
        return Outcome("limit", why=reason.what)
    if whole.flaw is None and quick.flaw is not None:
        raise AssertionError(f"a quick look sees more: {quick.flaw.why}")
    if whole.flaw is not None:
        return Outcome("refused", why=whole.flaw.why)
    return Outcome("limit", why=whole.unchecked) if whole.unchecked else Outcome("value", True)


class _Store:
    """A store of RocksDB that tables are taken into, each into a column family of its own, which is dropped again."""

    def __init__(self) -> None:
        rocks = rocksdict()
        self._folder = Path(tempfile.mkdtemp(prefix="cklog-differential-", dir=_shm()))
        blocks = rocks.BlockBasedOptions()
        blocks.disable_cache()  # it goes by the id in a table, and would give blocks of another one
        self._options = rocks.Options(raw_mode=True)
        self._options.set_block_based_table_factory(blocks)
        self._store = rocks.Rdict(str(self._folder / "store"), self._options)
        self._ingest = rocks.IngestExternalFileOptions()
        self._count = 0

    def entries_of(self, data: bytes) -> int:
        """Return how many entries a table has; an exception of RocksDB's where it cannot be read."""
        self._count += 1
        name, path = f"c{self._count}", self._folder / "t.sst"
        path.write_bytes(data)
        family = self._store.create_column_family(name, self._options)
        try:
            family.ingest_external_file([str(path)], self._ingest)
            return sum(1 for _ in family.items())
        finally:
            family.close()
            self._store.drop_column_family(name)

    def end(self) -> None:
        """Remove the store."""
        self._store.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@functools.cache
def _store() -> _Store:
    import atexit

    found = _Store()
    atexit.register(found.end)
    return found


def _refer(data: bytes) -> Outcome:
    try:
        _store().entries_of(data)
    except Exception as error:  # what the library raises is of no kind of its own
        return Outcome("refused", why=str(error)[:200])
    return Outcome("value", True)


_OF_THE_STORE = (
    "contain no entries",
    "does not match existing comparator",
    "External file",
    "external sst file",
    "global seqno",
)
EXCUSES = (
    Excuse(
        "what the store asks of a table that it takes in",
        "entries, its own comparator, and how the table was made for it: the blocks are not what it refuses",
        lambda data, ours, theirs: any(words in theirs.why for words in _OF_THE_STORE),
    ),
    Excuse(
        "version 7",
        "RocksDB has it from 10.4 on; the one in the library is older",
        lambda data, ours, theirs: "unsupported format_version: 7" in theirs.why,
    ),
)

DECODERS = (
    Decoder(
        name="sst-files",
        reference="rocksdict",
        make=_made,
        read=_read,
        refer=_refer,
        repair=_repaired,
        excuses=EXCUSES,
        asked_always=False,
    ),
)

"""RocksDB's block-based tables (`.sst`), as its page "BlockBasedTable Format" and its notes on footers have them.

    file     = data block*  [filters]  index blocks  [dictionary]  [range deletions]  properties  metaindex  footer
    block    = bytes  compression:u8  checksum:u32
    checksum = by the type in the footer, of bytes and compression: 0 none (it is 0), 1 CRC-32C masked, 2 XXH32,
               3 the low half of XXH64, 4 the low half of XXH3 of the bytes alone, xor compression * 6b9083d9
    footer   0      HANDLE metaindex  HANDLE index  zeros to 40 bytes  db4775248b80fb57
             1-5    type:u8  the same 40 bytes  version:u32  88e241b785f4cff7
             6, 7   type:u8  3e007a00 checksum:u32 base:u32 size:u32 zeros(24)  version:u32  88e241b785f4cff7
    HANDLE   = offset:varint size:varint, without the five bytes behind the block
    entries  = (shared:varint rest:varint length:varint key[rest] value[length])*  restart:u32*n  n:u32
    index    = entries whose values are handles of data blocks, or of further index blocks (index type 2); where the
               properties say that values are deltas there is no length, and a key that shares bytes has for its value
               the signed difference of its block's size to the one before, which it follows

Integers are little-endian. From version 6 on the metaindex ends where the footer begins, it names the index, and to
every checksum is added `base ^ (low + high half of its offset)`; the footer's is of itself, with zeros in its place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from cklog.budgets import budgets, over
from cklog.errors import Picklable
from cklog.parsers.codecs.block_checksums import CHECKSUMS, NEWEST_COMPRESSION, decompress_block
from cklog.parsers.codecs.sst_blocks import TRAILER_BYTES, Handle, SstFlaw, decode_handle, decode_varint, entries
from cklog.unknown_formats import BEYOND_VERSIONS, UnknownFormat, is_later

Read = Callable[[int, int], bytes]
"""Reads so many bytes from an offset of the table on; fewer only where the table ends."""

_MAGIC, _LEGACY_MAGIC = 0x88E241B785F4CFF7, 0xDB4775248B80FB57
_EXTENDED = bytes.fromhex("3e007a00")
_OTHER_TABLES = {
    0x8242229663BF9564: "a plain table",
    0x4F3418EB7A8F13B8: "an old plain table",
    0x926789D0C5F17873: "a cuckoo table",
}
"""What ends with another magic number: one bit off the usual one it is damaged."""
_NEWEST, _EXTENDED_FROM, _DELTAS_FROM = 7, 6, 4
_LEGACY_BYTES, _FOOTER_BYTES = 48, 53
_TAIL_BYTES = 16 << 10
"""What is read of the end at first: in most tables it holds the index, the properties and the metaindex."""
_STRETCH_BYTES = 4 << 20
_TWO_LEVELS = b"\2"
_KEYS_IN_VALUES = b"\3"  # for which nothing here looks
_NEWEST_INDEX = 3
_U32, _U64, _MASK = struct.Struct("<I"), struct.Struct("<Q"), (1 << 32) - 1


class UncheckedTable(Picklable, Exception):
    """Raised for what may well be right, but cannot be checked here: a compression that is not decompressed here."""


class UnknownTable(UncheckedTable, UnknownFormat):
    """Raised for a version, a type or a compression, at byte `at`, that no known version of RocksDB has."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at, self.why = at, why


class Footer(NamedTuple):
    """What the end of a table says; `top_index` None: the metaindex names it. Blocks end before byte `at`."""

    at: int
    version: int
    checksum: int
    base: int
    metaindex: Handle
    top_index: Handle | None


@dataclass(frozen=True, slots=True)
class SstCheck:
    """What was checked of a table: so many blocks, of so many `bytes`; `flaw` what is wrong, None if nothing is.

    `unchecked`: why not all that was asked for could be checked, "" if it could; `unknown` where that is because a
    version, a type or a compression is none that is known.
    """

    flaw: SstFlaw | None
    blocks: int
    bytes: int
    unchecked: str = ""
    unknown: UnknownTable | None = None


def check_sst(read: Read, size: int, every_block: bool) -> SstCheck:
    """Check the footer of a table of `size` bytes, its metaindex, properties and index; or every block.

    Raises whatever `read` raises.
    """
    table, unchecked = _Table(read, size), ""
    flaw = unknown = None
    try:
        table.check_ends(every_block)
        if every_block:
            table.check_all()
        unchecked = table.unproved
    except SstFlaw as found:
        flaw = found
    except UnknownTable as reason:
        unknown, unchecked = reason, reason.why
    except UncheckedTable as reason:
        unchecked = str(reason)
    return SstCheck(flaw, table.blocks, table.bytes, unchecked, unknown)


class _Table:
    """A table in the course of being checked; `blocks` and `bytes` count what was."""

    def __init__(self, read: Read, size: int) -> None:
        self._read, self._size = read, size
        self._tail_at, self._tail = max(0, size - _TAIL_BYTES), b""
        self._footer = Footer(0, 0, 0, 0, Handle(0, 0), None)
        self._named: dict[bytes, Handle] = {}
        self._properties: dict[bytes, bytes] = {}
        self._index = Handle(0, 0)
        self._index_block = b""
        self.blocks = self.bytes = 0

    @property
    def unproved(self) -> str:
        """Why checksums that hold prove nothing, "" if they do prove."""
        return "" if self._footer.checksum else "its blocks have no checksums"

    def check_ends(self, every_block: bool) -> None:
        """Check the footer, and the blocks that lead to all others, which `every_block` will need."""
        self._tail = self._read(self._tail_at, self._size - self._tail_at)
        if len(self._tail) != self._size - self._tail_at:
            raise SstFlaw(self._tail_at + len(self._tail), f"it ends there, and not at byte {self._size}")
        self._footer = decode_footer(self._tail, self._size)
        block, compression = self._block(self._footer.metaindex, "metaindex")
        for key, value, at, _ in entries(
            _plain(block, compression, self._footer.version), self._footer.metaindex.at, False
        ):
            self._named[key] = self._inside(decode_handle(value, 0, at)[0], key.decode(errors="replace"))
        named = self._footer.top_index or self._named.pop(b"rocksdb.index", None)
        if named is None:
            raise SstFlaw(self._footer.metaindex.at, "its metaindex names no index")
        self._index = named
        block, compression = self._block(self._index, "index")
        self._index_block = block + bytes([compression])
        self._check_properties(every_block)  # last: what cannot be read of them hides no flaw

    def _check_properties(self, every_block: bool) -> None:
        """Check the properties, if there are any; read them where they are needed, for it takes most of the time."""
        handle = self._named.pop(b"rocksdb.properties", None)
        if handle is None:
            if self._footer.version:  # RocksDB's tables had them before they had a version
                raise SstFlaw(self._footer.metaindex.at, "its metaindex names no properties")
            return
        block, compression = self._block(handle, "properties")
        if not every_block and self._footer.version >= _DELTAS_FROM:
            return
        plain = block if not compression else _plain(block, compression, self._footer.version)
        keys = [key for key, _, _, _ in entries(plain, handle.at, False)]
        if any(key >= other for key, other in pairwise(keys)):
            raise SstFlaw(handle.at, "its properties do not ascend")
        self._properties = {key: value for key, value, _, _ in entries(plain, handle.at, False)}
        if self._number(b"rocksdb.index.value.is.delta.encoded") and self._footer.version < _DELTAS_FROM:
            said = self._footer.version
            raise SstFlaw(self._size - 12, f"its footer says version {said}, its index is as from {_DELTAS_FROM} on")

    def check_all(self) -> None:
        """Check every block that the index, or the metaindex, leads to; all data blocks must be among them."""
        deltas = bool(self._number(b"rocksdb.index.value.is.delta.encoded"))
        kind = self._properties.get(b"rocksdb.block.based.table.index.type", b"")[:1]
        if kind and kind[0] > _NEWEST_INDEX:
            raise UnknownTable(self._index.at, f"its index is of the type {kind[0]}, known are 0 to {_NEWEST_INDEX}")
        if kind == _KEYS_IN_VALUES:
            raise UncheckedTable(f"its index is of the type {kind[0]}")
        plain = _plain(self._index_block[:-1], self._index_block[-1], self._footer.version)
        found = [*self._handles(plain, self._index.at, deltas)]
        if kind == _TWO_LEVELS:
            parts = []
            for handle, (block, compression) in zip(found, self._checked(found, "index"), strict=True):
                plain = _plain(block, compression, self._footer.version)
                parts += [*self._handles(plain, handle.at, deltas)]
            found = parts
        for _ in self._checked(found, "data"):
            pass
        self._expect_all(found)
        for name, handle in self._named.items():
            if name.startswith(b"partitionedfilter."):
                self._check_filters(handle, deltas)
            else:
                self._block(handle, name.decode(errors="replace"))

    def _check_filters(self, handle: Handle, deltas: bool) -> None:
        """Check a filter in parts: its index, and each part."""
        block, compression = self._block(handle, "filter index")
        plain = _plain(block, compression, self._footer.version)
        for _ in self._checked([*self._handles(plain, handle.at, deltas)], "filter"):
            pass

    def _expect_all(self, data: list[Handle]) -> None:
        """Hold the data blocks that the index names against the number and bytes in the properties."""
        count = self._number(b"rocksdb.num.data.blocks")
        if count is not None and count != len(data):
            raise SstFlaw(self._index.at, f"its index names {len(data)} data blocks, its properties say {count}")
        if data and data[0].at:
            raise SstFlaw(self._index.at, f"its first data block would be at byte {data[0].at}, and not at byte 0")
        if any(one.end > other.at for one, other in pairwise(data)):
            raise SstFlaw(self._index.at, "its index names data blocks that overlap")

    def _number(self, name: bytes) -> int | None:
        """Return a property that is a number; None where it is not there."""
        value = self._properties.get(name)
        return None if value is None else decode_varint(value, 0, self._size)[0]

    def _handles(self, block: bytes, at: int, deltas: bool) -> Iterator[Handle]:
        """Yield the handles of an index block, whose file begins at byte `at`."""
        last = Handle(0, 0)
        for number, (_, value, place, shared) in enumerate(entries(block, at, deltas)):
            if number >= budgets().entries:
                raise over("the number of blocks that its index names", budgets().entries)
            if deltas and shared:
                coded = decode_varint(value, 0, place)[0]
                last = Handle(last.end, last.size + ((coded >> 1) ^ -(coded & 1)))
            else:
                last = decode_handle(value, 0, place)[0]
            yield self._inside(last, "data")

    def _inside(self, handle: Handle, what: str) -> Handle:
        """Return a handle that ends before the footer; raise for any other."""
        if handle.size < 0 or handle.end > self._footer.at:
            why = f"its {what} block of {handle.size} bytes at byte {handle.at} is not before its footer"
            raise SstFlaw(self._footer.at, why)
        return handle

    def _block(self, handle: Handle, what: str) -> tuple[bytes, int]:
        """Return the bytes of a block whose checksum holds, and its compression."""
        return next(self._checked([self._inside(handle, what)], what))

    def _checked(self, handles: list[Handle], what: str) -> Iterator[tuple[bytes, int]]:
        """Yield the blocks of handles, each after its checksum held; what lies side by side is read at once."""
        check, footer = CHECKSUMS[self._footer.checksum], self._footer
        for first, last in _stretches(handles):
            start, end = handles[first].at, handles[last - 1].end
            if end - start > budgets().block + _STRETCH_BYTES:
                raise over(f"its {what} block at byte {start}, of {end - start} bytes,", budgets().block)
            data = self._bytes(start, end - start)
            for handle in handles[first:last]:
                at = handle.at - start
                body = data[at : at + handle.size + 1]
                (stored,) = _U32.unpack_from(data, at + handle.size + 1)
                modifier = _modifier(footer.base, handle.at)
                computed = (check(body) + modifier) & _MASK
                if is_later(body[-1], NEWEST_COMPRESSION, _holds_with_last(check, body, modifier, stored)):
                    why = f"its {what} block has compression {body[-1]}, known are 0 to {NEWEST_COMPRESSION}"
                    raise UnknownTable(handle.at + handle.size, why)
                if computed != stored:
                    why = f"the checksum of its {what} block is {computed:08x}, stored is {stored:08x}"
                    raise SstFlaw(handle.at, why)
                self.blocks += 1
                self.bytes += len(body)
                yield body[:-1], body[-1]

    def _bytes(self, at: int, size: int) -> bytes:
        """Return bytes of the table, from its end as far as that was read."""
        if at >= self._tail_at:
            return self._tail[at - self._tail_at : at - self._tail_at + size]
        found = self._read(at, size)
        if len(found) != size:
            raise SstFlaw(at + len(found), f"it ends there, and not at byte {self._size}")
        return found


def _stretches(handles: list[Handle]) -> Iterator[tuple[int, int]]:
    """Cut handles where a read ends: behind each that the next one does not follow, and where a read has enough."""
    first = 0
    for i in range(1, len(handles) + 1):
        if (
            i == len(handles)
            or handles[i].at != handles[i - 1].end
            or handles[i].end - handles[first].at > _STRETCH_BYTES
        ):
            yield first, i
            first = i


def decode_footer(tail: bytes, size: int) -> Footer:
    """Decode the footer of a table of `size` bytes, `tail` being its end."""
    if size < _LEGACY_BYTES:
        raise SstFlaw(0, f"{size} bytes are too few for a table of RocksDB")
    (magic,) = _U64.unpack_from(tail, len(tail) - 8)
    if magic == _LEGACY_MAGIC:
        at = size - _LEGACY_BYTES
        metaindex, index = _decode_handles(tail[-_LEGACY_BYTES:-8], at)
        return _placed(Footer(at, 0, 1, 0, metaindex, index))
    if magic in _OTHER_TABLES:
        raise UnknownTable(size - 8, f"it is {_OTHER_TABLES[magic]} of RocksDB, which is not read here")
    if magic != _MAGIC:
        raise SstFlaw(size - 8, f"it ends with {magic:016x}, and not with the magic number of a table of RocksDB")
    if size < _FOOTER_BYTES:
        raise SstFlaw(0, f"{size} bytes are too few for a table of RocksDB")
    footer, at = tail[-_FOOTER_BYTES:], size - _FOOTER_BYTES
    (version,) = _U32.unpack_from(footer, _FOOTER_BYTES - 12)

    def holds_with_version(one: int) -> bool:
        return one >= _EXTENDED_FROM and _footer_holds(footer[:-12] + _U32.pack(one) + footer[-8:], at)

    if version < BEYOND_VERSIONS and is_later(version, _NEWEST, holds_with_version):
        raise UnknownTable(size - 12, f"its version is {version}, known are 0 to {_NEWEST}")
    if footer[0] not in CHECKSUMS:
        later = is_later(footer[0], max(CHECKSUMS), lambda one: _footer_holds(bytes([one]) + footer[1:], at))
        raise (UnknownTable if later else SstFlaw)(at, f"its checksums are of the unknown type {footer[0]}")
    if footer[1:5] == _EXTENDED and version >= _EXTENDED_FROM:
        return _placed(_decode_extended(footer, at, version))
    if not 0 < version < _EXTENDED_FROM:
        raise SstFlaw(size - 12, f"its footer says version {version}, and is not laid out so")
    metaindex, index = _decode_handles(footer[1:41], at + 1)
    return _placed(Footer(at, version, footer[0], 0, metaindex, index))


def _decode_extended(footer: bytes, at: int, version: int) -> Footer:
    """Decode a footer from version 6 on, which is at byte `at`; its checksum holds, or it is damaged."""
    stored, base, size = struct.unpack_from("<III", footer, 5)
    if not _footer_holds(footer, at):
        raise SstFlaw(at, f"the checksum of its footer is not {stored:08x}, which is stored")
    if any(footer[33:41]):
        raise UnknownTable(at + 33, f"its footer of version {version} says more than is known of that version")
    if not base:
        raise SstFlaw(at + 9, "its footer has 0 for what is added to checksums, which no writer has")
    return Footer(at, version, footer[0], base, Handle(at - TRAILER_BYTES - size, size), None)


def _footer_holds(footer: bytes, at: int) -> bool:
    """Return whether the checksum of a footer at byte `at` holds; only footers from version 6 on have one."""
    stored, base = struct.unpack_from("<II", footer, 5)
    check = CHECKSUMS.get(footer[0]) if footer[1:5] == _EXTENDED else None
    return check is not None and check(footer[:5] + bytes(4) + footer[9:]) + _modifier(base, at) & _MASK == stored


def _holds_with_last(check: Callable[[bytes], int], body: bytes, modifier: int, stored: int) -> Callable[[int], bool]:
    """Return a function that tells whether the checksum of a block holds with another last byte."""
    return lambda last: (check(body[:-1] + bytes([last])) + modifier) & _MASK == stored


def _decode_handles(part: bytes, at: int) -> tuple[Handle, Handle]:
    """Decode the two handles of a footer, which has zeros behind them."""
    metaindex, end = decode_handle(part, 0, at)
    index, end = decode_handle(part, end, at)
    if any(part[end:]):
        raise SstFlaw(at + end, "there are bytes behind the handles of its footer where only zeros are written")
    return metaindex, index


def _placed(footer: Footer) -> Footer:
    """Return a footer whose handles lead to blocks before it."""
    for handle, what in ((footer.metaindex, "metaindex"), (footer.top_index or footer.metaindex, "index")):
        if handle.at < 0 or not handle.size or handle.end > footer.at:
            why = f"its {what} would be {handle.size} bytes at byte {handle.at}, and its footer begins at {footer.at}"
            raise SstFlaw(footer.at, why)
    return footer


def _modifier(base: int, at: int) -> int:
    """Return what is added to the checksum of a block at an offset; 0 before version 6."""
    return base ^ ((at & _MASK) + (at >> 32) & _MASK) if base else 0


def _plain(block: bytes, compression: int, version: int) -> bytes:
    """Return a block decompressed; raise `UncheckedTable` where that cannot be done."""
    try:
        return decompress_block(block, compression, version, budgets().block)
    except ValueError as error:
        raise UncheckedTable(f"a block that leads to others cannot be decompressed ({error})") from None

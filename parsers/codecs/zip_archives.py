"""Zip archives of known members: every member is decompressed, and its bytes must be those that the archive states.

The CRC-32 of a member covers neither its compression method nor the version that reading it needs.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from cklog.budgets import budgets, over
from cklog.errors import first_line
from cklog.parsers.codecs.decompression import why_zlib_refuses
from cklog.unknown_formats import UnknownFormat, require_known

_MEMBER_MARK, _LOCAL_MARK = b"PK\x01\x02", b"PK\x03\x04"
_LOCAL = struct.Struct("<4sHxxH")
_NEWEST_ZIP = 63
_CHUNK_BYTES = 1 << 20
_BROKEN = (zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError, struct.error, OverflowError)
"""What `zipfile` raises for a damaged archive, an encrypted one, and a method that it does not know."""


class BadArchive(ValueError):
    """Why an archive, or a member of it, cannot be read."""


def read_member(data: bytes, name: str) -> bytes:
    """Return a member of an archive, after the CRC-32 and the size of every member were checked.

    Raises
    ------
    BadArchive : it is incomplete or damaged, or has no such member
    UnknownFormat : a member is compressed by a method other than deflate, or needs a later version
    OverBudget : it has too many members, or they hold too much
    """
    if data.count(_MEMBER_MARK) > budgets().files // 16:  # each becomes an object
        raise over("the number of members of the archive", budgets().files // 16)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive, data)
            with archive.open(name) as file:
                return file.read(budgets().file)
    except (BadArchive, UnknownFormat):
        raise
    except NotImplementedError as error:  # a version, or strong encryption
        raise UnknownFormat(f"zip: {first_line(error)}") from None
    except KeyError:
        raise BadArchive(f"the archive has no {name} in it") from None
    except zlib.error as error:
        why_zlib_refuses(error)
        raise BadArchive("it is no whole zip archive") from None
    except _BROKEN:
        raise BadArchive("it is no whole zip archive") from None


def _check_members(archive: zipfile.ZipFile, data: bytes) -> None:
    """Read every member, which checks its CRC-32; never more than `Budgets.archive` in all."""
    left = budgets().archive
    for member in archive.infolist():
        head = data[member.header_offset : member.header_offset + _LOCAL.size].ljust(_LOCAL.size, b"\0")
        mark, needed, method = _LOCAL.unpack(head)  # a reader of streams goes by these
        for one in (member.compress_type, method if mark == _LOCAL_MARK else member.compress_type):
            if one not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others can ask for much memory
                raise UnknownFormat(f"zip: compression method {one}; known are 0 and 8")
        if mark == _LOCAL_MARK:
            require_known("zip: version needed to read a member", needed & 0xFF, _NEWEST_ZIP)
        size = 0
        with archive.open(member) as file:
            while chunk := file.read(_CHUNK_BYTES):
                size += len(chunk)
                left -= len(chunk)
                if left < 0:
                    raise over("what the archive unpacks to", budgets().archive)
        if size != member.file_size:
            raise BadArchive(f"its member {member.filename[:80]!r} holds {size} bytes, not {member.file_size}")

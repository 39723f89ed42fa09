"""Zip archives of known members: every member is decompressed, and its bytes must be those that the archive states."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from cklog.budgets import budgets, over
from cklog.parsers.codecs.decompression import why_zlib_refuses

_MEMBER_MARK = b"PK\x01\x02"
_CHUNK_BYTES = 1 << 20
_BROKEN = (zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError, struct.error, OverflowError)
"""What `zipfile` raises for a damaged archive, an encrypted one, and a method that it does not know."""


class BadArchive(ValueError):
    """Why an archive, or a member of it, cannot be read."""


def read_member(data: bytes, name: str) -> bytes:
    """Return a member of an archive, after the CRC-32 and the size of every member were checked.

    Raises
    ------
    BadArchive : it is incomplete or damaged, has no such member, or is compressed by a method other than deflate
    OverBudget : it has too many members, or they hold too much
    """
    if data.count(_MEMBER_MARK) > budgets().files // 16:  # each becomes an object
        raise over("the number of members of the archive", budgets().files // 16)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive)
            with archive.open(name) as file:
                return file.read(budgets().file)
    except BadArchive:
        raise
    except KeyError:
        raise BadArchive(f"the archive has no {name} in it") from None
    except zlib.error as error:
        why_zlib_refuses(error)
        raise BadArchive("it is no whole zip archive") from None
    except _BROKEN:
        raise BadArchive("it is no whole zip archive") from None


def _check_members(archive: zipfile.ZipFile) -> None:
    """Read every member, which checks its CRC-32; never more than `Budgets.archive` in all."""
    left = budgets().archive
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others can ask for much memory
            raise BadArchive(f"compression method {member.compress_type} of zip is not Spark's")
        size = 0
        with archive.open(member) as file:
            while chunk := file.read(_CHUNK_BYTES):
                size += len(chunk)
                left -= len(chunk)
                if left < 0:
                    raise over("what the archive unpacks to", budgets().archive)
        if size != member.file_size:
            raise BadArchive(f"its member {member.filename[:80]!r} holds {size} bytes, not {member.file_size}")

"""Members of zip archives: what a reader of streams goes by stands at the place of the member in the file."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from cklog.parsers.codecs.zip_archives import read_member
from cklog.unknown_formats import UnknownFormat


@pytest.mark.parametrize("before", [b"", b"#!/bin/sh\n", b"PK\3\3 no mark" * 9])
@pytest.mark.parametrize("member", range(3))
def test_the_local_head_of_a_member_is_found_behind_whatever_precedes_the_archive(before: bytes, member: int) -> None:
    """Its place is that of its mark, searched for in the bytes; the central directory counts from the archive on."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in "abc":
            archive.writestr(name, name * 50)
    data = bytearray(before + out.getvalue())
    assert read_member(bytes(data), "b") == b"b" * 50
    at = -1
    for _ in range(member + 1):
        at = data.index(b"PK\3\4", at + 1)
    struct.pack_into("<H", data, at + 8, 99)
    with pytest.raises(UnknownFormat, match="compression method 99"):
        read_member(bytes(data), "b")

"""Java's strings and object streams as Flink's metadata holds them."""

from __future__ import annotations

import doctest
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.flink import (
    contents as flink_contents,
)
from cklog.parsers.flink import (
    derived as flink_derived,
)
from cklog.parsers.flink import (
    elements as flink_elements,
)
from cklog.parsers.flink import (
    java as flink_java,
)
from cklog.parsers.flink import (
    metadata as flink_metadata,
)
from cklog.parsers.flink import (
    rows as flink_rows,
)
from cklog.parsers.flink.java import Cursor, Malformed, Unknown, serialized
from tests.builders import flink as fb
from tests.reading.flink import of, said, scanned


def written(folder: Path, data: bytes) -> Path:
    path = folder / "_metadata"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("text", ["", "a\0b", "naïve", "日本", "😀", "\ud7ff\ue000\U0010ffff"])
def test_strings_are_modified_utf_8(tmp_path: Path, text: str) -> None:
    rows = said(written(tmp_path, fb.metadata(6, [fb.operator(6, name=text, uid="x")]).data))
    assert rows[0].get("name", "") == text


@pytest.mark.parametrize(
    "raw", [b"\0", b"\xc0\xaf", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\x80", b"a\xe3\x81", b"\xff"]
)
def test_other_strings_are_corrupt(tmp_path: Path, raw: bytes) -> None:
    """A bare zero, an overlong form, four bytes, half a surrogate pair, a stray byte, a cut one."""
    good = fb.metadata(6, [fb.operator(6, name="?" * len(raw))]).data
    rows, damage = scanned(written(tmp_path, good.replace(b"?" * len(raw), raw)))
    assert not rows
    assert "modified UTF-8" in damage[0].detail


def test_properties_of_another_shape_are_unread(tmp_path: Path) -> None:
    bare = fb.metadata(6).data[:-5]
    rows = said(written(tmp_path, bare + bytes.fromhex("aced0005") + b"u\0\0"))
    assert [u["kind"] for u in of(rows, "unread")] == ["unknown-properties"]
    assert rows[-1] == {"entry": "snapshot", "checkpoint": 8, "version": 6, "bytes": len(bare) + 7}
    for content in (b"t" + fb.utf("a string"), b"s" + fb._described("Other", 2, 0, b"") + b"p"):
        (row,) = said(written(tmp_path, bare + bytes.fromhex("aced0005") + content))
        assert (row["kind"], row["detail"]) == ("unknown-version", "properties of an unknown class")
    (row,) = said(written(tmp_path, bare + bytes.fromhex("aced0006") + b"p"))
    assert row["detail"] == "an object stream of version 6, known is 5"


@pytest.mark.parametrize("length", [604, 742])
def test_real_properties_are_understood_to_the_last_byte(shared_data: Path, length: int) -> None:
    """Two of the lengths that Flink writes: a checkpoint's and a native savepoint's."""
    lengths = Counter[int]()
    for path in sorted(shared_data.glob("flink-*/**/_metadata")):
        data = path.read_bytes()
        at = data.rfind(bytes.fromhex("aced0005"))
        if data[7] >= 4:
            serialized(Cursor(data, at))
            lengths[len(data) - at] += 1
            for cut in range(at, len(data)):
                with pytest.raises((Malformed, Unknown)):
                    serialized(Cursor(data, at, cut))
    assert lengths[length]


def test_object_streams_cannot_bite(tmp_path: Path) -> None:
    """Handles of nothing, of themselves, of another kind; and classes without end."""
    start = bytes.fromhex("aced0005")
    itself = b"s" + b"r" + fb.utf("A") + fb.i64(0) + b"\2\0\0x" + b"q" + fb.i32(0x7E0000)
    for content in (b"q" + fb.i32(0x7E0000), b"sp", b"~p", itself, b"sq" + fb.i32(-1)):
        with pytest.raises(Malformed):
            serialized(Cursor(start + content))
    deep = (b"r" + fb.utf("A") + fb.i64(0) + b"\2\0\0x") * 2000
    with pytest.raises(Unknown):
        serialized(Cursor(start + b"s" + deep + b"p"))
    holds_another = b"r" + fb.utf("A") + fb.i64(0) + b"\2\0\1" + b"L" + fb.utf("a") + b"t" + fb.utf("LA;") + b"xp"
    inner = (b"sq" + fb.i32(0x7E0000)) * 20_000  # objects of the same class, one in the other
    with pytest.raises(Unknown, match="nested"):
        serialized(Cursor(start + b"s" + holds_another + inner + b"p"))


@pytest.mark.parametrize(
    "module",
    [flink_contents, flink_elements, flink_java, flink_metadata, flink_rows, flink_derived],
)
def test_examples_are_right(module: Any) -> None:
    assert doctest.testmod(module).failed == 0

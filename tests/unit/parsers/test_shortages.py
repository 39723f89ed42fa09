"""A process that is short of memory or of disk says nothing about a file: no reader calls the file damaged."""

from __future__ import annotations

import errno
import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Damage, Split
from cklog.local_files import told_error
from cklog.parsers.codecs.decompression import inflate
from cklog.parsers.codecs.streams import Gunzip
from cklog.parsers.codecs.zip_archives import read_member
from cklog.parsers.jsonl import reader as lines
from cklog.parsers.kafka import payloads
from cklog.parsers.patent import leveldb
from cklog.parsers.tables import parquet
from cklog.storage import Root
from cklog.stores.arrow import served
from cklog.stores.options import settings_of
from cklog.stores.patience import Patience
from tests.conftest import REPOSITORY
from tests.source_tree import modules


def _raise(*_: object, **__: object) -> NoReturn:
    raise pa.ArrowMemoryError("malloc of size 64 failed")


def test_all_errors_of_arrow_are_known_but_memory_and_interruption() -> None:
    every = {one for one in vars(pa.lib).values() if isinstance(one, type) and issubclass(one, pa.ArrowException)}
    assert every - {*ARROW_ERRORS} == {pa.ArrowException, pa.ArrowMemoryError, pa.lib.ArrowCancelled}
    assert not issubclass(pa.ArrowMemoryError, ARROW_ERRORS)


def test_the_base_of_arrows_errors_is_caught_of_stores_alone() -> None:
    """`ArrowMemoryError` is one of them."""
    texts = {path.relative_to(REPOSITORY).as_posix(): path.read_text() for path in modules()}
    assert [path for path, text in texts.items() if "pa.ArrowException" in text] == ["cklog/arrow_errors.py"]
    assert [path for path, text in texts.items() if "import STORE_ERRORS" in text] == ["cklog/stores/clients.py"]


def test_memory_that_runs_out_in_a_store_s_client_is_no_fault_of_the_store() -> None:
    with pytest.raises(MemoryError):
        served(_raise, settings_of("gs://b/x", {}, {}), Patience(1.0))


def test_the_program_says_that_memory_ran_out() -> None:
    told = told_error(pa.ArrowMemoryError("malloc of size 64 failed"))
    assert (told.id, told.exit_code) == ("over-budget", 65)


def _payload(path: Path, patch: pytest.MonkeyPatch) -> object:
    patch.setattr(payloads, "open_stream", _raise)
    return payloads.decompress_payload(4, b"packed")


def _parquet_rows(path: Path, patch: pytest.MonkeyPatch) -> object:
    pq.write_table(pa.table({name: pa.array([1], pa.int64()) for name in ("checkpoint_id",)}), path)
    patch.setattr(parquet, "_read_row_groups", _raise)
    return [*parquet.read(Split(uri=str(path), path="f", reader="", start=0, end=1, size=1), "checkpoints", ())]


def _lines(path: Path, patch: pytest.MonkeyPatch) -> object:
    path.write_bytes(b"{}\n")
    patch.setattr(lines, "ByteStream", _raise)
    return [*lines.read(Split(uri=str(path), path="f", reader="", start=0, end=3, size=3), "checkpoints", ())]


@pytest.mark.parametrize("read", [_payload, _parquet_rows, _lines])
def test_a_reader_that_is_short_of_memory_finds_no_damage(
    read: Callable[[Path, pytest.MonkeyPatch], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MemoryError):
        read(tmp_path / "f", monkeypatch)


def test_a_full_disk_for_the_copy_of_a_store_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(leveldb, "_import_plyvel", lambda: SimpleNamespace(Error=ValueError))
    monkeypatch.setattr(leveldb, "_copy_files", fill)
    (found,) = leveldb.stored_in(Root(str(tmp_path)), "store", [])
    assert isinstance(found, Damage)
    assert (found.id, found.path) == ("unreadable-file", "store")


class _ShortOfMemory:
    """A decompressor of zlib that gets no memory for what it has to remember."""

    eof, unconsumed_tail, unused_data = False, b"", b""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def decompress(self, *_: object) -> NoReturn:
        raise zlib.error("Error -4 while decompressing data")


def _inflated() -> object:
    return inflate(b"packed", 100)


def _gzip_stream() -> object:
    return Gunzip(io.BytesIO(gzip.compress(b"orders"))).read(100)


def _zip_member() -> object:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata", "orders")
    return read_member(data.getvalue(), "metadata")


@pytest.mark.parametrize("read", [_inflated, _gzip_stream, _zip_member])
def test_memory_that_runs_out_in_zlib_is_no_damage(read: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zlib, "decompressobj", _ShortOfMemory)
    with pytest.raises(MemoryError):
        read()

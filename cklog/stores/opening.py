"""A path or URI opened or looked at, on this machine or in a store: the one way to the bytes of a file."""

from __future__ import annotations

import functools
import io
import os
import stat
from typing import Any

import pyarrow as pa

from cklog.errors import OverBudget
from cklog.holes import size_before_holes
from cklog.local_files import CutSince, HasHoles, absolute, is_local, os_name, without_file_scheme
from cklog.progress import count_file
from cklog.stores.files import FileInfo
from cklog.stores.local import open_regular
from cklog.stores.places import located
from cklog.stores.store import store_numbered


def open_file(uri: str, listed: int | None = None) -> Any:
    """Open a path or URI as a random-access, read-only file of `pyarrow.fs`.

    What was listed is what is read: of a file that had `listed` bytes then, these.

    Raises
    ------
    CutSince : it has fewer now
    OSError : it cannot be opened
    """
    file = _opened(uri, listed)
    if listed is None or (size := int(file.size())) == listed:
        return file
    if size > listed:
        return pa.PythonFile(Beginning(file, listed), mode="r")
    file.close()
    raise CutSince(uri, listed, size)


class Beginning(io.RawIOBase):
    """The first bytes of a file, as a file."""

    def __init__(self, file: Any, size: int) -> None:
        self._file, self._size = file, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes, as far as there are some."""
        with memoryview(buffer) as view:
            data: bytes = self._file.read(min(len(view), max(self._size - self._file.tell(), 0)))
            view[: len(data)] = data
        return len(data)

    def seek(self, to: int, whence: int = os.SEEK_SET) -> int:
        """Move to a byte, counted from the beginning, from where the file is, or from its end."""
        at = to + {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size}[whence]
        self._file.seek(at)
        return at

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()
        super().close()


def _opened(uri: str, listed: int | None = None) -> Any:
    count_file()
    if not is_local(uri):
        found = located(uri)
        return pa.PythonFile(store_numbered(found.store).opened(found.uri, found.size), mode="r")
    path = absolute(without_file_scheme(uri))
    handle = open_regular(path)
    if not _BY_DESCRIPTOR:
        return pa.PythonFile(os.fdopen(handle, "rb"), mode="r")  # whoever opens it closes it
    try:
        about = os.fstat(handle)
        if about.st_size == listed and listed <= _READ_AT_ONCE:
            return pa.BufferReader(_read_bytes(handle, listed))
        size, why = size_before_holes(f"/proc/self/fd/{handle}", about)
        if why:
            raise HasHoles(path, why)
        file = pa.OSFile(f"/proc/self/fd/{handle}")  # Arrow opens by name only: this is the file that was checked
    finally:
        os.close(handle)
    return file if size == about.st_size else pa.PythonFile(Beginning(file, size), mode="r")


_BY_DESCRIPTOR = os.path.isdir("/proc/self/fd")

_READ_AT_ONCE = 64 << 10
"""Bytes of a file, as large as it was listed, that is read when it is opened: to open it by name for Arrow costs more.
Of another size it is not: who seeks behind the end of a file reads nothing there, and behind that of a buffer fails."""


def _read_bytes(handle: int, size: int) -> bytes:
    """Return the first `size` bytes, or all where there are fewer."""
    found = os.read(handle, size)
    while len(found) < size and (more := os.read(handle, size - len(found))):
        found += more
    return found


def file_system(path: str) -> tuple[Any, str]:
    """Return the file system to write to at a path or URI, and the path inside it.

    Raises
    ------
    OutputError : nothing is written there
    """
    if is_local(path):
        return _local_file_system(), os.path.abspath(without_file_scheme(path))
    found = located(path)
    bucket = store_numbered(found.store).bucket(found.uri)
    return bucket.system, bucket.inner(found.uri)


def file_info(path: str) -> FileInfo:
    """Look at a path or URI.

    Raises
    ------
    OSError : it cannot be looked at
    """
    if is_local(path):
        try:
            about = os.stat(os_name(os.path.abspath(without_file_scheme(path))))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return FileInfo("nothing")
        return FileInfo("folder") if stat.S_ISDIR(about.st_mode) else FileInfo("file", about.st_size)
    found = located(path)
    bucket = store_numbered(found.store).bucket(found.uri)
    return bucket.info(bucket.inner(found.uri))


def remote_entries(uri: str) -> list[tuple[str, int | None]]:
    """Return the paths of all files and folders below a URI, relative to it, and the sizes of files.

    What no path leads to is remembered as refused.

    Raises
    ------
    OSError : they cannot be listed
    """
    found = located(uri)
    store = store_numbered(found.store)
    bucket, bare = store.bucket(found.uri), found.uri.partition("?")[0].rstrip("/")
    try:
        listing = bucket.listed(bucket.inner(found.uri))
    except OverBudget as error:
        raise error.of(bare) from None
    store.refused.update((f"{bare}/{path}", why) for path, why in listing.refused.items())
    return [*((path, size) for path, (size, _) in listing.files.items()), *((path, None) for path in listing.folders)]


@functools.cache
def _local_file_system() -> Any:
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem()

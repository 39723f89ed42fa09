"""A bucket that pyarrow reads: of Google, of Azure, of HDFS."""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from pyarrow import fs

from cklog.stores.bucket import Bucket
from cklog.stores.files import Fetch, FileInfo
from cklog.stores.listings import Listing
from cklog.stores.patience import NotServed
from cklog.stores.systems import open_system, served

T = TypeVar("T")


class ArrowBucket(Bucket):
    """A bucket or container: its file system, opened when it is first needed."""

    @functools.cached_property
    def _arrow(self) -> Any:
        return open_system(self._uri, self._settings, self._patience)

    @property
    def system(self) -> Any:
        """The file system to write to: HDFS is one; object stores have none."""
        return self._arrow if self._settings.kind == "hdfs" else super().system

    def listed(self, path: str) -> Listing:
        """Return all that lies below a path, as pyarrow tells it; one request for a thousand files."""
        chosen = fs.FileSelector(path, recursive=True, allow_not_found=True)
        base, found = path.rstrip("/") + "/", Listing()
        for item in self._served(lambda: self._arrow.get_file_info(chosen)):
            if not item.path.startswith(base):
                raise NotServed(errno.EIO, "the listing names a file outside the place that was requested")
            if item.is_file:
                found.add(item.path[len(base) :], _checked_size(item.size), "")
            elif item.path[len(base) :]:
                found.add(item.path[len(base) :] + "/", 0, "")
        return found

    def info(self, path: str) -> FileInfo:
        """Return what stands at a path."""
        found = self._served(lambda: self._arrow.get_file_info([path])[0])
        if found.type == fs.FileType.NotFound:
            return FileInfo("nothing")
        return (
            FileInfo("folder") if found.type == fs.FileType.Directory else FileInfo("file", _checked_size(found.size))
        )

    def fetcher(self, path: str, size: int | None) -> tuple[Fetch, int]:
        """Return what fetches ranges of a file, and its size, for which pyarrow asks once more."""
        file = self._served(lambda: self._arrow.open_input_file(path))
        known = _checked_size(self._served(file.size))
        if size is not None and size != known:
            raise NotServed(errno.ESTALE, f"it had {size} bytes when it was listed, and has {known} now")
        return self._kept(path, known, lambda start, length: self._read(file, start, length)), known

    def _read(self, file: Any, start: int, length: int) -> bytes:
        """Read a range of a file that pyarrow opened."""
        data: bytes = self._served(lambda: file.read_at(length, start))
        if len(data) != length:
            raise NotServed(errno.EIO, "the store's answer breaks off")
        return data

    def _served(self, work: Callable[[], T]) -> T:
        """Return what pyarrow gets of the store."""
        return served(work, self._settings, self._patience)


def _checked_size(size: Any) -> int:
    """Return a size that a store told, if it is one."""
    if not isinstance(size, int) or size < 0:
        raise NotServed(errno.EIO, "the size of an object is no number of bytes")
    return size

"""A bucket that pyarrow reads: of Google, of Azure, of HDFS."""

from __future__ import annotations

import errno
import functools
import time
from collections.abc import Callable
from typing import Any, TypeVar

from cklog.errors import first_line
from cklog.stores.bucket import Bucket
from cklog.stores.client_process import ClientProcess
from cklog.stores.clients import ArrowClient, Client
from cklog.stores.deadlines import run_within
from cklog.stores.files import Fetch, FileInfo
from cklog.stores.listings import Listing
from cklog.stores.options import Settings
from cklog.stores.patience import NotServed, Patience

T = TypeVar("T")

_START_SECONDS = 60


class ArrowBucket(Bucket):
    """A bucket or container.

    The client of an object store runs in a process of its own. That of HDFS runs in this one: it writes, too.
    """

    def __init__(self, uri: str, settings: Settings) -> None:
        super().__init__(uri, settings)
        self._process = ClientProcess(uri, settings)

    @functools.cached_property
    def _hdfs(self) -> ArrowClient:
        return ArrowClient(self._uri, self._settings)

    @property
    def _client(self) -> Client:
        return self._hdfs if self._settings.kind == "hdfs" else self._process

    @property
    def system(self) -> Any:
        """The file system to write to: HDFS is one; object stores have none."""
        return self._served(lambda: self._hdfs.system) if self._settings.kind == "hdfs" else super().system

    def listed(self, path: str) -> Listing:
        """Return all that lies below a path, as pyarrow tells it; one request for a thousand files."""
        base, found = path.rstrip("/") + "/", Listing()
        for item in self._served(lambda: self._client.listed(path)):
            if not item.path.startswith(base):
                raise NotServed(errno.EIO, "the listing names a file outside the place that was requested")
            if item.kind == "file":
                found.add(item.path[len(base) :], _checked_size(item.size), "")
            elif item.path[len(base) :]:
                found.add(item.path[len(base) :] + "/", 0, "")
        return found

    def info(self, path: str) -> FileInfo:
        """Return what stands at a path."""
        found = self._served(lambda: self._client.info(path))
        return FileInfo(found.kind, _checked_size(found.size)) if found.kind == "file" else FileInfo(found.kind)

    def fetcher(self, path: str, size: int | None) -> tuple[Fetch, int]:
        """Return what fetches ranges of a file, and its size, for which pyarrow asks once more."""
        known = _checked_size(self._served(lambda: self._client.size(path)))
        if size is not None and size != known:
            raise NotServed(errno.ESTALE, f"it had {size} bytes when it was listed, and has {known} now")
        return self._kept(path, known, lambda start, length: self._read(path, start, length, known)), known

    def _read(self, path: str, start: int, length: int, size: int) -> bytes:
        data = self._served(lambda: self._client.read(path, start, length, size))
        if len(data) != length:
            raise NotServed(errno.EIO, "the store's answer breaks off")
        return data

    def _served(self, work: Callable[[], T]) -> T:
        """Return what pyarrow gets of the store; to start the client's process takes nothing of the store's time."""
        if self._settings.kind != "hdfs" and not self._process.was_started:
            try:
                run_within(self._process.start, _START_SECONDS)
            except TimeoutError:
                raise NotServed(errno.ETIMEDOUT, f"pyarrow did not start within {_START_SECONDS} s") from None
        return served(work, self._settings, self._patience)


def served(work: Callable[[], T], settings: Settings, patience: Patience) -> T:
    """Return what pyarrow gets of a store, within the time of a request; as `NotServed` why not.

    pyarrow's calls cannot be interrupted, and say nothing of how far they are: one that takes too long goes on in a
    thread of its own.
    """
    began, most = time.monotonic(), min(settings.timeout, patience.left())
    try:
        return run_within(work, most)
    except (FileNotFoundError, NotServed):
        raise
    except TimeoutError:
        patience.lose(began)
        raise NotServed(errno.ETIMEDOUT, f"the store gave no answer within {most:.3g} s (--store timeout=S)") from None
    except OSError as error:
        patience.lose(began)
        text = settings.hidden(" ".join(first_line(error).split()))
        raise NotServed(
            errno.EACCES if "HTTP status 403" in text or "ACCESS_DENIED" in text else errno.EIO, text
        ) from None


def _checked_size(size: Any) -> int:
    """Return a size that a store told, if it is one."""
    if not isinstance(size, int) or size < 0:
        raise NotServed(errno.EIO, "the size of an object is no number of bytes")
    return size

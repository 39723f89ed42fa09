"""A bucket of a store: its file system, what it lists and gives, and how long it is waited for."""

from __future__ import annotations

import errno
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import fs

from cklog.errors import UsageError, first_line
from cklog.stores.files import Fetch, FileInfo
from cklog.stores.options import Settings
from cklog.stores.patience import TRIES, NotServed, Patience

T = TypeVar("T")

_SMALL_BYTES, _KEPT_BYTES = 64 << 10, 32 << 20
"""A file up to this size is fetched whole, and kept as long as all that are kept are not more than that."""

_PATIENCE = 2
"""So many timeouts may a store cost in all before it is not asked any more."""


class Bucket:
    """A bucket or container: its file system, opened when it is first needed."""

    def __init__(self, uri: str, settings: Settings) -> None:
        self._uri, self._settings = uri, settings
        self._patience = Patience(_PATIENCE * settings.timeout)
        keys = settings.get("access_key") and settings.get("secret_key")
        by_request = settings.kind == "s3" and (settings.anonymous or keys)
        self._small: dict[tuple[str, int], bytes] = {}
        self._small_bytes = 0
        self._requests = None
        if by_request:
            from cklog.stores.requests import Requests  # what speaks HTTP takes longer to load than most answers

            self._requests = Requests(settings, self._region, self._patience)

    @functools.cached_property
    def system(self) -> Any:
        """The file system of pyarrow.

        Raises
        ------
        UsageError : options that do not go together, or that this pyarrow does not have
        """
        try:
            return self._served(lambda: _opened(self._uri, self._settings))
        except (TypeError, ValueError) as error:
            told = self._settings.hidden(first_line(error))
            raise UsageError(f"--store: {told}", f"pyarrow {pa.__version__} opens {self._settings.kind}://") from None

    def inner(self, uri: str) -> str:
        """Return the path of a URI in the file system."""
        authority, _, rest = uri.partition("?")[0].partition("://")[2].partition("/")
        if self._settings.kind in ("s3", "gs"):
            return f"{authority.rpartition('@')[2]}/{rest}".rstrip("/")
        if self._settings.kind == "abfss":
            return f"{authority.partition('@')[0]}/{rest}".rstrip("/") if "@" in authority else rest.rstrip("/")
        return f"/{rest}".rstrip("/") or "/"

    def listed(self, path: str) -> list[Any]:
        """Return all that lies below a path, as pyarrow tells it; one request for a thousand files."""
        chosen = fs.FileSelector(path, recursive=True, allow_not_found=True)
        found: list[Any] = self._served(lambda: self.system.get_file_info(chosen), endless=True)
        return found

    def info(self, path: str) -> FileInfo:
        """Return what stands at a path."""
        told = self._served(lambda: self.system.get_file_info([path])[0])
        if told.type == fs.FileType.NotFound:
            return FileInfo("nothing")
        return FileInfo("folder") if told.type == fs.FileType.Directory else FileInfo("file", int(told.size or 0))

    def fetcher(self, path: str, size: int | None) -> tuple[Fetch, int]:
        """Return what fetches ranges of a file, and its size; if that is known, nothing is asked for before."""
        requests = self._requests
        if requests is not None:
            known = self._size(path) if size is None else size
            return self._kept(path, known, lambda start, length: requests.fetch(path, start, length, known)), known
        file = self._served(lambda: self.system.open_input_file(path))
        known = self._served(file.size)
        if size is not None and size != known:
            raise NotServed(errno.ESTALE, f"it had {size} bytes when it was listed, and has {known} now")
        return self._kept(path, known, lambda start, length: self._read(file, start, length)), known

    def _kept(self, path: str, size: int, fetch: Fetch) -> Fetch:
        """Return what fetches a file, of a small one all of it and once: several questions are asked of most."""
        if not 0 < size <= _SMALL_BYTES:
            return fetch

        def sliced(start: int, length: int) -> bytes:
            data = self._small.get((path, size))
            if data is None:
                data = fetch(0, size)
                if self._small_bytes + size <= _KEPT_BYTES:
                    self._small[path, size] = data
                    self._small_bytes += size
            return data[start : start + length]

        return sliced

    def _size(self, path: str) -> int:
        """Return the size of a file that no listing has told."""
        found = self.info(path)
        if found.kind == "nothing":
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if found.kind != "file":
            raise NotServed(errno.EISDIR, "it is no file")
        return found.size

    def _read(self, file: Any, start: int, length: int) -> bytes:
        """Read a range of a file that pyarrow opened."""
        data: bytes = self._served(lambda: file.read_at(length, start))
        if len(data) != length:
            raise NotServed(errno.EIO, "the store's answer breaks off")
        return data

    def _region(self, bucket: str) -> str:
        """Return the region that a bucket is in, as far as anything says it."""
        told = self._settings.get("region")
        if told or self._settings.endpoint:
            return told or "us-east-1"
        return _aws_region(bucket)

    def _served(self, work: Callable[[], T], endless: bool = False) -> T:
        """Return what pyarrow gets of the store, waited for so long; as `NotServed` why not.

        `endless`: listing takes as many requests as it takes, each of them within its time.
        """
        self._patience.require()
        most = 60 * self._settings.timeout if endless else 2 * self._settings.timeout
        done: list[T] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                done.append(work())
            except BaseException as error:  # it is told where it is waited for
                raised.append(error)

        began = time.monotonic()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(most)
        if done:
            return done[0]
        if not (raised and isinstance(raised[0], FileNotFoundError)):
            self._patience.lose(time.monotonic() - began)
        if not raised:
            raise NotServed(errno.ETIMEDOUT, f"the store gave no answer within {most:g} s")
        error = raised[0]
        if isinstance(error, (FileNotFoundError, NotServed)) or not isinstance(error, (OSError, pa.ArrowException)):
            raise error
        told = self._settings.hidden(" ".join(first_line(error).split()))
        raise NotServed(errno.EACCES if "HTTP status 403" in told or "ACCESS_DENIED" in told else errno.EIO, told)


@functools.cache
def _aws_region(bucket: str) -> str:
    """Ask AWS where a bucket is."""
    try:
        return str(fs.resolve_s3_region(bucket))
    except (OSError, pa.ArrowException):
        return "us-east-1"


def _opened(uri: str, settings: Settings) -> Any:
    """Open the file system of pyarrow that settings describe; nothing is asked of the store."""
    get, seconds = settings.get, settings.timeout
    if settings.kind == "s3":
        keys = ("access_key", "secret_key", "session_token", "role_arn", "external_id")
        who = {"anonymous": True} if settings.anonymous else {key: get(key) for key in keys if get(key)}
        bucket = uri.partition("?")[0].partition("://")[2].rpartition("@")[2]
        return fs.S3FileSystem(
            **who,
            region=get("region") or ("us-east-1" if settings.endpoint else _aws_region(bucket)),
            scheme=settings.scheme,
            endpoint_override=settings.endpoint or None,
            request_timeout=seconds / TRIES,
            connect_timeout=seconds / TRIES,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
        )
    if settings.kind == "gs":
        return fs.GcsFileSystem(
            anonymous=settings.anonymous,
            target_service_account=get("service_account"),
            scheme=settings.scheme,
            endpoint_override=settings.endpoint or None,
            retry_time_limit=timedelta(seconds=seconds),
            project_id=get("project"),
        )
    if settings.kind == "abfss":
        account = get("account") or uri.partition("?")[0].partition("@")[2].partition(".")[0]
        keys = ("account_key", "sas_token", "tenant_id", "client_id", "client_secret")
        options = {key: get(key) for key in keys if get(key)}
        for service in ("blob", "dfs") if settings.endpoint else ():
            options |= {f"{service}_storage_authority": settings.endpoint, f"{service}_storage_scheme": settings.scheme}
        return fs.AzureFileSystem(account, **options)
    if settings.kind == "hdfs":
        _refuse_library_of_working_directory()
    return fs.FileSystem.from_uri(uri.partition("?")[0] + "/")[0]


def _refuse_library_of_working_directory() -> None:
    """Raise `UsageError` where Arrow would load Hadoop's library, and so run it, from the working directory.

    Arrow asks the system for it, then looks in the working directory, and then where `HADOOP_HOME` says.
    """
    import ctypes

    name = {"darwin": "libhdfs.dylib", "win32": "hdfs.dll"}.get(sys.platform, "libhdfs.so")
    if not os.path.lexists(name):
        return
    try:
        ctypes.CDLL(name)
    except OSError:
        raise UsageError(
            f"hdfs:// would load {name} from the working directory, which is not trusted",
            "run cklog in another directory, or put Hadoop's lib/native on LD_LIBRARY_PATH",
        ) from None

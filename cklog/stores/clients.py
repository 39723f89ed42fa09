"""Clients of pyarrow for stores other than S3: Google's, Azure's and that of HDFS."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa
from pyarrow import fs

from cklog.arrow_errors import STORE_ERRORS
from cklog.errors import UsageError, first_line
from cklog.isolation import remove_relative_entries
from cklog.stores.options import Settings

_OPEN_FILES = 256
"""Files that are kept open, to be read without asking for their size again."""


class Item(NamedTuple):
    """What stands at a path; `size` is what the store says, and may be no size at all."""

    path: str
    kind: Literal["file", "folder", "nothing"]
    size: Any


class Client(Protocol):
    """Ask a store. A call waits for the store and cannot be interrupted.

    Raises
    ------
    UsageError : options that do not go together, or that this pyarrow does not have
    FileNotFoundError : the store has no such file
    OSError : the store does not give it
    """

    def listed(self, path: str) -> list[Item]:
        """Return all that lies below a path; one request for a thousand files."""

    def info(self, path: str) -> Item:
        """Return what stands at a path."""

    def size(self, path: str) -> Any:
        """Open a file, and return the size that the store says."""

    def read(self, path: str, start: int, length: int, size: int) -> bytes:
        """Return a range of a file that had a size when it was opened, less of it where the file ends sooner."""


class ArrowClient:
    """A client of pyarrow in this process."""

    def __init__(self, uri: str, settings: Settings) -> None:
        """Open the file system that settings describe; nothing is asked of the store."""
        try:
            with _store_errors():
                self.system = _open_system(uri, settings)
        except (TypeError, ValueError) as error:
            text = settings.hidden(first_line(error))
            raise UsageError(f"--store: {text}", f"pyarrow {pa.__version__} opens {settings.kind}://") from None
        self._files: dict[str, Any] = {}

    def listed(self, path: str) -> list[Item]:
        chosen = fs.FileSelector(path, recursive=True, allow_not_found=True)
        with _store_errors():
            return [_item_of(found) for found in self.system.get_file_info(chosen)]

    def info(self, path: str) -> Item:
        with _store_errors():
            return _item_of(self.system.get_file_info([path])[0])

    def size(self, path: str) -> Any:
        with _store_errors():
            return self._open(path).size()

    def read(self, path: str, start: int, length: int, size: int) -> bytes:
        with _store_errors():
            file = self._files.get(path)
            if file is None:  # it was opened by another process, or so many others since
                file = self._open(path)
                if file.size() != size:
                    raise OSError(f"it had {size} bytes when it was opened, and has {file.size()} now")
            data: bytes = file.read_at(length, start)
        return data

    def _open(self, path: str) -> Any:
        self._files.pop(path, None)
        file = self._files[path] = self.system.open_input_file(path)
        if len(self._files) > _OPEN_FILES:
            self._files.pop(next(iter(self._files)), None)
        return file


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turn whatever pyarrow raises because of a store into an `OSError`; Google's client has errors of no kind."""
    try:
        yield
    except MemoryError:
        raise
    except STORE_ERRORS as error:
        raise OSError(" ".join(first_line(error).split())) from None


def _item_of(found: fs.FileInfo) -> Item:
    kinds: dict[Any, Literal["file", "folder", "nothing"]] = {
        fs.FileType.NotFound: "nothing",
        fs.FileType.Directory: "folder",
    }
    return Item(found.path, kinds.get(found.type, "file"), found.size)


def _open_system(uri: str, settings: Settings) -> Any:
    """Open the file system of pyarrow that settings describe."""
    get, seconds = settings.get, settings.timeout
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
        remove_relative_entries("CLASSPATH")  # of the JVM that Hadoop's library starts in this process
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

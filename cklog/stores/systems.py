"""File systems of pyarrow, and its calls, which wait for a store no longer than they may.

Its calls cannot be interrupted and say nothing of how far they are: each of them has the time of a request, and goes on
in a thread of its own when that is over.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import fs

from cklog.arrow_errors import STORE_ERRORS
from cklog.errors import UsageError, first_line
from cklog.isolation import remove_relative_entries
from cklog.stores.deadlines import run_within
from cklog.stores.options import Settings
from cklog.stores.patience import NotServed, Patience

T = TypeVar("T")


def open_system(uri: str, settings: Settings, patience: Patience) -> Any:
    """Open the file system of pyarrow that settings describe.

    Raises
    ------
    UsageError : options that do not go together, or that this pyarrow does not have
    """
    try:
        return served(lambda: _opened(uri, settings), settings, patience)
    except (TypeError, ValueError) as error:
        text = settings.hidden(first_line(error))
        raise UsageError(f"--store: {text}", f"pyarrow {pa.__version__} opens {settings.kind}://") from None


def served(work: Callable[[], T], settings: Settings, patience: Patience) -> T:
    """Return what pyarrow gets of a store, within the time of a request; as `NotServed` why not."""
    began, most = time.monotonic(), min(settings.timeout, patience.left())
    try:
        return run_within(work, most)
    except (FileNotFoundError, NotServed, MemoryError):
        raise
    except TimeoutError:
        patience.lose(began)
        raise NotServed(errno.ETIMEDOUT, f"the store gave no answer within {most:.3g} s (--store timeout=S)") from None
    except (OSError, *STORE_ERRORS) as error:
        patience.lose(began)
        text = settings.hidden(" ".join(first_line(error).split()))
        raise NotServed(
            errno.EACCES if "HTTP status 403" in text or "ACCESS_DENIED" in text else errno.EIO, text
        ) from None


def _opened(uri: str, settings: Settings) -> Any:
    """Open the file system of pyarrow that settings describe; nothing is asked of the store."""
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

"""A bucket of a store: what it lists and gives. S3 is asked by requests of our own, every other store by pyarrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from cklog.errors import OutputError
from cklog.stores.files import Fetch, FileInfo
from cklog.stores.listings import Listing
from cklog.stores.options import Settings
from cklog.stores.patience import Patience

_SMALL_BYTES, _KEPT_BYTES = 64 << 10, 32 << 20
"""A file up to this size is fetched whole, and kept as long as all that are kept are not more than that."""


class Bucket(ABC):
    """A bucket or container; nothing is asked of it before it is needed."""

    def __init__(self, uri: str, settings: Settings) -> None:
        self._uri, self._settings = uri, settings
        self._patience = Patience(settings.timeout)
        self._small: dict[tuple[str, int], bytes] = {}
        self._small_bytes = 0

    @abstractmethod
    def listed(self, path: str) -> Listing:
        """Return all that lies below a path."""

    @abstractmethod
    def info(self, path: str) -> FileInfo:
        """Return what stands at a path."""

    @abstractmethod
    def fetcher(self, path: str, size: int | None) -> tuple[Fetch, int]:
        """Return what fetches ranges of a file, and its size; if that is known, nothing is asked for before."""

    @property
    def system(self) -> Any:
        """The file system to write to; object stores have none.

        pyarrow would write: it follows redirects of S3, token and all, and waits for other stores without a deadline.

        Raises
        ------
        OutputError : it is an object store
        """
        place = self._uri.partition("?")[0]
        raise OutputError(
            f"{place}: cklog writes nothing to object stores",
            "name a local folder, and copy it with the store's own tool",
        )

    def inner(self, uri: str) -> str:
        """Return the path of a URI in the file system."""
        authority, _, rest = uri.partition("?")[0].partition("://")[2].partition("/")
        if self._settings.kind in ("s3", "gs"):
            return f"{authority.rpartition('@')[2]}/{rest}".rstrip("/")
        if self._settings.kind == "abfss":
            return f"{authority.partition('@')[0]}/{rest}".rstrip("/") if "@" in authority else rest.rstrip("/")
        return f"/{rest}".rstrip("/") or "/"

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

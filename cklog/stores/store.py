"""Stores that are open: the file system behind a URI, what it lists and gives, and what it did not give.

A store has a number in this process, by which URIs name it. Whoever reads in another process is given what belongs to
the numbers (`handed_over`, `take_over`).
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cklog.errors import UsageError
from cklog.local_files import is_local, reason
from cklog.stores.files import StoreFile
from cklog.stores.options import Settings, captured_environment, parse_store, settings_of
from cklog.stores.places import located

if TYPE_CHECKING:
    from cklog.stores.bucket import Bucket


@dataclass
class Store:
    """How stores are reached: options, and the environment in which they were given.

    `refused` is what was not given, by URI without a query, and why: every answer says so.
    """

    given: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=captured_environment, repr=False)
    refused: dict[str, str] = field(default_factory=dict)
    _buckets: dict[str, Bucket] = field(default_factory=dict, repr=False)

    def bucket(self, uri: str) -> Bucket:
        """Return the bucket, or whatever a store calls it, that a URI leads to."""
        bare, mark, query = uri.partition("?")
        scheme, _, rest = bare.partition("://")
        base = f"{scheme}://{rest.split('/', 1)[0]}{mark}{query}"
        if base not in self._buckets:
            self._buckets[base] = _bucket_of(base, settings_of(base, dict(self.given), self.environment))
        return self._buckets[base]

    def opened(self, uri: str, size: int | None) -> StoreFile:
        """Return a file, of a size that a listing has told; what is not given of it is remembered as refused."""
        bucket, bare, listed = self.bucket(uri), uri.partition("?")[0], size is not None
        with self._noting(bare, listed):
            fetch, known = bucket.fetcher(bucket.inner(uri), size)

        def noted(start: int, length: int) -> bytes:
            with self._noting(bare, listed):
                return fetch(start, length)

        return StoreFile(noted, known)

    @contextmanager
    def _noting(self, bare: str, listed: bool) -> Iterator[None]:
        """Remember what is refused inside; a file that no listing has told of need not be there."""
        try:
            yield
        except OSError as error:
            error.filename = bare
            if listed or error.errno != errno.ENOENT:
                self.refused[bare] = reason(error)
            raise


def _bucket_of(uri: str, settings: Settings) -> Bucket:
    """Return the bucket that a URI leads to; what reaches stores is loaded here, since most answers need none."""
    if settings.kind == "s3":
        from cklog.stores.s3 import S3Bucket

        return S3Bucket(uri, settings)
    from cklog.stores.arrow import ArrowBucket

    return ArrowBucket(uri, settings)


_numbers = itertools.count(1)
_stores: dict[str, Store] = {}


def number_of(store: Store) -> str:
    """Give a store a number of its own, which URIs name."""
    number = str(next(_numbers))
    _stores[number] = store
    return number


def store_of(given: Iterable[tuple[str, str]], places: Iterable[str]) -> str:
    """Return the number of a store that is reached by these options; "" if nothing that is named lies in one.

    Raises
    ------
    UsageError : an option that there is not
    """
    options = parse_store(given)
    for place in places:
        if not is_local(place):
            settings_of(place, dict(options), {})
    return number_of(Store(options)) if options or not all(map(is_local, places)) else ""


def store_numbered(number: str) -> Store:
    """Return the store of a number; "" is what the environment alone says."""
    if number and number not in _stores:
        raise UsageError(f"?store={number}: there is no such store", "--store K=V says how a store is reached")
    if number not in _stores:
        _stores[number] = Store()
    return _stores[number]


def handed_over(uris: Iterable[str]) -> dict[str, Any]:
    """Return what another process needs to open what these URIs lead to, of JSON's types; nothing for local paths."""
    numbers = sorted({located(uri).store for uri in uris if not is_local(uri)})
    stores = {number: store_numbered(number) for number in numbers}
    return {number: [[*map(list, one.given)], dict(one.environment)] for number, one in stores.items()}


def take_over(told: Mapping[str, Any]) -> None:
    """Let numbers mean what they mean in the process that asks."""
    for number, (given, environment) in told.items():
        options = parse_store((key, value) for key, value in given)
        known = _stores.get(number)
        if known is None or (known.given, dict(known.environment)) != (options, dict(environment)):
            _stores[number] = Store(options, environment)

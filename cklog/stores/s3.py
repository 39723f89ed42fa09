"""A bucket of S3, asked by requests of our own."""

from __future__ import annotations

import errno
import time

from cklog.stores.bucket import Bucket
from cklog.stores.deadlines import Deadline
from cklog.stores.files import Fetch, FileInfo
from cklog.stores.listings import PAGE_NAMES, Listing, Page, list_all
from cklog.stores.options import Settings
from cklog.stores.patience import NotServed
from cklog.stores.requests import Known, Requests


class S3Bucket(Bucket):
    """A bucket of S3, or of a store that speaks its protocol."""

    def __init__(self, uri: str, settings: Settings) -> None:
        super().__init__(uri, settings)
        self._requests = Requests(settings, self._patience)
        self._listings: dict[str, Listing] = {}

    def listed(self, path: str) -> Listing:
        """Return all that lies below a path; one request for a thousand files."""
        bucket, _, key = path.partition("/")
        prefix, deadline, whole = f"{key}/" if key else "", self._deadline(), Deadline(self._settings.listing_timeout)

        def page(token: str) -> Page:
            return self._requests.page(bucket, prefix, token, PAGE_NAMES, deadline)

        began = time.monotonic()
        try:
            found = list_all(page, prefix, lambda: deadline.renew(whole), whole)
        except NotServed:
            self._patience.lose(began if not whole.allows(0) else time.monotonic())
            raise
        self._listings[f"{path}/"] = found
        return found

    def info(self, path: str) -> FileInfo:
        """Return what stands at a path."""
        bucket, _, key = path.partition("/")
        if key:
            found, _ = self._requests.look_at(path)
            if found.kind == "file":
                return found
        try:
            page = self._requests.page(bucket, f"{key}/" if key else "", "", 1, self._deadline())
        except NotServed as error:
            if error.errno == errno.ENOENT:  # no such bucket
                return FileInfo("nothing")
            raise
        return FileInfo("folder" if page.objects or not key else "nothing")

    def fetcher(self, path: str, size: int | None) -> tuple[Fetch, int]:
        """Return what fetches ranges of a file, and its size; of one that was listed nothing is asked for before."""
        if size is None:
            known = self._known(path)
        else:
            tags = (one.files.get(path[len(at) :]) for at, one in self._listings.items() if path.startswith(at))
            known = Known(size, next((found[1] for found in tags if found and found[0] == size), ""))

        def fetch(start: int, length: int) -> bytes:
            nonlocal known
            data, tag = self._requests.read_range(path, start, length, known)
            known = Known(known.size, tag)
            return data

        return self._kept(path, known.size, fetch), known.size

    def _known(self, path: str) -> Known:
        """Ask for the size of a file that no listing has told."""
        found, tag = self._requests.look_at(path)
        if found.kind == "nothing":
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return Known(found.size, tag)

    def _deadline(self) -> Deadline:
        """Return the deadline of something that is asked for now."""
        return Deadline(min(self._settings.timeout, self._patience.left()))

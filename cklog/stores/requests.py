"""Requests to a store of S3: ranges of objects, pages of a listing, and whether an object is there.

pyarrow asks for the size of a file whenever it opens one, even if a listing has told it: a second request for each
file. It follows redirects to whatever host, with the token, and waits for slow heads without an end. So all is asked
for here: one deadline for a request with all its tries, and only the host that was named.
"""

from __future__ import annotations

import errno
import functools
import http.client
import re
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from cklog.stores.deadlines import Deadline
from cklog.stores.exchanges import Answer, Connection, connect, explain
from cklog.stores.files import FileInfo
from cklog.stores.identities import Identity
from cklog.stores.listings import PAGE_BYTES, Page, parse_page, tag_of
from cklog.stores.options import Settings
from cklog.stores.patience import TRIES, NotServed, Patience
from cklog.stores.signing import escaped_path, escaped_query, signed_headers

T = TypeVar("T")

PART_BYTES = 1 << 20
"""A range has the time of a request again whenever so many bytes of it have arrived."""

_PAUSE_SECONDS = 0.2
_REFUSAL_BYTES = 64 << 10
_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_CODE = re.compile(rb"<Code>([A-Za-z]{1,60})</Code>")
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MEANINGS = {
    "AccessDenied": "access denied",
    "AuthorizationHeaderMalformed": "another region is expected: --store region=R",
    "ExpiredToken": "the session token has expired",
    "InternalError": "an error inside the store",
    "InvalidAccessKeyId": "the access key is not known",
    "InvalidObjectState": "the object is archived",
    "InvalidToken": "the session token is not valid",
    "NoSuchBucket": "no such bucket",
    "NoSuchKey": "no such object",
    "PermanentRedirect": "the bucket is in another region: --store region=R",
    "RequestTimeTooSkewed": "the clock of this machine differs from the store's",
    "ServiceUnavailable": "the store is not available",
    "SignatureDoesNotMatch": "the secret key does not fit the access key",
    "SlowDown": "too many requests",
}
"""What a code means. A store's own words are not repeated: they could be a key or a token of ours."""


class Known(NamedTuple):
    """What is known of an object: its size, and the tag of these bytes, "" if nothing tells it."""

    size: int
    tag: str


class Requests:
    """Connections to a store of S3, which threads share; each is used by one of them at a time."""

    def __init__(self, settings: Settings, patience: Patience) -> None:
        self._settings, self._patience = settings, patience
        self._identity = Identity(settings)
        self._idle: list[tuple[str, Connection]] = []
        self._regions: dict[str, str] = {}

    def read_range(self, path: str, start: int, length: int, known: Known) -> tuple[bytes, str]:
        """Return bytes [start, start + length) of `bucket/key`, and the tag that came with them.

        Where an answer breaks off, the next try asks for the rest.

        Raises
        ------
        NotServed : the store does not give them, or the object is another one by now
        """
        parts: list[bytes] = []
        got, renewed, tag = 0, 0, known.tag

        def ask(deadline: Deadline, again: bool) -> None:
            first, wanted = start + got, length - got
            span = {"Range": f"bytes={first}-{first + wanted - 1}"}

            def take(answer: Answer) -> None:
                nonlocal got, renewed, tag
                if answer.status not in (200, 206):
                    raise self._refusal(answer, deadline, known.size)
                skip, most = _offered(answer, first, wanted, known.size)
                tag = _same_tag(tag, answer)
                for part in answer.parts(most, deadline):
                    piece = part[skip : skip + length - got]
                    skip = max(skip - len(part), 0)
                    parts.append(piece)
                    got += len(piece)
                    if got - renewed >= PART_BYTES:
                        renewed = got
                        deadline.renew()
                if got < length:  # a body without a length, which ends with its connection
                    raise http.client.IncompleteRead(b"")

            self._exchange("GET", path, {}, span, deadline, again, take)

        self._try_often(ask, Deadline(min(self._settings.timeout, self._patience.left())))
        return b"".join(parts), tag

    def look_at(self, path: str) -> tuple[FileInfo, str]:
        """Return what stands at `bucket/key`, a file or nothing, and its tag."""

        def ask(deadline: Deadline, again: bool) -> tuple[FileInfo, str]:
            def take(answer: Answer) -> tuple[FileInfo, str]:
                if answer.status == 404:
                    return FileInfo("nothing"), ""
                if answer.status != 200:
                    raise self._refusal(answer, deadline, 0)
                if answer.length is None:
                    raise NotServed(errno.EIO, "the store does not say how large the object is")
                answer.read(0, deadline)
                return FileInfo("file", answer.length), tag_of(answer.header("ETag"))

            return self._exchange("HEAD", path, {}, {}, deadline, again, take)

        return self._try_often(ask, Deadline(min(self._settings.timeout, self._patience.left())))

    def page(self, bucket: str, prefix: str, token: str, most: int, deadline: Deadline) -> Page:
        """Return a page of the names in a bucket that begin with a prefix, before a deadline."""
        query = {"encoding-type": "url", "list-type": "2", "max-keys": str(most), "prefix": prefix}
        query |= {"continuation-token": token} if token else {}

        def ask(deadline: Deadline, again: bool) -> Page:
            def take(answer: Answer) -> Page:
                if answer.status != 200:
                    raise self._refusal(answer, deadline, 0)
                if answer.length is not None and answer.length > PAGE_BYTES:
                    raise NotServed(errno.EIO, "the listing has a page that is too large")
                found = parse_page(answer.read(PAGE_BYTES, deadline), prefix)
                if self._identity.appears_in("\n".join(item.key for item in found.objects)):
                    raise NotServed(errno.EIO, "the store's listing cannot be used: a name in it is a credential")
                return found

            return self._exchange("GET", f"{bucket}/", query, {}, deadline, again, take)

        return self._try_often(ask, deadline)

    def _try_often(self, ask: Callable[[Deadline, bool], T], deadline: Deadline) -> T:
        """Make a request a few times, all of them before a deadline; what fails for good costs patience."""
        began = time.monotonic()
        self._patience.left()
        for attempt in range(1, TRIES + 1):
            try:
                return ask(deadline, attempt > 1)
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                final = explain(error, deadline.seconds)
                for_good = isinstance(error, (NotServed, ssl.SSLCertVerificationError, UnicodeError))
            pause = min(_PAUSE_SECONDS * 2**attempt, deadline.seconds / 10)
            if (for_good and final.errno != errno.EAGAIN) or attempt == TRIES or not deadline.allows(pause):
                break
            time.sleep(pause)
        self._patience.lose(began)
        raise NotServed(errno.EIO if final.errno == errno.EAGAIN else final.errno, final.strerror) from None

    def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        deadline: Deadline,
        again: bool,
        take: Callable[[Answer], T],
    ) -> T:
        """Ask once, and take of the answer what is wanted; a try that follows another connects anew."""
        bucket = path.partition("/")[0]
        keys = self._identity.keys(deadline)
        region = self._region(bucket, deadline)
        host, target = self._target(path, region)
        if query:
            target += "?" + escaped_query(query)
        sent = {"Host": host, **headers}
        if keys is not None:
            pair = (keys.access, keys.secret)
            sent = signed_headers(method, target, sent, pair, keys.token, region, datetime.now(UTC))
        return self._send(host, method, target, sent, deadline, again, take)

    def _send(
        self,
        host: str,
        method: str,
        target: str,
        headers: Mapping[str, str],
        deadline: Deadline,
        again: bool,
        take: Callable[[Answer], T],
    ) -> T:
        """Send a request over a connection that is idle, or a new one."""
        first = deadline.sooner(max(self._settings.timeout / TRIES, 0.1))  # a try that hangs leaves time for others
        connection = self._taken(host, again) or connect(host, self._tls, first)
        try:
            answer = connection.exchange(method, target, headers, first)
            result = take(answer)
        except BaseException:
            connection.close()
            raise
        if answer.is_reusable:
            self._idle.append((host, connection))
        else:
            connection.close()
        return result

    def _taken(self, host: str, again: bool) -> Connection | None:
        """Take a connection that nobody uses; after a failure all of them are closed, and none is taken."""
        while self._idle:
            try:
                idle, connection = self._idle.pop()
            except IndexError:  # another thread was faster
                return None
            if idle == host and not again:
                return connection
            connection.close()
        return None

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext | None:
        """What TLS is agreed on with, None without."""
        return None if self._settings.scheme == "http" else ssl.create_default_context()

    def _region(self, bucket: str, deadline: Deadline) -> str:
        """Return the region that a bucket is in: as it is said, else as AWS says it to anybody."""
        if region := self._settings.get("region"):
            return region
        if self._settings.endpoint:
            return "us-east-1"
        if bucket not in self._regions:
            host, target = "s3.us-east-1.amazonaws.com", escaped_path(f"/{bucket}")

            def take(answer: Answer) -> str:
                return answer.header("x-amz-bucket-region")

            try:
                found = self._send(host, "HEAD", target, {"Host": host}, deadline, False, take)
            except (http.client.HTTPException, NotServed):
                found = ""
            self._regions[bucket] = found if _REGION.fullmatch(found) else "us-east-1"
        return self._regions[bucket]

    def _target(self, path: str, region: str) -> tuple[str, str]:
        """Return the host to ask for `bucket/key`, and the path there, escaped."""
        if self._settings.endpoint:
            host, _, prefix = self._settings.endpoint.partition("/")
            return host, escaped_path("/" + "/".join(part for part in (prefix, path) if part))
        bucket, _, key = path.partition("/")
        own = f"s3.{region}.amazonaws.com"
        return (own, escaped_path(f"/{path}")) if "." in bucket else (f"{bucket}.{own}", escaped_path(f"/{key}"))

    def _refusal(self, answer: Answer, deadline: Deadline, size: int) -> NotServed:
        """Say why a request was refused, in words of our own."""
        status = answer.status
        if status in _REDIRECTS:
            region = answer.header("x-amz-bucket-region")
            hint = f"--store region={region}" if _REGION.fullmatch(region) else "--store endpoint= or region="
            hint = self._settings.hidden(hint)
            return NotServed(errno.EIO, f"the store redirects (HTTP {status}), and nothing is sent elsewhere ({hint})")
        if status == 416:
            return changed(size, None)
        if status == 304 or not 200 <= status < 600:
            return NotServed(errno.EIO, f"the store answers HTTP {status}, which is no answer to a request")
        code = _CODE.search(answer.read(_REFUSAL_BYTES, deadline))
        named = code[1].decode() if code else ""
        words = f"the store answers HTTP {status}" + (f" {named}: {_MEANINGS[named]}" if named in _MEANINGS else "")
        if status == 404:
            return NotServed(errno.ENOENT, words)
        number = errno.EAGAIN if status in _AGAIN else errno.EACCES if status in (401, 403) else errno.EIO
        return NotServed(number, words)


def _same_tag(known: str, answer: Answer) -> str:
    """Return the tag of an object, which must be the one that is known already."""
    tag = tag_of(answer.header("ETag"))
    if known and tag and tag != known:
        raise NotServed(errno.ESTALE, "it was overwritten since it was listed: something writes to it. Ask a copy")
    return known or tag


def _offered(answer: Answer, first: int, wanted: int, size: int) -> tuple[int, int]:
    """Return how many bytes of an answer come before the range that was requested, and how many it has at the most.

    Raises
    ------
    NotServed : it is not the range that was requested, and no small object as a whole either
    """
    if answer.status == 200:
        if answer.length is not None and answer.length != size:
            raise changed(size, answer.length)
        if size > PART_BYTES:
            raise NotServed(errno.EIO, "the store answers with a whole object where a range was requested")
        return first, size
    found = _RANGE.fullmatch(answer.header("Content-Range"))
    if found is None:
        raise NotServed(errno.EIO, "the store does not say which range it answers with (Content-Range)")
    begin, end, total = map(int, found.groups())
    if total != size:
        raise changed(size, total)
    if (begin, end) != (first, first + wanted - 1):
        raise NotServed(
            errno.EIO,
            f"the store answers with bytes {begin}-{end}, where {first}-{first + wanted - 1} were requested",
        )
    if answer.length is not None and answer.length != wanted:
        raise NotServed(errno.EIO, f"the store answers with {answer.length} bytes, where {wanted} were requested")
    return 0, wanted


def changed(listed: int, now: int | None) -> NotServed:
    """Say that an object is not the one that was listed."""
    has = "fewer now" if now is None else f"{now} now"
    return NotServed(errno.ESTALE, f"it had {listed} bytes when it was listed, and has {has}: something writes to it")

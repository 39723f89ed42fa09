"""Requests for ranges of objects of S3: a few tries each, within a time that is known, and a reason in one line.

pyarrow asks for the size of a file whenever it opens one, even if a listing has told it: a second request for each
file. Where the keys are known an object is asked for here, by as many bytes as are wanted.
"""

from __future__ import annotations

import errno
import http.client
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from cklog.errors import first_line
from cklog.stores.options import Settings
from cklog.stores.patience import TRIES, NotServed, Patience
from cklog.stores.signing import escaped_path, signed_headers

_PAUSE_SECONDS = 0.2
_PART_BYTES, _REFUSAL_BYTES = 1 << 20, 64 << 10
_LEAST_SPEED = 64 << 10  # bytes a second
_CODE = re.compile(rb"<Code>([^<]{1,80})</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]{1,200})</Message>")
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


class Requests:
    """Connections to a store of S3, which threads share; each is used by one of them at a time."""

    def __init__(self, settings: Settings, region: Callable[[str], str], patience: Patience) -> None:
        self._settings, self._region, self._patience = settings, region, patience
        self._idle: dict[str, list[http.client.HTTPConnection]] = {}

    def fetch(self, path: str, start: int, length: int, size: int) -> bytes:
        """Return bytes [start, start + length) of `bucket/key`, of which a listing has said how many there are.

        Raises
        ------
        NotServed : the store does not give them, or the object is another one by now
        """
        self._patience.require()
        began = time.monotonic()
        most = self._settings.timeout
        for attempt in range(1, TRIES + 1):
            left = most - (time.monotonic() - began)
            try:
                return self._tried(path, start, length, size, max(min(most / TRIES, left), 0.1))
            except (OSError, http.client.HTTPException) as error:
                final = error if isinstance(error, NotServed) else _told(error, most / TRIES)
                again = not isinstance(error, NotServed) or error.errno == errno.EAGAIN
            pause = _PAUSE_SECONDS * 2**attempt
            if not again:
                break
            if attempt == TRIES or time.monotonic() - began + pause >= most:
                self._patience.lose(time.monotonic() - began)
                break
            time.sleep(pause)
        raise NotServed(errno.EIO if final.errno == errno.EAGAIN else final.errno, final.strerror) from None

    def _tried(self, path: str, start: int, length: int, size: int, seconds: float) -> bytes:
        """Ask once."""
        host, target = self._target(path)
        headers = {"Host": host, "Range": f"bytes={start}-{start + length - 1}"}
        access, secret = self._settings.get("access_key"), self._settings.get("secret_key")
        if access and secret and not self._settings.anonymous:
            region, token = self._region(path.partition("/")[0]), self._settings.get("session_token")
            headers = signed_headers(target, headers, (access, secret), token, region, datetime.now(UTC))
        connection = self._connection(host, seconds)
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            most = {200: size, 206: length}.get(answer.status)
            data = answer.read(_REFUSAL_BYTES) if most is None else b"".join(_parts(answer, seconds * TRIES, most))
        except BaseException:
            connection.close()
            raise
        if answer.isclosed():
            self._idle.setdefault(host, []).append(connection)
        else:
            connection.close()
        if answer.status == 206:
            return _whole_range(data, answer.getheader("Content-Range") or "", length, size)
        if answer.status == 200:
            if len(data) != size:
                raise _changed(size, len(data))
            return data[start : start + length]
        raise self._refusal(answer.status, data, size)

    def _target(self, path: str) -> tuple[str, str]:
        """Return the host to ask for `bucket/key`, and the path there, escaped."""
        if self._settings.endpoint:
            host, _, prefix = self._settings.endpoint.partition("/")
            return host, escaped_path("/" + "/".join(part for part in (prefix, path) if part))
        bucket, _, key = path.partition("/")
        own = f"s3.{self._region(bucket)}.amazonaws.com"
        return (own, escaped_path(f"/{path}")) if "." in bucket else (f"{bucket}.{own}", escaped_path(f"/{key}"))

    def _connection(self, host: str, seconds: float) -> http.client.HTTPConnection:
        """Return a connection that nobody uses, or a new one."""
        idle = self._idle.get(host)
        try:
            found = idle.pop() if idle else None
        except IndexError:  # another thread was faster
            found = None
        if found is None:
            if self._settings.scheme == "http":
                found = http.client.HTTPConnection(host, timeout=seconds)
            else:
                found = http.client.HTTPSConnection(host, timeout=seconds, context=ssl.create_default_context())
        found.timeout = seconds
        if found.sock is not None:
            found.sock.settimeout(seconds)
        return found

    def _refusal(self, status: int, body: bytes, size: int) -> NotServed:
        """Say why a request was refused."""
        code, message = _CODE.search(body), _MESSAGE.search(body)
        words = [f"HTTP {status}", *(found[1].decode("utf-8", "replace") for found in (code, message) if found)]
        told = self._settings.hidden(" ".join(" ".join(words).split()))
        if status == 404:
            return NotServed(errno.ENOENT, told)
        if status == 416:
            return _changed(size, None)
        number = errno.EAGAIN if status in _AGAIN else errno.EACCES if status in (401, 403) else errno.EIO
        return NotServed(number, f"the store answers {told}")


def _parts(answer: http.client.HTTPResponse, seconds: float, most: int) -> Iterator[bytes]:
    """Yield the body of an answer, as long as it comes at some speed; all of it, at most so many bytes, or an error."""
    began, got = time.monotonic(), 0
    while part := answer.read1(_PART_BYTES):
        yield part
        got += len(part)
        if got > most:
            raise NotServed(errno.EIO, "the store sends more than it was asked for")
        if time.monotonic() - began > seconds + got / _LEAST_SPEED:
            raise TimeoutError
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)


def _whole_range(data: bytes, told: str, length: int, size: int) -> bytes:
    """Return what a store gave for a range, if it is all of that."""
    total = told.rpartition("/")[2]
    if total.isdigit() and int(total) != size:
        raise _changed(size, int(total))
    if len(data) != length:
        raise http.client.IncompleteRead(data, length - len(data))
    return data


def _changed(listed: int, now: int | None) -> NotServed:
    """Say that an object is not the one that was listed."""
    has = "fewer now" if now is None else f"{now} now"
    return NotServed(errno.ESTALE, f"it had {listed} bytes when it was listed, and has {has}: something writes to it")


def _told(error: Exception, seconds: float) -> NotServed:
    """Say why there was no answer, in a line."""
    if isinstance(error, TimeoutError):
        return NotServed(errno.ETIMEDOUT, f"the store gave no answer within {seconds:g} s, {TRIES} times")
    if isinstance(error, http.client.IncompleteRead):
        return NotServed(errno.EIO, "the store's answer breaks off")
    if isinstance(error, socket.gaierror):
        return NotServed(errno.EHOSTUNREACH, f"the store's host is not known: {error.strerror}")
    if isinstance(error, OSError) and error.strerror:
        return NotServed(error.errno or errno.EIO, f"the store cannot be reached: {error.strerror.lower()}")
    return NotServed(errno.EIO, f"the store's answer cannot be read: {first_line(error)}")

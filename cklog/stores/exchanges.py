"""One request and its answer over HTTP: connected, sent and received before a deadline, checked before it is believed.

The standard library reads the head and the body. What it takes from a server without a word is refused here: a length
that is negative, no number or given twice, heads without an end, more bytes than were requested. No redirect is
followed: a request is signed for one host, and goes to that host alone.
"""

from __future__ import annotations

import errno
import http.client
import io
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from cklog.stores.deadlines import Deadline, run_within
from cklog.stores.patience import NotServed

_HEAD_BYTES = 256 << 10
_READ_BYTES = 128 << 10
_LENGTH = re.compile(r"[0-9]{1,18}")
_UNSAFE = re.compile(r"[^\x20-\x7e]")


class Connection:
    """A connection to one host, for one request at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._deadline = Deadline(0.0)
        self._room, self._ended = 0, False

    def exchange(self, method: str, target: str, headers: Mapping[str, str], deadline: Deadline) -> Answer:
        """Send a request without a body, and return the answer once its head is there.

        Raises
        ------
        NotServed : the head is not one that can be believed
        OSError, http.client.HTTPException : there is none
        """
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        lines += ["Accept-Encoding: identity", "User-Agent: cklog"]
        if any(map(_UNSAFE.search, lines)):
            raise NotServed(errno.EINVAL, "a credential or a name has a character that no request can carry")
        self._deadline, self._room = deadline, _HEAD_BYTES
        self._socket.settimeout(deadline.left())
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
        response = http.client.HTTPResponse(self, method=method)  # type: ignore[arg-type]  # it needs makefile alone
        response.begin()
        if self._ended:  # which it takes for the end of the head
            raise http.client.IncompleteRead(b"")
        return Answer(self, response)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return what comes from the host as a file that `http.client` reads."""
        return io.BufferedReader(_Incoming(self))

    def receive(self, buffer: Any) -> int:
        """Fill a buffer with what comes next, before the deadline and within the bytes that may come."""
        self._socket.settimeout(self._deadline.left())
        count = self._socket.recv_into(buffer)
        self._room -= count
        self._ended = not count
        if self._room < 0:
            raise NotServed(errno.EIO, "the store sends more than was requested")
        return count

    def expect(self, deadline: Deadline, most: int) -> None:
        """Take a body of at most so many bytes from here on; chunks of few bytes take some more to frame."""
        self._deadline, self._room = deadline, 8 * most + (64 << 10)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class _Incoming(io.RawIOBase):
    """What comes over a connection, as a raw file."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._connection.receive(buffer)


class Answer:
    """The head of an answer, believed as far as it was checked, and its body to be read once."""

    def __init__(self, connection: Connection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response = connection, response
        self.status = response.status
        self.length = self._checked_length()

    def header(self, name: str) -> str:
        """Return a header's only value, "" if there is none, or several that differ."""
        values = set(self._response.headers.get_all(name, []))
        return str(values.pop()).strip() if len(values) == 1 else ""

    def _checked_length(self) -> int | None:
        """Return how many bytes the body has, None if the head does not say it."""
        found = self._response.headers.get_all("Content-Length", [])
        if not found:
            return None
        if len(set(found)) > 1 or not _LENGTH.fullmatch(str(found[0]).strip()):
            raise NotServed(errno.EIO, "the store's answer has a Content-Length that is no length")
        return int(found[0])

    def parts(self, most: int, deadline: Deadline) -> Iterator[bytes]:
        """Yield the body, of at most so many bytes.

        Raises
        ------
        NotServed : there is more
        TimeoutError : it does not come in time
        http.client.IncompleteRead : it ends before its length
        """
        self._connection.expect(deadline, most)
        got = 0
        while part := self._piece():
            got += len(part)
            if got > most:
                raise NotServed(errno.EIO, "the store sends more than was requested")
            yield part
        if self._response.length:
            raise http.client.IncompleteRead(b"", self._response.length)

    def _piece(self) -> bytes:
        """Read the next bytes of the body, b"" at its end."""
        try:
            return self._response.read(_READ_BYTES)
        except ValueError:  # `http.client` takes a minus in the size of a chunk, and then cannot read so many bytes
            raise NotServed(errno.EIO, "the store's answer has a chunk whose size is no size") from None

    def read(self, most: int, deadline: Deadline) -> bytes:
        """Return the whole body, of at most so many bytes."""
        return b"".join(self.parts(most, deadline))

    @property
    def is_reusable(self) -> bool:
        """Whether the connection may carry another request: the body was read, and the host keeps it open."""
        return self._response.isclosed() and not self._response.will_close


def connect(authority: str, tls: ssl.SSLContext | None, deadline: Deadline) -> Connection:
    """Connect to `host:port` before a deadline, names looked up and TLS agreed on in that time, too."""
    try:
        parts = urlsplit(f"//{authority}")
        name, port = parts.hostname or "", parts.port or (443 if tls else 80)
    except ValueError:
        raise NotServed(errno.EINVAL, "the endpoint is no host and port") from None
    found = run_within(lambda: socket.getaddrinfo(name, port, type=socket.SOCK_STREAM), deadline.left())
    for i, (family, kind, protocol, _, address) in enumerate(found):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(deadline.left() / (len(found) - i))  # an address that is dead leaves time for the next
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(deadline.left())
            return Connection(sock if tls is None else tls.wrap_socket(sock, server_hostname=name))
        except BaseException as error:
            sock.close()
            if i + 1 == len(found) or not isinstance(error, OSError) or isinstance(error, ssl.SSLError):
                raise
    raise OSError(errno.EHOSTUNREACH, "no address")


def explain(error: Exception, seconds: float) -> NotServed:
    """Say in a line why there was no answer; nothing that the host sent is repeated."""
    if isinstance(error, NotServed):
        return error
    if isinstance(error, TimeoutError):
        return NotServed(errno.ETIMEDOUT, f"the store gave no answer within {seconds:.3g} s")
    if isinstance(error, http.client.IncompleteRead):
        return NotServed(errno.EIO, "the store's answer breaks off")
    if isinstance(error, http.client.RemoteDisconnected):
        return NotServed(errno.EIO, "the store closes the connection and gives no answer")
    if isinstance(error, http.client.HTTPException):
        return NotServed(errno.EIO, "the store's answer is not HTTP")
    if isinstance(error, ssl.SSLCertVerificationError):
        return NotServed(errno.EACCES, f"the store's certificate is not accepted: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return NotServed(errno.EPROTO, f"the store does not agree on TLS ({error.reason or 'it ended the connection'})")
    if isinstance(error, socket.gaierror):
        return NotServed(errno.EHOSTUNREACH, f"the store's host is not known: {error.strerror}")
    if isinstance(error, UnicodeError):
        return NotServed(errno.EINVAL, "the endpoint is no host and port")
    if isinstance(error, OSError) and error.strerror:
        return NotServed(error.errno or errno.EIO, f"the store cannot be reached: {error.strerror.lower()}")
    return NotServed(errno.EIO, "the store's answer cannot be read")

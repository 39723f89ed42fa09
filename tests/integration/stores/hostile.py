"""A server of S3's protocol that is hostile: plain sockets, so that it may say what no HTTP library says.

    python -m tests.integration.stores.hostile          a table: each behaviour, its exit code, its seconds

It serves a run honestly but for one behaviour, and notes what was sent to it. When `give_up` comes it closes all that
is open: a client that waits without an end then ends, and the test knows that it did not end by itself.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET, PREFIX = "evidence", "run"
SECRET, ACCESS, TOKEN = "wJalrXUtnFEMIK7MDENGbPxRfiCY", "AKIAIOSFODNN7EXAMPLE", "FwoGZXIvYXdzEBYaDKToken"


@dataclass(frozen=True)
class Asked:
    """A request: LIST, HEAD or GET, the key or prefix, its query and its headers."""

    what: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def range(self) -> tuple[int, int]:
        """The first byte and the one after the last that is requested."""
        first, _, last = self.headers["range"].removeprefix("bytes=").partition("-")
        return int(first), int(last) + 1


class Line:
    """The connection to one client, as a behaviour writes to it."""

    def __init__(self, sock: socket.socket, server: Hostile) -> None:
        self.sock, self.server = sock, server

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.sock.sendall(data)

    def slowly(self, data: bytes, pause: float = 0.1) -> None:
        """Send a byte now and then."""
        for i in range(len(data)):
            self.sock.sendall(data[i : i + 1])
            self.server.given_up.wait(pause)

    def endlessly(self, data: bytes) -> None:
        """Send the same again and again, as fast as it is taken."""
        while not self.server.given_up.is_set():
            self.sock.sendall(data)

    def hang(self) -> None:
        """Say nothing until the end."""
        self.server.given_up.wait()

    def answer(self, status: str, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        """Send an honest frame with whatever is in it."""
        self.head(status, {"Content-Length": str(len(body)), **(headers or {})})
        self.send(body)

    def head(self, status: str, headers: dict[str, str]) -> None:
        """Send a head."""
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
        self.send("\r\n".join([*lines, "", ""]).encode())


Behaviour = Callable[[Asked, Line], None]


@dataclass
class Hostile:
    """The server: what it serves, what it does in place of that, and what it was sent."""

    objects: dict[str, bytes]
    behaviour: Behaviour
    place: str
    asked: list[Asked] = field(default_factory=list)
    given_up: threading.Event = field(default_factory=threading.Event)
    overdue: bool = False
    elsewhere: list[bytes] = field(default_factory=list)
    """What came to another port of this host, to which redirects lead."""
    elsewhere_port: int = 0
    port: int = 0
    scheme: str = "http"
    tls: ssl.SSLContext | None = None
    open_sockets: list[socket.socket] = field(default_factory=list)

    def give_up(self) -> None:
        """Close all that is open: whoever waits for this server does so no longer."""
        self.overdue = True
        self.stop()

    def stop(self) -> None:
        """End every thread of the server."""
        self.given_up.set()
        for sock in self.open_sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    @property
    def secrets(self) -> set[str]:
        """All that no output may have: the keys, and every signature that was sent."""
        sent = " ".join(one.headers.get("authorization", "") for one in self.asked)
        return {SECRET, ACCESS, TOKEN, *re.findall(r"Signature=([0-9a-f]+)", sent)}

    @property
    def options(self) -> dict[str, str]:
        """What `--store` takes to get here."""
        given = {"endpoint": f"{self.scheme}://127.0.0.1:{self.port}", "region": "us-east-1"}
        return given | {"access_key": ACCESS, "secret_key": SECRET, "session_token": TOKEN}

    @property
    def words(self) -> list[str]:
        """The same as words of a command line."""
        return [word for key, value in self.options.items() for word in ("--store", f"{key}={value}")]

    def honest(self, asked: Asked, line: Line) -> None:
        """Answer as a store does."""
        if asked.what == "LIST":
            found = {key: data for key, data in self.objects.items() if key.startswith(asked.query["prefix"])}
            line.answer("200 OK", body=page([contents(key, str(len(data))) for key, data in found.items()]))
            return
        data = self.objects.get(asked.key)
        if data is None:
            line.answer("404 Not Found")
        elif asked.what == "HEAD":
            line.head("200 OK", {"Content-Length": str(len(data))})
        else:
            start, end = asked.range
            line.answer("206 Partial", {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}, data[start:end])

    def serve(self, sock: socket.socket) -> None:
        """Answer what comes over one connection."""
        with contextlib.suppress(OSError, ValueError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.place == "connect":
                self.behaviour(Asked("CONNECT", "", {}, {}), Line(sock, self))
                return
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
                self.open_sockets.append(sock)
            with sock.makefile("rb") as incoming:
                while (asked := _read_request(incoming)) and not self.given_up.is_set():
                    self.asked.append(asked)
                    (self.behaviour if self.place in (asked.what, "ALL") else self.honest)(asked, Line(sock, self))
        sock.close()


def _read_request(incoming: object) -> Asked | None:
    """Read a request, None at the end of the connection."""
    lines = []
    for line in incoming:  # type: ignore[attr-defined]
        if not line.strip():
            break
        lines.append(line.decode("latin-1").rstrip("\r\n"))
    if not lines:
        return None
    method, target, _ = lines[0].split(" ")
    parts = urlsplit(target)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    key = unquote(parts.path).removeprefix(f"/{BUCKET}").lstrip("/")
    return Asked("LIST" if "list-type" in query else method, key, query, headers)


def contents(key: str, size: str, more: str = "") -> str:
    """Return an object as a listing has it."""
    return f"<Contents><Key>{escape(quote(key))}</Key><Size>{size}</Size>{more}</Contents>"


def page(objects: list[str], token: str = "", truncated: bool = False) -> bytes:
    """Return a page of a listing."""
    following = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><EncodingType>url</EncodingType>'
        f"<IsTruncated>{'true' if truncated or token else 'false'}</IsTruncated>{following}"
        f"{''.join(objects)}</ListBucketResult>"
    ).encode()


def objects_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by the keys that they have here."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{PREFIX}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}


@contextmanager
def hostile(
    objects: dict[str, bytes], behaviour: Behaviour, place: str, most: float, tls: ssl.SSLContext | None = None
) -> Iterator[Hostile]:
    """Run the server; after `most` seconds it gives up, and says so."""
    server = Hostile(objects, behaviour, place, tls=tls)
    server.scheme = "https" if tls else "http"
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    server.port, server.elsewhere_port = (one.getsockname()[1] for one in listeners)
    server.open_sockets += listeners

    def accept(listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        with contextlib.suppress(OSError):
            while not server.given_up.is_set():
                sock, _ = listener.accept()
                server.open_sockets.append(sock)
                threading.Thread(target=serve, args=(sock,), daemon=True).start()

    def note(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            server.elsewhere.append(sock.recv(65536))
            sock.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    for listener, serve in zip(listeners, (server.serve, note), strict=True):
        threading.Thread(target=accept, args=(listener, serve), daemon=True).start()
    timer = threading.Timer(most, server.give_up)
    timer.daemon = True
    timer.start()
    try:
        yield server
    finally:
        timer.cancel()
        server.stop()


def main() -> None:
    """Print a table of all behaviours."""
    from tests.conftest import SAMPLES
    from tests.integration.stores.behaviours import BEHAVIOURS
    from tests.program import cklog

    objects = objects_of(SAMPLES / "uncoordinated-join")
    print("| behaviour | of | exit | seconds | requests | sent elsewhere | leaked |\n|---|---|---|---|---|---|---|")
    for (name, place), (behaviour, _) in BEHAVIOURS.items():
        with hostile(objects, behaviour, place, 60) as server:
            began = time.monotonic()
            ended = cklog("recovery-line", f"s3://{BUCKET}/{PREFIX}", "-v", *server.words, "--store", "timeout=1")
            seconds = time.monotonic() - began
        told = (ended.out + ended.err).lower()
        leaked = sum(secret.lower() in told for secret in server.secrets)
        late = " (given up)" if server.overdue else ""
        row = [name, place, str(ended.code), f"{seconds:.1f}{late}", len(server.asked), len(server.elsewhere), leaked]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()

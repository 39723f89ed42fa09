"""An S3 server of this process (moto's), and a proxy before it that counts requests and bytes, and injects faults."""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

BUCKET = "checkpoints"
SECRET = "wJalrXUtnFEMI/K7MDENG"
KEYS = {"access_key": "AKIAIOSFODNN7", "secret_key": SECRET, "region": "us-east-1"}
DAMAGE = ("corrupt", "torn", "damaged", "bug")
"""Words that nothing may say of a file that a store does not give."""


class Asked(NamedTuple):
    """A request as the proxy saw it: LIST, HEAD or GET, the object's key, and the bytes of the answer's body."""

    what: str
    key: str
    size: int


Fault = Callable[[str, str], "str | None"]
"""(LIST, HEAD or GET, key) → 403, 500, 503, hang, cut, drop; or None: the request goes on to the server."""


@dataclass
class ObjectStore:
    """Where the server is asked, what it was asked, and what goes wrong there."""

    endpoint: str
    client: Any
    asked: list[Asked] = field(default_factory=list)
    fault: Fault = lambda what, key: None
    ended: threading.Event = field(default_factory=threading.Event)
    pause: float = 0.0
    """Seconds that each object takes, so that requests made at the same time meet."""
    most_at_once: int = 0
    at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request among those under way."""
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.ended.wait(self.pause)
            yield
        finally:
            with self.lock:
                self.at_once -= 1

    def count(self, what: str) -> int:
        """Return how many requests of a kind there were."""
        return sum(one.what == what for one in self.asked)

    def bytes_of(self, part: str) -> int:
        """Return the bytes that were given of objects whose key has this part."""
        return sum(one.size for one in self.asked if one.what == "GET" and part in one.key)

    def upload(self, folder: Path, prefix: str, **more: str) -> str:
        """Put every file of a folder below a prefix, and return its URI."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"{prefix}/{path.relative_to(folder).as_posix()}"
                self.client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes(), **more)
        return f"s3://{BUCKET}/{prefix}"

    @property
    def options(self) -> dict[str, str]:
        """What `--store` takes to get here."""
        return {"endpoint": self.endpoint, **KEYS}

    @property
    def words(self) -> list[str]:
        """The same as words of a command line."""
        return [word for key, value in self.options.items() for word in ("--store", f"{key}={value}")]


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run the server and its proxy; nothing is left of either."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    client.create_bucket(Bucket=BUCKET)
    proxy = _Server(("127.0.0.1", 0), _Proxy)
    proxy.daemon_threads = True
    store = ObjectStore(f"http://127.0.0.1:{proxy.server_port}", client)
    _Proxy.store, _Proxy.upstream = store, (host, port)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.ended.set()
        proxy.shutdown()
        proxy.server_close()
        server.stop()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that has given up is gone when it is answered."""


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: ObjectStore
    upstream: tuple[str, int]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Hand a request on, or do what goes wrong in its place."""
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").lstrip("/")
        what = "LIST" if "list-type" in parts.query else self.command
        fault = self.store.fault(what, key)
        if fault == "hang":
            self.store.asked.append(Asked(what, key, 0))
            self.store.ended.wait(120)
            self.close_connection = True
            return
        if fault == "drop":
            self.store.asked.append(Asked(what, key, 0))
            self.close_connection = True
            return
        if fault is not None and fault.isdigit():
            self.store.asked.append(Asked(what, key, 0))
            self._send(int(fault), [], b"<Error><Code>Injected</Code><Message>a test says so</Message></Error>")
            return
        with self.store.counted():
            upstream = http.client.HTTPConnection(*self.upstream)
            upstream.request(self.command, self.path, headers=dict(self.headers.items()))
            answer = upstream.getresponse()
            body = answer.read()
            upstream.close()
        dropped = {"transfer-encoding", "connection", "date", "server", "content-length"}
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in dropped]
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(body))
        self.store.asked.append(Asked(what, key, len(body)))
        self._send(answer.status, headers, body[: len(body) // 2] if fault == "cut" else body, length)

    do_HEAD = do_GET

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes, length: str | None = None) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        length = length or str(len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.close_connection = len(body) != int(length)

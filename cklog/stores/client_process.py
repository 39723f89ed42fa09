"""A client of pyarrow in a process of its own, since what a store answers can end the process that reads it.

Azure's client aborts on some answers, and XML libraries print lines of their own. Here that ends a process on which
nothing else depends; the file is one that the store did not give.

`python -m cklog.stores.client_process FD` takes a store as a line of JSON on stdin, and then requests, a line each.
Several are worked on at a time. Each reply, to the pipe FD, is a line of JSON and as many bytes as that says.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import threading
import weakref
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from cklog.errors import UsageError, first_line
from cklog.isolation import DEVNULL, PIPE, own_import_path, start_python
from cklog.stores.clients import ArrowClient, Item
from cklog.stores.options import Settings

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

_FILES = (
    *("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "AZURE_CLIENT_CERTIFICATE_PATH"),
    *("AZURE_FEDERATED_TOKEN_FILE", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"),
)
"""Variables that name a file for a client: a relative one is meant from where cklog was started."""


class _Reply(NamedTuple):
    """What a request came to: a value and bytes, or the name of an error, its text and its hint."""

    value: Any = None
    data: bytes = b""
    error: tuple[str, str, str] | None = None


class ClientProcess:
    """A client of a store in another process, which starts with the first request, and anew where it ended."""

    def __init__(self, uri: str, settings: Settings) -> None:
        try:
            here = os.getcwd()
        except FileNotFoundError:
            here = ""
        self._first = json.dumps([uri, settings.kind, dict(settings.values), here]).encode() + b"\n"
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._running: _Running | None = None

    def start(self) -> None:
        """Start the process, if it never was, and wait until it has loaded what it needs."""
        self._process().ready()

    @property
    def was_started(self) -> bool:
        """Whether this process has started it."""
        return self._running is not None and self._pid == os.getpid()

    def listed(self, path: str) -> list[Item]:
        return [Item(*item) for item in self._ask("listed", path).value]

    def info(self, path: str) -> Item:
        return Item(*self._ask("info", path).value)

    def size(self, path: str) -> Any:
        return self._ask("size", path).value

    def read(self, path: str, start: int, length: int, size: int) -> bytes:
        return self._ask("read", path, start, length, size).data

    def _process(self) -> _Running:
        """Return the process of this one: a fork of it has one of its own."""
        if self._pid != os.getpid():
            self._lock, self._pid, self._running = threading.Lock(), os.getpid(), None
        with self._lock:
            if self._running is None or self._running.has_ended:
                self._running = _Running(self._first)
                weakref.finalize(self, self._running.end)
            return self._running

    def _ask(self, *request: str | int) -> _Reply:
        """Send a request and wait for its reply; one during which the process ends is made once more, alone.

        Raises
        ------
        OSError : the store does not give it, or its answer ends the process
        """
        running = self._process()
        reply = running.ask(request)
        if reply is None:  # another request may have ended it
            alone = _Running(self._first)
            try:
                reply = alone.ask(request)
                if reply is None:
                    raise OSError(f"pyarrow's client crashed ({alone.why_it_ended()})")
            finally:
                alone.end()
        if reply.error is not None:
            raise _error_of(*reply.error)
        return reply


class _Running:
    """A process that has been started, and the requests that wait for it."""

    def __init__(self, first: bytes) -> None:
        replies, into = os.pipe()  # what anything else prints goes nowhere near the replies
        try:
            self.process: subprocess.Popen[bytes] = start_python(
                ["-m", "cklog.stores.client_process", str(into)],
                own_import_path(),
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                pass_fds=(into,),
                start_new_session=True,  # a Ctrl-C is told to this process, not to that
            )
        except BaseException:
            os.close(replies)
            raise
        finally:
            os.close(into)
        self.has_ended = False
        self._number = 0
        self._ready: SimpleQueue[_Reply | None] = SimpleQueue()
        self._waiting: dict[int, SimpleQueue[_Reply | None]] = {0: self._ready}
        self._lock = threading.Lock()
        self._send(first)
        threading.Thread(target=self._take_replies, args=(os.fdopen(replies, "rb"),), daemon=True).start()

    def ready(self) -> None:
        """Wait until it takes requests, or has ended."""
        self._ready.put(self._ready.get())

    def ask(self, request: tuple[str | int, ...]) -> _Reply | None:
        """Send a request and wait for its reply; None where the process ends before."""
        place: SimpleQueue[_Reply | None] = SimpleQueue()
        with self._lock:
            if self.has_ended:
                return None
            self._number += 1
            self._waiting[self._number] = place
            self._send(json.dumps([self._number, *request]).encode() + b"\n")
        return place.get()

    def end(self) -> None:
        """End the process; a request that waits for a reply gets none."""
        self.process.kill()

    def why_it_ended(self) -> str:
        """Return the name of the signal, or the exit code, that ended it."""
        code = self.process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended: whoever waits for a reply is told so
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def _take_replies(self, source: IO[bytes]) -> None:
        try:
            with source:
                while (found := _read_reply(source)) is not None:
                    number, reply = found
                    with self._lock:
                        place = self._waiting.pop(number)
                    place.put(reply)
        except Exception:  # whatever a store has made the process write: nobody waits for it any longer
            self.process.kill()
        finally:
            with self._lock:
                self.has_ended = True
                left, self._waiting = self._waiting, {}
            for place in left.values():
                place.put(None)
            self.process.wait()
            with contextlib.suppress(OSError):
                if self.process.stdin is not None:
                    self.process.stdin.close()


def _read_reply(source: IO[bytes]) -> tuple[int, _Reply] | None:
    """Read a reply and the number of its request; None where the process ended before it was whole."""
    line = source.readline()
    if not line.endswith(b"\n"):
        return None
    number, value, size, error = json.loads(line)
    data = source.read(max(size, 0))
    return (number, _Reply(value, data, error)) if len(data) == size else None


def _error_of(name: str, text: str, hint: str) -> Exception:
    """Return an error as the other process had it."""
    if name == "UsageError":
        return UsageError(text, hint)
    if name == "MemoryError":
        return MemoryError(text)
    if name == "FileNotFoundError":
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return OSError(text)


def main(into: int) -> None:
    """Answer requests from stdin until no more come."""
    _write_no_core_file()
    lock = threading.Lock()
    uri, kind, values, here = json.loads(sys.stdin.buffer.readline())
    for name in _FILES:
        if os.environ.get(name) and here:
            os.environ[name] = os.path.join(here, os.environ[name])
    opening = threading.Lock()
    opened: list[ArrowClient] = []

    def client() -> ArrowClient:
        with opening:
            if not opened:
                opened.append(ArrowClient(uri, Settings(kind, values)))
        return opened[0]

    def answer(number: int, request: list[Any]) -> None:
        try:
            reply = _reply_to(client, request)
            line = json.dumps([number, reply.value, len(reply.data), reply.error]).encode() + b"\n"
        except MemoryError:
            reply, line = _Reply(), json.dumps([number, None, 0, ("MemoryError", "", "")]).encode() + b"\n"
        with lock:
            out.write(line + reply.data)
            out.flush()

    with os.fdopen(into, "wb") as out:
        answer(0, ["ready"])
        for line in sys.stdin.buffer:
            number, *request = json.loads(line)
            threading.Thread(target=answer, args=(number, request), daemon=True).start()
        os._exit(0)  # a call that hangs does not keep it


def _write_no_core_file() -> None:
    """Keep what this process knows, keys among it, out of the file that a crash may leave."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _reply_to(client: Callable[[], ArrowClient], request: list[Any]) -> _Reply:
    """Ask the store, and return what it gave or why it did not."""
    what, *rest = request
    try:
        if what == "ready":
            return _Reply()
        if what == "read":
            return _Reply(data=client().read(*rest))
        asked = {"listed": client().listed, "info": client().info, "size": client().size}
        return _Reply(asked[what](*rest))
    except UsageError as error:
        return _Reply(error=("UsageError", str(error), error.hint))
    except MemoryError:
        raise
    except FileNotFoundError:
        return _Reply(error=("FileNotFoundError", "", ""))
    except Exception as error:  # whatever a library makes of an answer, whoever asked waits for a reply
        return _Reply(error=("OSError", " ".join(first_line(error).split()), ""))


if __name__ == "__main__":
    main(int(sys.argv[1]))

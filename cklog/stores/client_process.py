"""A client of pyarrow in a process of its own, since what a store answers can end the process that reads it.

Azure's client aborts on some answers, and XML libraries print lines of their own. Here that ends a process on which
nothing else depends; the file is one that the store did not give.

`python -m cklog.stores.client_process` takes a store as a line of JSON, and then requests, a line each. Several are
worked on at a time. Each reply is a line of JSON, and as many bytes as that says.
"""

from __future__ import annotations

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


class _Reply(NamedTuple):
    """What a request came to: a value and bytes, or the name of an error, its text and its hint."""

    value: Any = None
    data: bytes = b""
    error: tuple[str, str, str] | None = None


class ClientProcess:
    """A client of a store in another process, which is started when it is first asked, and again where it ended."""

    def __init__(self, uri: str, settings: Settings) -> None:
        self._first = json.dumps([uri, settings.kind, dict(settings.values)]).encode() + b"\n"
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def listed(self, path: str) -> list[Item]:
        return [Item(*item) for item in self._ask("listed", path).value]

    def info(self, path: str) -> Item:
        return Item(*self._ask("info", path).value)

    def size(self, path: str) -> Any:
        return self._ask("size", path).value

    def read(self, path: str, start: int, length: int) -> bytes:
        return self._ask("read", path, start, length).data

    def _ask(self, *request: str | int) -> _Reply:
        """Send a request and wait for its reply.

        Raises
        ------
        OSError : the store does not give it, or its answer has ended the process
        """
        with self._lock:
            if self._running is None or self._running.has_ended:
                self._running = _Running(self._first)
                weakref.finalize(self, self._running.process.kill)
            running = self._running
        reply = running.ask(request)
        if reply is None:
            raise OSError(f"pyarrow's client crashed on the store's answer ({running.why_it_ended()})")
        if reply.error is not None:
            raise _error_of(*reply.error)
        return reply


class _Running:
    """A process that has been started, and the requests that wait for it."""

    def __init__(self, first: bytes) -> None:
        self.process: subprocess.Popen[bytes] = start_python(
            ["-m", "cklog.stores.client_process"],
            own_import_path(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,  # what libraries print of a hostile answer
            start_new_session=True,  # a Ctrl-C is told to this process, not to that
        )
        self.has_ended = False
        self._number = 0
        self._waiting: dict[int, SimpleQueue[_Reply | None]] = {}
        self._lock = threading.Lock()
        self._send(first)
        threading.Thread(target=self._take_replies, daemon=True).start()

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

    def why_it_ended(self) -> str:
        """Return the name of the signal, or the exit code, that ended it."""
        code = self.process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except OSError:  # it has ended: whoever waits for a reply is told so
            return

    def _take_replies(self) -> None:
        assert self.process.stdout is not None
        while (found := _read_reply(self.process.stdout)) is not None:
            number, reply = found
            with self._lock:
                place = self._waiting.pop(number)
            place.put(reply)
        with self._lock:
            self.has_ended = True
            left, self._waiting = self._waiting, {}
        for place in left.values():
            place.put(None)


def _read_reply(source: IO[bytes]) -> tuple[int, _Reply] | None:
    """Read a reply and the number of its request; None where the process ended before it was whole."""
    line = source.readline()
    if not line.endswith(b"\n"):
        return None
    number, value, size, error = json.loads(line)
    data = source.read(size)
    return (number, _Reply(value, data, error)) if len(data) == size else None


def _error_of(name: str, text: str, hint: str) -> Exception:
    """Return an error as the other process had it."""
    if name == "UsageError":
        return UsageError(text, hint)
    kinds: dict[str, type[Exception]] = {"FileNotFoundError": FileNotFoundError, "MemoryError": MemoryError}
    return kinds.get(name, OSError)(text)


def main() -> None:
    """Answer requests from stdin until no more come; what anything else prints goes nowhere near the replies."""
    out, lock = os.fdopen(os.dup(1), "wb"), threading.Lock()
    os.dup2(2, 1)
    uri, kind, values = json.loads(sys.stdin.buffer.readline())
    opening = threading.Lock()
    opened: list[ArrowClient] = []

    def client() -> ArrowClient:
        with opening:
            if not opened:
                opened.append(ArrowClient(uri, Settings(kind, values)))
        return opened[0]

    def answer(number: int, request: list[Any]) -> None:
        reply = _reply_to(client, request)
        line = json.dumps([number, reply.value, len(reply.data), reply.error]).encode() + b"\n"
        with lock:
            out.write(line + reply.data)
            out.flush()

    for line in sys.stdin.buffer:
        number, *request = json.loads(line)
        threading.Thread(target=answer, args=(number, request), daemon=True).start()
    os._exit(0)  # a call that hangs does not keep it


def _reply_to(client: Callable[[], ArrowClient], request: list[Any]) -> _Reply:
    """Ask the store, and return what it gave or why it did not."""
    what, *rest = request
    try:
        if what == "read":
            return _Reply(data=client().read(*rest))
        asked = {"listed": client().listed, "info": client().info, "size": client().size}
        return _Reply(asked[what](*rest))
    except UsageError as error:
        return _Reply(error=("UsageError", str(error), error.hint))
    except MemoryError:
        return _Reply(error=("MemoryError", "", ""))
    except OSError as error:
        name = "FileNotFoundError" if isinstance(error, FileNotFoundError) else "OSError"
        return _Reply(error=(name, " ".join(first_line(error).split()), ""))


if __name__ == "__main__":
    main()

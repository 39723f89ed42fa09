"""A client of pyarrow in another process gives what pyarrow gives, and its end is an error like any other."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from cklog.errors import UsageError
from cklog.stores.client_process import ClientProcess, _Running
from cklog.stores.clients import ArrowClient
from cklog.stores.options import Settings


def _client(folder: Path) -> ClientProcess:
    """A client for files of this machine: pyarrow opens them by the same calls."""
    return ClientProcess(f"file://{folder}", Settings("file", {}))


def test_it_gives_what_pyarrow_gives_in_this_process(tmp_path: Path) -> None:
    (tmp_path / "chk").mkdir()
    (tmp_path / "chk" / "a\u00e9").write_bytes(bytes(range(256)) * 5000)
    here, there = ArrowClient(f"file://{tmp_path}", Settings("file", {})), _client(tmp_path)
    path = f"{tmp_path}/chk/a\u00e9"
    assert sorted(there.listed(str(tmp_path))) == sorted(here.listed(str(tmp_path)))
    assert [there.info(place) for place in (path, str(tmp_path))] == [here.info(path), here.info(str(tmp_path))]
    assert there.info(f"{tmp_path}/none").kind == "nothing"
    assert there.size(path) == here.size(path) == 1_280_000
    assert there.read(path, 7, 1_000_000, 1_280_000) == here.read(path, 7, 1_000_000, 1_280_000)
    assert there.read(path, 1_279_999, 10, 1_280_000) == b"\xff"


def test_threads_share_it(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / str(number)).write_bytes(bytes([number]) * (number * 10_000))
    client = _client(tmp_path)

    def read(number: int) -> bytes:
        path = f"{tmp_path}/{number}"
        size = client.size(path)
        return client.read(path, 0, size, size)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read, range(40))) == [bytes([n]) * (n * 10_000) for n in range(40)]


def test_errors_are_those_of_this_process(tmp_path: Path) -> None:
    client = _client(tmp_path)
    with pytest.raises(FileNotFoundError) as missing:
        client.size(f"{tmp_path}/none")
    assert missing.value.errno == errno.ENOENT
    with pytest.raises(OSError, match="directory"):
        client.size(str(tmp_path))
    with pytest.raises(UsageError, match="--store: "):
        ClientProcess("abfss://c@a.h/x", Settings("abfss", {"tenant_id": "t"})).size("c/x")  # and no client_id
    for request in ("size", "info", "listed"):
        with pytest.raises(OSError, match="surrogates"):
            client._ask(request, f"{tmp_path}/\udc80")
    (tmp_path / "a").write_bytes(b"12345")
    for start, length in ((0, -1), (0, 1 << 70)):
        with pytest.raises(OSError, match=r"length|nbytes|Negative|int"):
            client.read(f"{tmp_path}/a", start, length, 5)
    with pytest.raises(OSError, match="it had 4 bytes when it was opened, and has 5 now"):
        _client(tmp_path).read(f"{tmp_path}/a", 0, 4, 4)


def test_who_waited_for_a_process_that_ended_asks_another(tmp_path: Path) -> None:
    """Only a request that ends the process when it is alone is refused."""
    client = _client(tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    client.info(str(tmp_path))
    running = client._running
    assert running is not None
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(client.size, str(fifo))  # opening it waits for who writes
        while len(running._waiting) < 1:
            time.sleep(0.01)
        (tmp_path / "file").write_bytes(b"123")
        (tmp_path / "file").replace(fifo)
        running.process.send_signal(signal.SIGABRT)
        assert waiting.result() == 3
    assert client.info(str(tmp_path)).kind == "folder"
    assert client._running is not running


def test_a_request_that_ends_every_process_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    client = _client(tmp_path)
    monkeypatch.setattr(_Running, "ask", lambda self, request: self.process.send_signal(signal.SIGABRT))
    with pytest.raises(OSError, match=r"pyarrow's client crashed \(SIGABRT\)"):
        client.info(str(tmp_path))


@pytest.mark.parametrize("reply", [b"a banner\n", b"[77, null, 0, null]\n", b"[1, null]\n", b"[1, null, -1, null]\n"])
def test_what_is_no_reply_leaves_nobody_waiting(reply: bytes) -> None:
    running = object.__new__(_Running)
    replies, into = os.pipe()
    with subprocess.Popen(["sleep", "2"], stdin=subprocess.PIPE) as process:
        place: SimpleQueue[Any] = SimpleQueue()
        running.process, running.has_ended = process, False
        running._waiting, running._lock = {1: place}, threading.Lock()
        os.write(into, reply)
        os.close(into)
        running._take_replies(os.fdopen(replies, "rb"))
    assert running.has_ended
    assert place.get_nowait() is None


def test_a_fork_has_a_process_of_its_own(tmp_path: Path) -> None:
    client = _client(tmp_path)
    client.info(str(tmp_path))
    mine = client._running
    client._pid += 1  # as in a fork
    assert client.info(str(tmp_path)).kind == "folder"
    assert client._running is not mine
    assert mine is not None
    mine.end()


def test_a_crash_leaves_no_core_file_with_the_keys(tmp_path: Path) -> None:
    client = _client(tmp_path)
    client.info(str(tmp_path))
    assert client._running is not None
    limits = Path(f"/proc/{client._running.process.pid}/limits").read_text()
    assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE)


def test_the_process_ends_with_its_client(tmp_path: Path) -> None:
    client = _client(tmp_path)
    client.info(str(tmp_path))
    process = client._running.process  # type: ignore[union-attr]
    del client
    assert process.wait(20) == -signal.SIGKILL

"""A client of pyarrow in another process gives what pyarrow gives, and its end is an error like any other."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cklog.errors import UsageError
from cklog.stores.client_process import ClientProcess
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
    assert there.read(path, 7, 1_000_000) == here.read(path, 7, 1_000_000)
    assert there.read(path, 1_279_999, 10) == b"\xff"


def test_threads_share_it(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / str(number)).write_bytes(bytes([number]) * (number * 10_000))
    client = _client(tmp_path)

    def read(number: int) -> bytes:
        path = f"{tmp_path}/{number}"
        return client.read(path, 0, client.size(path))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read, range(40))) == [bytes([n]) * (n * 10_000) for n in range(40)]


def test_errors_are_those_of_this_process(tmp_path: Path) -> None:
    client = _client(tmp_path)
    with pytest.raises(FileNotFoundError):
        client.size(f"{tmp_path}/none")
    with pytest.raises(OSError, match="directory"):
        client.size(str(tmp_path))
    with pytest.raises(UsageError, match="--store: "):
        ClientProcess("abfss://c@a.h/x", Settings("abfss", {"tenant_id": "t"})).size("c/x")  # and no client_id


def test_a_process_that_ended_is_an_error_of_the_store_and_the_next_request_starts_another(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    client = _client(tmp_path)
    client.info(str(tmp_path))
    process = client._running.process  # type: ignore[union-attr]
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(client.size, str(fifo)) for _ in range(2)]  # opening it waits for who writes
        while len(client._running._waiting) < 2:  # type: ignore[union-attr]
            time.sleep(0.01)
        process.send_signal(signal.SIGABRT)
        for one in waiting:
            with pytest.raises(OSError, match=r"crashed on the store's answer \(SIGABRT\)"):
                one.result()
    assert client.info(str(tmp_path)).kind == "folder"


def test_the_process_ends_with_its_client(tmp_path: Path) -> None:
    client = _client(tmp_path)
    client.info(str(tmp_path))
    process = client._running.process  # type: ignore[union-attr]
    del client
    assert process.wait(20) == -signal.SIGKILL

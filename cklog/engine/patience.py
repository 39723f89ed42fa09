"""How long Spark may do nothing: a master or server that is not there, and a cluster where nobody takes a task.

Spark itself waits for ever where no worker has room, or is left, or tries again for minutes what nobody answers. Every
wait here ends after `--engine-timeout` with what is known of the cause.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cklog.errors import EngineError
from cklog.stores.deadlines import OutOfTime, run_within

T = TypeVar("T")

LONGER = "--engine-timeout waits longer"

_EVERY_SECONDS = 0.5


def require_listener(url: str, seconds: float) -> None:
    """Raise `EngineError` unless somebody listens where a URL leads, of the first host that it names.

    >>> require_listener("local[2]", 1)
    """
    if not url.startswith(("spark://", "sc://")):
        return
    named = urlsplit(url.split(",")[0])
    try:
        address = named.hostname or "", named.port or (15002 if named.scheme == "sc" else 7077)
        with socket.create_connection(address, timeout=seconds):
            return
    except (OSError, ValueError) as error:
        why = "no answer" if isinstance(error, TimeoutError) else (getattr(error, "strerror", None) or str(error))
        what = "Connect server" if named.scheme == "sc" else "master"
        raise EngineError(f"{url}: {why}", f"is the {what} up, and is this its address?") from error


def within(seconds: float, work: Callable[[], T], what: str, give_up: Callable[[], None] = lambda: None) -> T:
    """Return what `work` returns, done in a thread; raise `EngineError` if it takes longer, after `give_up`.

    The thread is left behind then: nothing else ends a call that waits for another process.

    >>> within(9, lambda: 7, "counting")
    7
    """
    try:
        return run_within(work, seconds)
    except OutOfTime:
        give_up()
        raise EngineError(f"{what}: nothing within {seconds:g} s", LONGER) from None


@contextmanager
def impatient(
    seconds: float, is_working: Callable[[], bool], cancel: Callable[[], Any]
) -> Iterator[Callable[[], bool]]:
    """Cancel what runs inside if nothing has been working on it for so long; yield what tells whether it was.

    `is_working` says whether anything works on it at this moment; what is slow is waited for, however long.
    """
    ended, gave_up = threading.Event(), threading.Event()

    def watch() -> None:
        since = time.monotonic()
        while not ended.wait(_EVERY_SECONDS):
            if is_working():
                since = time.monotonic()
            elif time.monotonic() - since >= seconds:
                gave_up.set()
                cancel()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield gave_up.is_set
    finally:
        ended.set()
        thread.join(_EVERY_SECONDS)

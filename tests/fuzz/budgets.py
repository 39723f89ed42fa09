"""Bounds of one run: of the CPU's time, not the clock's, and of memory."""

from __future__ import annotations

import codecs
import gc
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CPU_SECONDS = 5.0
"""Of a run that takes some 20 ms undamaged, on a machine that may be slow; threads count together."""

HARD_SECONDS = 60
"""After so many more the kernel ends a run that does not even come back to Python."""

MEMORY = 256 << 20
"""Bytes that a run may grow by at its highest; undamaged ones take a few million."""

ADDRESSES = 16 << 30
"""Bytes of address space of a worker: what keeps a machine alive while a run goes wrong."""


class OverBudget(BaseException):
    """Too much CPU was used; no `Exception`, so that nothing takes it for one of its own."""


def _over(number: int, frame: FrameType | None) -> None:
    raise OverBudget


def prepare() -> None:
    """Bound this process, once."""
    for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-8-sig", "latin-1", "ascii", "idna"):
        codecs.lookup(name)  # found in files that are shut to the one whom a case asks as
    signal.signal(signal.SIGPROF, _over)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def bounded(seconds: float = CPU_SECONDS) -> Iterator[None]:
    """Raise `OverBudget` in the body when it has used too much CPU; a body that never returns is ended with us."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime + seconds) + HARD_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def forget() -> None:
    """Collect what commands leave; do not look again at what is left: modules, and answers of undamaged folders."""
    gc.collect()
    gc.freeze()


def begin_peak() -> int:
    """Forget the highest memory so far; the resident bytes now."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return -1
    return _status("VmRSS")


def grown(since: int) -> int:
    """By how many bytes the resident memory grew at its highest since `begin_peak`; 0 where nobody tells."""
    return _status("VmHWM") - since if since >= 0 else 0


def _status(name: str) -> int:
    with open(f"/proc/{os.getpid()}/status") as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
    return 0

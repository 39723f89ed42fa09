"""One module per command: arguments in, analysis called, result rendered."""

from __future__ import annotations

import os

from cklog.isolation import remove_working_directory


def keep_memory() -> None:
    """Let Arrow's allocator keep what it frees: giving pages back and faulting them in again is a tenth of a scan.

    The process ends after one answer. To be called before pyarrow is first imported, which reads it then.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")


def main() -> None:
    """The `cklog` program."""
    remove_working_directory()
    import signal
    from contextlib import suppress

    with suppress(ValueError):  # outside of the main thread signals are somebody else's
        # a silent end, rather than a traceback, until `run_interruptibly` has been imported and takes them
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from cklog.commands.interrupts import run_interruptibly

    keep_memory()
    run_interruptibly(_run)


def _run() -> None:
    """Load the libraries, which takes a good part of a short answer, and answer."""
    from cklog.commands.app import main as run

    run()

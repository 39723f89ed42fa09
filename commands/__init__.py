"""One module per command: arguments in, analysis called, result rendered."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def keep_memory() -> None:
    """Let Arrow's allocator keep what it frees: giving pages back and faulting them in again is a tenth of a scan.

    The process ends after one answer. To be called before pyarrow is first imported, which reads it then.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")


def main() -> None:
    """The `cklog` program."""
    keep_memory()
    try:
        from cklog.commands.app import main as run
    except KeyboardInterrupt:  # loading the libraries takes a good part of a short answer
        sys.exit(INTERRUPTED)
    run()

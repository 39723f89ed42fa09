"""Call one function in a process of its own: `work.py MODULE:FUNCTION ARGUMENTS…`, as `timing.work` says it."""

from __future__ import annotations

import gc
import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from cklog.commands import keep_memory  # noqa: E402


def main() -> None:
    """Arrow and the garbage collector are set up as the program does it."""
    keep_memory()
    gc.disable()
    module, _, name = sys.argv[1].partition(":")
    getattr(importlib.import_module(module), name)(*sys.argv[2:])


if __name__ == "__main__":
    main()

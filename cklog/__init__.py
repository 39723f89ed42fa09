"""cklog: where can a crashed stream-processing job restart, and why there?"""

from typing import Any

from cklog.version import __version__

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    """`cklog.open(path)` is `cklog.run.open_run`, imported when first asked for."""
    if name == "open":
        from cklog.run import open_run

        return open_run
    raise AttributeError(f"module 'cklog' has no attribute {name!r}")

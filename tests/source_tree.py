"""The modules of this repository."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import REPOSITORY

CODE = ["cklog", "commands", "parsers"]


def modules() -> list[Path]:
    """Every module once, by its place and not through a link."""
    found = [path for folder in CODE for path in (REPOSITORY / folder).rglob("*.py")]
    return sorted(path for path in found if not any(above.is_symlink() for above in path.parents))

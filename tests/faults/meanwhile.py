"""Python code for the command's own process: it changes a file when a folder has been listed, before it is read."""

from __future__ import annotations

_ONCE_LISTED = """
import os, shutil
import cklog.storage as storage
_listed = storage.Root._list_tree
_done = []
def _listing(self, prefix, told):
    found = _listed(self, prefix, told)
    if not _done:
        _done.append(1)
        _meanwhile()
    return found
storage.Root._list_tree = _listing
"""
"""Wraps the one place that lists folders, for every format and both engines."""


def once_listed(statement: str) -> str:
    """Return code that runs a statement after the first listing."""
    return f"{_ONCE_LISTED}\ndef _meanwhile():\n    {statement}\n"


def cut(path: str, size: int) -> str:
    """Cut a file to so many bytes."""
    return once_listed(f"os.truncate({path!r}, {size})")


def grown(path: str, data: bytes) -> str:
    """Append to a file."""
    return once_listed(f"open({path!r}, 'ab').write({data!r})")


def removed(path: str) -> str:
    """Remove a file."""
    return once_listed(f"os.unlink({path!r})")


def replaced(path: str, data: bytes) -> str:
    """Put another file in its place, of the same size or not."""
    return once_listed(f"open({path!r} + '.new', 'wb').write({data!r}); os.replace({path!r} + '.new', {path!r})")


def made_a_folder(path: str) -> str:
    """Put a folder in its place."""
    return once_listed(f"os.unlink({path!r}); os.mkdir({path!r})")


def folder_removed(path: str) -> str:
    """Remove the folder that a file lies in, with all that is in it."""
    return once_listed(f"shutil.rmtree(os.path.dirname({path!r}))")


def unreadable(path: str, user: int) -> str:
    """Take the right to read a file; the process goes on as another user than root, who may read everything."""
    return once_listed(f"os.chmod({path!r}, 0); os.geteuid() or os.seteuid({user})")

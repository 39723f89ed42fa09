"""Python code for the command's own process: it changes a file when a folder has been listed, before it is read."""

from __future__ import annotations

_ONCE_LISTED = """
import os, shutil
import cklog.storage as storage
_listed = storage.Root.tree
_done = []
def _listing(self, prefix=""):
    found = _listed(self, prefix)
    base = os.path.join(self.uri(''), prefix)
    if not _done and any(os.path.join(base, entry.path) == _path for entry in found.files):
        _done.append(1)
        _meanwhile()
        open(os.environ['CKLOG_FAULT_CAME'], 'w').close()
    return found
storage.Root.tree = _listing
"""
"""Wraps the one place that lists folders, for every format and both engines."""


def once_listed(path: str, statement: str) -> str:
    """Return code that runs a statement when a file has been listed."""
    return f"{_ONCE_LISTED}\n_path = {path!r}\ndef _meanwhile():\n    {statement}\n"


def cut(path: str, size: int) -> str:
    """Cut a file to so many bytes."""
    return once_listed(path, f"os.truncate({path!r}, {size})")


def grown(path: str, data: bytes) -> str:
    """Append to a file."""
    return once_listed(path, f"open({path!r}, 'ab').write({data!r})")


def removed(path: str) -> str:
    """Remove a file."""
    return once_listed(path, f"os.unlink({path!r})")


def replaced(path: str, data: bytes) -> str:
    """Put another file in its place, of the same size or not."""
    return once_listed(path, f"open({path!r} + '.new', 'wb').write({data!r}); os.replace({path!r} + '.new', {path!r})")


def made_a_folder(path: str) -> str:
    """Put a folder in its place."""
    return once_listed(path, f"os.unlink({path!r}); os.mkdir({path!r})")


def made_a_link(path: str) -> str:
    """Move a file out of the run, and put a link to it in its place."""
    outside = "os.path.join(tempfile.mkdtemp(dir=os.path.dirname(os.environ['CKLOG_FAULT_CAME'])), 'moved')"
    return "import tempfile\n" + once_listed(
        path, f"moved = {outside}; shutil.move({path!r}, moved); os.symlink(moved, {path!r})"
    )


def folder_removed(path: str) -> str:
    """Remove the folder that a file lies in, with all that is in it."""
    return once_listed(path, f"shutil.rmtree(os.path.dirname({path!r}))")


_NO_OVERRIDE = """
import ctypes, struct
_libc = ctypes.CDLL(None, use_errno=True)
_header = struct.pack('=Ii', 0x20080522, 0)
_sets = ctypes.create_string_buffer(24)
def _obey_modes():
    assert _libc.capget(_header, _sets) == 0
    words = list(struct.unpack('=6I', _sets.raw))
    for i in (0, 1):
        words[i] &= ~0b110
    assert _libc.capset(_header, struct.pack('=6I', *words)) == 0
"""
"""Root reads every file, by two capabilities (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH): without them it reads its own."""


def unreadable(path: str) -> str:
    """Take the right to read a file."""
    return _NO_OVERRIDE + once_listed(path, f"os.chmod({path!r}, 0); os.geteuid() or _obey_modes()")

"""To which version a RESTORE of Delta went back, by what its commit says and does.

One that was asked for by a version names it. One that was asked for by a time names that as somebody typed it, in the
zone of a session; but its commit removes and adds files, and these tell the version: on the way back there is one
that has all the files which it left and added, and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cklog.parsers.sink_tables.delta_actions import Changes
from cklog.parsers.sink_tables.files import text, whole


class Restores:
    """Finds what each RESTORE went back to; commits are read again for it, each a few times at the most."""

    def __init__(self, changes: Callable[[int], Changes | None], versions: int) -> None:
        self._changes = changes
        self._left = 4 * versions + 100

    def target(self, version: int, parameters: Mapping[str, Any]) -> int | None:
        """Return the version that a RESTORE went back to; None: nobody can tell."""
        told = parameters.get("version")
        number = whole(text(told).strip('"') or told)
        if number is not None:
            return number if 0 <= number < version else None
        return self._by_files(version)

    def _by_files(self, version: int) -> int | None:
        """Go back from a RESTORE until the files are those that it left behind.

        `added` are files of the version that is looked at and not of the one before the RESTORE; `removed` the others.
        """
        wanted = self._changes(version)
        added: set[str] = set()
        removed: set[str] = set()
        at = version - 1
        while wanted is not None and self._left > 0:
            if (added, removed) == (wanted.added, wanted.removed):
                return at
            undone = self._changes(at)
            self._left -= 1
            if undone is None:
                return None
            for file in undone.added:
                (added.remove if file in added else removed.add)(file)
            for file in undone.removed:
                (removed.remove if file in removed else added.add)(file)
            at -= 1
        return None

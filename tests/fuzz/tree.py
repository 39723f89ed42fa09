"""A folder that is damaged and mended again: only what was touched is written anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


class Tree:
    """The files of a subject, by relative path, laid out below `root`; `elsewhere` is a folder outside it."""

    def __init__(self, root: Path, files: Mapping[str, bytes]) -> None:
        self.root = root
        self.elsewhere = root.with_name(root.name + "-elsewhere")
        self.files = dict(files)
        self.names = sorted(files)
        self.touched: set[str] = set()
        for name, data in self.files.items():
            self._write(name, data)
        self.elsewhere.mkdir(parents=True, exist_ok=True)

    def now(self, name: str) -> bytes | None:
        """What lies there now; None: no file that can be read."""
        try:
            return (self.root / name).read_bytes() if name in self.touched else self.files.get(name)
        except OSError:
            return None

    def put(self, name: str, data: bytes) -> None:
        """Write a file, whether it was there or not."""
        self._away(name)
        self._write(name, data)

    def drop(self, name: str) -> None:
        """Take a file away."""
        self._away(name)

    def fold(self, name: str) -> None:
        """Put a folder where a file was."""
        self._away(name)
        (self.root / name).mkdir()

    def link(self, name: str, target: str | Path) -> None:
        """Put a symbolic link where a file was."""
        self._away(name)
        os.symlink(target, self.root / name)

    def shut(self, name: str) -> None:
        """Let nobody but root read a file."""
        self.touched.add(name)
        (self.root / name).chmod(0)

    def mend(self) -> None:
        """Undo everything."""
        for name in self.touched:
            self._remove(name)
        for name in self.touched & self.files.keys():
            self._write(name, self.files[name])
        self.touched.clear()
        for left in self.elsewhere.iterdir():
            left.unlink()

    def _away(self, name: str) -> None:
        self.touched.add(name)
        self._remove(name)

    def _remove(self, name: str) -> None:
        path = self.root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def _write(self, name: str, data: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

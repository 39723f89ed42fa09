"""Measure what a scan reads: allocated bytes by form, files and tasks, for the choice of an engine."""

from __future__ import annotations

import os
from collections import Counter

from cklog.engine.costs import Form, Work
from cklog.engine.scan import Scan, Split
from cklog.local_files import is_local, os_name, without_file_scheme

_BLOCK = 512
"""Bytes of a block as `st_blocks` counts them, on every file system."""


def work_of(scan: Scan) -> Work:
    """Return what a scan reads: of a sparse file only what it has on the disk, of a store what the listing says.

    Each file of this machine is looked at once, so this is for large scans alone.
    """
    shares: dict[str, float] = {}
    bytes_of: Counter[Form] = Counter()
    for split in scan.splits:
        if split.uri not in shares:
            shares[split.uri] = _allocated_share(split)
        bytes_of[_form_of(split)] += int(split.cost() * shares[split.uri])
    return Work(dict(bytes_of), files=len(shares), tasks=len(scan.splits))


def _form_of(split: Split) -> Form:
    """Return how a file is written, by its name."""
    if split.path.endswith(".parquet"):
        return "parquet"
    return "batches" if split.path.endswith(".log") else "text"


def _allocated_share(split: Split) -> float:
    """Return how much of the file, or of the folder that the split stands for, is allocated on the disk.

    1 in a store, of a file that cannot be looked at, and where the system does not count blocks.
    """
    if not is_local(split.uri):
        return 1.0
    place = os_name(without_file_scheme(split.uri))
    if split.listing is None:
        paths = [place]
    else:
        paths = [os.path.join(place, os_name(entry.path)) for entry in split.listing.tree.files]
    size, allocated = 0, 0
    for path in paths:
        try:
            about = os.stat(path)
        except (OSError, ValueError):  # gone, or not to be looked at: whoever reads it says so
            continue
        size += about.st_size
        allocated += min(getattr(about, "st_blocks", about.st_size) * _BLOCK, about.st_size)
    return allocated / size if size else 1.0

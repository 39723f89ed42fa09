"""What lies in the folder of a file sink, compared with the log that says which files are results."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Mapping
from typing import NamedTuple


class LostResult(NamedTuple):
    """A file that a sink's log lists and that is gone, or has another size than the log says.

    Attributes
    ----------
    path : relative to PATH
    size : in bytes, None: the file is gone
    logged : the size in the log, None: the log does not say
    entry : the first entry of the log that lists it; no later batch wrote it
    compacted : whether that is a compacted entry, so that an earlier batch may have written it
    """

    path: str
    size: int | None
    logged: int | None
    entry: int
    compacted: bool

    @property
    def batch(self) -> int | None:
        """The batch that wrote it; None where no entry says."""
        return None if self.compacted else self.entry


class SinkFiles(NamedTuple):
    """Files of a sink's folder by its log; paths are relative to PATH.

    Attributes
    ----------
    listed : files that are there, by the first entry that lists them; a compacted entry lists all before, too
    unlisted : files that are there and in no entry that can be read
    lost : what the log lists and the folder lacks, sorted by path
    newest : the newest batch of the log, -1 for none
    lacking : batches below it whose entry is gone or cannot be read
    unseen : a part of the folder that could not be listed, so that `lost` is not known; "" if all was listed
    """

    listed: Mapping[int, tuple[str, ...]]
    unlisted: tuple[str, ...]
    lost: tuple[LostResult, ...]
    newest: int
    lacking: tuple[int, ...]
    unseen: str

    @property
    def is_bare(self) -> bool:
        """Whether the log lists files and none is there, nor any other result: it may be a copy without them."""
        results = [*itertools.chain.from_iterable(self.listed.values()), *filter(_is_part, self.unlisted)]
        return bool(self.lost) and not results


def _is_part(path: str) -> bool:
    """Return whether a file is named as Spark names what its tasks write."""
    return posixpath.basename(path).startswith("part-")

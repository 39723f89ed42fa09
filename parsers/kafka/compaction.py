"""A partition's folder as a starting broker makes it, where a crash has interrupted a compaction.

    1. new segments are written          NNN.log.cleaned  NNN.index.cleaned …
    2. they are called ready             NNN.log.swap …, its log before its indexes, the last segment first
    3. old segments are let go           NNN.log → NNN.log.deleted …
    4. the new ones take their places    NNN.log.swap → NNN.log …

A broker that starts drops what is `.deleted` and what is `.cleaned`. A `.swap` is dropped, too, if a `.cleaned` lies at
or below its offset: then step 2 was not done, and the old segments are all here. Every other `.swap` is completed: what
lies at the offsets from the first `.swap` to the end of the last is deleted, and the suffix is taken away. Splitting a
segment goes the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cklog.parsers.kafka.payloads import BadBatch
from cklog.parsers.kafka.segment import Segment
from cklog.storage import FileEntry

CLEANED, SWAP, DELETED = ".cleaned", ".swap", ".deleted"
LOG_SWAP = ".log" + SWAP
_OFFSET = re.compile(r"([0-9]{20})\..+", re.DOTALL)


class StartedFolder(NamedTuple):
    """The files of a folder by the names that they will have, and what becomes of a compaction.

    `swapped` are the segments that it made and that are taken, `replaced` those that are deleted for them though they
    still have their names, `dropped` those that it made and that are not taken.
    """

    files: Mapping[str, FileEntry]
    swapped: tuple[FileEntry, ...] = ()
    replaced: tuple[FileEntry, ...] = ()
    dropped: tuple[FileEntry, ...] = ()


def started(files: Mapping[str, FileEntry], end_of: Callable[[FileEntry], int]) -> StartedFolder:
    """Return the folder as a broker has it once it has looked for an interrupted compaction.

    Parameters
    ----------
    files : those of the folder, by name
    end_of : gives the offset behind the last batch of a segment, that of its name if it holds none
    """
    made = [name for name in files if name.endswith((CLEANED, SWAP)) and _OFFSET.fullmatch(name)]
    if not made:
        return StartedFolder(files)
    unfinished = min((_offset(name) for name in made if name.endswith(CLEANED)), default=None)
    swaps = [n for n in made if n.endswith(SWAP) and (unfinished is None or _offset(n) < unfinished)]
    logs = sorted(name for name in swaps if name.endswith(LOG_SWAP))
    first = min(map(_offset, logs), default=0)
    end = max((end_of(files[name]) for name in logs), default=0)
    going = {n for n in files if _OFFSET.fullmatch(n) and not n.endswith((SWAP, DELETED)) and first <= _offset(n) < end}
    left = {n: entry for n, entry in files.items() if n not in going and n not in made}
    renamed = {name.removesuffix(SWAP): files[name] for name in swaps}
    going |= left.keys() & renamed.keys()
    return StartedFolder(
        files=left | renamed,
        swapped=tuple(files[name] for name in logs),
        replaced=tuple(files[name] for name in sorted(going) if name.endswith(".log")),
        dropped=tuple(
            files[name] for name in sorted(made) if name.endswith((LOG_SWAP, ".log" + CLEANED)) and name not in logs
        ),
    )


def _offset(name: str) -> int:
    return int(name[:20])


def end_of_segment(uri: str, entry: FileEntry) -> int:
    """Return the offset behind the last batch of a segment, as a broker finds it: length by length, nothing checked.

    It is that of the segment's name where there is no batch.
    """
    at, last = 0, None
    with Segment(uri, entry.path, entry.size) as segment:
        while (after := segment.after(at)) is not None:
            at, last = after, at
        if last is None:
            return segment.base
        try:
            return segment.header(last).last + 1
        except BadBatch:  # of format 0 or 1, whose offset is the last of those inside
            return int.from_bytes(segment.bytes(last, 8), "big") + 1

"""PATH inside a run: a file of it, or a folder that is only a part of it, leads to the run, and that is said.

The run is the smallest that has PATH as a part by the names that its format gives to parts: nothing else is taken in.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from cklog.errors import CklogError, OutputError
from cklog.kinds.opening import PARSERS, holds_run, parser_class, runs_of
from cklog.local_files import Trouble, is_local, os_name
from cklog.storage import Root

PARTS: Mapping[str, str] = {
    "native": r"job\.json|(checkpoints|channels|events|outputs|state|system)(/.*)?",
    "spark-checkpoint": r"metadata|(offsets|commits|state|sources)(/.*)?",
    "flink": r"_metadata|(shared|taskowned)(/.*)?|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "kafka-streams": r"\.checkpoint|kafka-streams-process-metadata|rocksdb(/.*)?",
    "checkmate": r"universalis-snapshots/.+|worker-[0-9]+-logs(/.*)?",
    "kafka": r"[0-9]{20}\.(log|index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint|partition\.metadata"
    r"|(recovery-point|replication|log-start)-offset-checkpoint|meta\.properties",
    "patent-store": r"[^/]+\.jsonl(\.[a-z0-9]+)?",
    "connect": r"[^/]+\.offsets|[^/]*offset[^/]*\.(jsonl?|txt|dat)",
}
"""What a part of a run is called, by its path in the run's folder."""

_SCHEME = re.compile(r"file:|[a-z][a-z0-9+.-]*://")
_DEPTH = 6
"""So many folders up a run may begin."""

_MOST_ENTRIES = 100_000
"""Files and folders of a place in which the run is looked for: PATH may lie in a home folder."""


_MOST_OTHERS = 2_000
"""The most files and folders beside PATH that belong neither to the run nor to a folder that is marked."""


class RunPlace(NamedTuple):
    """Where a run is: the folder that PATH names, or of which PATH is a part, and what to say of it.

    `around` : the folder above, if a part of the run lies beside `named`; None: none does, or nobody wants it
    """

    named: Root
    around: Root | None
    notes: tuple[str, ...]

    @property
    def root(self) -> Root:
        """The folder that holds all of the run."""
        return self.named if self.around is None else self.around


def run_place(asked: Root, source: str, chosen: bool, beside: bool) -> RunPlace:
    """Find where the run is that PATH means; `chosen`: an option names it; `beside`: with its parts beside it."""
    found = None if chosen else enclosing_run(asked, source)
    named, notes = (asked, ()) if found is None else (found[0], (found[1],))
    around = with_neighbours(named, source) if beside and not chosen else None
    if around is None:
        return RunPlace(named, None, notes)
    return RunPlace(named, around, (*notes, f"a part of the run lies beside {named.path}, so {around.path} is asked"))


def enclosing_run(root: Root, source: str = "") -> tuple[Root, str] | None:
    """Find the run that PATH is a part of, and what to say of that; None: it is of none, or may hold runs itself.

    `source`: of that format only; then a folder is taken as it is.
    """
    candidates = list(_candidates(root, source))
    if not candidates:
        return None
    try:
        if not root.is_file() and (source or holds_run(root)):
            return None
        for above, formats in candidates:
            if is_local(above.path) and not _has_few_entries(above.path):
                return None
            for run in runs_of(above, source):
                if not run.folder and run.format in formats:
                    return above, f"{root.path} is a part of the run {above.path} ({run.format}), which is asked"
    except OutputError:  # -o names a file in a folder above PATH, which was read to find the run
        raise
    except (CklogError, OSError):  # whatever is wrong with PATH is said where it is opened
        return None
    return None


def with_neighbours(root: Root, source: str = "") -> Root | None:
    """Find the folder above a run whose parts lie beside PATH, as a file sink beside a Spark checkpoint; None: none.

    `source`: of that format only.
    """
    above, name = root.parent()
    if not is_local(root.path) or above.path == os.sep:
        return None
    try:
        runs = [] if root.is_file() else [run for run in runs_of(root, source) if not run.folder]
        parsers = [parser_class(PARSERS[run.format]) for run in runs]
        gathers = [p for p in parsers if p.marks_beside and _is_among_few(above.path, name, p.marks_beside)]
        if not gathers or not _has_few_entries(above.path):
            return None
        path = above.path if _SCHEME.match(root.path) else _shortened(root.path, 1)
        whole = replace(above, path=path, trouble=Trouble())
        if any(parser.whole_of(whole, name) == "" for parser in gathers):
            # beside a second run nothing tells whose the other folders are
            return whole if [run.folder for run in runs_of(whole)] == [name] else None
    except OutputError:
        raise
    except (CklogError, OSError):
        return None
    return None


def _candidates(root: Root, source: str) -> Iterator[tuple[Root, list[str]]]:
    """Folders above PATH, the nearest first, with the formats whose runs have parts of such a name; by names alone."""
    above, part = root.parent()
    for levels in range(1, _DEPTH + 1):
        if above.path == os.sep:  # to look for a run there is to list a whole machine
            return
        formats = [name for name, parts in PARTS.items() if source in ("", name) and re.fullmatch(parts, part)]
        if formats:
            path = above.path if _SCHEME.match(root.path) else _shortened(root.path, levels)
            # with its own trouble: what cannot be looked at beside PATH takes nothing from what is said of PATH
            yield replace(above, path=path, trouble=Trouble()), formats
        above, name = above.parent()
        if not name:
            return
        part = f"{name}/{part}"


def _is_among_few(folder: str, run: str, marks: str) -> bool:
    """Return whether a folder beside the run has an entry of such a name, and few other files lie there."""
    others, marked = 0, False
    with os.scandir(os_name(folder)) as entries:
        for entry in entries:
            if entry.name == run:
                continue
            if entry.is_dir() and _holds_name(entry.path, marks):
                marked = True
                continue
            others += 1
            for _, names, files in os.walk(entry.path):
                others += len(names) + len(files)
                if others > _MOST_OTHERS:
                    return False
            if others > _MOST_OTHERS:
                return False
    return marked


def _holds_name(folder: str, names: str) -> bool:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return any(re.fullmatch(names, entry.name) for entry in itertools.islice(entries, _MOST_ENTRIES))
    return False


def _has_few_entries(folder: str) -> bool:
    """Return whether there are not too many files and folders below a folder to look for a run among them."""
    found = itertools.accumulate(len(names) + len(files) for _, names, files in os.walk(os_name(folder)))
    return all(count <= _MOST_ENTRIES for count in found)


def _shortened(path: str, levels: int) -> str:
    """The folder so many levels above a path of this machine, as relative as the path was given.

    >>> _shortened("runs/a/offsets/3", 2), _shortened("offsets", 1), _shortened("/data/a/offsets/", 1)
    ('runs/a', '.', '/data/a')
    """
    if os.path.normpath(path) == os.curdir:
        path = os.path.abspath(path)
    return os.path.normpath(posixpath.join(path, *[os.pardir] * levels))

"""What lies in a folder: every run below PATH, so that none is answered for another silently.

Each parser names the folders in which runs of its format begin. A format that *gathers* (jobs of one Flink cluster,
partitions of one broker) is one run from the folder above them all, unless a run of another format lies between.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cklog.inputs.offers import ParserClass
from cklog.model.verdict import Draft
from cklog.storage import Root

if TYPE_CHECKING:
    from cklog.model.inspection import SeveralRuns


class RunFolder(NamedTuple):
    """A run below PATH: its folder, "" is PATH itself, and its format by the parser's name."""

    folder: str
    format: str

    @property
    def name(self) -> str:
        """The folder as `--run` takes it."""
        return self.folder or "."


def runs_below(root: Root, names: Iterable[str], load: Callable[[str], ParserClass]) -> list[RunFolder]:
    """Find every run below PATH, sorted by folder.

    `names` of formats, those first that own what lies below their folder: where such a run is PATH, no other parser is
    even loaded.
    """
    places: dict[str, list[str]] = {}
    parsers: dict[str, ParserClass] = {}
    for name in names:
        parser = parsers[name] = load(name)
        found = parser.runs_below(root)
        if parser.owns_below and "" in found:
            return [RunFolder("", name)]
        if found:
            places[name] = sorted(set(found))
    owned = {folder for name, folders in places.items() if parsers[name].owns_below for folder in folders}
    for name, folders in places.items():
        if not parsers[name].owns_below:
            places[name] = [f for f in folders if owned.isdisjoint(_and_above([f]))]
    for name in [name for name in places if parsers[name].reads_beside]:
        _take_in(places, name, parsers[name].reads_beside)
    found_runs = []
    for name, folders in places.items():
        others = [f for other, theirs in places.items() if other != name for f in theirs]
        for folder in _gathered(folders, others) if parsers[name].gathers else folders:
            found_runs.append(RunFolder(folder, name))
    return sorted(found_runs)


def _take_in(places: dict[str, list[str]], name: str, beside: Sequence[str]) -> None:
    """Make folders of the formats `beside` part of `name`'s runs, where no other format lies between."""
    others = _and_above(f for other, folders in places.items() if other not in (name, *beside) for f in folders)
    near = _and_above(places[name]) - others  # folders that hold a run of `name`, and none of another format
    for other in (one for one in beside if one in places):
        taken = {f for f in places[other] if not near.isdisjoint(_and_above([f]))}
        places[name] += [f for f in places[other] if f in taken]
        places[other] = [f for f in places[other] if f not in taken]


def _and_above(folders: Iterable[str]) -> set[str]:
    """Folders and all that they lie in.

    >>> sorted(_and_above(["a/b", "c"]))
    ['', 'a', 'a/b', 'c']
    """
    found: set[str] = set()
    for folder in folders:
        while folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)
    return found


def several_runs(runs: Sequence[RunFolder]) -> Draft[SeveralRuns]:
    """Say which runs lie below PATH, for `inspect`, which answers for no one of several."""
    result: SeveralRuns = {
        "summary": f"{len(runs)} runs lie here: choose one with --run NAME, or make it PATH.",
        "formats": sorted({run.format for run in runs}),
        "runs": [{"run": run.name, "format": run.format} for run in runs],
    }
    return Draft("inspect", result, (), ())


def _gathered(folders: Sequence[str], others: Sequence[str]) -> list[str]:
    """The fewest folders that hold all `folders` and none of `others`, unless one stands in the other.

    >>> _gathered(["a/x", "a/y", "b"], ["c"]), _gathered(["a/x", "a/y"], ["a/spark"]), _gathered(["a/x", "a/y"], [])
    (['a', 'b'], ['a/x', 'a/y'], ['a'])
    """
    if not folders:
        return []
    above = _common(folders)
    if above in folders or not any(_below(other, above) for other in others):
        return [above]
    depth = above.count("/") + 1 if above else 0
    parts: dict[str, list[str]] = {}
    for folder in folders:
        parts.setdefault(folder.split("/")[depth], []).append(folder)
    return [place for part in parts.values() for place in _gathered(part, others)]


def _common(folders: Iterable[str]) -> str:
    """The deepest folder that holds them all, or is one of them."""
    listed = list(folders)
    return "" if "" in listed else posixpath.commonpath(listed)


def _below(folder: str, above: str) -> bool:
    """Whether a folder is another, or lies in it."""
    return not above or folder == above or folder.startswith(above + "/")

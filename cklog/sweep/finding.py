"""Which runs lie below a folder, however many: one listing, and each format looks at what no other format owns.

`cklog.kinds.discovery` puts folders of one format together, as one question about PATH is to have one answer. Here each
folder in which a run begins stands by itself, unless it lies in another of its format, or is read with what lies beside
it: changelogs with the stores that they restore.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from cklog.errors import CklogError
from cklog.inputs.offers import ParserClass
from cklog.kinds.opening import PARSERS, formats_in, parser_class
from cklog.storage import Root, Tree
from cklog.sweep.asking import Problem, told_problem


class Place(NamedTuple):
    """A folder below a root that is asked for its line; `problem`: why nobody could tell what lies there."""

    folder: str
    format: str
    problem: Problem | None = None


class _Looked(NamedTuple):
    """Where runs of a format begin, and folders of which a parser could not tell."""

    folders: list[str]
    troubled: list[Place]


def places_below(root: Root, source: str = "") -> list[Place]:
    """Find every folder below a root in which runs begin, sorted; `source`: of that format only."""
    tree = root.tree()
    found: dict[str, list[str]] = {}
    troubled: list[Place] = []
    parsers: dict[str, ParserClass] = {}
    for name in formats_in(tree, source):
        parser = parsers[name] = parser_class(PARSERS[name])
        looked = _look(parser, root, tree, "")
        troubled += looked.troubled
        if looked.folders:
            found[name] = _topmost(looked.folders) if parser.gathers or parser.owns_below else looked.folders
        if looked.folders and parser.owns_below:
            tree = _without(tree, found[name])
    places = [*troubled]
    beside = [name for name in found if parsers[name].reads_beside]
    for name in beside:
        _join(found, name, parsers[name].reads_beside)
    places += [Place(folder, name) for name, folders in found.items() for folder in folders]
    lying = Counter(above for place in places for above in (place.folder, *_above(place.folder)))
    places = [_whole(place, parsers, root, lying) for place in places]
    places += _unread_places(root, [place.folder for place in places])
    return sorted(places, key=lambda place: (place.folder, place.format))


def _whole(place: Place, parsers: Mapping[str, ParserClass], root: Root, lying: Mapping[str, int]) -> Place:
    """Return a place with all parts of its run, what its file sink wrote, too, if nothing else lies in that folder.

    `lying` : how many places a folder is or holds
    """
    if place.problem is not None or lying[posixpath.dirname(place.folder)] > 1:
        return place
    return Place(parsers[place.format].whole_of(root, place.folder), place.format)


def _look(parser: ParserClass, root: Root, tree: Tree, folder: str) -> _Looked:
    """Ask a parser for its runs; where that fails, for those of each folder by itself, so that none costs another."""
    narrowed = replace(root)
    narrowed.take_listing(tree)
    try:
        return _Looked(sorted(set(parser.runs_below(narrowed))), [])
    except (CklogError, OSError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError) as error:
        parts = _parts(tree, folder)
        if len(parts) < 2 and not any(parts):
            place = posixpath.dirname(tree.files[0].path) if tree.files else folder
            return _Looked([], [Place(place, parser.name, told_problem(error, root))])
    looked = [_look(parser, root, part, inner) for inner, part in parts.items()]
    return _Looked([f for one in looked for f in one.folders], [place for one in looked for place in one.troubled])


def _parts(tree: Tree, folder: str) -> dict[str, Tree]:
    """A tree's folders one level below `folder`, each as a tree of its own; "" are the files of `folder` itself."""
    depth = folder.count("/") + 1 if folder else 0
    files: dict[str, list[int]] = {}
    for i, entry in enumerate(tree.files):
        files.setdefault(_child(entry.path, depth, folder_itself=False), []).append(i)
    folders: dict[str, list[str]] = {}
    for path in tree.folders:
        folders.setdefault(_child(path, depth, folder_itself=True), []).append(path)
    return {
        child: Tree(tuple(tree.files[i] for i in files.get(child, ())), tuple(folders.get(child, ())))
        for child in sorted({*files, *folders})
    }


def _child(path: str, depth: int, folder_itself: bool) -> str:
    """The folder `depth` levels down that a path lies in, "" if it lies above.

    >>> _child("a/b/c", 1, False), _child("a/b", 1, False), _child("a/b", 1, True)
    ('a/b', '', 'a/b')
    """
    parts = path.split("/")
    enough = len(parts) > depth if folder_itself else len(parts) > depth + 1
    return "/".join(parts[: depth + 1]) if enough else ""


def _topmost(folders: Iterable[str]) -> list[str]:
    """Folders that lie in no other of them.

    >>> _topmost(["a/x", "a", "a-b"])
    ['a', 'a-b']
    """
    known = set(folders)
    return sorted(folder for folder in known if not any(above in known for above in _above(folder)))


def _above(folder: str) -> Iterator[str]:
    """Every folder that a folder lies in, the nearest first; "" is the root.

    >>> [*_above("a/b")], [*_above("")]
    (['a', ''], [])
    """
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def _without(tree: Tree, owned: Iterable[str]) -> Tree:
    """A tree without all that lies in some folders."""
    inside = set(owned)
    if "" in inside:
        return Tree((), ())

    known = {"": True}  # whether a folder stays

    def stays(folder: str) -> bool:
        waiting = []
        while folder not in known:
            waiting.append(folder)
            folder = folder.rpartition("/")[0]
        stays = known[folder]
        for below in reversed(waiting):
            stays = known[below] = stays and below not in inside
        return stays

    files = tuple(entry for entry in tree.files if stays(entry.path.rpartition("/")[0]))
    return Tree(files, tuple(filter(stays, tree.folders)))


def _join(found: dict[str, list[str]], name: str, beside: tuple[str, ...]) -> None:
    """Put runs of `name` together with those of the formats `beside` that lie nearest, up to the folder of both.

    Not where a run of another format lies in that folder: then nothing says that they belong together.
    """
    others = {
        above
        for other, folders in found.items()
        if other not in (name, *beside)
        for folder in folders
        for above in (folder, *_above(folder))
    }
    near = {above for other in beside for f in found.get(other, ()) for above in (f, *_above(f))}
    joined = set()
    for folder in found[name]:
        common = next((above for above in (folder, *_above(folder)) if above in near), None)
        joined.add(folder if common is None or common in others else common)
    found[name] = _topmost(joined)
    taken = set(found[name])
    for other in beside:
        left = [f for f in found.get(other, ()) if f not in taken and not any(above in taken for above in _above(f))]
        found[other] = left


def _unread_places(root: Root, known: Iterable[str]) -> Iterator[Place]:
    """What could not be listed and lies in no run: a run may be there."""
    taken = set(known)
    for path, why in root.trouble.unread.items():
        inner = root.inside(path)
        if inner is not None and inner not in taken and not any(above in taken for above in _above(inner)):
            yield Place(inner, "", Problem("unreadable-file", why, 5))

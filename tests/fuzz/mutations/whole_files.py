"""Mutations of files: dropped, emptied, zeroed, doubled, swapped, replaced by folders and links, closed to readers."""

from __future__ import annotations

import os
import posixpath
import random
import re
from collections.abc import Mapping

from tests.fuzz.mutations.change import Change, Mutation, some_file
from tests.fuzz.tree import Tree

_SILENT = frozenset({"silent"})
_LAST_NUMBER = re.compile(r"(\d{1,19})(?!.*\d)")


def _name(tree: Tree, dice: random.Random) -> str | None:
    left = [name for name in tree.names if tree.now(name) is not None]
    return dice.choice(left) if left else None


def dropped(tree: Tree, dice: random.Random) -> Change | None:
    """A file is gone; nothing need show that it ever was there."""
    name = _name(tree, dice)
    if name is None:
        return None
    tree.drop(name)
    return Change((name,), f"{name}: dropped", free=_SILENT)


def folder_dropped(tree: Tree, dice: random.Random) -> Change | None:
    """All files of a folder, and below it, are gone."""
    folders = sorted({posixpath.dirname(name) for name in tree.names} - {""})
    if not folders:
        return None
    folder = dice.choice(folders)
    names = tuple(name for name in tree.names if name.startswith(f"{folder}/"))
    for name in names:
        tree.drop(name)
    return Change(names, f"{folder}/: dropped", free=_SILENT)


def emptied(tree: Tree, dice: random.Random) -> Change | None:
    """A file has no byte left."""
    found = some_file(tree, dice)
    if found is None:
        return None
    tree.put(found[0], b"")
    return Change((found[0],), f"{found[0]}: emptied")


def zeroed(tree: Tree, dice: random.Random) -> Change | None:
    """A file has its size and nothing but zeros: what a file system's journal leaves after a power cut."""
    found = some_file(tree, dice)
    if found is None:
        return None
    name, data = found
    tree.put(name, bytes(len(data)))
    return Change((name,), f"{name}: zeroed")


def doubled(tree: Tree, dice: random.Random) -> Change | None:
    """A file is there twice, under a name that nobody gave."""
    found = some_file(tree, dice)
    if found is None:
        return None
    name, data = found
    folder, base = posixpath.split(name)
    stem, dot, ending = base.partition(".")
    copy = posixpath.join(folder, f"{stem}-copy{dot}{ending}" if stem else f"{base}-copy")
    if copy in tree.files:
        return None
    tree.put(copy, data)
    return Change((copy,), f"{name}: doubled as {copy}", free=_SILENT)


def renumbered(tree: Tree, dice: random.Random) -> Change | None:
    """A file is there twice, the second time under the next number; where numbers say all, it is a record."""
    found = some_file(tree, dice)
    if found is None:
        return None
    name, data = found
    folder, base = posixpath.split(name)
    last = _LAST_NUMBER.search(base)
    if last is None:
        return None
    more = int(last[1]) + dice.choice((1, 1, 3))
    copy = posixpath.join(folder, f"{base[: last.start()]}{more:0{len(last[1])}}{base[last.end() :]}")
    if copy in tree.files:
        return None
    tree.put(copy, data)
    return Change((copy,), f"{name}: doubled as {copy}", free=_SILENT)


def swapped(tree: Tree, dice: random.Random) -> Change | None:
    """Two files of a kind have each other's contents."""
    first = some_file(tree, dice)
    if first is None:
        return None
    ending = posixpath.splitext(first[0])[1]
    second = some_file(tree, dice, (ending or posixpath.basename(first[0]),))
    if second is None or second[0] == first[0] or second[1] == first[1]:
        return None
    tree.put(first[0], second[1])
    tree.put(second[0], first[1])
    return Change((first[0], second[0]), f"{first[0]}, {second[0]}: swapped")


def made_a_folder(tree: Tree, dice: random.Random) -> Change | None:
    """A folder lies where a file was."""
    name = _name(tree, dice)
    if name is None:
        return None
    tree.fold(name)
    return Change((name,), f"{name}: a folder", free=_SILENT)


def linked(tree: Tree, dice: random.Random) -> Change | None:
    """A file is a link: to a copy outside PATH, to itself, to nothing, to the folder that holds it."""
    found = some_file(tree, dice)
    if found is None:
        return None
    name, data = found
    how = dice.choice(("outside", "outside", "itself", "nowhere", "folder"))
    if how == "outside":
        (tree.elsewhere / "copy").write_bytes(data)
    targets = {"outside": str(tree.elsewhere / "copy"), "itself": posixpath.basename(name), "nowhere": "/no/such/file"}
    tree.link(name, targets.get(how, "."))
    return Change((name,), f"{name}: a link to {how}", free=_SILENT if how != "outside" else frozenset())


def shut(tree: Tree, dice: random.Random) -> Change | None:
    """A file may not be read by who asks; root asks as nobody."""
    if why_not_shut():
        return None
    name = _name(tree, dice)
    if name is None or (tree.root / name).is_symlink() or not (tree.root / name).is_file():
        return None
    tree.shut(name)
    return Change((name,), f"{name}: may not be read", unreadable=True)


NOBODY = 65534


def why_not_shut() -> str:
    """Why no file can be closed to this process, or nothing."""
    if os.geteuid():
        return ""
    if "seteuid" not in _able:
        os.seteuid(NOBODY)
        try:
            _able["seteuid"] = os.access(__file__, os.R_OK, effective_ids=True)
        finally:
            os.seteuid(0)
    return "" if _able["seteuid"] else "run as root, and nobody else may read this folder: no file can be shut"


_able: dict[str, bool] = {}

MUTATIONS: Mapping[str, tuple[Mutation, int]] = {
    "file.dropped": (dropped, 5),
    "file.folder-dropped": (folder_dropped, 1),
    "file.emptied": (emptied, 2),
    "file.zeroed": (zeroed, 4),
    "file.doubled": (doubled, 3),
    "file.renumbered": (renumbered, 2),
    "file.swapped": (swapped, 4),
    "file.folder": (made_a_folder, 1),
    "file.link": (linked, 3),
    "file.shut": (shut, 3),
}

"""Files that change between the listing of a folder and the reading of its files."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults import meanwhile
from tests.faults.cases import Asked, Outcome
from tests.faults.process import run


def cut(asked: Asked) -> Outcome:
    """Bytes that were listed are gone."""
    name = asked.file()
    size = asked.dice.randrange(len(asked.tree.files[name]))
    left = run(asked.words(), meanwhile.cut(asked.path(name), size))
    return Outcome(f"{name}: cut to {size} bytes", left)


def cut_at_a_line(asked: Asked) -> Outcome:
    """The same, where the file looks whole by itself."""
    name = asked.file()
    lines = asked.tree.files[name].splitlines(keepends=True)
    size = sum(map(len, lines[: asked.dice.randrange(len(lines))]))
    left = run(asked.words(), meanwhile.cut(asked.path(name), size))
    return Outcome(f"{name}: cut to {size} bytes, behind a newline", left)


def grown(asked: Asked) -> Outcome:
    """The job goes on writing: what was listed is the file, and the answer is that of then."""
    name = asked.file()
    data = asked.tree.files[name]
    more = asked.dice.choice([data, data[: len(data) // 2], data[-(len(data) // 3) :], b"\n", b"\0" * 100])
    left = run(asked.words(), meanwhile.grown(asked.path(name), more))
    return Outcome(f"{name}: {len(more)} bytes more", left, alike=True)


def _gone(asked: Asked, what: str, change: Callable[[str], str]) -> Outcome:
    name = asked.file()
    return Outcome(f"{name}: {what}", run(asked.words(), change(asked.path(name))))


def removed(asked: Asked) -> Outcome:
    """A file is deleted."""
    return _gone(asked, "removed", meanwhile.removed)


def folder_removed(asked: Asked) -> Outcome:
    """A folder is deleted, as a job deletes checkpoints that it needs no more."""
    return _gone(asked, "its folder removed", meanwhile.folder_removed)


def folded(asked: Asked) -> Outcome:
    """A folder lies where a file was."""
    return _gone(asked, "a folder", meanwhile.made_a_folder)


def linked(asked: Asked) -> Outcome:
    """A link to the same bytes outside PATH lies where a file was."""
    return _gone(asked, "a link out of PATH", meanwhile.made_a_link)


def shut(asked: Asked) -> Outcome:
    """A file may not be read any more."""
    return _gone(asked, "may not be read", meanwhile.unreadable)

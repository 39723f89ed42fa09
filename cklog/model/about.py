"""Which of several runs a finding is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cklog.model.actions import RunAction
from cklog.model.findings import Finding


class Beginnings:
    """Names that a text may begin with, up to one of the characters in `ends` or its own end.

    >>> [*Beginnings(["a", "a/b"], "/").of("a/b/c")], [*Beginnings(["a"], "/").of("ab")]
    (['a', 'a/b'], [])
    """

    def __init__(self, names: Iterable[str], ends: str) -> None:
        self._names, self._ends = {*names}, ends
        self._lengths = sorted({len(name) for name in self._names})

    def of(self, text: str) -> Iterator[str]:
        """Yield the names that a text begins with, the shortest first."""
        for size in self._lengths:  # however often an end comes in the text
            if size > len(text):
                return
            if (size == len(text) or text[size] in self._ends) and text[:size] in self._names:
                yield text[:size]


def findings_by_run(runs: Sequence[RunAction], findings: Sequence[Finding]) -> Iterator[list[Finding]]:
    """Yield the findings about each run, in their order.

    A finding is about the runs that it names, or in whose folder a place of it lies. One that names none of them may be
    about any, and counts for each.

    >>> runs = [RunAction("a", "restart", path="x/a"), RunAction("ab", "restart", path="x/ab")]
    >>> found = [Finding(*one, "") for one in (("1", "info", "x/ab/f"), ("2", "info", "a source"), ("3", "info", "y"))]
    >>> [[finding.id for finding in each] for each in findings_by_run(runs, found)]
    [['2', '3'], ['1', '3']]
    """
    if len(runs) == 1:
        yield [*findings]
        return
    by_name: dict[str, set[int]] = {}
    by_path: dict[str, set[int]] = {}
    for i, run in enumerate(runs):
        if run.run:
            by_name.setdefault(run.run, set()).add(i)
        if run.path != ".":
            by_path.setdefault(run.path, set()).add(i)
    names, names_in_paths = Beginnings(by_name, " =:"), Beginnings(by_name, " =/:")
    paths = Beginnings(by_path, "/")
    own: list[list[int]] = [[] for _ in runs]
    of_none: list[int] = []
    for k, finding in enumerate(findings):
        places = {place.path for place in finding.where} or {finding.subject}
        known = names if finding.where else names_in_paths  # a subject may be text that a file holds
        about = {i for name in known.of(finding.subject.removeprefix("group ")) for i in by_name[name]}
        about |= {i for place in places for path in paths.of(place) for i in by_path[path]}
        for i in about:
            own[i].append(k)
        if not about:
            of_none.append(k)
    for its in own:  # one at a time: many that name none, for many runs, are a large product
        yield [findings[k] for k in sorted([*its, *of_none])]

"""Which of several runs a finding is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cklog.model.actions import RunAction
from cklog.model.findings import Finding

_END_OF_NAME, _SEPARATOR = re.compile("[ =/:]"), re.compile("/")


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
    own: list[list[int]] = [[] for _ in runs]
    of_none: list[int] = []
    for k, finding in enumerate(findings):
        places = {finding.subject, *(place.path for place in finding.where)}
        about = {i for name in _leads(finding.subject, _END_OF_NAME) for i in by_name.get(name, ())}
        about |= {i for place in places for path in _leads(place, _SEPARATOR) for i in by_path.get(path, ())}
        for i in about:
            own[i].append(k)
        if not about:
            of_none.append(k)
    for its in own:  # one at a time: many that name none, for many runs, are a large product
        yield [findings[k] for k in sorted([*its, *of_none])]


def _leads(text: str, end: re.Pattern[str]) -> Iterator[str]:
    """Yield a text, and what it begins with before each `end`."""
    yield text
    for match in end.finditer(text):
        yield text[: match.start()]

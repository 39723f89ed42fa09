"""What a root could not look at, in the answer: whatever an analysis made of it, nothing is said of what is unread."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeVar

from cklog.errors import Unreadable
from cklog.model.findings import Finding, Where
from cklog.model.verdict import Draft
from cklog.model.wording import first_few
from cklog.storage import Root

R = TypeVar("R")

_EXAMPLES = 3
_PLACES = 8


def with_trouble(draft: Draft[R], root: Root) -> Draft[R]:
    """Return a draft that says which files could not be read, and what links were not followed.

    Findings that speak of such a file alone go: it was not seen, so it cannot be damaged or missing. What rests on too
    little is a bound: indeterminate.
    """
    root.take_refused()
    unread = {_below(root, path): why for path, why in root.trouble.unread.items()}
    links = {_below(root, path): to for path, to in root.trouble.links.items()}
    aliases = {_below(root, path): to for path, to in root.trouble.aliases.items()}
    if not unread and not links and not aliases:
        return draft
    kept = [finding for finding in draft.findings if not _speaks_only_of(finding, unread)]
    refused = [*_unread_findings(unread)]
    hidden = [path for path in (*links, *aliases) if any(_names(finding, path) for finding in kept)]
    return replace(
        draft,
        findings=[*kept, *refused, *link_findings(links)],
        indeterminate=draft.indeterminate or bool(unread) or bool(hidden),
    )


def refuse_unread(root: Root, paths: Collection[str] | None = None) -> None:
    """Raise `Unreadable` if anything at or below these paths could not be read; None: anything below the root."""
    root.take_refused()
    unread = {_below(root, path): why for path, why in root.trouble.unread.items()}
    if paths is not None and not any(_is_below(path, paths) for path in unread):
        return
    for finding in _unread_findings(unread):
        raise Unreadable(f"{root.path}: {finding.message}")


def hides_any(root: Root, paths: Iterable[str]) -> bool:
    """Return whether a link that was not followed lies at or below one of these paths: more may lie there."""
    return any(_is_below(_below(root, link), paths) for link in (*root.trouble.links, *root.trouble.aliases))


def unseen_below(root: Root, place: str) -> dict[str, str]:
    """Return the paths at or below a place that nobody looked at, each with why; of the place itself, if it is one."""
    root.take_refused()
    trouble = root.trouble
    found = {_below(root, path): why for path, why in trouble.unread.items()}
    found |= {_below(root, path): f"is a link to {to}, which is not followed" for path, to in trouble.links.items()}
    for path, to in trouble.aliases.items():
        found[_below(root, path)] = f"is a link to {to}, which lies below PATH and is read only there"
    return {path: why for path, why in found.items() if _is_below(path, [place])}


def _is_below(path: str, places: Iterable[str]) -> bool:
    """Return whether a path is one of these places, or below one."""
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


def _below(root: Root, path: str) -> str:
    """Return a path as answers show it: relative to the root if it lies there."""
    inside = root.inside(path)
    return path if inside is None else inside or "."


def _speaks_only_of(finding: Finding, paths: Iterable[str]) -> bool:
    """Return whether a finding is about nothing but paths that could not be read."""
    places = {where.path for where in finding.where} or {finding.subject}
    return places <= set(paths)


def _names(finding: Finding, path: str) -> bool:
    """Return whether a finding speaks of a path, or of something below it."""
    if finding.severity == "info":
        return False
    places = [finding.subject, *(where.path for where in finding.where)]
    return f"{path}/" in finding.message or any(_is_below(place, [path]) for place in places)


def _unread_findings(unread: dict[str, str]) -> Iterable[Finding]:
    """Report what could not be read, one finding a reason."""
    by_reason: dict[str, list[str]] = {}
    for path, why in sorted(unread.items()):
        by_reason.setdefault(why, []).append(path)
    for why, paths in by_reason.items():
        count = f"{paths[0]} cannot be read" if len(paths) == 1 else f"{len(paths)} files or folders cannot be read"
        which = "" if len(paths) == 1 else f" ({first_few(paths, _EXAMPLES)})"
        message = (
            f"{count}{which}: {why}. Nothing is said of what was not read, and this answer is only a bound: ask again "
            "as a user who may read it, or on a whole copy."
        )
        yield Finding(
            "unreadable-file", "error", paths[0], message, tuple(map(Where, paths[:_PLACES])), effect="unknown"
        )


def link_findings(links: dict[str, str]) -> Iterable[Finding]:
    """Report links that were not followed."""
    if links:
        shown = [f"{path} (to {to})" for path, to in sorted(links.items())]
        count, lead = ("a link is", "it leads") if len(links) == 1 else (f"{len(links)} links are", "they lead")
        message = (
            f"{count} not followed, since {lead} out of PATH: {first_few(shown, _EXAMPLES)}. What "
            "lies there was neither read nor counted; --follow-links does."
        )
        places = tuple(map(Where, sorted(links)[:_PLACES]))
        yield Finding("unfollowed-link", "warning", sorted(links)[0], message, places)

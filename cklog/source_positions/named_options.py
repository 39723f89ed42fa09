"""What is told of connectors on the command line, by name: where sources begin, and what connectors have written."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cklog.errors import NotFound, UsageError


def by_name(option: str, given: Collection[str], known: Collection[str]) -> Mapping[str, str]:
    """Return what NAME=VALUE says, by name: a connector, or one partition of it as NAME/NUMBER.

    Raises
    ------
    UsageError : it is not of that form, or names one twice
    NotFound : no such connector is here
    """
    found: dict[str, str] = {}
    for text in given:
        names = [name for name in known if text.startswith(f"{name}=")]  # a name may hold = itself
        name = max(names, key=len, default="")
        if not name:
            asked, equals, _ = text.partition("=")
            if not (asked and equals):
                raise UsageError(f"{option} {text}: expected NAME=VALUE")
            there = ", ".join(sorted(known)) or "none"
            raise NotFound(f"{option} {text}: no such connector", f"there are {there}")
        value = text[len(name) + 1 :]
        if not value or name in found:
            raise UsageError(f"{option} {text}: {'given twice' if value else 'the value is missing'}")
        found[name] = value
    return found

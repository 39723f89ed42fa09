"""What stands on a lost piece of a chain, one version after the other."""

from __future__ import annotations


def descendants(parents: tuple[int, ...], lost: int) -> set[int]:
    """The lost version and all that stand on it."""
    found = {lost}
    for version, parent in enumerate(parents, 1):
        if parent in found:
            found.add(version)
    return found

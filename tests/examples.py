"""How many examples a property tries: all with `--hypothesis-profile=all`, a quarter of them otherwise."""

from __future__ import annotations

from hypothesis import settings

_ALL = 100
"""`max_examples` of the profile "all" (tests/conftest.py); that of another profile is a percentage of it."""
_LEAST = 5


def examples(count: int) -> int:
    """Return how many of `count` examples to try under the profile that is loaded.

    >>> examples(3)
    3
    """
    return min(count, max(_LEAST, count * settings().max_examples // _ALL))

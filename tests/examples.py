"""How much a change tries: a quarter of a property's examples, and a quarter of many folders.

`--hypothesis-profile=all` tries every example, `-m slow` the other folders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings

_ALL = 100
"""`max_examples` of the profile "all" (tests/conftest.py); that of another profile is a percentage of it."""
_LEAST = 5


def quarter(values: Sequence[Any], first: int = 0) -> list[Any]:
    """Return all values as parameters, and mark three of four as slow.

    >>> [type(value).__name__ for value in quarter(range(4))]
    ['int', 'ParameterSet', 'ParameterSet', 'ParameterSet']
    """
    return [
        value if number % 4 == first else pytest.param(value, marks=pytest.mark.slow)
        for number, value in enumerate(values)
    ]


def examples(count: int) -> int:
    """Return how many of `count` examples to try under the profile that is loaded.

    >>> examples(3)
    3
    """
    return min(count, max(_LEAST, count * settings().max_examples // _ALL))

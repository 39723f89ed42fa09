"""Values as JSON has them, told apart: to Python, true is an integer."""

from __future__ import annotations

from typing import TypeGuard


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, and not true or false.

    >>> is_integer(1), is_integer(True), is_integer(1.0), is_integer(None)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)

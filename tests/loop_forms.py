"""Both forms of a loop: as it stands, and compiled, however few the rows."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from cklog.arrays import loops

FORMS = ["plain", "compiled"]
EVERY_FORM = [*FORMS, "as it stands"]
"""The last: a loop as it stands also where there is another way for few rows."""


def forced(form: str) -> Iterator[str]:
    """Have every loop run in one form; the body of a fixture of module scope, as examples of Hypothesis need it."""
    if form == "compiled" and importlib.util.find_spec("numba") is None:
        pytest.skip("Numba is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "FEW_ROWS", -1 if form == "compiled" else 1 << 62)
        if form == "as it stands":
            patch.setattr(loops.Loop, "is_worth", lambda loop, rows: True)
        yield form

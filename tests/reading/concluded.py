"""Analyses asked directly, without a façade: their drafts concluded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cklog.engine.local import LocalEngine
from cklog.engine.reading import Reading
from cklog.model.verdict import Answer, Draft, conclude

READING = Reading(lambda size: LocalEngine(), 1 << 20)


class Concluded:
    """Answers instead of drafts: of the methods of `analyses`, as `--strict` or without."""

    def __init__(self, analyses: Any, strict: bool = False) -> None:
        self.analyses = analyses
        self._strict = strict

    def __getattr__(self, name: str) -> Callable[..., Answer[Any]]:
        method = getattr(self.analyses, name)

        def asked(*given: object) -> Answer[Any]:
            draft = method(*given)
            assert isinstance(draft, Draft)
            return conclude(draft, self._strict)

        return asked

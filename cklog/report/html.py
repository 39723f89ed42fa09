"""A report as one file of HTML."""

from __future__ import annotations

from cklog.report.compose import Composed


def as_html(composed: Composed) -> str:
    """Write the page."""
    raise NotImplementedError

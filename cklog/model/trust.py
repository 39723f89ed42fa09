"""How far a result can be trusted."""

from __future__ import annotations

from typing import Literal

Trust = Literal["trustworthy", "indefinite", "untrustworthy"]


TRUSTS: tuple[Trust, ...] = ("trustworthy", "indefinite", "untrustworthy")
"""From the highest: of two trusts the later one here is the minimum (definition 4)."""

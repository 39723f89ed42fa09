"""cklog extent [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command
from cklog.commands.options import Forward, Operator


@command
def extent(common: Common, operator: Operator = "", forward: Forward = False) -> None:
    """The extent of an operator's eventual checkpoint: how far back it reaches, and who makes it long."""
    common.answer(lambda run: run.extent(operator, forward))

"""cklog inspect [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command


@command
def inspect(common: Common) -> None:
    """What is here: formats, operators, channels, checkpoints, time span, damage, metrics."""
    common.answer(lambda run: run.inspect())

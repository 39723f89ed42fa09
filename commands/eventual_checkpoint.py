"""cklog eventual-checkpoint [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, Forward, OperatorOption, moment


@command
def eventual_checkpoint(
    common: Common, operator: OperatorOption = "", forward: Forward = False, as_of: AsOf = ""
) -> None:
    """An operator's eventual checkpoint, ready to load: the open windows, T, and the replay filter."""
    common.answer(lambda run: run.eventual_checkpoint(operator, forward, moment(as_of)))

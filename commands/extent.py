"""cklog extent [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, Forward, MaxExtent, MaxReplay, OperatorOption, OverTime, moment


@command
def extent(
    common: Common,
    operator: OperatorOption = "",
    forward: Forward = False,
    as_of: AsOf = "",
    over_time: OverTime = False,
    max_extent: MaxExtent = None,
    max_replay: MaxReplay = None,
) -> None:
    """The extent of an operator's eventual checkpoint: how far back it reaches, and who makes it long.

    --max-extent and --max-replay imply --over-time, which reads the whole queue forward anyway.
    """
    if over_time or max_extent is not None or max_replay is not None:
        common.answer(lambda run: run.extent_over_time(operator, max_extent, max_replay))
    else:
        common.answer(lambda run: run.extent(operator, forward, moment(as_of)))

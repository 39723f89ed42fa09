"""How far back message logs are needed: to what was received before the oldest line a restart may go back to."""

from __future__ import annotations

import numpy as np

from cklog.arrays.types import Ints
from cklog.retention.plan import LogTrim
from cklog.runs.records.evidence import Evidence


def trimming(evidence: Evidence, line: Ints | None, kept: Ints, in_doubt: bool) -> tuple[LogTrim, ...]:
    """For each channel, below which message its log is needed by no line that a restart may go back to.

    The line of total failure is the oldest of all lines, message by message; where older checkpoints are kept because
    somebody asked for them, a restart may go back to those. In doubt nothing may be trimmed. Of a channel that
    delivers out of order all from the first message on that was missing then is needed.

    Parameters
    ----------
    line : the line's checkpoints as rows of the history, shape (n,); None if there is none
    kept : rows of the history that stay as targets of a restart
    """
    history = evidence.history
    if line is None:
        return ()
    lowest = line.copy()
    owner = np.searchsorted(history.first, kept, "right") - 1
    np.minimum.at(lowest, owner, kept)
    below = history.received_of(lowest - history.first[:-1]).tolist()
    found = []
    for k, name in enumerate(history.channels):
        receiver = int(history.dst[k])
        label = int(history.label[lowest[receiver]])
        if name in evidence.deliveries.received:
            missing = evidence.deliveries.missing(name, label, below[k])
            below[k] = missing[0][0] if missing else below[k]
        checkpoint = f"{history.subtasks[receiver]}={label}"
        found.append(LogTrim(name, None if in_doubt else below[k], checkpoint))
    return tuple(found)

"""What an analysis of event-log tables rests on: the tables, what was read of them, and the line planned from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cklog.arrays.types import Ints
from cklog.history.arrays import History
from cklog.history.deliveries import Deliveries
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import BuiltHistory, CurrentState
from cklog.inputs.tables import WITH_PLACES
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import RecoveryLine
from cklog.model.names import Subtask

if TYPE_CHECKING:
    from cklog.history.events.evidence import RawEvents


TableRead = tuple[pa.Table, list[Finding], list[InputUsed]]
"""A table as it was read, what is wrong with its files, and which they are."""


class CheckpointsRead(NamedTuple):
    """Checkpoint records as read, or as made of raw events, which then tell more (`raw`)."""

    table: pa.Table
    findings: list[Finding]
    inputs: list[InputUsed]
    raw: RawEvents | None


@dataclass(slots=True)
class Evidence:
    """What was read for one question: records, history, and the findings and inputs so far.

    `bound` are survivors of whose current state nothing is known: they are treated as failed, which bounds the
    line from below. `gone`: records whose state file is not there, shape (rows,). `unproven`: a coordinated round may
    lack a subtask that nothing names.
    """

    records: CheckpointRecords
    built: BuiltHistory
    current: CurrentState
    bound: tuple[Subtask, ...]
    findings: list[Finding]
    inputs: list[InputUsed]
    deliveries: Deliveries
    gone: NDArray[np.bool_]
    unproven: bool = False

    @property
    def indeterminate(self) -> bool:
        """Whether evidence is missing, so that an answer is a bound at best."""
        return bool(self.bound) or self.unproven

    @property
    def history(self) -> History:
        """The arrays that the algorithms see."""
        return self.built.history


@dataclass(frozen=True, slots=True)
class Fixed:
    """Subtasks whose restart was planned elsewhere: where they stand counts as their only checkpoint.

    `channels` are those among them and the subtasks with checkpoints; `sent` and `received` hold watermarks.
    """

    subtasks: tuple[Subtask, ...]
    channels: tuple[str, ...]
    sent: Mapping[str, int]
    received: Mapping[str, int]

    def beside(self, table: pa.Table) -> pa.Table:
        """The checkpoint records with one more for each of the subtasks."""
        rows = []
        for subtask in self.subtasks:
            sent = [(c, n) for c, n in self.sent.items() if c.startswith(f"{subtask}->")]
            received = [(c, n) for c, n in self.received.items() if c.partition("#")[0].endswith(f"->{subtask}")]
            rows.append({"operator": subtask.operator, "subtask": subtask.subtask, "checkpoint": 1} | {"sent": sent})
            rows[-1]["received"] = received
        columns = {n: [row.get(n) for row in rows] for n in table.schema.names}
        plain = table.cast(WITH_PLACES)
        return pa.concat_tables([plain, pa.table(columns, schema=WITH_PLACES)])


@dataclass(frozen=True, slots=True)
class Planned:
    """A line with all that was derived on the way; what `recovery-line`, `replay` and `verify` share."""

    evidence: Evidence
    line: Ints
    result: RecoveryLine

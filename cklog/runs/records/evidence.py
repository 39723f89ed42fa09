"""What an analysis of event-log tables rests on: the tables, what was read of them, and the line planned from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cklog.arrays.types import Ints, Mask
from cklog.history.deliveries import Deliveries
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import BuiltHistory, CurrentState
from cklog.inputs.tables import WITH_PLACES
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import RecoveryLine
from cklog.model.names import Subtask
from cklog.model.verdict import Draft
from cklog.zigzag.intervals import useless_by_execution

if TYPE_CHECKING:
    from cklog.history.events.raw_events import RawEvents


R = TypeVar("R")


class CheckpointsRead(NamedTuple):
    """Checkpoint records as read, or as made of raw events, which then tell more (`raw`)."""

    table: pa.Table
    findings: list[Finding]
    inputs: list[InputUsed]
    raw: RawEvents | None


class Execution:
    """What happened, whoever failed: a history with the current state of each subtask of which anything tells.

    Recovery lines are searched in another one, in which a failed subtask has lost what it received after its newest
    checkpoint. `unseen` are the subtasks of which nothing tells what that was.
    """

    def __init__(self, of: History, unseen: tuple[Subtask, ...], build: Callable[[], History]) -> None:
        self.unseen = unseen
        self._of = of
        self._build = build

    @cached_property
    def history(self) -> History:
        """The history of what happened; it is built when it is first asked for."""
        return self._build()

    @cached_property
    def useless(self) -> Mask:
        """The checkpoints that are on a Z-cycle, for each row of the history of the line; shape (first[n],)."""
        return useless_by_execution(self._of, self.history)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was read for one question: records, history, and the findings and inputs that it rests on.

    `bound` are survivors of whose current state nothing is known: they are treated as failed, which bounds the
    line from below. `gone`: records whose state file is not there, shape (rows,). `unproven`: a coordinated round may
    lack a subtask that nothing names. `last`: what each subtask had sent and received when the job failed, as far as
    the events that were read tell.
    """

    records: CheckpointRecords
    built: BuiltHistory
    current: CurrentState
    bound: tuple[Subtask, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]
    deliveries: Deliveries
    gone: NDArray[np.bool_]
    execution: Execution
    unproven: bool = False
    last: CurrentState = field(default_factory=CurrentState)

    @property
    def indeterminate(self) -> bool:
        """Whether evidence is missing, so that an answer is a bound at best."""
        return bool(self.bound) or self.unproven

    @property
    def history(self) -> History:
        """The arrays that the algorithms see."""
        return self.built.history

    def joined(self, findings: Iterable[Finding], inputs: Iterable[InputUsed] = ()) -> Evidence:
        """Return the same evidence with what a step after it has found and read."""
        return replace(self, findings=(*self.findings, *findings), inputs=(*self.inputs, *inputs))

    def draft(self, command: str, result: R) -> Draft[R]:
        """Make a draft of a result about the history, which rests on no line."""
        return Draft(command, result, self.findings, self.inputs, indeterminate=self.indeterminate)


class Fixed(NamedTuple):
    """Subtasks whose restart was planned elsewhere: where they stand counts as their only checkpoint.

    `channels` are those among them and the subtasks with checkpoints; `sent` and `received` hold watermarks.
    """

    subtasks: tuple[Subtask, ...]
    channels: tuple[str, ...]
    sent: Mapping[str, int]
    received: Mapping[str, int]

    def beside(self, table: pa.Table) -> pa.Table:
        """Return the checkpoint records of all others, and one for each of the subtasks."""
        rows = []
        for subtask in self.subtasks:
            sent = [(c, n) for c, n in self.sent.items() if c.startswith(f"{subtask}->")]
            received = [(c, n) for c, n in self.received.items() if c.partition("#")[0].endswith(f"->{subtask}")]
            rows.append({"operator": subtask.operator, "subtask": subtask.subtask, "checkpoint": 1} | {"sent": sent})
            rows[-1]["received"] = received
        columns = {n: [row.get(n) for row in rows] for n in table.schema.names}
        owners = zip(table["operator"].to_pylist(), table["subtask"].to_pylist(), strict=True)
        others = [Subtask(operator, subtask or 0) not in self.subtasks for operator, subtask in owners]
        plain = table.cast(WITH_PLACES).filter(pa.array(others, pa.bool_()))
        return pa.concat_tables([plain, pa.table(columns, schema=WITH_PLACES)])


class Planned(NamedTuple):
    """A line with all that was derived on the way; what `recovery-line`, `replay` and `verify` share."""

    evidence: Evidence
    line: Ints
    result: RecoveryLine

    def draft(self, command: str, result: R) -> Draft[R]:
        """Make a draft of a result that rests on the line."""
        nothing = all(entry.state == "initial" for entry in self.result.line)
        return replace(self.evidence.draft(command, result), unrecoverable=nothing or not self.result.consistent)

"""The values that the answer of `chain` is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["intact chain", "broken chain", "orphaned deltas", "unchecked chain"]


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """The link at which a way down fails: `checkpoint`, on which `needed_by` stands, with the place of its piece."""

    checkpoint: int | None
    needed_by: int | None
    flaw: str
    path: str | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A chain of `checkpoints` stored ones, of which `unrestorable` cannot be restored.

    `restorable` is the newest that can be; `because` why the newest cannot. To restore `checkpoint` (the one asked for,
    else the newest that goes together with the other chains) `pieces` are read, `deltas` on a base among them, the
    oldest of checkpoint `back_to`; `bytes` in all, in about `time_ms`, by `time_from`. None: it cannot be restored, or
    it is not known.
    """

    operator: str
    subtask: int
    store: str
    status: Status
    checkpoints: int
    unrestorable: int
    oldest: int
    newest: int
    restorable: int | None
    because: BrokenLink | None
    checkpoint: int | None
    pieces: int | None
    deltas: int | None
    back_to: int | None
    bytes: int | None
    time_ms: float | None
    time_from: Literal["history", "read-rate"] | None


@dataclass(frozen=True, slots=True)
class ChainRestore:
    """A checkpoint of all chains that are restored together (`subtask` None: of the run), None: there is none.

    Chains of one subtask are read one after the other, subtasks side by side.
    """

    operator: str | None
    subtask: int | None
    chains: int
    checkpoint: int | None
    pieces: int
    bytes: int | None
    time_ms: float | None


@dataclass(frozen=True, slots=True)
class ReadStep:
    """A piece to read for `restore`, in order within its chain."""

    operator: str
    subtask: int
    store: str
    restore: int
    checkpoint: int
    form: str
    bytes: int | None
    time_ms: float | None
    path: str
    offset: int | None


@dataclass(frozen=True, slots=True)
class ChainAnswer:
    """The answer of `chain`: what is `restored_together` (run / subtask / job), and the chains.

    Of the steps to `read`, `read_left_out` are not listed.
    """

    restored_together: str
    asked: int | None
    totals: dict[str, int]
    together: tuple[ChainRestore, ...]
    chains: tuple[ChainRow, ...]
    read: tuple[ReadStep, ...]
    read_left_out: int
    notes: tuple[str, ...] = ()

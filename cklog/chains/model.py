"""The values that the answer of `chain` is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["intact chain", "broken chain", "orphaned deltas", "unchecked chain"]


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """The link at which a way down fails: `checkpoint` cannot be read, and `needed_by` stands on it.

    Both as in `cklog.chains.restorable.Link`; `path` and `offset` are the place of its piece, if it has one.
    """

    checkpoint: int | None
    needed_by: int | None
    flaw: str
    path: str | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class ChainRow:
    """One chain: what of it can be restored, and what restoring reads.

    Attributes
    ----------
    operator, subtask, store : the chain; `store` "" is the checkpoint as a whole
    checkpoints, unrestorable : how many are stored, and how many of these cannot be restored
    oldest, newest : of the stored ones
    restorable : the newest that can be restored; None if none can
    because : why the newest cannot be restored; None if it can
    checkpoint : what is to be restored: the one asked for, else the newest that goes together with the other chains;
        None if that cannot be restored, and then all that follows is None
    pieces, deltas, back_to : how many pieces are read for it, how many of them are deltas, and the checkpoint that the
        oldest is of
    bytes, time_ms, time_from : the sum of their sizes, about how long reading takes, and what tells that; None if not
        known
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
    """The checkpoint that `chains` chains restored together go back to; `checkpoint` None if there is none.

    They are the chains of one subtask, or of the run if `operator` and `subtask` are None. `time_ms` counts on chains
    of one subtask being read one after the other, and subtasks side by side.
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
    """A piece of `checkpoint` that is read to restore checkpoint `restore`; a chain's steps are in reading order."""

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
    """The answer of `chain`.

    `restored_together` is run, subtask or job, `asked` the checkpoint asked for, `totals` count chains by status. Of
    the steps to `read`, `read_left_out` more are not listed.
    """

    restored_together: str
    asked: int | None
    totals: dict[str, int]
    together: tuple[ChainRestore, ...]
    chains: tuple[ChainRow, ...]
    read: tuple[ReadStep, ...]
    read_left_out: int
    notes: tuple[str, ...] = ()

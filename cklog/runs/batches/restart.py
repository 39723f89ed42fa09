"""What a restart of a micro-batch query does, in plain sentences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Restart:
    """What is known of a restart.

    Attributes
    ----------
    committed : the line, -1 for none
    planned : the batch in flight, None for none
    sink_has_planned : whether the file sink's log lists the batch in flight, None if there is no such sink
    fails : the restart fails as the files are now
    removed_to : newest batch that going back to the line has to remove first, None if nothing is removed
    state_lost : committed batches after the line are given up, because their state cannot be loaded
    """

    committed: int
    planned: int | None
    sink_has_planned: bool | None
    fails: bool
    removed_to: int | None
    state_lost: bool

    def sentences(self) -> str:
        """Say what a restart does."""
        said = []
        if self.state_lost:
            said.append("A restart of the query fails as the files are now; the findings name the state files.")
        if self.removed_to is not None:
            said.append(_going_back(self.committed, self.removed_to))
        if self.fails and not self.state_lost:
            said.append(
                "A restart of the query fails as the files are now; the findings say why. Once they are repaired:"
            )
        if not (self.state_lost and self.committed < 0):
            said += self._what_runs()
        return " ".join(said)

    def _what_runs(self) -> list[str]:
        """Say which batch runs first, and what its sink gets."""
        c, planned = self.committed, self.planned
        if planned is None:
            start = f"from the end offsets of batch {c}" if c >= 0 else "from the beginning of its sources"
            nothing = "Then nothing" if self.removed_to is not None else "Nothing"
            return [f"{nothing} is in flight. A restart plans batch {c + 1} afresh, {start}."]
        said = [f"A restart runs batch {planned} again, with exactly its stored range, and goes on."]
        if planned > c + 1:
            which = f"batch {c + 1}" if planned == c + 2 else f"batches {c + 1} to {planned - 1}"
            said.append(f"It does not run {which}, for which there is no commit.")
        if self.sink_has_planned is None:
            said.append(f"A sink that is not idempotent (foreachBatch, Kafka, console) may get batch {planned} twice.")
        elif self.sink_has_planned:
            said.append(f"The file sink's log has batch {planned} already, so its output is not written again.")
        else:
            said.append(f"The file sink's log does not have batch {planned}: readers by that log see it once.")
        return said


def _going_back(c: int, back: int) -> str:
    """Say how to go back to batch c, if batches up to `back` were planned or committed.

    State files of later versions go as well: else a later restart may load a snapshot of the abandoned batches.
    """
    if c < 0:
        return (
            "To begin anew, use an empty checkpoint folder: all input is read again, and a sink that is not "
            "idempotent gets it twice."
        )
    which = f"{c + 1}" if back == c + 1 else f"{c + 1} to {back}"
    return (
        f"To go back to batch {c}, on a copy of the checkpoint remove the offsets and commits {which}, and the state "
        f"files of versions above {c + 1}; a file sink's log must lose the same batches, or it skips them, and any "
        "other sink gets them twice."
    )

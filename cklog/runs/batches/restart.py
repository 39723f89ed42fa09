"""What a restart of a micro-batch query does, in plain sentences."""

from __future__ import annotations

from typing import NamedTuple

_UNLOGGED = "Batches after it may have run without a record: a sink may get their results again."
_CONTINUOUS = (
    "A continuous trigger logs offsets when an epoch ends: what was read after epoch {} left no plan, or one that a "
    "restart removes, and a sink may get its results again. A restart reads on from the end of epoch {}; start the "
    "query with its continuous trigger, because a micro-batch trigger fails on these files."
)


class Restart(NamedTuple):
    """What is known of a restart.

    Attributes
    ----------
    committed : the line, -1 for none
    planned : the batch in flight, None for none
    sink_has_planned : whether the file sink's log lists the batch in flight, None if there is no such sink
    fails : the restart fails as the files are now
    removed_to : newest batch that going back to the line has to remove first, None if nothing is removed
    state_lost : committed batches after the line are given up, because their state cannot be loaded
    blocked : going back to the line does not help before something else is mended
    sink : the folder of the file sink, None if it is not known
    sink_loses : the repair removes entries of the file sink's log
    sink_skips : the newest batch in the file sink's log, if a restart plans batches afresh that the sink then skips
    tables : whether the sinks are tables, which say themselves what they make of a batch that runs again
    asynchronous : batches after those that are here may have run
    continuous : a continuous trigger wrote the newest plan
    hidden : why it is not known what of the checkpoint going back would remove, "" where that is known
    hidden_log : the log of plans that could not be listed, "" where it was
    unread_plan, unread_start : the plan of the batch in flight cannot be read, or that of the one before
    """

    committed: int
    planned: int | None
    sink_has_planned: bool | None
    fails: bool
    removed_to: int | None
    state_lost: bool
    blocked: bool
    sink: str | None
    sink_loses: bool = False
    sink_skips: int | None = None
    tables: bool = False
    asynchronous: bool = False
    continuous: bool = False
    hidden: str = ""
    hidden_log: str = ""
    unread_plan: bool = False
    unread_start: bool = False

    def sentences(self) -> str:
        """Say what a restart does."""
        if self.hidden and self.removed_to is not None:
            return f"What going back to batch {self.committed} removes is not known: {self.hidden}."
        said = []
        if self.state_lost:
            said.append("A restart of the query fails as the files are now; the findings name the state files.")
        if self.blocked:
            where = f"Going back to batch {self.committed}" if self.committed >= 0 else "Beginning anew"
            said.append(f"{where} does not help by itself: the findings say what else to mend first.")
            return " ".join(said)
        if self.removed_to is not None:
            said.append(self._going_back(self.removed_to))
        if self.fails and not self.state_lost:
            repaired = "" if self.unread_plan else " Once they are repaired:"
            said.append(f"A restart of the query fails as the files are now; the findings say why.{repaired}")
        if not (self.state_lost and self.committed < 0):
            said += self._what_runs()
        if self.sink_skips is not None:
            new = (self.committed if self.planned is None else self.planned) + 1
            which = f"batch {new}" if new == self.sink_skips else f"batches {new} to {self.sink_skips}"
            said.append(f"The file sink's log has {which}, too: the sink skips what is planned under these numbers.")
        return " ".join(said)

    def _what_runs(self) -> list[str]:
        """Say which batch runs first, and what its sink gets."""
        c, planned = self.committed, self.planned
        if self.hidden_log:
            return [f"Whether a batch is in flight is not known: {self.hidden_log} could not be read."]
        if self.continuous and c >= 0:
            return [_CONTINUOUS.format(c, c)]
        if planned is None:
            start = f"from the end offsets of batch {c}" if c >= 0 else "from the beginning of its sources"
            nothing = "Then nothing" if self.removed_to is not None else "Nothing"
            unlogged = self.asynchronous and self.removed_to is None
            flight = _UNLOGGED if unlogged else f"{nothing} is in flight."
            return [f"{flight} A restart plans batch {c + 1} afresh, {start}."]
        then = "The restart then" if self.removed_to is not None else "A restart"
        said = [f"{then} runs batch {planned} again, with exactly its stored range, and goes on."]
        if self.unread_plan:
            said = [f"Batch {planned} was planned, but its plan cannot be read: which range it reads is not known."]
        elif self.unread_start:
            said = [f"{then} runs batch {planned} again, and goes on; where its range begins cannot be read."]
        if self.asynchronous:
            ran = f"batches {c + 1} to {planned}" if planned > c + 1 else f"batch {planned}"
            said.append(f"Its range may have run already, as {ran} and later.")
        elif planned > c + 1:
            which = f"batch {c + 1}" if planned == c + 2 else f"batches {c + 1} to {planned - 1}"
            said.append(f"It does not run {which}, for which there is no commit.")
        if self.sink_has_planned is None and not self.tables:
            said.append(f"A sink that is not idempotent (foreachBatch, Kafka, console) may get batch {planned} twice.")
        elif self.sink_has_planned and self.sink_loses:
            said.append(f"The file sink's log loses batch {planned}, which is written again.")
        elif self.sink_has_planned:
            said.append(f"The file sink's log has batch {planned} already, so its output is not written again.")
        elif self.sink_has_planned is False:
            said.append(f"The file sink's log does not have batch {planned}: readers by that log see it once.")
        return said

    def _going_back(self, newest: int) -> str:
        """Say how to go back to the line, if batches up to `newest` were planned or committed.

        State files of later versions go as well: else a later restart may load a snapshot of the abandoned batches.
        """
        c, twice = self.committed, "any other sink gets them twice"
        log = f"the log of the file sink, {self.sink}," if self.sink is not None else "a file sink's log"
        if c < 0:
            return (
                "To start over, use an empty checkpoint folder, or on a copy of this one remove all offsets, commits "
                f"and state: all input is read again; {log} must be emptied, or it skips what it lists, and {twice}."
            )
        if self.planned is None:
            plans = f"offsets and commits {c + 1}" + ("" if newest == c + 1 else f" to {newest}")
        else:
            plans = f"commits above {c} and the offsets above {self.planned} ({self.planned} stays)"
        return (
            f"To go back to batch {c}, on a copy of the checkpoint remove the {plans}, and the state files of versions "
            f"above {c + 1}, all with their .crc; {log} must lose the same batches, or it skips them, and {twice}."
        )

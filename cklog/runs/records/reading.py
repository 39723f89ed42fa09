"""A run given as tables of records, read: checkpoint records, or raw events made into them, as evidence.

The pieces of chains that checkpoint records tell of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.engine.question_cache import QuestionCache
from cklog.engine.reading import Reading
from cklog.engine.scan import Kernel, Reduce
from cklog.errors import NotFound
from cklog.history.deliveries import Deliveries
from cklog.history.events import current_state
from cklog.history.pieces import record_pieces
from cklog.history.records import CheckpointRecords, records_of, records_until, tells_no_watermarks
from cklog.history.state_files import gone_states, state_flaws
from cklog.history.watermarks import CurrentState, build_history
from cklog.inputs.offers import OffersRecords
from cklog.inputs.pieces import PiecesRead
from cklog.inputs.tables import WITH_PLACES, TableRead, as_it_is, read_table
from cklog.lines.entries import protocol_of
from cklog.lines.replay_ranges import impossible_loops
from cklog.lines.rounds import unknown_subtasks
from cklog.model.findings import Finding, Where
from cklog.model.names import Subtask, parse_channel, parse_subtask
from cklog.model.question import Question
from cklog.model.schemas import CHECKPOINTS
from cklog.model.verdict import DAMAGE, FLAWS, HIDING, NOT_JUDGED, error_without_records
from cklog.model.wording import first_few
from cklog.runs.records.absent import missed_queues, no_queue_of
from cklog.runs.records.evidence import CheckpointsRead, Evidence, Execution, Fixed

if TYPE_CHECKING:
    from cklog.history.events.raw_events import RawEvents

R = TypeVar("R")

_CHECKPOINT_COLUMNS = (*CHECKPOINTS.names, "_path", "_offset")


class RecordReader:
    """Reads a run that is given as tables of records; every analysis of such a run begins here."""

    def __init__(self, tables: OffersRecords, reading: Reading, cache: QuestionCache | None = None) -> None:
        self.tables = tables
        self.reading = reading
        self.once = (cache or QuestionCache()).get

    def evidence_of(self, question: Question) -> Evidence:
        """Say what there is to answer a question from: the checkpoints, and what survivors hold now."""
        return self.evidence(question, self.checkpoints(question.as_of))

    def has_checkpoints(self) -> bool:
        """Return whether there are checkpoint files at all."""
        return self.tables.has("checkpoints")

    def subtasks_with_checkpoints(self) -> frozenset[Subtask]:
        """Return those that some checkpoint record names."""
        if not self.has_checkpoints():
            return frozenset()
        return _owners(self.checkpoints().table)

    def subtasks_that_store(self) -> frozenset[Subtask]:
        """Return those that some record of a stored checkpoint names: what a survivor holds now is none."""
        if not self.has_checkpoints():
            return frozenset()
        table = self.checkpoints().table
        return _owners(table.filter(pc.fill_null(pc.not_equal(table["kind"].cast(pa.string()), "volatile"), True)))

    def checkpoints(self, as_of: int | None = None) -> CheckpointsRead:
        """Return every checkpoint record, as read, or as made of raw events up to `as_of` (ms)."""
        found = self.read_checkpoints(as_of)
        if found.raw is None or not found.raw.subtasks:
            self._require(found.table, found.findings)
        return found

    def read_checkpoints(self, as_of: int | None = None) -> CheckpointsRead:
        """Read every checkpoint record, or make them of raw events up to `as_of` (ms); there may be none."""
        return self.once(("checkpoints", as_of if self.tables.has("events") else None), lambda: self._read(as_of))

    def _read(self, as_of: int | None) -> CheckpointsRead:
        table, findings, inputs = self.scan_all("checkpoints", _CHECKPOINT_COLUMNS, as_it_is, WITH_PLACES, None)
        stored = self.tables.has("checkpoints") or any(f.id == "missing-file" for f in findings)
        counted = stored and not (len(table) and tells_no_watermarks(records_until(table, as_of)))
        if counted or not self.tables.has("events"):
            if self.tables.has("events") and not len(table):
                findings = [*findings, _no_record(findings)]
            return CheckpointsRead(table, findings, inputs, None)
        from cklog.history.events.raw_events import read_events

        sources = {row["name"] for row in self.tables.manifest.get("operators", []) if row.get("kind") == "source"}
        scan = functools.partial(self.scan_all, "events")
        raw, more, read = read_events(scan, as_of, sources, self.named()[1], table if stored else None)
        return CheckpointsRead(raw.table, findings + more, inputs + read, raw)

    def evidence(
        self, question: Question, checkpoints: CheckpointsRead, fixed: Fixed | None = None, everyone: bool = False
    ) -> Evidence:
        """Put the checkpoint records in order, and read what the survivors hold now.

        With `everyone`, events are also read for what the others held when they failed.
        """
        if fixed is not None:
            return self._evidence(question, checkpoints, fixed, everyone)
        key = ("evidence", self._failed(question), question.as_of, everyone and self.tables.has("events"))
        return self.once(key, lambda: self._evidence(question, checkpoints, None, everyone))

    def _evidence(
        self, question: Question, checkpoints: CheckpointsRead, fixed: Fixed | None, everyone: bool
    ) -> Evidence:
        table, findings, inputs, raw = checkpoints
        table = table if fixed is None else fixed.beside(table)
        damaged = any(f.id in HIDING for f in findings)  # either may hide a record
        if fixed is None:
            known, channels = self._names(raw)
            records = self.records(checkpoints, question.as_of)
        else:
            known, channels = list(fixed.subtasks), list(fixed.channels)
            if raw is not None:
                known, channels = [*known, *raw.subtasks], [*channels, *raw.channels]
            records = records_of(table, known, channels, question.as_of)
        survivors = self._survivors(records, question)
        all_records = records
        current, seen = last, known_last = CurrentState(), frozenset[Subtask]()
        if raw is not None:
            current, seen = raw.current_of(survivors)
            last, known_last = raw.current_of(records.subtasks)
        elif (survivors or everyone) and self.tables.has("events"):
            kernel = current_state.kernel(question.as_of)
            events, more, read = self.scan_all(
                "events", current_state.COLUMNS, kernel, current_state.PARTIAL, current_state.REDUCE
            )
            current, seen = current_state.current_of(events, survivors, more)
            last, known_last = current_state.current_of(events, records.subtasks, more)
            records = records_of(table, known, current.names(channels), question.as_of)
            all_records = records_of(table, known, last.names(channels), question.as_of)
            findings, inputs = findings + more, inputs + read
        volatile = current_state.volatile_subtasks(records)
        seen, known_last = seen | volatile, known_last | volatile
        bound = tuple(s for s in survivors if s not in seen)
        gone, _ = gone_states(records, self.tables)
        damaged = damaged or bool(records.findings)
        told = [s for s in survivors if s in seen]
        built = build_history(records, told, current, damaged, gone)
        whole = built.history if all_records is records and (frozenset(told), current) == (known_last, last) else None
        if raw is not None:
            known_sent = np.maximum(built.newest_sent, raw.known_sent(built.history.channels))
            built = built._replace(newest_sent=known_sent)
        found = [*findings, *built.findings, *impossible_loops(built.history), *current_state.no_evidence(bound)]
        coordinated = protocol_of(records) == "coordinated"
        unknown = unknown_subtasks(found, self.tables.manifest) if coordinated else []
        if fixed is None:
            there = {records.subtasks[i] for i in np.unique(records.subtask).tolist()} | seen | known_last
            unknown += no_queue_of((s, yes) for s, yes in missed_queues(self.tables.manifest, (), there) if yes)
        deliveries = raw.deliveries if raw else Deliveries()
        return Evidence(
            records=records,
            built=built,
            current=current,
            bound=bound,
            findings=(*found, *unknown),
            inputs=tuple(inputs),
            deliveries=deliveries,
            gone=gone,
            execution=Execution(
                built.history,
                unseen=tuple(s for s in records.subtasks if s not in known_last),
                build=lambda: whole or build_history(all_records, sorted(known_last), last, damaged, gone).history,
            ),
            unproven=bool(unknown),
            last=last,
        )

    def records(self, checkpoints: CheckpointsRead, as_of: int | None = None) -> CheckpointRecords:
        """Put checkpoint records in order, with what the manifest and raw events name beside them."""
        known, channels = self._names(checkpoints.raw)
        return self.once(("records", as_of), lambda: records_of(checkpoints.table, known, channels, as_of))

    def _names(self, raw: RawEvents | None) -> tuple[list[Subtask], list[str]]:
        """Subtasks and channels that the manifest names, or raw events do."""
        known, channels = self.named()
        return (known, channels) if raw is None else ([*known, *raw.subtasks], [*channels, *raw.channels])

    def _require(self, table: pa.Table, findings: list[Finding]) -> None:
        if len(table):
            return
        hiding = [f for f in findings if f.id in NOT_JUDGED or (f.id in DAMAGE and f.severity == "error")]
        if hiding:
            raise error_without_records(
                "no checkpoint record can be read", hiding, "look for another copy of checkpoints/"
            )
        known, channels = self.named()
        if not (known or channels):
            message = "there is no checkpoint record here, and no job.json that names operators"
            raise NotFound(message, "PATH is the run folder that holds checkpoints/")

    def named(self) -> tuple[list[Subtask], list[str]]:
        """Return subtasks and channels that the manifest names."""
        manifest = self.tables.manifest
        rows = manifest.get("operators", [])
        known = [Subtask(row["name"], i) for row in rows for i in range(row.get("parallelism", 1))]
        names = [row["channel"] for row in manifest.get("channels", [])]
        return known, [name for name in names if parse_channel(name) is not None]

    def _survivors(self, records: CheckpointRecords, question: Question) -> list[Subtask]:
        """Every subtask that `--failed`, or the manifest, does not name; none if nothing is named."""
        names = self._failed(question)
        if not names:
            return []
        lost = {subtask for name in names for subtask in subtasks_named(name, records.subtasks)}
        return [subtask for subtask in records.subtasks if subtask not in lost]

    def _failed(self, question: Question) -> tuple[str, ...]:
        """What failed, as asked or as the manifest says; () everything."""
        return () if question.everything else question.failed or tuple(self.tables.manifest.get("failed", []))

    def scan_all(
        self,
        table: str,
        columns: tuple[str, ...],
        kernel: Kernel,
        partial: pa.Schema,
        reduce: Reduce | None,
        wanted: Callable[[dict[str, tuple[Any, Any]]], bool] | None = None,
    ) -> TableRead:
        """Fold all records of a table (`cklog.inputs.tables.read_table`)."""
        return read_table(self.tables, self.reading, table, columns, kernel, partial, reduce, wanted)

    def scan_messages(
        self, columns: tuple[str, ...], kernel: Kernel, partial: pa.Schema, reduce: Reduce
    ) -> TableRead | None:
        """Fold all logged messages; None if there are no channel logs."""
        if not self.tables.has("channels"):
            return None
        return self.scan_all("channels", columns, kernel, partial, reduce)


def subtasks_named(name: str, subtasks: Sequence[Subtask]) -> list[Subtask]:
    """Return the subtasks that OP or OP/SUB names.

    Raises
    ------
    NotFound : there is no such operator or subtask
    """
    one = parse_subtask(name)
    found = [s for s in subtasks if s == one or s.operator == name]
    if not found:
        operators = ", ".join(sorted({s.operator for s in subtasks}))
        raise NotFound(f"no operator or subtask {name}", f"operators here: {operators}")
    return found


def pieces_of_records(reader: RecordReader) -> PiecesRead:
    """Make pieces of the checkpoint records of a run, and of the state files that they name."""
    read = reader.checkpoints()
    findings, inputs = read.findings, read.inputs
    records = records_of(read.table, *reader.named()) if read.raw is not None else reader.records(read)
    del read  # as large as the records themselves, which are another table
    lost = any(f.id in FLAWS for f in findings) or bool(records.findings)
    flaws, more = state_flaws(records, reader.tables)
    told = (*findings, *records.findings, *more)
    return PiecesRead(record_pieces(records, lost, flaws).table, told, tuple(inputs))


def _no_record(findings: Sequence[Finding]) -> Finding:
    """Report that events tell of checkpoints, and files that hold no record say that none is stored."""
    files = sorted({place.path for f in findings for place in f.where or (Where(f.subject),)}) or ["checkpoints/"]
    message = (
        f"{first_few(files, 3)}: checkpoints/ is there and holds no record, so that no checkpoint that events/ tells "
        "of counts as stored. If the job keeps no records there, ask again about a copy without checkpoints/"
    )
    return Finding(
        "no-checkpoint-record", "error", files[0], message, tuple(map(Where, files[:8])), effect="older-line"
    )


def _owners(table: pa.Table) -> frozenset[Subtask]:
    """Return the subtasks that records are of."""
    owners = zip(table["operator"].to_pylist(), table["subtask"].to_pylist(), strict=True)
    return frozenset(Subtask(operator, subtask or 0) for operator, subtask in owners)

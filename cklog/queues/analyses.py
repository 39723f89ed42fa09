"""Answers about persisted output queues: the eventual checkpoint of an operator, its extent, and its replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from cklog.arrays.types import Ints
from cklog.budgets import check_json, check_nesting, reading
from cklog.engine.reading import Reading
from cklog.errors import CorruptInput, NotFound, SelfCheckFailed, Unreadable, UsageError
from cklog.inputs.queues import Queue
from cklog.model.eventual import EventualCheckpoint, EventualReplay, Extent
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask, parse_subtask
from cklog.model.verdict import Draft
from cklog.queues.findings import no_record_of, over_time_findings, queue_findings
from cklog.queues.full_scans import QueueRow, census, forward_findings
from cklog.queues.judge import Proof, QueueJudgement, judge
from cklog.queues.log import EMIT, TYPES, UNKNOWN, QueueLog, TailReader, reading_back
from cklog.queues.upstream import Upstream

if TYPE_CHECKING:
    from cklog.queues.over_time.timeline import ExtentOverTime

_NOTHING_UNSEEN: Mapping[str, str] = {}

_OLDEST = 10
"""Windows that hold T back, named in an extent."""


class Reconstruction(NamedTuple):
    """A queue whose end was judged, with its findings.

    `bytes_read` of the queue were needed. `proof` is that of the judgement, or "lost" if the upstream lacks tuples that
    the replay needs.
    """

    queue: Queue
    judged: QueueJudgement
    findings: tuple[Finding, ...]
    bytes_read: int
    proof: Proof


R = TypeVar("R")


class PlannedReplay(NamedTuple):
    """A reconstruction, what its upstream must send again, all findings, and sentences for stderr about the reading."""

    found: Reconstruction
    replay: EventualReplay
    findings: tuple[Finding, ...]
    spoken: tuple[str, ...]

    def draft(self, command: str, result: R) -> Draft[R]:
        """Make a draft of a result; it is indeterminate where state is lost."""
        return Draft(
            command,
            result,
            self.findings,
            self.found.queue.inputs(),
            indeterminate=self.found.proof == "lost",
            spoken=self.spoken,
        )


class EventualLog:
    """The analyses of a run's output queues."""

    def __init__(
        self,
        queues: Mapping[Subtask, Queue],
        manifest: Mapping[str, Any],
        reading: Reading,
        unseen: Mapping[str, str] = _NOTHING_UNSEEN,
    ) -> None:
        """Take the queues of a run; `unseen` are paths at which more may lie that nobody looked at, each with why."""
        self._queues = queues
        self._unseen = unseen
        self.manifest = manifest
        self.reading = reading

    def extent(self, operator: str, forward: bool, as_of: int | None = None) -> Draft[Extent]:
        """Return how far back the eventual checkpoint of an operator reaches, and which windows make it long.

        `forward` also reads the whole queue, as a second opinion; `as_of`, in ms: as if the crash had come then.
        """
        planned = self._planned(operator, forward, as_of, with_state=False)
        return planned.draft("extent", extent_of(planned.found, planned.replay))

    def over_time(self, operator: str, max_extent: int | None, max_replay: int | None) -> Draft[ExtentOverTime]:
        """Return how extent and replay went along the whole log; the targets are in records and in tuples.

        Raises
        ------
        UsageError : a target is negative, or OPERATOR names several queues; NotFound : no queue
        """
        from cklog.queues.over_time.timeline import over_time

        for option, target in (("--max-extent", max_extent), ("--max-replay", max_replay)):
            if target is not None and target < 0:
                raise UsageError(f"{option} {target}: less than 0")
        queue = self.queue_of(operator)
        timeline = over_time(queue, self.reading.split_bytes, max_extent, max_replay)
        findings = (*queue.findings(), *over_time_findings(queue.subtask, timeline))
        unknown = timeline.replay_unknown and not timeline.result.breached["records"]
        return Draft(
            "extent-over-time",
            timeline.result,
            findings,
            queue.inputs(),
            indeterminate=unknown,
            spoken=(f"read all {queue.bytes:,} bytes of {queue.subtask}'s queue, forward",),
        )

    def eventual_checkpoint(self, operator: str, forward: bool, as_of: int | None = None) -> Draft[EventualCheckpoint]:
        """Return the eventual checkpoint itself: what to load, and what the replay ignores."""
        planned = self._planned(operator, forward, as_of, with_state=True)
        return planned.draft("eventual-checkpoint", checkpoint_of(planned.found, planned.replay))

    def reconstruct(
        self,
        queue: Queue,
        with_state: bool = False,
        below: Mapping[str, int] | None = None,
        as_of: int | None = None,
    ) -> Reconstruction:
        """Read a queue from its end, or from where `below` or `as_of` cut it, until its checkpoint is decided.

        `with_state` also reads the states of windows; `below` and `as_of` are those of `TailReader`.

        Raises
        ------
        CorruptInput : no record can be read
        """
        with reading_back(queue):
            return self._reconstruct(TailReader(queue, with_state, below or {}, as_of))

    def _reconstruct(self, reader: TailReader) -> Reconstruction:
        """Read on until the checkpoint is decided."""
        queue = reader.queue
        wait = 1  # splits that are read before judging again, twice as many each time
        while True:
            while reader.open_tail is None or reader.open_seen < reader.open_tail:
                if not reader.more():
                    break
            if wait == 1:
                reader.read_all_if_disordered()
            log = reader.log()
            if len(log) or (reader.exhausted and {item.id for item in log.damage} <= {"torn-tail"}):
                judged = judge(log, reader.open_tail)
                if judged is not None:
                    found = (*queue.findings(), *reader.findings(), *queue_findings(queue.subtask, judged))
                    return Reconstruction(
                        queue=queue, judged=judged, findings=found, bytes_read=reader.bytes_read, proof=judged.proof
                    )
            if reader.exhausted:
                break
            for _ in range(wait):
                reader.more()
            wait *= 2
        if len(log):
            raise SelfCheckFailed(f"{queue.subtask}: the whole queue was read and nothing decided")
        raise no_record_of(queue.subtask, log.damage)

    def queue_of(self, operator: str) -> Queue:
        """Return the queue that OP or OP/SUB names; the only one if none is named.

        Raises
        ------
        NotFound, UsageError : there is none, or more than one
        Unreadable : there may be one where nobody looked
        """
        one = parse_subtask(operator)
        found = [s for s in self._queues if not operator or s == one or s.operator == operator]
        if not found:
            self._require_seen(one.operator if one is not None else operator)
        if not self._queues:
            raise NotFound("there is no output queue here", "PATH is the run folder that holds outputs/OPERATOR/")
        names = ", ".join(map(str, list(self._queues)[:8]))
        if not found:
            raise NotFound(f"no output queue of {operator}", f"queues here: {names}")
        if len(found) > 1:
            raise UsageError(f"which queue? {len(found)} match", f"--operator takes one of {names}")
        return self._queues[found[0]]

    def _require_seen(self, operator: str) -> None:
        """Raise `Unreadable` if the queue of an operator, or of any, may lie where nobody looked."""
        for path, why in sorted(self._unseen.items()):
            place = path.split("/")[1:2]
            if not operator or not place or place == [operator]:
                message = f"{path} {why}: whether the queue{f' of {operator}' * bool(operator)} lies there is not known"
                raise Unreadable(
                    message,
                    "ask about a copy without links (cp -rL), or with --follow-links where it leads out of PATH",
                )

    def _planned(self, operator: str, forward: bool, as_of: int | None, with_state: bool) -> PlannedReplay:
        queue = self.queue_of(operator)
        found = self.reconstruct(queue, with_state, as_of=as_of)
        spoken = [
            f"read {found.bytes_read:,} of {queue.bytes:,} bytes of {queue.subtask}'s queue, from its end "
            f"({100 * found.bytes_read / max(queue.bytes, 1):.3f}%)"
        ]
        findings: list[Finding] = []
        if forward and as_of is None:  # the whole log knows only how it ended
            engine = self.reading.engine_for(queue.bytes)
            findings += forward_findings(queue, found.judged, engine, self.reading.split_bytes)
            spoken.append(f"and all of it forward, on the {engine.name} engine")
        found, replay, of_replay = self.with_replay(found)
        return PlannedReplay(found, replay, (*found.findings, *findings, *of_replay), tuple(spoken))

    def with_replay(self, found: Reconstruction) -> tuple[Reconstruction, EventualReplay, list[Finding]]:
        """Add what the upstream must send again, and findings about that; where it cannot, the proof is "lost"."""
        upstream = Upstream(self._queues, self.manifest)
        replay, findings = upstream.replay_of(found.queue.subtask, found.judged)
        if any(finding.id == "retention-hole" for finding in findings):
            found = found._replace(proof="lost")
        if len(replay.upstream) == 1 and replay.upstream[0].distinct_ts:
            # records may share a timestamp, but no two tuples do: one tuple wrote them
            kept = tuple(f for f in found.findings if f.id != "ambiguous-tie")
            found = found._replace(findings=kept)
        return found, replay, findings

    def inspect(self) -> tuple[list[QueueRow], list[Finding], list[InputUsed]]:
        """Return a row about each queue for `inspect`, which reads all of them, with findings and files."""
        rows: list[QueueRow] = []
        findings: list[Finding] = []
        inputs: list[InputUsed] = []
        for queue in self._queues.values():
            row, damage, used = census(queue, self.reading.engine_for(queue.bytes), self.reading.split_bytes)
            rows.append(row)
            findings += damage
            inputs += used
        return rows, findings, inputs

    @property
    def queues(self) -> Mapping[Subtask, Queue]:
        """The output queues of the run."""
        return self._queues


def extent_of(found: Reconstruction, replay: EventualReplay) -> Extent:
    """Return the extent of a judged queue."""
    judged, log = found.judged, found.judged.log
    oldest = int(judged.open[0]) if len(judged.open) else len(log)
    types = log.type[oldest:]
    sizes = log.bytes[oldest:]
    rows = judged.open[:_OLDEST]
    ordered = rows[np.lexsort((rows, log.ts[rows]))]
    return Extent(
        operator=found.queue.subtask.operator,
        subtask=found.queue.subtask.subtask,
        open_windows=judged.open_windows,
        records=_count_from(log, oldest),
        bytes=int(sizes.sum()) if (sizes != UNKNOWN).all() else None,
        from_=_record_number(log, oldest) if len(types) else None,
        to=_record_number(log, len(log) - 1) if len(log) else None,
        T=judged.ts,
        t_c=int(log.ts[-1]) if len(log) else None,
        by_type={name: int((types == number).sum()) for number, name in enumerate(TYPES[: EMIT + 1])},
        replay=replay,
        oldest=tuple({"window": log.window_of(row), "t": int(log.ts[row])} for row in ordered.tolist()),
        proof=found.proof,
    )


def _count_from(log: QueueLog, oldest: int) -> int:
    """Count the records from row `oldest` to the tail; where records are numbered, missing ones count too."""
    if oldest < len(log) and (log.pos[oldest:] != UNKNOWN).all():
        return int(log.pos[-1] - log.pos[oldest]) + 1
    return len(log) - oldest


def checkpoint_of(found: Reconstruction, replay: EventualReplay) -> EventualCheckpoint:
    """Return the eventual checkpoint of a judged queue whose states were read."""
    judged, log = found.judged, found.judged.log
    assert log.state is not None
    states = log.state.take(judged.open).to_pylist() if len(judged.open) else []
    windows = []
    for row, name, state in zip(judged.open.tolist(), log.windows_of(judged.open), states, strict=True):
        windows.append(
            {
                "window": name,
                "type": TYPES[log.type[row]],
                "t": int(log.ts[row]),
                "input": _input_numbers(log, log.input[row]),
                "state": None if state is None else _parsed_state(found, row, state),
            }
        )
    closed = [
        {"window": name, "t": int(log.ts[row]), "input": _input_numbers(log, log.input[row])}
        for row, name in zip(judged.closed.tolist(), log.windows_of(judged.closed), strict=True)
    ]
    return EventualCheckpoint(
        operator=found.queue.subtask.operator,
        subtask=found.queue.subtask.subtask,
        t_c=int(log.ts[-1]) if len(log) else None,
        T=judged.ts,
        T_input=replay.from_input,
        open_windows=judged.open_windows,
        windows=tuple(windows),
        closed=tuple(closed),
        proof=found.proof,
        replay=replay,
        emitted=int((log.type[judged.start :] == EMIT).sum()),
    )


def _parsed_state(found: Reconstruction, row: int, text: str) -> Any:
    """Return the state of a window, any JSON, of which `text` is what the record holds."""
    log = found.judged.log
    path, at = log.paths[log.file[row]], int(log.offset[row])
    try:
        with reading(path, at):
            check_json(text)
            check_nesting(text)
        return json.loads(text)
    except ValueError:
        hint = "the window cannot be loaded; look for another copy"
        raise CorruptInput(f"{path} at {at}: state is no JSON", hint) from None


def _record_number(log: QueueLog, row: int) -> int | None:
    found = int(log.pos[row])
    return None if found == UNKNOWN else found


def _input_numbers(log: QueueLog, numbers: Ints) -> int | dict[str, int] | None:
    """Return a record's input numbers, (channels,), as the records give them: one, one per channel, or none."""
    if not log.channels:
        return None
    if log.channels == ("",):
        return int(numbers[0])
    return {name: int(n) for name, n in zip(log.channels, numbers.tolist(), strict=True) if n != UNKNOWN}

"""The restart of a run with output queues: every eventual checkpoint, from the sources down, and the line it makes.

An operator with an output queue comes back exactly where its queue ends: it loads its eventual checkpoint and replays
from its upstream's queue, which holds all that it had taken. So its upstream is planned first, and so on up to the
sources. Beside operators that checkpoint on their own (uncoordinated), the queue's end is their only limit: if one of
them rolls back and will not have sent what an operator has taken, the operator comes back as of the last record
before that, as if the crash had come there; what it has sent since is then an orphan for those behind it. Both
rules only ever move back, so that their repetition ends at the latest line.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

from cklog.inputs.queues import Queue
from cklog.lines.recovery.time import with_recovery_time
from cklog.lines.recovery.work import Works
from cklog.model.eventual import EventualReplay
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import LineEntry, RecoveryLine, ReplayRange, SourceOffset
from cklog.model.names import Channel, Subtask, parse_channel
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.wording import many
from cklog.queues.analyses import EventualLog, Reconstruction
from cklog.queues.log import UNKNOWN
from cklog.runs.records.absent import missed_queues, no_queue_of
from cklog.runs.records.actions import of_line
from cklog.runs.records.evidence import Fixed, Planned
from cklog.runs.records.plan import plan_line
from cklog.runs.records.queue_recovery import queue_works
from cklog.runs.records.reading import RecordReader, subtasks_named

ENDLESS = 1 << 62
"""A watermark beyond all others: a queue without record numbers holds all that anybody has received from it."""


class QueueRestart(NamedTuple):
    """One operator's eventual checkpoint and its replay; `below` is what its queue was cut at, empty: its end."""

    found: Reconstruction
    replay: EventualReplay
    below: Mapping[str, int]


class Cascade:
    """The analyses of a run whose operators persist their output queues, some or all of them."""

    def __init__(self, eventual: EventualLog, records: RecordReader) -> None:
        self._eventual = eventual
        self._records = records
        self._manifest = records.tables.manifest

    def line(self, command: str, question: Question) -> Draft[RecoveryLine]:
        """Find the latest line of eventual checkpoints and of those that others took."""
        lost = self._lost(question)
        if not self._records.has_checkpoints():
            alone = {s: self._restart(s, {}, question.as_of) for s in self._order() if s in lost}
            return with_recovery_time(self._draft(command, question, alone), _works(alone, None), question.rates)
        restarts, planned = self._settled(question)
        moved = {s: restart for s, restart in restarts.items() if s in lost or restart.below}
        draft = self._draft(command, question, moved, planned)
        return with_recovery_time(draft, _works(moved, planned), question.rates)

    def after_total_failure(self) -> tuple[Mapping[Subtask, QueueRestart], Draft[RecoveryLine]]:
        """Return where each operator with a queue restarts if everything fails, and the line that they are part of."""
        question = Question(everything=True)
        if self._records.has_checkpoints():
            restarts, planned = self._settled(question)
            return restarts, self._draft("retention", question, restarts, planned)
        restarts = {subtask: self._restart(subtask, {}, None) for subtask in self._order()}
        return restarts, self._draft("retention", question, restarts)

    def _settled(self, question: Question) -> tuple[dict[Subtask, QueueRestart], Planned]:
        """Move the line of the others and the cuts of the queues back by turns, until neither moves."""
        return self._records.once(("settled", question), lambda: self._settle(question))

    def _settle(self, question: Question) -> tuple[dict[Subtask, QueueRestart], Planned]:
        cuts: dict[Subtask, dict[str, int]] = {subtask: {} for subtask in self._order()}
        while True:
            restarts = {s: self._restart(s, cuts[s], question.as_of) for s in cuts}
            lower = self._lower(restarts, plan_line(self._records, question, self._fixed(restarts, final=False)))
            if lower == cuts:
                return restarts, plan_line(self._records, question, self._fixed(restarts, final=True))
            cuts = lower

    def names_every_reader(self) -> bool:
        """Whether the manifest can be taken at its word about who reads a queue.

        Not if it is gone, or names no operator, channel or source; if it names no channel beside several queues; nor if
        a channel leads to or from an operator that it does not list: a name that was damaged, or half of a manifest.
        """
        listed = {row["name"] for row in self._manifest.get("operators", [])}
        ends = {end.operator for channel in self.channels() for end in (channel.sender, channel.receiver)}
        told = any(self._manifest.get(member) for member in ("operators", "channels", "sources"))
        return told and (not listed or ends <= listed) and (len(self.queues) < 2 or bool(ends))

    @property
    def queues(self) -> Mapping[Subtask, Queue]:
        """Every output queue of the run, those of sources too."""
        return self._eventual.queues

    def _lost(self, question: Question) -> set[Subtask]:
        """Subtasks with a queue that lost their state: as asked, as the manifest says, or all."""
        queues = tuple(self._operators())
        names = question.failed or tuple(self._manifest.get("failed", []))
        everyone = (*queues, *(s for c in self.channels() for s in (c.sender, c.receiver)))
        everyone = (*everyone, *self._records.subtasks_with_checkpoints())
        return {s for name in names for s in subtasks_named(name, everyone)} if names else set(queues)

    def _order(self) -> list[Subtask]:
        """Every subtask with a queue, behind those that feed it."""
        waiting = self._operators()
        feeds = {s: {c.sender for c in self.channels() if c.receiver == s} for s in waiting}
        order: list[Subtask] = []
        while waiting:
            ready = [s for s in waiting if not feeds[s] & (set(waiting) - {s})] or waiting[:1]  # a cycle: any will do
            order += ready
            waiting = [s for s in waiting if s not in ready]
        return order

    @cached_property
    def storing(self) -> frozenset[Subtask]:
        """Subtasks with stored checkpoints; the records are read once for it."""
        return self._records.subtasks_that_store()

    def _operators(self) -> list[Subtask]:
        """Subtasks that come back by their queues: it is of their own making, and they store no checkpoints.

        A source's queue is a topic that others have written. An operator with checkpoints restarts from those, and
        its queue is what it has put out.
        """
        sources = {row["name"] for row in self._manifest.get("operators", []) if row.get("kind") == "source"}
        stored = self.storing
        return [s for s in self._eventual.queues if s.operator not in sources and s not in stored]

    def channels(self) -> list[Channel]:
        """Return the channels that the manifest names."""
        parsed = (parse_channel(row["channel"]) for row in self._manifest.get("channels", []))
        return [channel for channel in parsed if channel is not None]

    def _restart(self, subtask: Subtask, below: Mapping[str, int], as_of: int | None) -> QueueRestart:
        found = self._eventual.reconstruct(self._eventual.queues[subtask], below=below, as_of=as_of)
        found, replay, told = self._eventual.with_replay(found)
        return QueueRestart(found._replace(findings=(*found.findings, *told)), replay, below)

    def _incoming(self, restart: QueueRestart) -> dict[str, str]:
        """Channels into an operator, and the name under which its records count each."""
        log, subtask = restart.found.judged.log, restart.found.queue.subtask
        own = [name for name in log.channels if parse_channel(name) is not None]
        if own:
            return {name: name for name in own}
        channels = [str(c) for c in self.channels() if c.receiver == subtask]
        return {channels[0]: ""} if len(channels) == 1 and log.channels == ("",) else {}

    def _fixed(self, restarts: Mapping[Subtask, QueueRestart], final: bool) -> Fixed:
        """Where the operators with queues stand: they have sent all that their queues hold.

        What they have taken is weighed by `_lower`; in the `final` line they have received what is not replayed.
        """
        sent, received = {}, {}
        stored = self._records.subtasks_with_checkpoints()
        names = set()
        for subtask, restart in restarts.items():
            log = restart.found.judged.log
            last = 0 if restart.below else ENDLESS
            if len(log) and log.pos[-1] != UNKNOWN:
                last = int(log.pos[-1]) + 1
            for channel in self.channels():
                if channel.sender == subtask and (channel.receiver in stored or channel.receiver in restarts):
                    sent[str(channel)] = last
                    names.add(str(channel))
            for name, own in self._incoming(restart).items():
                sender = parse_channel(name)
                if sender is not None and sender.sender in stored:
                    received[name] = _replay_from(restart, own) if final else 0
                    names.add(name)
        return Fixed(tuple(sorted(restarts)), tuple(sorted(names)), sent, received)

    def _lower(self, restarts: Mapping[Subtask, QueueRestart], planned: Planned) -> dict[Subtask, dict[str, int]]:
        """Where each queue must be cut so that nothing taken from a sender that fell back is left."""
        history = planned.evidence.history
        limits = dict(zip(history.channels, history.sent_of(planned.line).tolist(), strict=True))
        found: dict[Subtask, dict[str, int]] = {}
        for subtask, restart in restarts.items():
            log = restart.found.judged.log
            cut = dict(restart.below)
            for name, own in self._incoming(restart).items():
                taken = int(log.input[-1, log.channels.index(own)]) if len(log) and own in log.channels else UNKNOWN
                if taken >= limits.get(name, ENDLESS):
                    cut[own] = limits[name]
            found[subtask] = cut
        return found

    def _draft(
        self,
        command: str,
        question: Question,
        restarts: Mapping[Subtask, QueueRestart],
        planned: Planned | None = None,
    ) -> Draft[RecoveryLine]:
        """The whole answer, before its verdict."""
        findings = [f for restart in restarts.values() for f in restart.found.findings]
        inputs: list[InputUsed] = []
        if planned is not None:
            findings += planned.evidence.findings
            inputs += planned.evidence.inputs
        inputs += [used for queue in self._eventual.queues.values() for used in queue.inputs()]
        result = self._line(restarts, planned)
        lost = any(restart.found.proof == "lost" for restart in restarts.values())
        nothing = planned is not None and all(e.state == "initial" for e in result.line)
        missing = self._without_queue(result, question)
        findings += missing
        unsure = bool(missing) or lost or (planned is not None and planned.evidence.indeterminate)
        action = of_line(result, findings, unsure, str(self._manifest.get("job", "")))
        result = replace(result, runs=(action,))
        return Draft(
            command,
            result,
            findings,
            inputs,
            unrecoverable=nothing or not result.consistent,
            indeterminate=unsure,
        )

    def _without_queue(self, line: RecoveryLine, question: Question) -> list[Finding]:
        """Report subtasks of which neither a queue nor a checkpoint is here, as far as what restarts needs them."""
        known = {Subtask(e.operator, e.subtask) for e in line.line if e.state != "initial"} | set(self._eventual.queues)
        missed = [*missed_queues(self._manifest, self.channels(), known | self.storing)]
        if question.failed or (self._manifest.get("failed") and not question.everything):
            lost = self._lost(question)
            needed = lost | {c.sender for c in self.channels() if c.receiver in lost}
            missed = [(subtask, promised) for subtask, promised in missed if subtask in needed]
        return no_queue_of(missed)

    def _line(self, restarts: Mapping[Subtask, QueueRestart], planned: Planned | None) -> RecoveryLine:
        base = planned.result if planned is not None else _NOTHING
        entries = {Subtask(e.operator, e.subtask): e for e in base.line}
        for subtask in self._operators():
            entries[subtask] = _entry(subtask, restarts.get(subtask))
        replays = {name: list(rows) for name, rows in itertools.groupby(base.channels, key=lambda row: row.channel)}
        for restart in restarts.values():
            last = {name: rows[-1] for name, rows in replays.items()}
            replays |= {r.channel: [r] for r in self._replays(restart, last)}
        sources = [s for restart in restarts.values() for s in _sources(restart)]
        return replace(
            base,
            protocol="eventual" if planned is None else "mixed" if self._operators() else base.protocol,
            line=tuple(entries[s] for s in sorted(entries)),
            channels=tuple(row for name in sorted(replays) for row in replays[name]),
            sources=(*base.sources, *sources),
            notes=(
                *base.notes,
                *(_note(number, s, r) for number, (s, r) in enumerate(restarts.items(), 1)),
                *(_output_note(s) for s in sorted(self.storing & set(self._eventual.queues))),
            ),
            details={"eventual": [_detail(s, r) for s, r in restarts.items()]},
        )

    def _replays(self, restart: QueueRestart, known: Mapping[str, ReplayRange]) -> list[ReplayRange]:
        """What is replayed into an operator, by channel."""
        log = restart.found.judged.log
        rows = []
        offsets = {u.channel: u for u in restart.replay.upstream}
        for name, own in self._incoming(restart).items():
            start = _replay_from(restart, own)
            taken = int(log.input[-1, log.channels.index(own)]) + 1 if len(log) else start
            offset = offsets.get(name)
            ends = [taken, known[name].replay_to if name in known else 0, (offset and offset.end) or 0]
            lost = any(f.id == "retention-hole" for f in restart.found.findings)
            messages, size, held = (None, None, None)
            if offset is not None:
                messages, size, held = offset.tuples, offset.bytes, not lost
            elif name in known:
                messages, size, held = known[name].messages, known[name].bytes, known[name].retained
            rows.append(
                ReplayRange(
                    channel=name,
                    replay_from=start,
                    replay_to=max(ends),
                    messages=messages,
                    bytes=size,
                    retained=held,
                )
            )
        return rows


def _works(restarts: Mapping[Subtask, QueueRestart], planned: Planned | None) -> Works:
    return queue_works({s: (r.found, r.replay) for s, r in restarts.items()}, planned)


_NOTHING = RecoveryLine(
    consistent=True,
    protocol="eventual",
    line=(),
    channels=(),
    sources=(),
    rolled_back=(),
    useless=(),
    steps=(),
    domino=False,
)


def _replay_from(restart: QueueRestart, own: str) -> int:
    """T on one channel, by number."""
    judged = restart.found.judged
    return 0 if judged.at is None else max(int(judged.at[judged.log.channels.index(own)]), 0)


def _entry(subtask: Subtask, restart: QueueRestart | None) -> LineEntry:
    entry = partial(LineEntry, operator=subtask.operator, subtask=subtask.subtask, checkpoint=None)
    if restart is None:
        return entry(time=None, uri=None, rolled_back=False, state="current")
    log = restart.found.judged.log
    last = len(log) - 1
    time = int(log.ts[last]) if len(log) else None
    place = f"{log.paths[log.file[last]]}:{int(log.offset[last])}" if len(log) else None
    return entry(time=time, uri=place, rolled_back=bool(restart.below), state="eventual")


def _sources(restart: QueueRestart) -> list[SourceOffset]:
    """Inputs that are no channel of this run: sources, by the name that the records count them under."""
    judged, subtask = restart.found.judged, restart.found.queue.subtask
    if not len(judged.log):
        return []
    ends = judged.log.input[-1].tolist()
    return [
        SourceOffset(
            source=name,
            offset=_replay_from(restart, name),
            operator=subtask.operator,
            subtask=subtask.subtask,
            replay_to=end + 1,
        )
        for name, end in zip(judged.log.channels, ends, strict=True)
        if name and parse_channel(name) is None
    ]


def _detail(subtask: Subtask, restart: QueueRestart) -> dict[str, Any]:
    judged = restart.found.judged
    return {
        "operator": subtask.operator,
        "subtask": subtask.subtask,
        "open_windows": judged.open_windows,
        "T": judged.ts,
        "T_input": restart.replay.from_input,
        "tuples": restart.replay.tuples,
        "proof": restart.found.proof,
        "cut": dict(restart.below) or None,
    }


def _note(number: int, subtask: Subtask, restart: QueueRestart) -> str:
    """One step of the plan, in the order in which the steps are taken."""
    judged, replay = restart.found.judged, restart.replay
    since = "the start of its input" if judged.ts is None else f"timestamp {judged.ts}"
    if isinstance(replay.from_input, int):
        since = f"input {replay.from_input}"
    elif replay.from_input:
        since = ", ".join(f"{name} {n}" for name, n in replay.from_input.items())
    count = "" if replay.tuples is None else f" ({replay.tuples:,} tuple{'s' if replay.tuples != 1 else ''})"
    cut = ""
    if restart.below and len(judged.log):
        cut = f", as of record {int(judged.log.pos[-1])}: truncate its queue after it"
    windows = f"load {many(len(judged.open), 'window', grouped=True)}" if len(judged.open) else "nothing to load"
    doubt = _DOUBT[restart.found.proof]
    return f"step {number}: {subtask}: {windows}, replay from {since} inclusive{count}{cut}{doubt}"


def _output_note(subtask: Subtask) -> str:
    """An operator whose queue does not bring it back."""
    return (
        f"{subtask} restarts from its checkpoint: its queue is what it has put out, its state is not taken from there"
    )


_DOUBT = {
    "proven": "",
    "after-replay": "; only after it is the state exact, for records are missing",
    "lost": "; part of the state is LOST",
}

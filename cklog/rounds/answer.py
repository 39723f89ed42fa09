"""The answer of `rounds`: the most recent complete round, where the newest hangs, and what a restart takes.

A round counts as complete by its checkpoint records alone, as for `recovery-line` (`cklog.lines.rounds`), so that both
name the same line. After a burst failure a checkpoint of which every copy went with a failed node is not there either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cklog.engine.reading import Reading
from cklog.errors import NotFound
from cklog.history.history import History
from cklog.history.tokens import TokenLog, TokensRead, read_tokens, token_log
from cklog.inputs.offers import OffersRecords
from cklog.lines.entries import line_entries
from cklog.lines.replay_ranges import sources_of
from cklog.lines.rounds import HistoryRounds, last_round, round_numbers, rounds_of, unknown_subtasks
from cklog.lines.search import no_initial_line
from cklog.model.findings import Finding
from cklog.model.lines import LineEntry, SourceOffset
from cklog.model.names import Subtask
from cklog.model.question import Question
from cklog.model.verdict import FLAWS, Draft
from cklog.model.wording import among, first_few, many
from cklog.rounds.burst import Copies, NodeLoad, Placement, SubtaskRestart, loads, placement_of, restarts
from cklog.rounds.hangs import Hang, hangs_of
from cklog.rounds.token_rounds import Individual, TokenRound, TokenRounds, Variant, with_tokens
from cklog.rounds.tuples import PreservedTuples, RoundCut, SavedTuples, Tuples, known_sent, sources_of_job, tuples_of
from cklog.runs.records.evidence import Evidence
from cklog.runs.records.reading import RecordReader, subtasks_named

_NAMED = 5
"""So many of a list are named in a message."""


@dataclass(frozen=True, slots=True)
class RoundsQuestion:
    """What `rounds` is asked.

    `round` is the one whose individual checkpoints are listed, None: the one to restart from, and the newest. The
    `failed_nodes` are gone, with their disks. Records later than `as_of`, in ms, do not count.
    """

    round: int | None = None
    failed_nodes: tuple[str, ...] = ()
    as_of: int | None = None


@dataclass(frozen=True, slots=True)
class RoundsAnswer:
    """The answer of `rounds`.

    Attributes
    ----------
    round, completed : the most recent complete one that can be read, and when it was complete, in ms; None: everything
        goes back to its initial state
    variant : by which it, or the newest round that shows one, was made
    bytes : to read for the restart; None: not all known
    tokens : whether any are logged
    rounds : every round
    shown : the rounds whose checkpoints are `individual`, and what keeps the incomplete ones of them in `hangs`
    saved, preserved, sources : what goes with the round to restart from
    line, restart, nodes : where each subtask restarts, from which checkpoint, and what each node has to do
    """

    round: int | None
    completed: int | None
    variant: Variant | None
    bytes: int | None
    tokens: bool
    rounds: tuple[TokenRound, ...]
    shown: tuple[int, ...]
    individual: tuple[Individual, ...]
    hangs: tuple[Hang, ...]
    saved: tuple[SavedTuples, ...]
    preserved: tuple[PreservedTuples, ...]
    sources: tuple[SourceOffset, ...]
    line: tuple[LineEntry, ...]
    restart: tuple[SubtaskRestart, ...]
    nodes: tuple[NodeLoad, ...]
    notes: tuple[str, ...] = ()


class ReaderWithTokens(RecordReader):
    """Reads records and knows of the subtasks and channels that only token events name, too."""

    def __init__(self, tables: OffersRecords, reading: Reading, tokens: TokensRead) -> None:
        super().__init__(tables, reading)
        self._tokens = tokens

    def named(self) -> tuple[list[Subtask], list[str]]:
        """Return the subtasks and channels that any record names, and those of token events."""
        known, channels = super().named()
        return [*known, *self._tokens.subtasks()], [*channels, *self._tokens.channels()]


def rounds_answer(tables: OffersRecords, reading: Reading, asked: RoundsQuestion) -> Draft[RoundsAnswer]:
    """Read the records and tokens of a run, and draft the answer of `cklog rounds`.

    Raises
    ------
    NotFound : no round at all, not the one asked for, or no such node
    """
    read = read_tokens(tables, reading, asked.as_of)
    evidence = ReaderWithTokens(tables, reading, read).evidence_of(Question(as_of=asked.as_of, everything=True))
    found = RestartFromRound(evidence, read, tables, asked)
    tuples = found.tuples(reading)
    result = found.result(tuples)
    findings = [*evidence.findings, *read.findings, *found.findings, *tuples.findings]
    unproven = unknown_subtasks(findings, tables.manifest)
    return Draft(
        "rounds",
        result,
        [*findings, *unproven],
        [*evidence.inputs, *read.inputs, *tuples.inputs],
        unrecoverable=found.place < 0,
        indeterminate=bool(unproven) or found.in_doubt,
    )


class RestartFromRound:
    """The rounds of a run and the restart from one of them, after a burst failure or without one.

    `place` is that round among all, -1 for none; `findings` are those met so far; `in_doubt` says that the records lack
    what the answer rests on.
    """

    def __init__(self, evidence: Evidence, read: TokensRead, tables: OffersRecords, asked: RoundsQuestion) -> None:
        self._evidence, self._read, self._tables, self._asked = evidence, read, tables, asked
        records, history = evidence.records, evidence.history
        rounds = with_tokens(rounds_of(records, evidence.built), read.rounds(), len(history.subtasks))
        if not len(rounds.number):
            message = "no coordinated checkpoint and no token of a round is here"
            raise NotFound(message, "records of rounds have kind coordinated; cklog recovery-line needs none")
        self._log: TokenLog = token_log(read, history, rounds.number)
        self._of = TokenRounds(records, history, rounds, self._log)
        self._placement, self.findings = placement_of(history.subtasks, tables.manifest, self._log, asked.failed_nodes)
        self._copies = Copies(
            records=records,
            placement=self._placement,
            log=self._log,
            number=round_numbers(records),
            rounds=rounds.number,
        )
        self.place = self._newest_readable(rounds)
        self._line = rounds.line[self.place] if self.place >= 0 else np.zeros(len(history.subtasks), np.int64)
        if self.place < 0:
            self.findings += no_initial_line(history)
        self.findings += [*self._unrecorded_checkpoints(), *self._misplaced_tokens()]
        self._restart = restarts(evidence.built, self._line, self._copies, self._placement, self._failed_subtasks())
        doubts = self._doubts_of_failure()
        self.findings += doubts
        self.in_doubt = bool(doubts)

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, sorted."""
        return self._placement.nodes

    @property
    def number(self) -> int | None:
        """The round to restart from; None: there is none."""
        return int(self._of.rounds.number[self.place]) if self.place >= 0 else None

    @property
    def completed(self) -> int | None:
        """When that round was complete, in ms; None: not known, or there is none."""
        return self._of.rows()[self.place].last_time if self.place >= 0 else None

    @property
    def complete_rounds(self) -> int:
        """How many complete rounds there are up to the one to restart from."""
        return sum(row.state != "incomplete" for row in self._of.rows()[: self.place + 1])

    def loads(self) -> list[NodeLoad]:
        """Return what each node has to do."""
        return loads(self._restart, self._placement)

    def unreachable_of(self, place: int) -> tuple[str, ...]:
        """Return the subtasks of which the checkpoint of a round went with failed nodes."""
        if place < 0:
            return ()
        history, built = self._evidence.history, self._evidence.built
        rows = built.row[history.first[:-1] + self._of.rounds.line[place]].tolist()
        return tuple(str(history.subtasks[i]) for i, row in enumerate(rows) if self._copies.lost(row))

    def _newest_readable(self, rounds: HistoryRounds) -> int:
        """Return the place of the last complete round of which every checkpoint can be read, -1 for none.

        Adds a finding for each newer one that is passed over.
        """
        built = self._evidence.built
        line = rounds.line.copy() if self._placement.failed else rounds.line
        while True:
            place, findings = last_round(built.history, HistoryRounds(rounds.number, line))
            rows = built.row[built.history.first[:-1] + line[place]].tolist() if self._placement.failed else []
            gone = [i for i, row in enumerate(rows) if place >= 0 and self._copies.lost(row)]
            if not gone:
                self.findings += findings
                return place
            line[place, gone] = -1
            self.findings.append(
                _unreachable_checkpoints(built.history, int(rounds.number[place]), gone, self._placement)
            )

    def _failed_subtasks(self) -> frozenset[int]:
        """Return the subtasks that are down though their nodes are not: all, if it is not said which."""
        subtasks = self._evidence.history.subtasks
        names = self._tables.manifest.get("failed", [])
        if not (names or self._placement.failed):
            return frozenset(range(len(subtasks)))
        index = {subtask: i for i, subtask in enumerate(subtasks)}
        return frozenset(index[s] for name in names for s in subtasks_named(name, subtasks))

    def _doubts_of_failure(self) -> list[Finding]:
        """Name subtasks of which it is not known where they ran, or whether their checkpoints went with their nodes."""
        if not self._placement.failed:
            return []
        found = []
        homeless = [f"{r.operator}/{r.subtask}" for r in self._restart if r.node is None]
        if homeless:
            message = f"nothing tells on which nodes {first_few(homeless, _NAMED)} ran: counted as lost"
            found.append(Finding("unknown-placement", "warning", homeless[0], message))
        down = [r for r in self._restart if r.fate == "restarts elsewhere" and r.read_from == "unknown"]
        if down:
            names = [f"{r.operator}/{r.subtask}" for r in down]
            whose = first_few(names, _NAMED)
            message = f"nothing tells whether the checkpoints of {whose} were stored outside the failed nodes"
            found.append(Finding("unknown-store", "warning", names[0], message))
        return found

    def _unrecorded_checkpoints(self) -> list[Finding]:
        """Name checkpoints that the system log calls stored and of which no record is here."""
        lost = self._of.unrecorded()
        if not lost:
            return []
        history, numbers = self._evidence.history, self._of.rounds.number
        place, i = lost[-1]
        message = (
            f"the system log tells of {many(len(lost), 'stored checkpoint')} that no record in checkpoints/ tells of, "
            f"{among(len(lost), f'round {numbers[place]} of {history.subtasks[i]}')}: "
            f"{'it does' if len(lost) == 1 else 'they do'} not count"
        )
        return [Finding("unrecorded-checkpoint", "warning", str(history.subtasks[i]), message)]

    def _misplaced_tokens(self) -> list[Finding]:
        """Name channels on which a checkpoint of the round to restart from does not stand where its token stood."""
        if self.place < 0:
            return []
        history = self._evidence.history
        received = history.received_of(self._line)
        key = self.place * len(history.src) + np.arange(len(history.src))
        found = []
        for passed in (self._log.received, self._log.sent):
            seq = passed.seq_of(key)
            found += np.flatnonzero((seq >= 0) & (seq != received)).tolist()
        if not found:
            return []
        k = found[0]
        message = (
            f"round {self._of.rounds.number[self.place]}: by its checkpoint {history.subtasks[history.dst[k]]} had "
            f"received {many(int(received[k]), 'message')} of {history.channels[k]}, and the token did not stand "
            f"there, on {many(len(set(found)), 'channel')} in all: not aligned, or a log is wrong"
        )
        return [Finding("misplaced-token", "warning", history.channels[k], message)]

    def tuples(self, reading: Reading) -> Tuples:
        """Find the tuples that go with the round, in the channel logs."""
        history, built = self._evidence.history, self._evidence.built
        sources = sources_of_job(history, self._tables.manifest)
        known = known_sent(history, built.newest_sent, self._log)
        cut = RoundCut(place=self.place, line=self._line, sources=sources, known=known, as_of=self._asked.as_of)
        own = {Subtask(s.operator, s.subtask) for s in self._sources()}
        offsets = frozenset(i for i, subtask in enumerate(history.subtasks) if subtask in own)
        return tuples_of(self._tables, reading, history, cut, self._log, offsets)

    def _sources(self) -> list[SourceOffset]:
        return sources_of(self._evidence.records, self._evidence.history, self._line, self._tables.manifest)

    def result(self, tuples: Tuples) -> RoundsAnswer:
        """Return the whole answer."""
        evidence, rows, shown = self._evidence, self._of.rows(), self._places_shown()
        incomplete = [p for p in shown if rows[p].state == "incomplete"]
        sizes = [row.bytes for row in self._restart]
        return RoundsAnswer(
            round=self.number,
            completed=self.completed,
            variant=self._of.variant_of(self.place),
            bytes=None if None in sizes else sum(size or 0 for size in sizes),
            tokens=self._log.logged,
            rounds=tuple(rows),
            shown=tuple(rows[p].round for p in shown),
            individual=tuple(row for p in shown for row in self._of.individual(p, self._size_of)),
            hangs=tuple(hang for p in incomplete for hang in hangs_of(self._of, p)),
            saved=tuples.saved,
            preserved=tuples.preserved,
            sources=tuple(self._sources()),
            line=line_entries(evidence.records, evidence.built, self._line),
            restart=tuple(self._restart),
            nodes=tuple(loads(self._restart, self._placement)) if self._placement.nodes else (),
            notes=self._notes(),
        )

    def _size_of(self, row: int) -> int | None:
        """Return the bytes of the checkpoint at a row of the history."""
        return self._copies.own_size(int(self._evidence.built.row[row]))

    def _places_shown(self) -> list[int]:
        """Return the places of the rounds whose individual checkpoints are listed."""
        numbers = self._of.rounds.number
        if self._asked.round is None:
            return sorted({self.place, len(numbers) - 1} - {-1})
        place = np.flatnonzero(numbers == self._asked.round).tolist()
        if not place:
            there = ", ".join(str(n) for n in numbers[-8:].tolist())
            raise NotFound(f"--round {self._asked.round}: no such round", f"the last ones are {there}")
        return place

    def _notes(self) -> tuple[str, ...]:
        damaged = any(f.id in FLAWS and f.subject.startswith("system/") for f in self._read.findings)
        if not (damaged and self._log.logged):
            return ()
        return ("records of the system log are lost: a token that is told missing may have come",)


def _unreachable_checkpoints(history: History, number: int, gone: list[int], placement: Placement) -> Finding:
    names = [str(history.subtasks[i]) for i in gone]
    message = (
        f"round {number} is complete, but the only copies of {first_few(names, _NAMED)} lie on failed nodes "
        f"({first_few(sorted(placement.failed), _NAMED)}): an older round is taken; bring their disks back to use it"
    )
    return Finding("unreachable-checkpoint", "error", f"round {number}", message, effect="older-line")

"""Did a communication-induced protocol keep its promise? Its logged index must rise along every zigzag path.

Two rules, the first of which implies the second. *Along messages* (BCS [1]_): no message is received in an interval
of a lower index than the one it was sent in, and every checkpoint's index is above that of the one before. *Along
zigzag paths* (the property by which HMNR [2]_ and its kin exclude Z-cycles): if a zigzag path leads from checkpoint
A to B, index(A) < index(B). A history without Z-cycles can be numbered in such a way, so an index that breaks both
rules has not been computed as its protocol says, or the log is wrong.

.. [1] D. Briatico, A. Ciuffoletti, L. Simoncini, "A distributed domino-effect free recovery algorithm", SRDS 1984.
.. [2] J.-M. Hélary, A. Mostéfaoui, R. Netzer, M. Raynal, "Communication-based prevention of useless checkpoints in
   distributed computations", Distributed Computing 13(1), 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from cklog.arrays.types import Ints, Mask
from cklog.errors import NotFound, SelfCheckFailed
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import BuiltHistory
from cklog.lines.entries import zigzag_message
from cklog.lines.sentences import checkpoint_name, message_words
from cklog.model.findings import Finding
from cklog.model.names import CheckpointId
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.zigzag import AuditResult, IndexBreach
from cklog.runs.records.reading import RecordReader
from cklog.zigzag.intervals import greatest_before, staircases
from cklog.zigzag.paths import Hop, Zigzags


@dataclass(frozen=True, slots=True)
class Breach:
    """A checkpoint `end` (row) whose index is not above that of `start`, though a zigzag path leads there.

    `hops` is a shortest such path; empty if `end` merely follows `start` in its subtask.
    """

    start: int
    end: int
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class IndexAudit:
    """The outcome of an audit, by rows.

    `rule` is the strictest that holds. Of `messages` non-dominated ones `falling` go to an interval of a lower index.
    `breaches` are one per checkpoint that breaks the rule of zigzag paths, the first ones; `broken` counts them all.
    `by_message` is the first message that breaks the rule of messages.
    """

    rule: Literal["messages", "zigzag paths", "none"]
    messages: int
    falling: int
    by_message: Hop | None
    broken: int
    breaches: tuple[Breach, ...]


def audit_answer(reader: RecordReader, question: Question, most: int) -> Draft[AuditResult]:
    """Audit the logged indices of a run: a finding for each checkpoint whose index does not rise, up to `most`.

    Raises
    ------
    NotFound : no checkpoint record has an index
    """
    evidence = reader.evidence_of(question)
    index, known = logged_index(evidence.records, evidence.built)
    if not known.any():
        raise NotFound("no checkpoint record has an index: there is nothing to audit", "see cklog z-cycles")
    history = evidence.history
    audit = index_audit(history, index, known, most)
    result = AuditResult(
        rule=audit.rule,
        indexed=int(np.count_nonzero(known)),
        not_indexed=int(np.count_nonzero(~known & (history.label > 0))),
        messages=audit.messages,
        falling=audit.falling,
        by_message=None if audit.by_message is None else zigzag_message(history, audit.by_message),
        broken=audit.broken,
        breaches=tuple(_breach_by_number(history, index, breach) for breach in audit.breaches),
    )
    return evidence.joined(map(_breach_finding, result.breaches)).draft("audit-cic", result)


def logged_index(records: CheckpointRecords, built: BuiltHistory) -> tuple[Ints, Mask]:
    """Return the index of every row, and where a record states it; elsewhere that of the row before, 0 at first.

    Both have shape (first[n],). E.g. of one subtask, stated [none, 4, none, 7] → [0, 4, 4, 7].
    """
    stated = pc.fill_null(records.table["index"], -1).to_numpy()
    index = np.where(built.row >= 0, np.append(stated, -1)[built.row], -1)
    first = built.history.first[:-1]
    known = (index >= 0) & (built.history.label >= 0)
    index[first] = np.maximum(index[first], 0)
    rows = np.arange(len(index))
    # The last row at or before each one that states its index; a subtask's first row stops it from going to another.
    latest = np.maximum.accumulate(np.where(known | np.isin(rows, first), rows, 0))
    return index[latest], known


def _breach_by_number(history: History, index: Ints, breach: Breach) -> IndexBreach:
    """Return a breach by checkpoint numbers instead of rows."""
    return IndexBreach(
        start=_checkpoint_of_row(history, breach.start),
        start_index=int(index[breach.start]),
        end=_checkpoint_of_row(history, breach.end),
        end_index=int(index[breach.end]),
        path=tuple(zigzag_message(history, hop) for hop in breach.hops),
    )


def _checkpoint_of_row(history: History, row: int) -> CheckpointId:
    operator, subtask = history.subtasks[int(np.searchsorted(history.first, row, "right")) - 1]
    return CheckpointId(operator, subtask, int(history.label[row]))


def _breach_finding(breach: IndexBreach) -> Finding:
    start, end = checkpoint_name(breach.start), checkpoint_name(breach.end)
    path = "; ".join(message_words(message) for message in breach.path) or "it comes later in the same subtask"
    message = (
        f"{end} has index {breach.end_index}, not above {breach.start_index} of {start}, from which a Z-path leads: "
    )
    return Finding("index-falls", "error", end, message + path, effect="none")


def index_audit(history: History, index: Ints, known: Mask | None = None, most: int = 10) -> IndexAudit:
    """Hold the index of every row of `history.label` against both rules.

    Parameters
    ----------
    index : shape (first[n],); of rows that state none, and of current states, that of the row before
    known : the rows whose index is stated, and must rise; default: all
    most : breaches to give a path for

    Notes
    -----
    The first rule takes one scan of the non-dominated messages, the others follow from them; only if it fails is
    the second one looked at: O((rows + pairs) log rows), and a search for each path.
    """
    points = staircases(history)
    sender = history.first[history.src[points.channel]] + points.send
    received = np.maximum(points.receive, 0)  # before checkpoint 0, whose own index is held against nothing
    receiver = history.first[history.dst[points.channel]] + received
    falling = np.flatnonzero((index[sender] > index[receiver]) & (points.receive >= 0))
    # The rows that follow another one of their subtask; current states, which have no index, are left out.
    last = history.first[1:] - 1 - history.survivor
    follows = np.setdiff1d(
        np.arange(len(history.label)), np.concatenate([history.first[:-1], last[history.survivor] + 1])
    )
    follows = follows if known is None else follows[known[follows]]
    flat = follows[index[follows] <= index[follows - 1]]
    if not len(falling) and not len(flat):
        return IndexAudit(rule="messages", messages=len(points.send), falling=0, by_message=None, broken=0, breaches=())
    search = Zigzags(history, points)
    first = search.hop(int(falling[0])) if len(falling) else None
    highest = greatest_before(history, index, earliest=0)
    broken = follows[highest[follows - 1] >= index[follows]]
    breaches = tuple(_breach_at(history, search, index, int(row)) for row in broken[:most].tolist())
    rule: Literal["zigzag paths", "none"] = "none" if len(broken) else "zigzag paths"
    return IndexAudit(
        rule=rule,
        messages=len(points.send),
        falling=len(falling),
        by_message=first,
        broken=len(broken),
        breaches=breaches,
    )


def _breach_at(history: History, search: Zigzags, index: Ints, row: int) -> Breach:
    """Find the shortest zigzag path to `row` from a checkpoint whose index is not below its own.

    An earlier checkpoint of the same subtask needs no path. E.g. with indices [0, 3, 2] of one subtask, row 2: from
    row 1, no messages.
    """
    owner = int(np.searchsorted(history.first, row, "right")) - 1
    own, high = int(history.first[owner]), index >= index[row]  # the subtask's first row; rows that may be a start
    if high[own:row].any():
        return Breach(own + int(np.flatnonzero(high[own:row])[-1]), row, ())
    found = search.path_from_any(high, (owner, row - own))
    if found is None:
        raise SelfCheckFailed(f"no zigzag path to row {row}, which a higher index reaches")
    sender = int(history.first[history.src[found[0].channel]])
    start = sender + int(np.flatnonzero(high[sender : sender + found[0].send + 1])[-1])
    return Breach(start, row, tuple(found))

"""Where source connectors resume: the line of their partitions, what is here, and checks of a given line.

A partition of a connector's source is the unit: it resumes at the newest offset that counts. Its number on the line is
that of the record in the topic, or the place of the entry in a file. Connectors say nothing of one another.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import TypedDict

from cklog.errors import NotFound, UsageError
from cklog.inputs.connectors import StoredOffset
from cklog.inputs.offers import OffersConnectors
from cklog.inputs.partitions import UNREAD
from cklog.kafka_logs.logs import PartitionLogs
from cklog.model.actions import RunAction, action_of
from cklog.model.checks import Check, Verification, hides_newer, refutations, unless_hidden, verification
from cklog.model.findings import Finding
from cklog.model.inspection import Inspection
from cklog.model.lines import LineEntry, RecoveryLine, SourceOffset
from cklog.model.question import Question
from cklog.model.unchecked import Unchecked, unchecked_by
from cklog.model.verdict import FLAWS, Draft
from cklog.model.wording import agreeing, many
from cklog.runs.connectors.judged import Judged, row_of
from cklog.runs.connectors.judging import OffsetJudge


class OffsetStoreRow(TypedDict):
    """A topic or file of offsets: its connectors, their partitions, and how many entries newer ones replace."""

    store: str
    form: str
    connectors: int
    partitions: int
    deleted: int
    older: int


class ConnectorRow(TypedDict):
    """A partition of a connector's source: where it resumes, since when, and how many entries that one replaces."""

    connector: str
    number: int
    of: str
    system: str | None
    resumes: str
    snapshot: str | None
    older: int
    stored_time: int | None
    store: str


class ConnectorsInspection(Inspection):
    """What is here of connectors' offsets."""

    offset_stores: list[OffsetStoreRow]
    connectors: list[ConnectorRow]


class ConnectorOffsets:
    """The analyses of connectors' offsets; `logs` are the partitions of a broker that lie below PATH, if any do.

    `sources` : the partitions that connectors of the kind of MirrorMaker copy from, if they were given
    """

    def __init__(self, parser: OffersConnectors, logs: PartitionLogs | None, sources: PartitionLogs | None) -> None:
        self._name = parser.name
        self._judge = OffsetJudge(parser, logs, sources)

    def line(self, command: str, question: Question) -> Draft[RecoveryLine]:
        """Say where every partition of every connector resumes; `command` names the answer."""
        _refuse(question)
        judged, findings = self._judge.judge(question)
        runs = tuple(self._run_action(name, rows, findings) for name, rows in _by_run(judged).items())
        runs += tuple(self._lost_store(finding) for finding in findings if finding.id in _LOST_STORES)
        lost = any(finding.id in _LOST_STORES for finding in findings)
        result = RecoveryLine(
            action="undetermined" if lost else "restart",
            consistent=True,
            protocol="uncoordinated",
            line=tuple(_line_entry(one) for one in judged),
            channels=(),
            sources=tuple(_source(one) for one in judged),
            rolled_back=(),
            useless=(),
            steps=(),
            domino=False,
            notes=_NOTES,
            runs=runs,
            details={"headline": _headline(judged), "connectors": [row_of(one) for one in judged]},
        )
        nothing = bool(runs) and not any(one.resumes for one in judged)
        return Draft(
            command,
            result,
            findings,
            self._judge.stored.inputs,
            unrecoverable=nothing,
            indeterminate=any(one.undecided for one in judged) or _is_unsure(findings),
        )

    def inspect(self) -> Draft[ConnectorsInspection]:
        """Return the stores, and every connector's partitions."""
        judged, findings = self._judge.judge(Question())
        stores = [
            _store_row(name, [one.entry for one in judged if one.entry.store == name])
            for name in self._judge.stored.stores
        ]
        result: ConnectorsInspection = {
            "summary": f"{many(len(stores), 'store')} of offsets. {_headline(judged)}",
            "formats": [self._name],
            "offset_stores": stores,
            "connectors": [_partition_row(one) for one in judged],
        }
        return Draft("inspect", result, findings, self._judge.stored.inputs, indeterminate=_is_unsure(findings))

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        """Say whether connectors resume at the records of given numbers.

        Raises
        ------
        NotFound : no such partition of a connector
        UsageError : None, for a partition that has an offset
        """
        _refuse(question)
        judged, findings = self._judge.judge(question)
        known = {one.name: one for one in judged}
        checks: list[Check] = []
        for name, number in line.items():
            if name not in known:
                raise NotFound(f"{name}: no such connector's partition", f"there are {', '.join(known) or 'none'}")
            if number is None and known[name].resumes:
                raise UsageError(f"{name}: a connector that is down has no current state", "give a record's number")
            checks += _checks(known[name], number, maximal)
        found = [
            *findings,
            *refutations(checks, "line"),
        ]
        result = verification(unless_hidden(checks, hides_newer(findings)))
        return Draft(
            "verify", result, found, self._judge.stored.inputs, indeterminate=result.undecided or _is_unsure(findings)
        )

    def _run_action(self, name: str, mine: list[Judged], findings: Iterable[Finding]) -> RunAction:
        stores = {one.entry.store for one in mine}
        paths = {one.entry.where.path for one in mine}
        damaged = [
            f
            for f in findings
            if f.id in FLAWS
            and f.severity == "error"
            and any(p.path in paths or _in_store(p.path, stores) for p in f.where)
        ]
        gone = [one for one in mine if one.gone]
        resuming = [one for one in mine if one.resumes]
        again = [one.again for one in mine]
        counted = sum(count for count in again if count is not None)
        newest = max((one.entry.time for one in mine if one.entry.time is not None), default=None)
        return RunAction(
            run=name,
            path=posixpath.commonpath([_folder(one) for one in mine]) or ".",
            action=action_of(
                any(one.undecided for one in mine),
                nothing=not resuming,
                repair=bool(gone),
                older=bool(damaged),
            ),
            newest=_chosen(mine),
            newest_time=newest,
            chosen=_chosen([one for one in resuming if not one.gone]) if resuming else None,
            chosen_time=newest if resuming else None,
            note=_note(mine, gone, resuming),
            read_again=counted,
            reads_more=None in again,
            lost=0 if resuming and all(one.retained is not None and one.retained.held for one in resuming) else None,
            doubled=None if None in again else counted,
            unchecked=(
                *(_unchecked(one) for one in resuming if one.retained is None),
                *unchecked_by(f for f in findings if f.id in _OF_EVERY_CONNECTOR),
                *(Unchecked("log", f.subject, _HAS_ALL) for f in findings if f.id == "compacted-log-cut"),
            ),
        )

    def _lost_store(self, finding: Finding) -> RunAction:
        """What to do about a file of offsets that tells nothing any more."""
        cut = finding.id == "cut-offsets-file"
        return RunAction(
            run=finding.subject,
            action="start-over" if cut else "undetermined",
            note=("every connector of this worker starts over: " if cut else "")
            + "look for a copy of the file, or set offsets by Connect's offset API from what its topics have taken",
        )


_LOST_STORES = frozenset({"cut-offsets-file", "corrupt-offsets-file"})
_OF_EVERY_CONNECTOR = frozenset({"empty-file", "empty-offsets-partition", "missing-offsets-partition"})
"""Findings about stores that may have held an offset of any connector."""
_HAS_ALL = "the compacted log still has every record that counts"

_NOTES = ("a partition's number on the line is that of its record in the topic, or the place of its entry in a file",)


def _unchecked(one: Judged) -> Unchecked:
    """Return what was not checked because nothing gives the start of the source's log."""
    claim = f"the source of {one.name} still has the records after {one.position}"
    option = "--kafka FOLDER" if one.system == "kafka" else "--source-from NAME=POSITION"
    return Unchecked("source", one.name, claim, option)


def _in_store(path: str, stores: Iterable[str]) -> bool:
    """Whether a path is one of some files, or lies in a partition of one of some topics.

    >>> _in_store("kafka/offsets-12/0.log", ["other", "offsets"]), _in_store("a/connect.offsets", ["a/connect.offsets"])
    (True, True)
    >>> _in_store("kafka/offsets-12/0.log", ["kafka", "12"])
    False
    """
    return any(
        path == store or f"/{path}".rpartition("/")[0].rpartition("/")[2].rpartition("-")[0] == store
        for store in stores
    )


def _refuse(question: Question) -> None:
    """The questions that stored offsets cannot be asked."""
    if question.failed or question.at or question.as_of is not None or question.earliest or question.against:
        options = "--failed, --at, --as-of, --earliest and --against"
        raise UsageError(f"{options}: of each partition one offset is stored", "leave them out")


def _by_run(judged: Iterable[Judged]) -> dict[str, list[Judged]]:
    """The partitions of each connector; of one whose offsets were all deleted nobody knows whether it is there."""
    found: dict[str, list[Judged]] = {}
    for one in judged:
        found.setdefault(one.run, []).append(one)
    return {run: mine for run, mine in found.items() if not all(one.deleted for one in mine)}


def _is_unsure(findings: Iterable[Finding]) -> bool:
    unsure = UNREAD | {"corrupt-offsets-file", "ambiguous-offset"}
    return any(f.id in unsure or (f.id == "empty-offsets-partition" and f.severity == "error") for f in findings)


def _line_entry(one: Judged) -> LineEntry:
    return LineEntry(
        operator=one.run,
        subtask=one.number,
        checkpoint=one.entry.number if one.resumes else None,
        time=one.entry.time,
        uri=one.entry.where.path,
        rolled_back=False,
        state="stored" if one.resumes else "initial",
    )


def _source(one: Judged) -> SourceOffset:
    return SourceOffset(one.label, one.next, one.run, one.number)


def _chosen(judged: list[Judged]) -> str | None:
    if not judged:
        return None
    return judged[0].position if len(judged) == 1 else many(len(judged), "partition")


def _note(mine: list[Judged], gone: list[Judged], resuming: list[Judged]) -> str:
    if gone:
        then = (
            "it resumes at the log's first offset"
            if all(one.system == "kafka" for one in gone)
            else "it takes a new snapshot"
        )
        return (
            "the source no longer has the next records: restore its log, or stop the connector and delete its offset "
            f"with Connect's offset API (cklog replay --format connect-json writes the body): {then}"
        )
    if not resuming:
        return "no offset is stored, so the connector takes a new snapshot when it starts"
    return "start the workers again: each connector resumes on its own"


def _store_row(name: str, entries: list[StoredOffset]) -> OffsetStoreRow:
    return {
        "store": name,
        "form": entries[0].form if entries else "unknown",
        "connectors": len({entry.connector for entry in entries}),
        "partitions": len(entries),
        "deleted": sum(entry.offset is None for entry in entries),
        "older": sum(entry.older for entry in entries),
    }


def _partition_row(one: Judged) -> ConnectorRow:
    return {
        "connector": one.run,
        "number": one.number,
        "of": one.label,
        "system": one.system,
        "resumes": one.position,
        "snapshot": one.snapshot or None,
        "older": one.entry.older,
        "stored_time": one.entry.time,
        "store": one.entry.store,
    }


def _folder(one: Judged) -> str:
    """The folder that a partition's entry lies in, or that the topic's partitions lie in."""
    file = posixpath.dirname(one.entry.where.path)
    return posixpath.dirname(file) if one.entry.form == "topic" else file


def _checks(one: Judged, number: int | None, maximal: bool) -> list[Check]:
    """Return the checks of one partition's line; `number` None: it starts over."""
    entry = one.entry
    if number is None:
        told = f"{one.name} starts over: {one.position}"
        return [Check("restorable", None if one.undecided else True, told), *([Check("maximal", True, told)] * maximal)]
    at = "nothing counts" if entry.offset is None else f"entry {entry.number} does: {one.position}"
    same = number == entry.number and entry.offset is not None
    if one.gone and one.retained is not None:
        restorable = Check("restorable", False if same else None, f"{one.name}: {one.retained.because}")
    elif one.undecided:
        restorable = Check("restorable", None, f"{one.name}: cklog cannot tell whether the source has {one.position}")
    else:
        restorable = Check("restorable", True if same else None, f"of {one.name} {at}")
    checks = [restorable]
    if maximal:
        checks.append(Check("maximal", number >= entry.number, f"of {one.name} {at}"))
    return checks


def _headline(judged: list[Judged]) -> str:
    """Say in one sentence where connectors resume."""
    if not judged:
        return "No offset of any connector can be read."
    count = len({one.run for one in judged})
    gone = sum(one.gone for one in judged)
    anew = sum(not one.resumes for one in judged)
    on = len(judged) - gone - anew
    parts = [f"{on} of {many(len(judged), 'partition')} of {many(count, 'connector')} {agreeing(on, 'resume')}"]
    if anew:
        parts.append(f"{anew} {agreeing(anew, 'start')} over")
    if gone:
        parts.append(f"{gone} {agreeing(gone, 'have')} a position that the source no longer has")
    known = [one.again for one in judged if one.again is not None]
    if known:
        parts.append(f"{many(sum(known), 'record')} in topics {agreeing(sum(known), 'are')} produced again")
    return f"{', '.join(parts)}."

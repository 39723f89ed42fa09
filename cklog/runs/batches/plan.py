"""What a restart of a micro-batch query does: its line, the batch in flight, what that reads, and what is in the way.

The line is the newest batch with a commit that can be read, whose state every store can load. What was planned after
it runs again with exactly its stored range.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from cklog.inputs.batches import Batch, MetadataLogs, spark_version
from cklog.inputs.offers import OffersBatches
from cklog.inputs.pieces import ChainName, PiecesRead
from cklog.inputs.sink_files import SinkFiles
from cklog.inputs.stored_state import StateStoreRow, StoredState
from cklog.model.findings import Finding, InputUsed
from cklog.model.unchecked import Unchecked
from cklog.model.verdict import NOT_JUDGED
from cklog.runs.batches.connectors import judge_sources, read_elsewhere, sources_reach
from cklog.runs.batches.done import with_done_batches
from cklog.runs.batches.facts import Fact, seen, sorted_findings
from cklog.runs.batches.file_sink import Lacking, judge_sink
from cklog.runs.batches.judge import judge, judge_empty, later_facts
from cklog.runs.batches.offsets import SourceRange, log_offset
from cklog.runs.batches.repartitions import unfinished
from cklog.runs.batches.restart import Restart
from cklog.runs.batches.state_line import (
    broken_facts,
    chain_note,
    first_lacking,
    judge_state,
    other_state_facts,
    skipping_facts,
    state_notes,
)
from cklog.runs.batches.targets import (
    back_to,
    can_plan_afresh,
    continued,
    cut,
    has_state_ids,
    judge_target,
    names_states,
    without_repartition,
)

if TYPE_CHECKING:  # without --sink nothing of it is loaded
    from cklog.sink_tables.fitting import NamedTable

PLAN = "plan/0"
"""The plans of a query, as `--at` takes it beside the query: those of later batches are dropped."""


class BatchPlan(NamedTuple):
    """The recovery plan. `committed` is the line: the last batch that is done, -1 for none.

    `planned` is the batch in flight, which a restart runs again with its stored range. `sink` is the folder of the
    file sink, None if none was found; `sink_files` is what lies in it; `sink_has_planned` whether its log already lists
    the batch in flight.
    `lost_plans` are batches in flight whose plans are gone: they are planned afresh, perhaps with another range.
    `fails`: a restart of the query stops with an error, as the files are now; `skips`: it goes on, without batches
    that nothing says are done.

    `rolled_back` are newer committed batches whose state can no longer be loaded; `stores` a row for each operator's
    state stores; `unjudged` why nothing can be said of the state, or of a log, "" if all was judged; `remove` the files
    below PATH that going back to `committed` removes, on a copy; `remove_folders` the folders among them that go whole;
    `removed_to` the newest batch that it removes, None if none; `state_bytes` what loading the state of `committed`
    reads, None if that is not known. `asynchronous`: progress is tracked asynchronously or by a continuous trigger, so
    that batches after those that are here may have run; `continuous`: it is the latter. `begins`: the query was stopped
    in its first batch, so that nothing is lost. `names_operators`: commits name every operator with state, as of state
    checkpoint format 2. `plans_afresh`: the newest plan is damaged, and `remove` takes it out. `hidden_log`: the log of
    plans or of commits that could not be listed, "" for none; `uncounted`: because of it nothing is known of any batch.
    `version`: what the files show of Spark's version, and by what, "" for nothing. `proof`: what shows that the line is
    done where its commit is missing, "" where the commit is there. `elsewhere`: what a restart reads outside PATH.
    """

    query_id: str | None
    committed: int
    planned: int | None
    batches: tuple[Batch, ...]
    sources: tuple[SourceRange, ...]
    sink: str | None
    sink_has_planned: bool | None
    fails: bool
    restart: str
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]
    rolled_back: tuple[int, ...] = ()
    stores: tuple[StateStoreRow, ...] = ()
    unjudged: str = ""
    lost_plans: tuple[int, ...] = ()
    remove: tuple[str, ...] = ()
    remove_folders: tuple[str, ...] = ()
    removed_to: int | None = None
    state_bytes: int | None = None
    skips: bool = False
    asynchronous: bool = False
    begins: bool = False
    names_operators: bool = False
    plans_afresh: bool = False
    version: str = ""
    proof: str = ""
    elsewhere: tuple[Unchecked, ...] = ()
    hidden_log: str = ""
    uncounted: bool = False
    sink_files: SinkFiles | None = None
    continuous: bool = False

    @property
    def starts_over(self) -> bool:
        """Whether nothing is left but the initial state, although the query was further than its first batch."""
        return self.committed < 0 and not self.begins and not self.uncounted

    @property
    def unreachable(self) -> bool:
        """Whether `committed` is an older batch than was asked for."""
        return any(finding.id == "unreachable-batch" for finding in self.findings)


class _Asked(NamedTuple):
    """The batches that are asked about: `logs` without the others, which are left out or gone back from.

    `removed_to` is the newest batch that going back removes, None if nothing is removed.
    """

    logs: MetadataLogs
    removed_to: int | None
    facts: list[Fact]


def plan_of(
    parser: OffersBatches,
    as_of: int | None = None,
    at: int | None = None,
    check_contents: bool = False,
    tables: bool = False,
    drop_plans: bool = False,
    written: Sequence[NamedTable] = (),
) -> BatchPlan:
    """Find out what a restart does.

    Parameters
    ----------
    as_of : leave out batches planned after this time (ms since the epoch)
    at : plan to go back to this batch instead of the newest commit
    check_contents : check every block of state files that nothing else proves
    drop_plans : with `at`, do not run a batch in flight again, but drop its plan
    tables : whether the query's sinks are tables, which are asked what they make of a batch that runs again
    written : those of them that could be read

    Raises
    ------
    NotFound : there is no batch `at`. Damage is a finding, never raised
    """
    everything = parser.logs()
    if everything.hides(everything.commit_log.folder) or (everything.hidden_log and at is not None):
        return _blind_plan(parser, everything)

    def lacking(logs: MetadataLogs, version: int) -> str | None:
        return first_lacking(parser.state(logs, check_contents, needed=version), logs)

    everything = with_done_batches(parser, everything, written, partial(lacking, everything))
    asked = _batches_asked(everything, parser.has_state, as_of, at, drop_plans)
    state = parser.state(asked.logs, check_contents)
    judged = judge_state(state, asked.logs, lambda batch: sources_reach(parser, asked.logs, batch))
    facts = [*asked.facts, *judge(asked.logs), *broken_facts(state, judged)]
    if asked.logs.planned > asked.logs.committed + 1 and judged.batch == asked.logs.committed:
        ahead = parser.state(asked.logs, check_contents, needed=asked.logs.planned)
        facts += skipping_facts(ahead, judged, asked.logs, has_state_ids(asked.logs))
    lasting = other_state_facts(state, asked.logs, judged)  # they hold of whatever batch the query goes back to
    logs, removed_to = asked.logs, asked.removed_to
    rolled_back: tuple[int, ...] = ()
    if judged.batch < logs.committed:
        rolled_back = tuple(n for n, read in logs.commits.items() if n > judged.batch and read.flaw is None)
        facts += judge_sources(parser, logs, latest=False)[1]
        logs, removed_to = back_to(logs, judged.batch), max(everything.planned, everything.committed)
    logs = without_repartition(logs)
    sources, source_facts = judge_sources(parser, logs, latest=as_of is None)
    sink = judge_sink(
        parser,
        logs,
        sources,
        partial(lacking, logs),
        goes_back=removed_to is not None,
        is_today=as_of is None,
    )
    facts, lasting = seen(logs, facts), seen(logs, [*lasting, *judge(logs), *source_facts, *sink.facts])
    facts += lasting
    later = later_facts(everything, logs, removed_to is not None) if removed_to is not None or as_of is not None else []
    if as_of is not None and removed_to is None:
        later += _sink_today(parser, everything, partial(lacking, everything), facts)
    facts += later
    planned = logs.planned if logs.planned > logs.committed else None
    has = sink.newest >= planned if sink.folder is not None and planned is not None else None
    fails = any(fact.stops for fact in facts)
    left = facts if removed_to is None else lasting
    stuck = sink.stuck or any(fact.stops and not fact.remove for fact in left)
    blocked = removed_to is not None and stuck
    removed = [*sink.remove, *itertools.chain.from_iterable(fact.remove for fact in left)]
    folders: dict[str, tuple[str, ...]] = {}
    if removed_to is None and unfinished(asked.logs) is not None:
        removed += state.later_files(logs.committed)
    elif removed_to is not None and logs.committed >= 0:
        removed += _later_files(everything, logs, state)
    elif removed_to is not None:
        folders = _folders_of_batches(parser, everything, state)
        removed += itertools.chain.from_iterable(folders.values())
    doubts = [f"{fact.finding.subject} cannot be judged" for fact in later if fact.finding.id in NOT_JUDGED]
    reasons = (asked.logs.not_judged, judged.unjudged, *_unjudged_sources(source_facts), *doubts)
    unjudged = "; ".join(filter(None, reasons))
    skips_to = sink.newest if sink.newest > max(logs.planned, logs.committed) else None
    restart = Restart(
        committed=logs.committed,
        planned=planned,
        sink_has_planned=has,
        fails=fails,
        removed_to=removed_to,
        state_lost=bool(rolled_back),
        blocked=blocked,
        sink=sink.folder,
        sink_loses=bool(sink.remove),
        sink_skips=skips_to if removed_to is None and as_of is None and not sink.remove else None,
        tables=tables,
        asynchronous=logs.asynchronous,
        continuous=logs.continuous,
        hidden=next(iter([*(f"{path} could not be read" for path in logs.hidden), *doubts]), ""),
        hidden_log=logs.hidden_log,
        unread_plan=planned is not None and logs.ends(planned) is None,
        unread_start=planned is not None and planned > 0 and logs.ends(logs.before(planned)) is None,
    )
    return BatchPlan(
        query_id=logs.metadata.value if logs.metadata is not None else None,
        committed=logs.committed,
        planned=planned,
        batches=asked.logs.batches(),
        sources=sources,
        sink=sink.folder,
        sink_has_planned=has,
        fails=fails,
        restart=restart.sentences(),
        sink_files=sink.files,
        notes=(*state_notes(state, judged), *_plan_notes(sink.folder is not None or tables, as_of, logs)),
        findings=sorted_findings(facts),
        inputs=(*parser.inputs(everything, sink.folder), *state.inputs()),
        rolled_back=rolled_back,
        stores=tuple(state.rows(judged.batch)),
        unjudged=unjudged,
        lost_plans=tuple(n for n in asked.logs.offset_log.orphans if n > max(logs.planned, logs.committed)),
        remove=() if stuck or logs.hidden or unjudged else parser.with_checksums(removed),
        remove_folders=() if stuck or logs.hidden or unjudged else tuple(sorted(folders)),
        removed_to=removed_to,
        state_bytes=judged.bytes,
        skips=any(fact.skips for fact in lasting),
        asynchronous=logs.asynchronous or logs.continuous,
        continuous=logs.continuous,
        begins=not fails and removed_to is None and sink.newest <= 0 and _begins(parser, logs, state),
        names_operators=names_states(asked.logs),
        plans_afresh=can_plan_afresh(logs),
        version=str(spark_version(everything)),
        proof=_proof(logs),
        elsewhere=tuple(read_elsewhere(parser, logs, state)),
        hidden_log=logs.hidden_log,
    )


def _proof(logs: MetadataLogs) -> str:
    """Say what shows that the newest batch before the plan in flight is done, where it has no commit."""
    line, read = logs.committed, logs.commits.get(logs.committed)
    if line < 0 or (read is not None and logs.shown_done < line):
        return ""
    missing = f"{logs.commit_log.folder}/{line} {'is missing' if read is None else 'cannot be read'}, but"
    if logs.sink_lists is not None and logs.shown_done == line:
        return f"{missing} {logs.sink_lists.by} has the batch, and the state after it is there"
    return f"{missing} batch {logs.planned} was planned after it"


def _blind_plan(parser: OffersBatches, logs: MetadataLogs) -> BatchPlan:
    """Return the plan of a query of which a log could not be listed: which batches it can go back to is not known."""
    return BatchPlan(
        query_id=logs.metadata.value if logs.metadata is not None else None,
        committed=-1,
        planned=None,
        batches=(),
        sources=(),
        sink=None,
        sink_has_planned=None,
        fails=False,
        restart=f"{logs.hidden_log} could not be read, so the line is not known.",
        notes=(),
        findings=sorted_findings(judge(logs)),
        inputs=parser.inputs(logs, None),
        unjudged=logs.not_judged,
        hidden_log=logs.hidden_log,
        uncounted=True,
    )


def _begins(parser: OffersBatches, logs: MetadataLogs, state: StoredState) -> bool:
    """Return whether a query has planned its first batch and no other: nothing tells of a later one."""
    if logs.planned != 0 or logs.committed >= 0 or logs.offset_log.orphans or state.later_files(0):
        return False
    ends = {key: log_offset(end) for key, end in (logs.ends(0) or {}).items()}
    # a source's log has the files of a batch before its plan is written
    return all(end is None or parser.source_listing(key).newest <= end + 1 for key, end in ends.items())


def pieces_of(parser: OffersBatches) -> PiecesRead:
    """Read every state file up to the newest commit's version, of the stores that a restart after that commit loads."""
    state, read = all_pieces(parser)
    needed = frozenset(state.required(state.needed))
    rows = [name in needed for name in zip(*(read.table[c].to_pylist() for c in ChainName._fields), strict=True)]
    return read if all(rows) else read._replace(table=read.table.filter(pa.array(rows)))


def all_pieces(parser: OffersBatches) -> tuple[StoredState, PiecesRead]:
    """Read every state file up to the newest commit's version, as rows of `cklog.inputs.pieces.PIECES`."""
    logs = parser.logs()
    state = parser.state(logs)
    state.read_all()
    judged = judge_state(state, logs)
    facts = [
        *judge_empty(logs, parser.has_state),
        *judge(logs),
        *broken_facts(state, judged),
    ]  # commits say what is needed
    facts = seen(logs, [*facts, *other_state_facts(state, logs, judged)])
    return state, PiecesRead(state.table(), sorted_findings(facts), state.inputs(), notes=(chain_note(judged),))


def _batches_asked(logs: MetadataLogs, has_state: bool, as_of: int | None, at: int | None, drop_plans: bool) -> _Asked:
    """Leave out batches after `as_of`, then those after `at`, the batch to go back to."""
    facts = judge_empty(logs, has_state)
    logs = continued(logs)
    if as_of is not None:
        logs, more = cut(logs, as_of)
        facts += more
    newest = max(logs.planned, logs.committed)
    if at is None:
        return _Asked(logs, None, facts)
    if at != logs.committed or drop_plans:
        facts += judge_target(logs, at)
        logs = back_to(logs, at) if at < logs.committed or drop_plans else logs
    return _Asked(logs, newest if max(logs.planned, logs.committed) < newest else None, facts)


def _sink_today(
    parser: OffersBatches, everything: MetadataLogs, lacking: Lacking, facts: Iterable[Fact]
) -> Iterable[Fact]:
    """Yield what the file sink's log does to a restart of the files as they are now, where an older line is asked for.

    `facts` : those that are known
    """
    known = {fact.finding.subject for fact in facts}
    sink = judge_sink(parser, continued(everything), (), lacking, goes_back=False, is_today=True)
    for fact in seen(everything, sink.facts):
        weighs = fact.stops or fact.skips or fact.finding.id in NOT_JUDGED
        if weighs and fact.finding.subject not in known:
            yield fact._replace(remove=())


def _later_files(everything: MetadataLogs, logs: MetadataLogs, state: StoredState) -> Iterable[str]:
    """Yield what goes when of all batches only those in `logs` stay: plans, commits and versions of state."""
    for log, newest in ((everything.offset_log, logs.planned), (everything.commit_log, logs.committed)):
        yield from (entry.path for number, entry in log.files.items() if number > newest)
        yield from log.left_checksums(newest)
    yield from state.later_files(logs.committed)


def _folders_of_batches(parser: OffersBatches, logs: MetadataLogs, state: StoredState) -> dict[str, tuple[str, ...]]:
    """Return the folders that must be empty before batch 0, with their files; those that have none are left out.

    Read in Spark's source: where no plan is left a restart lists offsets/, commits/ and state/, and fails if there is
    anything in one of them, an empty folder or a temporary file of a killed task for instance.
    """
    found = {path: parser.files_below(path) for path in (logs.offset_log.folder, logs.commit_log.folder, state.folder)}
    return {path: files for path, files in found.items() if files}


def _unjudged_sources(facts: Iterable[Fact]) -> Iterable[str]:
    """Say which folders of sources were not judged."""
    found = [fact.finding.subject for fact in facts if fact.finding.id == "unjudged-source"]
    return [f"what a source reads of {path} is not known" for path in found[:1]]


def _plan_notes(sink_known: bool, as_of: int | None, logs: MetadataLogs) -> Iterable[str]:
    """Say what cannot be known of a plan."""
    hidden = [path for path in logs.unseen if not path.startswith(logs.prefix)]
    if not sink_known and hidden:
        yield f"The sink is not known: {hidden[0]} could not be read, and may be a file sink's."
    elif not sink_known:
        yield "The sink is not known: the checkpoint does not name it, and no single file sink's log is beside it."
    if as_of is not None and logs.committed >= 0:
        yield f"Commits carry no time: at that moment batch {logs.committed} may still have been running."

"""A run that is given as a log of micro-batches (Spark Structured Streaming): where a restart goes on.

The whole query is one unit of recovery: its line is the newest committed batch that all its state stores can load,
and whose number is the checkpoint's; -1 stands for the initial state, before batch 0. The batch planned after it is run
again with its stored range.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from cklog.engine.question_cache import QuestionCache
from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import OffersBatches
from cklog.inputs.stored_state import StateSchemaRow, StateStoreRow
from cklog.lines.recovery.work import Works
from cklog.model.actions import RunAction, action_of
from cklog.model.checks import Check, Verification, hides_newer, refutations, unless_hidden, verification
from cklog.model.inspection import Inspection
from cklog.model.lines import LineEntry, RecoveryLine, SourceOffset
from cklog.model.names import CheckpointId
from cklog.model.question import Question
from cklog.model.unchecked import Unchecked
from cklog.model.verdict import Draft
from cklog.model.wording import agreeing, many
from cklog.runs.batches.offsets import end_of, records_between, start_of
from cklog.runs.batches.plan import PLAN, BatchPlan, plan_of
from cklog.runs.batches.recovery import batch_works

if TYPE_CHECKING:  # without --sink nothing of it is loaded
    from cklog.sink_tables.fitting import NamedTable

QUERY = "query"
"""The one operator of such a run, as `query/0`."""


class BatchRow(TypedDict):
    """A batch as its logs have it; `time` and `watermark` in ms since the epoch."""

    batch: int
    planned: bool
    committed: bool
    time: int | None
    watermark: int | None


class SourceRow(TypedDict):
    """From where to where the batch in flight reads a source, in the source's own offsets."""

    source: str
    kind: str
    start: object
    end: object


class BatchesInspection(Inspection):
    """What is here of a query that runs in micro-batches; `spark_version`: what its files show, and by what."""

    protocol: str
    query_id: str | None
    spark_version: str | None
    sink: str | None
    batches: list[BatchRow]
    sources: list[SourceRow]
    stores: list[StateStoreRow]
    schemas: list[StateSchemaRow]


class BatchLog:
    """The analyses of a micro-batch run; `written` are the tables that a question names, as far as they can be read."""

    def __init__(
        self,
        parser: OffersBatches,
        cache: QuestionCache | None = None,
        written: Callable[[Question], Sequence[NamedTable]] = lambda question: (),
    ) -> None:
        self._parser, self._written = parser, written
        self._once = (cache or QuestionCache()).get

    def line(self, command: str, question: Question) -> tuple[Draft[RecoveryLine], Works]:
        """Return the last committed batch, and what will be run again; and what a recovery reads."""
        plan = self.plan(question)
        return self._draft(command, plan, question), batch_works(plan)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        """Prove or refute that the query can restart after a given batch."""
        batch = _batch_of(line)
        newest = self.plan(question)
        at, written = None if batch < 0 else batch, self._written(question)
        target = plan_of(self._parser, question.as_of, at, question.check_contents, written=written)
        hidden = hides_newer(newest.findings) or bool(newest.unjudged)
        checks = unless_hidden(_checks(batch, newest, target, maximal), hidden)
        result = verification(checks)
        findings = [*target.findings, *(newest.findings if maximal else ()), *refutations(checks, f"{QUERY}/0={batch}")]
        return Draft("verify", result, findings, target.inputs, indeterminate=result.undecided)

    def inspect(self, check_contents: bool = False) -> Draft[BatchesInspection]:
        """Return batches, sources, sink."""
        plan = plan_of(self._parser, check_contents=check_contents)
        result = _inspection(plan, self._parser.state(self._parser.logs()).schemas())
        return Draft("inspect", result, plan.findings, plan.inputs, indeterminate=bool(plan.unjudged))

    def plan(self, question: Question) -> BatchPlan:
        """Say what a restart does, as the question asks for it."""
        return self._once(("plan", question), lambda: self._plan(question))

    def _plan(self, question: Question) -> BatchPlan:
        if question.failed:
            raise UsageError("--failed: a Spark query fails and restarts as a whole", "leave --failed out")
        batches = {_batch_of({name: number}) for name, number in question.at if name != PLAN}
        plans = {number for name, number in question.at if name == PLAN}
        if plans - batches:
            raise UsageError(f"--at {PLAN}: plans are dropped after the batch of {QUERY}/0", "give both the same batch")
        if len(batches) > 1:
            raise UsageError("--at: a query restarts after one batch", f"as in --at {QUERY}/0=14")
        at, contents, tables = batches.pop() if batches else None, question.check_contents, bool(question.sinks)
        return plan_of(
            self._parser, question.as_of, at, contents, tables, drop_plans=bool(plans), written=self._written(question)
        )

    def _draft(self, command: str, plan: BatchPlan, question: Question) -> Draft[RecoveryLine]:
        return Draft(
            command,
            line_of(plan, chosen=bool(question.at), tables=bool(question.sinks)),
            plan.findings,
            plan.inputs,
            unrecoverable=plan.starts_over or plan.unreachable,
            indeterminate=bool(plan.unjudged),
        )


def line_of(plan: BatchPlan, chosen: bool = False, tables: bool = False) -> RecoveryLine:
    """Return a plan as a recovery line of one subtask; `details` keep what only a micro-batch run has.

    `tables`: the tables that the query writes are known, so that it has no file sink.
    """
    time = next((b.time for b in plan.batches if b.batch == plan.committed), None)
    state: Any = "initial" if plan.committed < 0 else "stored"
    details = {
        "headline": f"{_lead(plan, chosen)} {plan.restart}",
        "query_id": plan.query_id,
        "spark_version": plan.version or None,
        "committed": None if plan.uncounted else plan.committed,
        "planned": plan.planned,
        "restart_fails": plan.fails,
        "sink": plan.sink,
        "sink_has_planned": plan.sink_has_planned,
        "input_files": [f.path for s in plan.sources for f in s.files],
        "stores": list(plan.stores),
        "remove": list(plan.remove),
        **({"remove_folders": list(plan.remove_folders)} if plan.remove_folders else {}),
    }
    return RecoveryLine(
        consistent=True,
        protocol="coordinated",
        line=()
        if plan.uncounted
        else (
            LineEntry(
                operator=QUERY,
                subtask=0,
                checkpoint=plan.committed,
                time=time,
                uri=None,
                rolled_back=bool(plan.rolled_back),
                state=state,
                job=plan.query_id or "",
            ),
        ),
        channels=(),
        sources=tuple(
            SourceOffset(s.source, start_of(s), QUERY, 0, replay_to=end_of(s), job=plan.query_id or "")
            for s in plan.sources
        ),
        rolled_back=tuple(CheckpointId(QUERY, 0, batch) for batch in plan.rolled_back),
        useless=(),
        steps=(),
        domino=False,
        notes=plan.notes,
        details=details,
        runs=(_run_action(plan, () if tables or plan.sink is not None else (_UNSEEN_SINK,)),),
    )


_UNSEEN_SINK = Unchecked(
    "sink",
    QUERY,
    "the log of a file sink, if the query has one, agrees with this line",
    "PATH: the folder that holds the checkpoint and the sink",
)


def _run_action(plan: BatchPlan, unchecked: tuple[Unchecked, ...]) -> RunAction:
    """What to do about the query: a restart is the query's own program; going back removes files first, on a copy."""
    to_repair = plan.fails or plan.skips or bool(plan.remove)
    times = {b.batch: b.time for b in plan.batches}
    newest = max((b.batch for b in plan.batches if b.committed or b.batch == plan.committed), default=None)
    last = max((t for t in times.values() if t is not None), default=None)
    time = times.get(plan.committed)
    known = [records_between(s.start, s.end) for s in plan.sources]
    loses = any(finding.blocks and finding.effect == "data-lost" for finding in plan.findings)
    return RunAction(
        run=plan.query_id or "",
        action=action_of(
            bool(plan.unjudged),
            nothing=plan.starts_over and (bool(plan.rolled_back) or not (to_repair or loses)),
            repair=to_repair,
            older=plan.unreachable,
        ),
        newest=None if newest is None else f"batch {newest}",
        newest_time=None if newest is None else times.get(newest),
        chosen=None if plan.committed < 0 else f"batch {plan.committed}",
        chosen_time=time,
        age_ms=None if time is None or last is None else max(last - time, 0),
        command=removal_command(plan.remove, plan.remove_folders),
        note=_note(plan),
        read_again=sum(n for n in known if n is not None),
        reads_more=bool(plan.lost_plans) or plan.asynchronous or (plan.planned is not None and None in known),
        lost=None if plan.fails or plan.skips or plan.continuous else 0,
        doubled=None if _may_double(plan) else 0,
        unchecked=(
            *unchecked,
            *_unchecked_state(plan),
            *plan.elsewhere,
            *((_EPOCHS,) if plan.continuous and plan.committed >= 0 else ()),
        ),
    )


def _unchecked_state(plan: BatchPlan) -> Iterator[Unchecked]:
    """Yield what is taken for granted of operators: before state checkpoint format 2 only their folders name them."""
    if plan.stores and not plan.names_operators:
        yield Unchecked("state", "operators", "every operator with state has a folder here: no commit names them")
    elif not plan.stores and plan.committed >= 0 and not plan.unjudged:
        yield Unchecked("state", "operators", "the query keeps no state (there is no state folder)")


_EPOCHS = Unchecked("sink", QUERY, "the sink has every row of the committed epochs (a Python foreach may lack some)")
"""Spark 3.5 commits an epoch of the continuous trigger before a Python foreach has been given its rows."""


def _may_double(plan: BatchPlan) -> bool:
    """Whether a sink may get results again that it has: how many is not known."""
    unknown_sink = plan.sink_has_planned is None and plan.planned is not None
    undone = plan.removed_to is not None and plan.removed_to > plan.committed
    return bool(plan.lost_plans) or plan.asynchronous or unknown_sink or undone


_MOST_REMOVED = 100
"""Files of one command; more of them are listed in `details.remove` only."""


def removal_command(paths: tuple[str, ...], folders: tuple[str, ...] = ()) -> str | None:
    """Return the command that removes files, and whole folders, from a copy of the checkpoint folder.

    None: there are none, or too many.

    >>> removal_command(("state/0/0/1.delta", "offsets/0", "out/_spark_metadata/0"), ("offsets", "state"))
    'rm -r -- ./offsets ./state ./out/_spark_metadata/0'
    """
    alone = [path for path in paths if not path.startswith(tuple(f"{folder}/" for folder in folders))]
    if not 0 < len(folders) + len(alone) <= _MOST_REMOVED:
        return None
    words = " ".join(shlex.quote("./" + path) for path in (*folders, *alone))
    return f"rm {'-r ' if folders else ''}-- {words}"


def _note(plan: BatchPlan) -> str:
    if plan.unjudged:
        return plan.unjudged
    if plan.remove:
        shown = removal_command(plan.remove, plan.remove_folders) is not None
        listed = "these files" if shown else f"the {len(plan.remove)} files of details.remove"
        if plan.remove_folders:
            folders = " ".join(plan.remove_folders)
            listed = "all of this, folders whole" if shown else f"{listed}, and the folders {folders} whole"
        log = (
            ""
            if plan.sink is not None or (plan.removed_to is None and not plan.plans_afresh)
            else ", and the same batches from a file sink's log, if there is one"
        )
        return f"in a copy of this folder: remove {listed}{log}; then start the query on the copy"
    if plan.fails or plan.skips:
        return "repair what the findings name before the query is started again"
    bare = not plan.stores and plan.committed >= 0  # before the first commit there need not be any state
    stateless = "; it must be a stateless query: no state folder is here" if bare else ""
    return f"start the query's own program again, with this checkpointLocation{stateless}"


def _lead(plan: BatchPlan, chosen: bool) -> str:
    if plan.uncounted:
        return "Which batches the query can go back to is not known."
    initial = "there is no recovery point but the initial state."
    if plan.begins:
        return "The query was stopped in its first batch, and nothing was committed."
    if plan.committed < 0:
        no_way = plan.rolled_back or plan.unreachable
        why = "The query can go back to no committed batch" if no_way else "No batch is committed"
        return f"{why}: {initial}"
    if plan.rolled_back:
        newest = max(plan.rolled_back)
        return f"The line is batch {plan.committed}, not {newest}: it is the newest to which the query can go back."
    if plan.unjudged:
        asked = "The batch asked for is" if chosen else "The newest batch that may be committed is"
        doubt = "Not all that a restart reads could be judged; what follows holds only if it is sound."
        return f"{asked} {plan.committed}. {doubt}"
    proof = f" ({plan.proof})" if plan.proof else ""
    known = f"the last one {'done' if plan.proof else 'committed'}"
    if chosen:
        known = "the newest before the one asked for" if plan.unreachable else "as asked for"
    return f"The line is batch {plan.committed}, {known}{proof}."


def _batch_of(line: Mapping[str, int | None]) -> int:
    """The batch that a line, or `--at`, names."""
    found = [number for name, number in line.items() if name == f"{QUERY}/0"]
    if not found or len(line) > 1:
        raise NotFound(f"{', '.join(line)}: a Spark checkpoint has the one subtask {QUERY}/0")
    if found[0] is None:
        raise UsageError(f"{QUERY}/0 has no current state: the query failed as a whole")
    return found[0]


def _checks(batch: int, newest: BatchPlan, target: BatchPlan, maximal: bool) -> list[Check]:
    row = next((b for b in newest.batches if b.batch == batch), None)
    if newest.hidden_log:
        why = f"{newest.hidden_log} could not be read"
        return [Check(check, None, why) for check in ("committed", "consistent", "loadable", "replayable")]
    proof = newest.proof if batch == newest.committed else ""
    committed = batch < 0 or (row is not None and row.committed) or bool(proof)
    ranged = batch < 0 or (row is not None and row.offsets is not None)
    sizes = [f.size for s in target.sources for f in s.files]
    proof = proof or f"batch {batch} has {'a' if committed else 'no'} commit that can be read"
    checks = [
        Check("committed", committed, proof),
        Check("consistent", ranged, f"offsets/{batch} {'gives' if ranged else 'does not give'} where sources end"),
        _loadable(batch, target),
        _replayable(sizes),
    ]
    if maximal:
        checks.append(Check("maximal", newest.committed <= batch, f"the newest committed batch is {newest.committed}"))
    return checks


def _loadable(batch: int, target: BatchPlan) -> Check:
    """Whether every state store can load what the batch left."""
    if batch < 0 or not target.stores:
        return Check("loadable", True, "no state stores are here" if batch >= 0 else "the stores begin empty")
    if batch in target.rolled_back:
        why = f"not every state store can load version {batch + 1}; all can go back to batch {target.committed}"
        return Check("loadable", False, why)
    if target.unjudged:
        return Check("loadable", None, target.unjudged)
    until = "; a restart fails until the files that the findings name are repaired" if target.fails else ""
    stores = sum(row["partitions"] for row in target.stores)
    return Check("loadable", True, f"all {stores} state stores can load version {batch + 1}{until}")


def _replayable(sizes: list[Any]) -> Check:
    """Whether the input files of the batch that runs again are there; sources without files keep their own."""
    if None in sizes:
        missing = many(sizes.count(None), "input file")
        return Check("replayable", False, f"{missing} of the next batch {agreeing(sizes.count(None), 'are')} missing")
    if "outside" in sizes:
        outside = many(sizes.count("outside"), "input file")
        lie = agreeing(sizes.count("outside"), "lie")
        told = f"{outside} of the next batch {lie} outside PATH: say where with --map"
        return Check("replayable", None, told)
    return Check("replayable", True, f"{many(len(sizes), 'input file')} of the next batch, none of them missing")


def _inspection(plan: BatchPlan, schemas: Iterable[StateSchemaRow]) -> BatchesInspection:
    batches: list[BatchRow] = [
        {"batch": b.batch, "planned": b.planned, "committed": b.committed, "time": b.time, "watermark": b.watermark}
        for b in plan.batches
    ]
    sources: list[SourceRow] = [
        {"source": s.source, "kind": s.kind, "start": start_of(s), "end": end_of(s)} for s in plan.sources
    ]
    done = sum(b.committed for b in plan.batches)
    kept = many(done, "committed batch", "are")
    flight = f"batch {plan.planned} is in flight" if plan.planned is not None else "nothing is in flight"
    told = f"{many(len(sources), 'source')}: {kept} kept, {flight}"
    if plan.hidden_log:
        told = f"which batches are planned and committed is not known, because {plan.hidden_log} could not be read"
    return {
        "summary": f"A Spark query, {told}.",
        "formats": sorted({used.format for used in plan.inputs}),
        "protocol": "coordinated",
        "query_id": plan.query_id,
        "spark_version": plan.version or None,
        "sink": plan.sink,
        "batches": batches,
        "sources": sources,
        "stores": list(plan.stores),
        "schemas": list(schemas),
    }

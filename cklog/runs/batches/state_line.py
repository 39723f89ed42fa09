"""To which batch can all state stores of a Spark checkpoint go back?

A restart after batch c loads version c + 1 of every store: of the newest snapshot that can be read and every delta
after it. Read off Spark 4.3 by damaging copies and restarting them: a snapshot that cannot be read is passed over
(from Spark 4.1 on, with state checkpoint format 2 from 4.2 on), a delta that is missing or damaged stops the restart.
Only files that a restart would read are read, unless all are asked for. What is wrong becomes findings and notes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from cklog.chains.build import piece_sizes
from cklog.chains.restorable import Chains, chains_of
from cklog.inputs.batches import FileRead, MetadataLogs
from cklog.inputs.pieces import ChainName
from cklog.inputs.stored_state import StateOperator, StoredState
from cklog.model.findings import Effect, Finding, Severity, Where
from cklog.model.verdict import NOT_JUDGED
from cklog.model.wording import first_few, many
from cklog.runs.batches.facts import Fact, file_finding, flaw_facts, how_to_judge
from cklog.runs.batches.targets import names_states, way_back


class BrokenStore(NamedTuple):
    """A store that cannot load a version: the file that it lacks, the finding's id, why, and where in the file.

    `why` is "" if the file is missing.
    """

    chain: ChainName
    path: str
    id: str
    why: str
    offset: int | None


class JudgedState(NamedTuple):
    """To which batch every store can go back.

    Attributes
    ----------
    batch : the newest one, -1 for none; where `unjudged`, the newest for which that is proven
    needed : the version that a restart loads
    broken : why not to the newest commit; none if `batch` is that
    unjudged : why it cannot be told, "" if it can
    tried : damaged snapshots at which loading `batch` stops, though it could do without them
    bytes : what loading the state reads, None: not known
    """

    batch: int
    needed: int
    broken: tuple[BrokenStore, ...]
    unjudged: str
    bytes: int | None = None
    tried: tuple[str, ...] = ()


def judge_state(
    state: StoredState, logs: MetadataLogs, can_start: Callable[[int], bool] = lambda batch: True
) -> JudgedState:
    """Find the newest batch that every store can go back to, reading what a restart there would read.

    `state` is that of `logs`; `can_start` says whether sources allow to go back to a batch.
    """
    hidden = logs.hidden_below(state.folder) or logs.hidden_log
    unknown = f"{hidden} could not be read" if hidden else state.unknown or _missing_folder(state, logs)
    if unknown:
        return JudgedState(logs.committed, state.needed, (), unknown)
    chains = _read_for(state, logs.committed)
    broken = tuple(_broken_stores(state, chains)) if logs.committed >= 0 else ()
    unsure = sorted({link.path for link in broken if link.id in NOT_JUDGED})
    # what cannot be judged sends nobody back: an older batch is said only where the newest is known to be lost
    lost = len(unsure) < len({link.path for link in broken})
    batch = _newest_batch(state, logs, chains, can_start) if lost else logs.committed
    tried = () if state.repairs_itself else tuple(state.tried_in_vain(batch + 1))
    unsure += _not_judged(state, tried)
    unjudged = f"{unsure[0]} cannot be judged" if unsure else state.uncounted if logs.committed >= 0 else ""
    return JudgedState(batch, state.needed, broken, unjudged, _bytes_to_load(state, batch), tried)


def _not_judged(state: StoredState, paths: Collection[str]) -> list[str]:
    """Return which files were read in vain, though nothing may be wrong with them."""
    return [path for path, flaw in state.flaws() if path in paths and flaw.id in NOT_JUDGED]


def _bytes_to_load(state: StoredState, batch: int) -> int | None:
    """Count what all stores read to load what a batch left; None: of some that is not known.

    Files that were read tell more: snapshots which others they stand on, and how large these are.
    """
    if batch < 0:
        return 0
    chains = chains_of(state.table())
    nodes = [chains.node(i, batch + 1) for i in chains_required(state, chains, batch)]
    sums = chains.ways.sums(piece_sizes(chains.table)[chains.row])
    sizes = [-1 if node is None or not chains.restorable[node] else int(sums[node]) for node in nodes]
    return None if any(size < 0 for size in sizes) else sum(sizes)


def _read_for(state: StoredState, batch: int) -> Chains:
    """Return the chains, after reading all that a restart after a batch would read.

    What a file says may send the restart to others, an older snapshot for instance: so until nothing new is read.
    """
    while True:
        chains = chains_of(state.table())
        paths = chains.table["path"]
        wanted: set[str] = set()
        for i in chains_required(state, chains, batch):
            wanted |= {paths[row].as_py() for row in chains.reading(i, batch + 1)}
        if not state.read(wanted):
            return chains


def _newest_batch(state: StoredState, logs: MetadataLogs, chains: Chains, can_start: Callable[[int], bool]) -> int:
    """Find the newest batch that every store can load and whose plans, commit and sources allow it; -1 for none."""
    for batch in sorted(logs.commits, reverse=True):
        if way_back(logs, batch) is not None and can_all_load(state, chains, batch) and can_start(batch):
            chains = _read_for(state, batch)
            if can_all_load(state, chains, batch):
                return batch
    return -1


def can_all_load(state: StoredState, chains: Chains, batch: int) -> bool:
    """Return whether every store can load what a batch left, as far as is known; `chains` are those of its table."""
    found = [chains.chain_named(name) for name in state.required(batch + 1)]
    return all(i is not None and chains.can_restore(i, batch + 1) for i in found)


def chains_required(state: StoredState, chains: Chains, batch: int) -> list[int]:
    """Return the chains of the stores that must have what a batch left, as far as any file of them is there."""
    found = [chains.chain_named(name) for name in state.required(batch + 1)]
    return sorted(i for i in found if i is not None)


def _broken_stores(state: StoredState, chains: Chains) -> Iterator[BrokenStore]:
    """Yield the stores that cannot load the needed version."""
    flaws = dict(state.flaws())
    for i in chains_required(state, chains, state.needed - 1):
        chain = chains.names[i]
        link = chains.why_not(i, state.needed)
        if link is None:
            continue
        if link.row is None or link.flaw == "is missing":
            version = state.needed if link.version is None else link.version
            path = state.missing(chain, version)
            yield BrokenStore(chain=chain, path=path, id="missing-state-file", why="", offset=None)
            continue
        path = chains.table["path"][link.row].as_py()
        flaw = flaws.get(path)
        if flaw is None:
            yield BrokenStore(chain=chain, path=path, id="missing-state-file", why=link.flaw, offset=None)
        else:
            yield BrokenStore(chain=chain, path=path, id=flaw.id, why=flaw.why, offset=flaw.offset)


_EXAMPLES = 3
_PLACES = 8
_PASSED = "A restart reads an older snapshot and more deltas instead. Put the file back from a backup."
_STOPPED = (
    "The restart fails: only Spark 4.1 (with state checkpoint format 2: 4.2) or newer can ignore the file, and no "
    "setting in the newest offsets shows such a version. Put the file back from a backup. Or, on a copy of the "
    "checkpoint, remove it and its .crc: Spark then reads an older snapshot and more deltas."
)
_NOT_NEEDED = "A restart does not read it. The query cannot go back to a batch whose state depends on it."


def broken_facts(state: StoredState, judged: JudgedState) -> list[Fact]:
    """Return what keeps stores from loading what a restart loads; one finding an operator and kind of damage."""
    names = {operator.operator: operator.name for operator in state.operators}
    groups: dict[tuple[str, str], list[BrokenStore]] = {}
    for store in judged.broken:
        groups.setdefault((store.chain.operator, store.id), []).append(store)
    return [
        Fact(_broken_finding(judged, id, stores, names.get(operator)), stops=id not in NOT_JUDGED)
        for (operator, id), stores in sorted(groups.items())
    ]


def skipping_facts(ahead: StoredState, judged: JudgedState, logs: MetadataLogs, with_ids: bool) -> list[Fact]:
    """Return what keeps a restart from running the newest plan where commits before it are gone.

    It skips these batches, so that it loads the version that the last of them left, which is that of `ahead`. Read in
    Spark's source: with state checkpoint format 2 (`with_ids`) it looks for that version by the ids of the newest
    commit, which are those of an older one; where there is a commit with ids, the logs alone tell that.
    """
    if ahead.unknown or not ahead.is_here or names_states(logs) or logs.hidden_below(ahead.folder):
        return []
    back = judged._replace(batch=judged.batch if way_back(logs, judged.batch) is not None else -1)
    if not with_ids:
        broken = tuple(_broken_stores(ahead, _read_for(ahead, ahead.needed - 1)))
        return broken_facts(ahead, back._replace(needed=ahead.needed, broken=broken))
    path = f"{logs.commit_log.folder}/{logs.planned - 1}"
    message = (
        f"{path} is not there whole, and with state checkpoint format 2 it alone names the states on which batch "
        f"{logs.planned} stands. {_way_back(back)}"
    )
    return [Fact(file_finding("missing-batch-file", "error", path, message), stops=True)]


def first_lacking(state: StoredState, logs: MetadataLogs) -> str | None:
    """Return the first file that a store lacks, or cannot use, to load version `needed`.

    "": every store can load it, or there are none; None: that is not known.
    """
    if state.unknown or logs.hidden_below(state.folder) or _missing_folder(state, logs):
        return None
    broken = [*_broken_stores(state, _read_for(state, state.needed - 1))] if state.is_here else []
    lacking = [store.path for store in broken if store.id not in NOT_JUDGED]
    if lacking:
        return min(lacking)
    return None if broken or state.uncounted else ""


def other_state_facts(state: StoredState, logs: MetadataLogs, judged: JudgedState) -> list[Fact]:
    """Return what else is wrong with the state: what a restart passes over, what cannot be told, and metadata."""
    facts = [*_flaw_facts(state, judged), *map(Fact, [*_unjudged(state, judged), *_tables_not_checked(state)])]
    for operator in state.operators:
        facts += [] if logs.hidden_below(operator.folder) else _metadata_facts(operator)
    return facts


def _flaw_facts(state: StoredState, judged: JudgedState) -> Iterator[Fact]:
    """Report files that cannot be used, but without which the state can be loaded."""
    needed = {store.path for store in judged.broken}
    for path, flaw in state.flaws():
        if path in needed:
            continue
        why = f"{path}: {flaw.why}."
        if path not in judged.tried:
            then = _PASSED if path.endswith((".snapshot", ".zip")) else _NOT_NEEDED
            yield Fact(file_finding(flaw.id, "warning", path, f"{why} {then}", flaw.offset))
        elif flaw.id in NOT_JUDGED:
            doubt = f"{why} Whether a restart can load it is not known. {how_to_judge(flaw.id)}"
            yield Fact(file_finding(flaw.id, "error", path, doubt, flaw.offset))
        else:
            stopped = file_finding(flaw.id, "error", path, f"{why} {_STOPPED}", flaw.offset)
            yield Fact(stopped, stops=True, remove=(path,))


def _unjudged(state: StoredState, judged: JudgedState) -> Iterator[Finding]:
    """Report why it cannot be told whether the state can be loaded, and files whose bytes nothing proves."""
    if judged.unjudged:
        message = (
            f"{state.folder}: {judged.unjudged}. Whether the state of batch {judged.needed - 1} can be loaded was not "
            "judged."
        )
        yield file_finding("unjudged-state", "warning", state.folder, message)
    unproved = state.unproved()
    if unproved:
        message = (
            f"{len(unproved)} state files are there, but nothing proves their bytes: they have no checksum file, and "
            f"their codec is not read here, or writes no checksums. The first is {unproved[0]}."
        )
        places = tuple(map(Where, unproved[:_PLACES]))
        yield Finding("unjudged-state", "warning", unproved[0], message, where=places)


def _tables_not_checked(state: StoredState) -> Iterator[Finding]:
    """Say how far tables were looked into that no checksum file proves."""
    count, thorough, unproved = state.tables_seen()
    said = [f"{many(number, 'table')} of RocksDB could not be checked further: {why}." for why, number in unproved]
    if count and not thorough:
        said.insert(
            0,
            f"Of {many(count, 'table')} of RocksDB, which no checksum file proves, footers, indexes and properties "
            "were read, not every block: --check-contents checks them.",
        )
    if said:
        yield Finding("contents-not-checked", "info", state.folder, " ".join(said))


def _way_back(judged: JudgedState) -> str:
    """Say that a restart fails, and how to go on."""
    back = "no other batch is left whose state can be loaded"
    if judged.batch >= 0:
        back = f"or go back to batch {judged.batch} on a copy of the checkpoint"
    return f"The restart fails. Put it back from a backup, {back}."


def _broken_finding(judged: JudgedState, id: str, stores: list[BrokenStore], name: str | None) -> Finding:
    """Report the stores of one operator that lack files in one way; `name` is the operator's."""
    first = stores[0]
    called = f"operator {first.chain.operator}" + (f" ({name})" if name else "")
    others = [store.path for store in stores[1:]]
    also = f" So it is with {first_few(others, _EXAMPLES - 1)}." if others else ""
    which = f"Partition {first.chain.subtask}" if len(stores) == 1 else f"{len(stores)} stores"
    why = f": {first.why}" if first.why else " is missing"
    version = f"load version {judged.needed}, the state after batch {judged.needed - 1}"
    message = f"{first.path}{why}.{also} {which} of {called} cannot {version}. {_way_back(judged)}"
    if id in NOT_JUDGED:
        these = which[0].lower() + which[1:]
        message = f"{first.path}{why}.{also} Whether {these} of {called} can {version} is not known. {how_to_judge(id)}"
    places = tuple(Where(store.path, store.offset) for store in stores[:_PLACES])
    effect: Effect = "unknown" if id in NOT_JUDGED else "restart-fails"
    return Finding(id, "error", first.path, message, where=places, effect=effect)


def _missing_folder(state: StoredState, logs: MetadataLogs) -> str:
    """Say why it is not known whether there should be state where there is none; "" if there may well be none.

    A watermark is there for stateful operators, and commits of state checkpoint format 2 name their states; without
    either nothing tells whether there are any.
    """
    if not state.is_here and state.needed > 0 and names_states(logs):
        return "it is missing, and commits name states in it: a restart fails until it is put back from a backup"
    plan = logs.newest_plan
    watermark = plan.watermark if plan is not None else None
    if state.is_here or state.needed <= 0 or watermark is None or watermark <= 0:
        return ""
    return (
        "it is missing, though the query has a watermark, which is there for operators with state; if it has any, a "
        "restart fails until the folder is put back from a backup"
    )


def _metadata_facts(operator: StateOperator) -> Iterator[Fact]:
    """Report metadata and schemas of an operator that are not there or cannot be read.

    A restart goes on without them, unless the operator is a transformWithState. Read off Spark 4.3: damaged metadata
    does not stop it either, a damaged schema does.
    """
    folder, metadata, needed = operator.folder, operator.metadata, operator.needs_metadata
    then = "A restart goes on without it; how many partitions the operator has was taken from the settings and folders."
    if needed:
        then = "The restart fails: transformWithState reads it. Put it back from a backup."
    severity: Severity = "error" if needed else "warning"
    if metadata is None:
        path, severity = f"{folder}/_metadata", "error" if needed else "info"
        message = f"{path} has no operator metadata, which Spark writes from 4.0 on. {then}"
        yield Fact(file_finding("missing-state-file", severity, path, message), stops=needed)
    elif metadata.flaw is not None:
        unsure = metadata.flaw.id in NOT_JUDGED
        yield from flaw_facts(metadata, "error" if unsure else severity, then, needed)
    for path, flaw in operator.lost_schemas:
        why = f"{path}{'' if flaw.id == 'missing-state-file' else ':'} {flaw.why}."
        unsure = flaw.id in NOT_JUDGED
        what = f"cklog cannot tell what a restart does. {how_to_judge(flaw.id)}"
        lost = "The restart fails: transformWithState reads the schema of its state. Put it back from a backup."
        finding = file_finding(flaw.id, "error", path, f"{why} {what if unsure else lost}", flaw.offset)
        yield Fact(finding, stops=not unsure)
    for left in operator.left_checksums:
        fails = "On a local file system the restart fails when it writes that file. On a copy remove the checksum file."
        message = f"{left} is left, and its file is gone. {fails}"
        yield Fact(file_finding("missing-state-file", "error", left, message), stops=True, remove=(left,))
    for schema in operator.compared:
        yield from _schema_facts(schema)
    if not operator.has_schema and not operator.schemas and not needed:
        message = (
            f"{folder} has no schema of its state, which Spark writes from 3.1 on. A restart goes on without it, and "
            "does not notice if the query reads the state by another one."
        )
        yield Fact(file_finding("missing-state-file", "info", folder, message))


def _schema_facts(schema: FileRead[Any]) -> Iterator[Fact]:
    """Report a schema that cannot be used, of those that a restart compares with the query's.

    Read off Spark 4.3: of schemas that can be decoded and have another checksum, a type that differs stops a restart;
    a name that differs does not, nor does a damaged checksum.
    """
    mend = (
        "Without the file and its .crc a restart goes on and compares nothing: if the query is the same, remove both "
        "on a copy."
    )
    if schema.flaw is None or not schema.flaw.passed:
        then = f"The restart fails: Spark compares this schema with the query's. {mend}"
        yield from flaw_facts(schema, "error", then, stops=True, remove=(schema.path,))
        return
    then = (
        "Spark does not verify this checksum, but compares the schema with the query's. A restart fails if a type in "
        f"it is damaged, and goes on if a name or {schema.sidecar} is. {mend}"
    )
    message = f"{schema.path}: {schema.flaw.why}. {then}"
    yield Fact(file_finding(schema.flaw.id, "error", schema.path, message, schema.flaw.offset), remove=(schema.path,))


def state_notes(state: StoredState, judged: JudgedState) -> Iterator[str]:
    """Say what was judged, and what not."""
    if judged.unjudged:
        yield f"The state was not judged: {judged.unjudged}."
    elif not state.is_here and state.needed:
        yield "There is no state folder: right for a query that keeps no state; any other cannot restart without it."
    elif not judged.broken and judged.needed:
        without = f", once {many(len(judged.tried), 'damaged snapshot', 'are')} removed" if judged.tried else ""
        can = f"all {state.stores} stores can load version {judged.needed}{without}"
        yield f"State: {can}, the state after batch {judged.needed - 1}."


def chain_note(judged: JudgedState) -> str:
    """Say what the numbers of versions mean in batches."""
    lead = "Numbers are versions of state: version V is the state after batch V - 1."
    if judged.unjudged:
        return f"{lead} To which batch the query can go back was not judged: {judged.unjudged}."
    if judged.batch < 0:
        return f"{lead} There is no batch that the query can go back to."
    return f"{lead} With its offsets and commits, the query can go back to batch {judged.batch}."

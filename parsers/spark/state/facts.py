"""What is wrong with the state stores of a Spark checkpoint, as findings and notes."""

from __future__ import annotations

from collections.abc import Iterator

from cklog.model.findings import Finding, Severity, Where
from cklog.parsers.spark.batches import Fact
from cklog.parsers.spark.metadata_log import FileRead
from cklog.parsers.spark.state.line import UNSURE, Broken, JudgedState, State
from cklog.parsers.spark.state.listing import OperatorMetadata, StateStores

_EXAMPLES = 3
_PLACES = 8
_MAY_READ = "cklog cannot tell whether a restart can read it."
_PASSED = (
    "A restart does without it, reading an older snapshot and more deltas; before Spark 4.1 (with state checkpoint "
    "format 2: before 4.2) one that needs it fails. Put it back from a backup."
)
_NOT_NEEDED = "A restart does not read it; no batch whose state stands on it is a target to go back to."


def state_facts(state: State, judged: JudgedState) -> list[Fact]:
    """What is wrong with the state: what stops a restart, what it passes over, and what cannot be told."""
    facts = [] if state.stores.by_path else list(_no_folder(state))
    facts += _broken(state, judged)
    needed = {link.path for link in judged.broken}
    for path, flaw in state.contents.flaws():
        if path not in needed:
            then = _PASSED if path.endswith((".snapshot", ".zip")) else _NOT_NEEDED
            facts.append(_warned(flaw.id, path, f"{path}: {flaw.why}. {then}", (Where(path, flaw.offset),)))
    for operator, metadata in state.stores.reads.items():
        facts += _metadata_facts(state.stores, operator, metadata)
    return facts + list(_unjudged(state, judged))


def _warned(id: str, subject: str, message: str, where: tuple[Where, ...] = ()) -> Fact:
    return Fact(Finding(id, "warning", subject, message, where or (Where(subject),)))


def _broken(state: State, judged: JudgedState) -> Iterator[Fact]:
    """What stops a restart; one finding an operator and kind of damage."""
    groups: dict[tuple[str, str], list[Broken]] = {}
    for link in judged.broken:
        groups.setdefault((link.chain.operator, link.id), []).append(link)
    for (_, id), links in sorted(groups.items()):
        then = _MAY_READ if id in UNSURE else _then(judged)
        yield Fact(_broken_finding(state, judged, id, links, then), id not in UNSURE)


def _unjudged(state: State, judged: JudgedState) -> Iterator[Fact]:
    if judged.unjudged:
        folder = state.stores.folder
        message = (
            f"{folder}: {judged.unjudged}. Whether the state of batch {judged.needed - 1} can be loaded was not judged."
        )
        yield _warned("unjudged-state", folder, message)
    unproved = state.contents.unproved()
    if unproved:
        message = (
            f"{len(unproved)} state files are there, but nothing proves their bytes: they have no checksum file and "
            f"are compressed by a codec that is not read here. The first is {unproved[0]}."
        )
        yield _warned("unjudged-state", unproved[0], message, tuple(map(Where, unproved[:_PLACES])))


def _then(judged: JudgedState) -> str:
    if judged.batch < 0:
        back = "no other batch is left whose state can be loaded"
    else:
        back = f"or go back to batch {judged.batch} on a copy of the checkpoint"
    return f"The restart fails. Put it back from a backup, {back}."


def _broken_finding(state: State, judged: JudgedState, id: str, links: list[Broken], then: str) -> Finding:
    """One finding an operator and kind of damage."""
    first = links[0]
    name = state.stores.names.get(first.chain.operator)
    called = f"operator {first.chain.operator}" + (f" ({name})" if name else "")
    names = ", ".join(link.path for link in links[1:_EXAMPLES])
    more = f" and {len(links) - _EXAMPLES} more" if len(links) > _EXAMPLES else ""
    also = f" So it is with {names}{more}." if len(links) > 1 else ""
    which = f"Partition {first.chain.subtask}" if len(links) == 1 else f"{len(links)} stores"
    why = f": {first.why}" if first.why else " is missing"
    message = (
        f"{first.path}{why}.{also} {which} of {called} cannot load version {judged.needed}, the state after batch "
        f"{judged.needed - 1}. {then}"
    )
    return Finding(id, "error", first.path, message, tuple(Where(link.path, link.offset) for link in links[:_PLACES]))


def _no_folder(state: State) -> Iterator[Fact]:
    """A watermark is there for stateful operators; without one nothing tells whether there are any."""
    if state.watermark > 0 and state.needed > 0:
        folder = state.stores.folder
        message = (
            f"{folder} is missing, though the query has a watermark, which is there for operators with state. If the "
            "query has any, a restart fails: put the folder back from a backup."
        )
        yield _warned("missing-state-file", folder, message)


def _metadata_facts(stores: StateStores, operator: str, metadata: FileRead[OperatorMetadata] | None) -> Iterator[Fact]:
    """Metadata and schemas of an operator that are not there or cannot be read: a restart goes on without them."""
    folder = f"{stores.folder}/{operator}"
    then = "A restart goes on without it; how many partitions the operator has was taken from the settings and folders."
    needed = any(path.startswith(f"{folder}/_stateSchema/") for path in stores.by_path)
    if needed:
        then = "The restart fails: transformWithState reads it. Put it back from a backup."
    if metadata is None:
        message = f"{folder}/_metadata has no operator metadata, which Spark writes from 4.0 on. {then}"
        yield Fact(_told("error" if needed else "info", f"{folder}/_metadata", message), needed)
    elif metadata.flaw is not None:
        where = (Where(metadata.path, metadata.flaw.offset),)
        severity: Severity = "error" if needed else "warning"
        message = f"{metadata.path}: {metadata.flaw.why}. {then}"
        yield Fact(Finding(metadata.flaw.id, severity, metadata.path, message, where), needed)
    if not any(path.startswith(folder + "/") and _is_schema(path) for path in stores.by_path):
        message = (
            f"{folder} has no schema of its state, which Spark writes from 3.1 on. A restart goes on without it, and "
            "does not notice if the query reads the state by another one."
        )
        yield Fact(_told("info", folder, message))


def _told(severity: Severity, subject: str, message: str) -> Finding:
    return Finding("missing-state-file", severity, subject, message, (Where(subject),))


def _is_schema(path: str) -> bool:
    """A store's own, or one of a version 2."""
    return path.endswith("/_metadata/schema") or "/_stateSchema/" in path


def state_notes(state: State, judged: JudgedState) -> Iterator[str]:
    """What was judged, and what not."""
    if not state.stores.by_path:
        yield "There is no state folder: right for a query that keeps no state; any other cannot restart without it."
        return
    stores = len(state.stores.files)
    if judged.unjudged:
        yield f"The state was not judged: {judged.unjudged}."
    elif not judged.broken and judged.needed:
        yield f"State: all {stores} stores can load version {judged.needed}, the state after batch {judged.needed - 1}."
    schemas = sorted({path for got in state.stores.reads.values() if got and got.value for path in got.value.schemas})
    if schemas:
        yield f"The state's schema is stored by its absolute path, {schemas[0]}: a restart needs it there."


def chain_note(judged: JudgedState) -> str:
    """What the numbers of versions mean in batches."""
    lead = "Numbers are versions of state: version V is the state after batch V - 1."
    if judged.unjudged:
        return f"{lead} To which batch the query can go back was not judged: {judged.unjudged}."
    if judged.batch < 0:
        return f"{lead} There is no batch that the query can go back to."
    return f"{lead} With its offsets and commits, the query can go back to batch {judged.batch}."

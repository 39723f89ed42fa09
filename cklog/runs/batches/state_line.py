"""To which batch can all state stores of a Spark checkpoint go back?

A restart after batch c loads version c + 1 of every store: of the newest snapshot that can be read and every delta
after it. Read off Spark 4.3 by damaging copies and restarting them: a snapshot that cannot be read is passed over
(from Spark 4.1 on, with state checkpoint format 2 from 4.2 on), a delta that is missing or damaged stops the restart.
Only files that a restart would read are read, unless all are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cklog.chains.restorable import Chains, chains_of
from cklog.inputs.batches import MetadataLogs, StoredState
from cklog.inputs.pieces import ChainName

UNSURE = ("unknown-version", "unreadable-file", "oversized-file")
"""Flaws of files that Spark may well be able to read."""


class BrokenStore(NamedTuple):
    """A store that cannot load a version: the file that it lacks, the finding's id, why, and where in the file.

    `why` is "" if the file is missing.
    """

    chain: ChainName
    path: str
    id: str
    why: str
    offset: int | None


@dataclass(frozen=True, slots=True)
class JudgedState:
    """To which batch every store can go back.

    Attributes
    ----------
    batch : the newest one, -1 for none; where `unjudged`, the newest for which that is proven
    needed : the version that a restart loads
    broken : why not to the newest commit; none if `batch` is that
    unjudged : why it cannot be told, "" if it can
    """

    batch: int
    needed: int
    broken: tuple[BrokenStore, ...]
    unjudged: str


def judge_state(state: StoredState, logs: MetadataLogs) -> JudgedState:
    """Find the newest batch that every store can go back to, reading what a restart there would read.

    `state` is that of `logs`.
    """
    if state.unknown:
        return JudgedState(logs.committed, state.needed, (), state.unknown)
    chains = _read_for(state, logs.committed)
    broken = tuple(_broken_stores(state, chains)) if logs.committed >= 0 else ()
    batch = logs.committed if not broken else _newest_batch(state, logs, chains)
    unsure = sorted({link.path for link in broken if link.id in UNSURE})
    return JudgedState(batch, state.needed, broken, f"{unsure[0]} cannot be judged" if unsure else "")


def _read_for(state: StoredState, batch: int) -> Chains:
    """Return the chains, after reading all that a restart after a batch would read.

    What a file says may send the restart to others, an older snapshot for instance: so until nothing new is read.
    """
    while True:
        chains = chains_of(state.table())
        paths = chains.table["path"]
        wanted: set[str] = set()
        for i in range(len(chains.names)):
            wanted |= {paths[row].as_py() for row in chains.reading(i, batch + 1)}
        if not state.read(wanted):
            return chains


def _newest_batch(state: StoredState, logs: MetadataLogs, chains: Chains) -> int:
    """Find the newest batch that every store can go back to, and whose plan and commit can be read; -1 for none."""
    whole = [n for n, read in logs.commits.items() if read.flaw is None and logs.ends(n) is not None]
    # a restart reads the plan before as well: first the batches that have it, the newest first
    order = sorted(whole, key=lambda n: (n > 0 and logs.ends(n - 1) is None, -n))
    for batch in order:
        if _can_all_load(chains, batch):
            chains = _read_for(state, batch)
            if _can_all_load(chains, batch):
                return batch
    return -1


def _can_all_load(chains: Chains, batch: int) -> bool:
    """Return whether every store can load what a batch left, as far as is known."""
    return all(chains.can_restore(i, batch + 1) for i in range(len(chains.names)))


def _broken_stores(state: StoredState, chains: Chains) -> Iterator[BrokenStore]:
    """Yield the stores that cannot load the needed version."""
    flaws = dict(state.flaws())
    for i, chain in enumerate(chains.names):
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

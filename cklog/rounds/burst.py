"""Burst failures: nodes are gone, and with them the subtasks that ran there and what lay on their own disks.

All subtasks go back to the most recent complete checkpoint; those of failed nodes are restarted on healthy ones. A
checkpoint is read from the local disk of the node where its subtask restarts, else from the shared storage (Meteor
Shower, section III-A). Where a copy lies:

    file:///…           on the disk of the node where its subtask ran (`placement` in job.json)
    file://NODE/…       on that node's disk, and so does what a checkpoint-stored event with `node` tells of
    scheme://…          in the shared storage
    anything else       nobody knows
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from cklog.arrays.columns import holds
from cklog.arrays.types import Ints
from cklog.errors import NotFound
from cklog.history.records import CheckpointRecords
from cklog.history.tokens import StoredCopy, TokenLog
from cklog.history.watermarks import BuiltHistory
from cklog.model.findings import Finding
from cklog.model.names import Subtask

CheckpointPlace = Literal["local disk", "shared storage", "unknown", "initial state"]
RestartFate = Literal["restarts elsewhere", "restarts", "rolls back"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where subtasks ran: the `node` of each, None if it is not known; all `nodes`, sorted, and those that `failed`."""

    node: tuple[str | None, ...]
    nodes: tuple[str, ...]
    failed: frozenset[str]

    def lost(self, i: int) -> bool | None:
        """Tell whether subtask `i`'s node failed; None: it is not known where it ran, and some node failed."""
        if not self.failed:
            return False
        return None if self.node[i] is None else self.node[i] in self.failed


def placement_of(
    subtasks: tuple[Subtask, ...], manifest: Mapping[str, Any], log: TokenLog, failed: Iterable[str]
) -> tuple[Placement, list[Finding]]:
    """Return the placement that the manifest gives, and what is wrong with it.

    `operators[].placement` is an object, subtask → node; `nodes` a list of more nodes (spares).

    Raises
    ------
    NotFound : a failed node is none of them
    """
    places, findings = _placed_nodes(manifest)
    spare = manifest.get("nodes", [])
    if not isinstance(spare, list) or not all(isinstance(node, str) and node for node in spare):
        message = "job.json: nodes is no list of names; it is ignored"
        findings.append(Finding("bad-placement", "error", "nodes", message, effect="none"))
        spare = []
    storing = {copy.node for copies in log.copies.values() for copy in copies if copy.node}
    nodes = tuple(sorted({*places.values(), *spare, *storing}))
    gone = frozenset(failed)
    for name in sorted(gone - set(nodes)):
        known = ", ".join(nodes[:10]) or "none: job.json needs operators[].placement"
        raise NotFound(f"--failed-nodes {name}: no such node", f"nodes here: {known}")
    return Placement(tuple(places.get(s) for s in subtasks), nodes, gone), findings


def _placed_nodes(manifest: Mapping[str, Any]) -> tuple[dict[Subtask, str], list[Finding]]:
    """Return the node of each subtask that the manifest places."""
    places: dict[Subtask, str] = {}
    findings = []
    for row in manifest.get("operators", []):
        given = row.get("placement", {})
        if not isinstance(given, dict) or not all(_is_placement(key, node) for key, node in given.items()):
            message = f"job.json: the placement of {row['name']} is no object of subtask → node; it is ignored"
            findings.append(Finding("bad-placement", "error", row["name"], message, effect="none"))
            continue
        places |= {Subtask(row["name"], int(key)): node for key, node in given.items()}
    return places, findings


def _is_placement(key: str, node: Any) -> bool:
    """Tell whether an entry of JSON places a subtask: a number and a name."""
    return key.isascii() and key.isdecimal() and len(key) < 10 and isinstance(node, str) and bool(node)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of an individual checkpoint: on the disk of `node`, in the shared storage, or it is not known where."""

    store: CheckpointPlace
    node: str | None
    uri: str | None


def copy_at(uri: str | None, ran_on: str | None, node: str | None = None) -> Copy:
    """Tell where a stored checkpoint lies, of a subtask that ran on `ran_on`; `node`: on the disk of that one.

    >>> copy_at("hdfs://store/7", "n1").store, copy_at("file:///ckpt/7", "n1").node, copy_at("ckpt/7", "n1").store
    ('shared storage', 'n1', 'unknown')
    """
    if node is not None:
        return Copy("local disk", node, uri)
    try:
        parts = urlsplit(uri or "")
    except ValueError:
        return Copy("unknown", None, uri)
    if parts.scheme == "file":
        host = parts.netloc if parts.netloc not in ("", "localhost") else ran_on
        return Copy("local disk" if host else "unknown", host, uri)
    return Copy("shared storage" if len(parts.scheme) > 1 else "unknown", None, uri)  # one letter is a drive


class Copies:
    """Where the checkpoint of every record can be read from after a failure.

    Parameters
    ----------
    number : the round of each record, -1 for none
    rounds : the round numbers, whose places the copies in `log` are given by
    """

    def __init__(
        self, records: CheckpointRecords, placement: Placement, log: TokenLog, number: Ints, rounds: Ints
    ) -> None:
        self._records = records
        self._placement = placement
        self._stored: dict[tuple[int, int], list[StoredCopy]] = {}  # by round and subtask
        for place, copies in log.copies.items():
            for copy in copies:
                self._stored.setdefault((int(rounds[place]), copy.subtask), []).append(copy)
        self._number = number
        self._parent = parents(records)

    def chain(self, row: int) -> list[int]:
        """Return the records that restoring one reads: itself and, of a delta, those that it is based on."""
        found = []
        while row >= 0:
            found.append(row)
            row = int(self._parent[row])
        return found

    def own_size(self, row: int) -> int | None:
        """Return the bytes of a record's checkpoint alone; None: not known, or no record (-1)."""
        size: int | None = self._records.table["bytes"][row].as_py() if row >= 0 else None
        return size

    def size(self, row: int) -> int | None:
        """Return the bytes of a record's chain; None if some are not known."""
        if row < 0:
            return None
        sizes = [self.own_size(r) for r in self.chain(row)]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def of(self, row: int) -> list[Copy]:
        """Return the copies of a record's checkpoint that did not go with a failed node; the local ones first."""
        i = int(self._records.subtask[row])
        ran_on = self._placement.node[i]
        stored = self._stored.get((int(self._number[row]), i), []) if self._number[row] >= 0 else []
        uri = self._records.table["uri"][row].as_py()
        found = [copy_at(uri, ran_on)] if uri is not None or not stored else []
        found += [copy_at(copy.uri, ran_on, copy.node) for copy in stored]
        left = [copy for copy in dict.fromkeys(found) if copy.node not in self._placement.failed]
        return sorted(left, key=lambda copy: (copy.store, copy.node or "", copy.uri or ""))

    def lost(self, row: int) -> bool:
        """Tell whether a record cannot be read: all copies of it, or of what it is based on, went with failed nodes."""
        return row >= 0 and any(not self.of(r) for r in self.chain(row))


def parents(records: CheckpointRecords) -> Ints:
    """Return the row of the record that each delta is based on, -1 for none; without `parent` the one before it.

    Shape (records,); records are in order of subtask and number.
    """
    found = np.full(len(records.number), -1)
    delta = np.flatnonzero(holds(records.table["form"], "delta")).tolist()
    if not delta:
        return found
    place = {pair: r for r, pair in enumerate(zip(records.subtask.tolist(), records.number.tolist(), strict=True))}
    stated = records.table["parent"].to_pylist()
    for r in delta:
        i, own = int(records.subtask[r]), int(records.number[r])
        if stated[r] is None:
            found[r] = r - 1 if r and records.subtask[r - 1] == i else -1
        elif stated[r] < own:
            found[r] = place.get((i, stated[r]), -1)
    return found


@dataclass(frozen=True, slots=True)
class SubtaskRestart:
    """What a restart does with a subtask. None: not known.

    It ran on `node`, resumes on node `on`, and reads its checkpoint number `checkpoint` from `read_from`, at `uri`;
    `bytes` are to read, with all that a delta is based on.
    """

    operator: str
    subtask: int
    node: str | None
    fate: RestartFate
    on: str | None
    checkpoint: int | None
    read_from: CheckpointPlace
    uri: str | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What a node has to do: subtasks to restart and to roll back, and bytes to read from its disk and from elsewhere.

    `node` None: it is not known which. `unknown` of its subtasks have checkpoints of unknown place or size.
    """

    node: str | None
    failed: bool
    restarts: int
    rolls_back: int
    local_bytes: int
    shared_bytes: int
    unknown: int


def restarts(
    built: BuiltHistory, line: Ints, copies: Copies, placement: Placement, failed: frozenset[int]
) -> list[SubtaskRestart]:
    """Say where every subtask goes on and what it reads; `failed`: those that are down, whatever their nodes do.

    A subtask of a failed node goes to the healthy node with the fewest subtasks then, the first by name of equals.
    """
    history = built.history
    rows = built.row[history.first[:-1] + line]
    fate: list[RestartFate] = []
    for i in range(len(history.subtasks)):
        if placement.lost(i) is not False:
            fate.append("restarts elsewhere")
        else:
            fate.append("restarts" if i in failed else "rolls back")
    target = _target_nodes(fate, placement)
    found = []
    for i, subtask in enumerate(history.subtasks):
        row, label = int(rows[i]), int(history.label[history.first[i] + line[i]])
        copy = _best_copy(copies.of(row), target[i]) if row >= 0 else Copy("initial state", None, None)
        found.append(
            SubtaskRestart(
                operator=subtask.operator,
                subtask=subtask.subtask,
                node=placement.node[i],
                fate=fate[i],
                on=target[i],
                checkpoint=label,
                read_from=copy.store,
                uri=copy.uri,
                bytes=copies.size(row) if row >= 0 else 0,
            )
        )
    return found


def _target_nodes(fate: list[RestartFate], placement: Placement) -> list[str | None]:
    """Choose the node where each subtask goes on; None: not known, or no node is left."""
    count = {node: 0 for node in placement.nodes if node not in placement.failed}
    for node, what in zip(placement.node, fate, strict=True):
        if node in count and what != "restarts elsewhere":
            count[node] += 1
    target: list[str | None] = []
    for node, what in zip(placement.node, fate, strict=True):
        if what == "restarts elsewhere":
            node = min(count, key=lambda name: (count[name], name), default=None)
            if node is not None:
                count[node] += 1
        target.append(node)
    return target


def _best_copy(copies: list[Copy], node: str | None) -> Copy:
    """Choose the copy to read: on the node's own disk, else in the shared storage, else wherever it is."""
    own = [copy for copy in copies if copy.store == "local disk" and copy.node == node]
    shared = [copy for copy in copies if copy.store == "shared storage"]
    other = [Copy("unknown", copy.node, copy.uri) for copy in copies]
    return (own or shared or other or [Copy("unknown", None, None)])[0]


def loads(rows: list[SubtaskRestart], placement: Placement) -> list[NodeLoad]:
    """Sum up what each node has to do, failed ones too; last, if there are any, the subtasks on no known node."""
    names: list[str | None] = [*placement.nodes]
    if any(row.on is None for row in rows):
        names.append(None)
    found = []
    for name in names:
        mine = [row for row in rows if row.on == name]
        known = [row for row in mine if row.bytes is not None and row.read_from != "unknown"]
        found.append(
            NodeLoad(
                node=name,
                failed=name in placement.failed,
                restarts=sum(row.fate != "rolls back" for row in mine),
                rolls_back=sum(row.fate == "rolls back" for row in mine),
                local_bytes=sum(row.bytes or 0 for row in known if row.read_from == "local disk"),
                shared_bytes=sum(row.bytes or 0 for row in known if row.read_from == "shared storage"),
                unknown=len(mine) - len(known),
            )
        )
    return found

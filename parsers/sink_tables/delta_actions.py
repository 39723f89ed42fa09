"""The actions of one commit of Delta: who wrote it, what it did, the transactions in it, and how many rows it added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cklog.budgets import reading
from cklog.inputs.sink_tables import Operation
from cklog.parsers.sink_tables.files import Metadata, NoJson, json_of, members, text, whole
from cklog.storage import FileEntry
from cklog.unknown_formats import UnknownFormat, require_known, require_known_name

_OPERATIONS: dict[str, Operation] = {
    "WRITE": "append",
    "STREAMING UPDATE": "append",
    "CREATE TABLE AS SELECT": "append",
    "COPY INTO": "append",
    "REPLACE TABLE AS SELECT": "overwrite",
    "CREATE OR REPLACE TABLE AS SELECT": "overwrite",
    "MERGE": "overwrite",
    "UPDATE": "overwrite",
    "DELETE": "delete",
    "TRUNCATE": "delete",
    "OPTIMIZE": "rewrite",
    "REORG": "rewrite",
    "RESTORE": "restore",
}
_ACTIONS = frozenset(
    {
        "commitInfo",
        "add",
        "remove",
        "metaData",
        "protocol",
        "txn",
        "cdc",
        "domainMetadata",
        "checkpointMetadata",
        "sidecar",
        "rowIdHighWaterMark",
    }
)
_NEWEST = {"minReaderVersion": 3, "minWriterVersion": 7}
_READER_FEATURES = (
    "catalogManaged",
    "catalogOwned-preview",
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
    "variantShredding-preview",
)
_WRITER_FEATURES = (
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "coordinatedCommits-preview",
    "domainMetadata",
    "generatedColumns",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "icebergWriterCompatV1",
    "identityColumns",
    "inCommitTimestamp",
    "inCommitTimestamp-preview",
    "invariants",
    "materializePartitionColumns",
    "rowTracking",
)
_MODES = ("mode", "outputMode")
_REPLACES = frozenset({"overwrite", "complete"})
_ROWS = ("numOutputRows", "num_added_rows")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of the log; one that is damaged has nothing but its version.

    `properties` of the table and its `id`, if the commit sets them; `target` is what a RESTORE says it went back to:
    its parameters; `ahead`: features for writers that are not known
    """

    time: int | None = None
    operation: Operation = "other"
    rows: int | None = None
    engine: str = ""
    transactions: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    properties: Mapping[str, str] | None = None
    target: Mapping[str, Any] | None = None
    id: str = ""
    ahead: tuple[str, ...] = ()


def commit_of(files: Metadata, folder: str, entry: FileEntry) -> Commit:
    """Read a commit; damage becomes a finding, and a commit of which nothing is known."""
    data = files.read(folder, entry)
    path = f"{folder}/{entry.path}"
    try:
        with reading(files.place(path)):
            return of_actions(_actions(data))
    except UnknownFormat as error:
        files.unknown(path, error)
        return Commit()
    except NoJson as error:
        files.damaged(path, str(error))
        return Commit()


def _actions(data: bytes) -> list[dict[str, Any]]:
    """Return the actions in a file; all of them, or `NoJson`."""
    lines = data.split(b"\n")
    found = [json_of(line) for line in lines if line.strip()]
    if not found:
        raise NoJson("it is empty")
    if not all(isinstance(action, dict) for action in found):
        raise NoJson("a line is no action")
    return found


def of_actions(actions: Iterable[dict[str, Any]]) -> Commit:
    """Return the commit that actions make.

    Raises
    ------
    UnknownFormat : an action, or the protocol, is none that is known
    NoJson : the name of an action is damaged
    """
    info: dict[str, Any] = {}
    adds: list[dict[str, Any]] = []
    transactions: dict[str, tuple[int, int | None]] = {}
    properties: Mapping[str, str] | None = None
    id = ""
    ahead: tuple[str, ...] = ()
    for action in actions:
        check_action(action)
        if "commitInfo" in action:
            info = members(action["commitInfo"])
        elif "add" in action:
            adds.append(members(action["add"]))
        elif "txn" in action:
            transactions.update(transaction_of(action["txn"]))
        elif "metaData" in action:
            properties, id = properties_of(action["metaData"]), id_of(action["metaData"])
        elif "protocol" in action:
            ahead = check_protocol(action["protocol"])
    operation, parameters = _operation(info, adds)
    return Commit(
        time=whole(info.get("inCommitTimestamp")) or whole(info.get("timestamp")),
        operation=operation,
        rows=_rows(operation, members(info.get("operationMetrics")), adds),
        engine=text(info.get("engineInfo")).lower(),
        transactions=transactions,
        properties=properties,
        target=parameters if operation == "restore" else None,
        id=id,
        ahead=ahead,
    )


def check_action(action: Mapping[str, Any]) -> None:
    """Raise `UnknownFormat` for an action that is not known, `NoJson` for one whose name is damaged."""
    for name in action.keys() - _ACTIONS:
        require_known_name("Delta: action", name, _ACTIONS)
        raise NoJson(f"an action has the name {text(name)[:40]!r}, one bit away from a known one")


def check_protocol(value: Any) -> tuple[str, ...]:
    """Return the features of a table's protocol that writers need and that are not known; readers may pass over those.

    Raises
    ------
    UnknownFormat : whoever reads or writes the table needs a later version, or whoever reads it another feature
    NoJson : a version is none, or a name is damaged
    """
    found = members(value)
    for name, newest in _NEWEST.items():
        number = whole(found.get(name, 1))
        if number is None or number < 1:
            raise NoJson(f"the {name} of a protocol action is {str(found[name])[:40]}")
        require_known(f"Delta: {name}", number, newest)
    for name in _names_in(found.get("readerFeatures")):
        require_known_name("Delta: reader feature", name, _READER_FEATURES)
        if name not in _READER_FEATURES:
            raise NoJson(f"a reader feature has the name {name[:40]!r}, one bit away from a known one")
    known = {*_READER_FEATURES, *_WRITER_FEATURES}
    return tuple(name for name in _names_in(found.get("writerFeatures")) if name not in known)


def _names_in(value: Any) -> list[str]:
    return [text(name) for name in value] if isinstance(value, list) else []


def transaction_of(value: Any) -> dict[str, tuple[int, int | None]]:
    """Return a transaction: its number and when it was made, by the application.

    Raises
    ------
    NoJson : it has no application or no number
    """
    found = members(value)
    app, number = text(found.get("appId")), whole(found.get("version"))
    if not app or number is None:
        raise NoJson("a txn action has no appId, or no version")
    return {app: (number, whole(found.get("lastUpdated")))}


def id_of(value: Any) -> str:
    """Return the id of a table of its metadata, which stays when the table is moved or copied."""
    return text(members(value).get("id"))


def properties_of(value: Any) -> dict[str, str]:
    """Return the properties of a table of its metadata, which are pairs in Parquet and an object in JSON."""
    found = members(value).get("configuration")
    pairs = found if isinstance(found, list) else list(members(found).items())
    return {text(key): text(told) for key, told in pairs if isinstance(told, str)}


def _operation(info: dict[str, Any], adds: list[dict[str, Any]]) -> tuple[Operation, dict[str, Any]]:
    """Return what a commit did, and with which parameters."""
    parameters = members(info.get("operationParameters"))
    operation = _OPERATIONS.get(text(info.get("operation")).upper(), "other")
    if operation == "append" and any(text(parameters.get(key)).strip('"').lower() in _REPLACES for key in _MODES):
        operation = "overwrite"
    if operation in ("other", "append") and adds and all(add.get("dataChange") is False for add in adds):
        operation = "rewrite"
    if operation == "other" and adds and not info:
        operation = "append"
    return operation, parameters


def _rows(operation: Operation, metrics: dict[str, Any], adds: list[dict[str, Any]]) -> int | None:
    """Return how many rows a commit added; None: it does not say."""
    if operation in ("rewrite", "delete"):
        return 0
    if operation == "restore":
        return None
    for key in _ROWS:
        if (told := whole(metrics.get(key))) is not None:
            return told
    counted = [_records(add) for add in adds if add.get("dataChange") is not False]
    return None if any(rows is None for rows in counted) else sum(rows for rows in counted if rows is not None)


def _records(add: dict[str, Any]) -> int | None:
    """Return how many rows the statistics of a file tell; None: they do not."""
    told = text(add.get("stats"))
    if not told:
        return None
    try:
        return whole(members(json_of(told.encode())).get("numRecords"))
    except NoJson:
        return None


class Changes(NamedTuple):
    """The files that a commit added and removed, each by its path and the vector of rows that are deleted in it."""

    added: set[str]
    removed: set[str]


def changes_of(files: Metadata, folder: str, entry: FileEntry) -> Changes | None:
    """Read which files a commit added and removed; None if it is damaged, which was said when it was read first."""
    try:
        actions = _actions(files.read(folder, entry))
    except NoJson:
        return None
    return Changes(*({_file(action[kind]) for action in actions if kind in action} for kind in ("add", "remove")))


def _file(action: Any) -> str:
    found = members(action)
    return f"{text(found.get('path'))} {json.dumps(found.get('deletionVector'), sort_keys=True)}"

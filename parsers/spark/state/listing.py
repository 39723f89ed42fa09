"""State stores of a Spark checkpoint as they lie there: which file is what.

    state/OP/_metadata/metadata     "v1"  {"operatorInfo", "stateStoreInfo": [{"storeName", "numPartitions"}]}
    state/OP/_metadata/v2/B         "v2"  the same as of batch B (transformWithState)
    state/OP/P/[STORE/]             V.delta V.snapshot (HDFS-backed), V.changelog V.zip SSTs/ (RocksDB)
                                    V_ID.changelog V_ID.zip (state checkpoint format 2): the ID in commits/V-1 counts

Version V is the state after batch V-1. A snapshot or zip holds all of a version, a delta or changelog what one batch
changed; the first one stands on an empty store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cklog.budgets import check_json
from cklog.inputs.batches import FileRead
from cklog.inputs.pieces import ChainName
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.metadata_log import Damaged, read, version_of
from cklog.parsers.spark.state.required import MOST_PARTITIONS, Left, OperatorMetadata
from cklog.storage import FileEntry, Root

_NUMBER = "(0|[1-9][0-9]{0,17})"
_FILE = re.compile(rf"{_NUMBER}/{_NUMBER}/(?:([^/]+)/)?{_NUMBER}(?:_([^/.]+))?\.(delta|snapshot|changelog|zip)")
_BATCH = re.compile("[0-9]{1,18}")
_PROVIDERS: Mapping[str, tuple[str, str]] = {
    "HDFSBackedStateStoreProvider": ("snapshot", "delta"),
    "RocksDBStateStoreProvider": ("zip", "changelog"),
}
"""What a provider calls its bases and its deltas, by the end of its class name."""


def newest_has_id(paths: Iterable[str], folder: str) -> bool:
    """Return whether the newest version of state below a folder has an id in its name, as with format 2.

    >>> newest_has_id(["state/0/0/1.delta", "state/0/0/2_ab-cd.changelog"], "state/")
    True
    >>> newest_has_id(["state/0/0/1_ab-cd.changelog", "state/0/0/2.changelog"], "state/")
    False
    """
    found = (_FILE.fullmatch(path.removeprefix(folder)) for path in paths)
    return max(((int(one[4]), one[5] is not None) for one in found if one), default=(0, False))[1]


class StoredVersion(NamedTuple):
    """A file with a version of one store; `form` is base or delta, `id` "" before state checkpoint format 2."""

    version: int
    id: str
    form: str
    entry: FileEntry


@dataclass(frozen=True, slots=True)
class StateStores:
    """All state stores of a checkpoint.

    Attributes
    ----------
    folder : `state`, below PATH
    files : of every store of which a version is there, by version
    words : how the provider's files of bases and of deltas end; None: the provider is not known
    provider : the class of the provider, "" if nothing names it
    names : of each operator, as its metadata calls it
    reads : the metadata of each operator, None where none is there
    left : what is left of each operator
    by_path : every file below `folder`, checksums and SSTs too
    """

    folder: str
    files: dict[ChainName, dict[int, list[StoredVersion]]]
    words: tuple[str, str] | None
    provider: str
    names: dict[str, str] = field(default_factory=dict)
    reads: dict[str, FileRead[OperatorMetadata] | None] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)
    by_path: dict[str, FileEntry] = field(default_factory=dict)

    def place(self, chain: ChainName) -> str:
        """Return the folder of a store."""
        return f"{self.folder}/{chain.operator}/{chain.subtask}" + (f"/{chain.store}" if chain.store else "")

    def expected(self, chain: ChainName, version: int, ids: frozenset[str]) -> str:
        """Return the path at which a version should be: that of a delta, if the store has any, or else any store has.

        `ids` are those that the version may have; the first is taken, if there is any.
        """
        base, delta = self.words or ("snapshot", "delta")
        stores = [self.files[chain]] if self.files.get(chain) else self.files.values()
        seen = {file.form for versions in stores for files in versions.values() for file in files}
        word = base if seen == {"base"} and base == "zip" else delta
        return f"{self.place(chain)}/{version}{''.join(f'_{id}' for id in sorted(ids)[:1])}.{word}"


def list_stores(
    root: Root,
    entries: Iterable[FileEntry],
    folder: str,
    provider: str,
    named: Iterable[str],
) -> StateStores:
    """List every store below `folder`, by one pass over `entries`.

    Parameters
    ----------
    provider : the class of the provider, "" if nothing names it
    named : the operators that commits name
    """
    lead = folder + "/"
    by_path = {entry.path: entry for entry in entries if entry.path.startswith(lead)}
    found: dict[ChainName, dict[int, list[StoredVersion]]] = {}
    suffixes: set[str] = set()
    for path, entry in by_path.items():
        match = None if path.endswith(".crc") else _FILE.fullmatch(path, len(lead))
        if match is None:
            continue
        operator, partition, store, version, id, suffix = match.groups()
        suffixes.add(suffix)
        form = "base" if suffix in ("snapshot", "zip") else "delta"
        chain = ChainName(operator, int(partition), store or "")
        found.setdefault(chain, {}).setdefault(int(version), []).append(
            StoredVersion(int(version), id or "", form, entry)
        )
    words = _suffixes_of_provider(provider, suffixes)
    if words is not None:
        found = {chain: _files_of_provider(versions, words) for chain, versions in found.items()}
    operators = _list_operators(by_path, lead, named)
    metadata = [path for path in by_path if "/_metadata/" in path]
    reads = {operator: _read_metadata(root, by_path, metadata, f"{lead}{operator}/_metadata") for operator in operators}
    seen: dict[str, list[ChainName]] = {operator: [] for operator in reads}
    for chain in found:
        seen.setdefault(chain.operator, []).append(chain)
    inside = _by_operator(by_path, lead)
    names = {op: got.value.name for op, got in reads.items() if got is not None and got.value is not None}
    return StateStores(
        folder=folder,
        files=dict(sorted(found.items())),
        words=words,
        provider=provider,
        names=names,
        reads=reads,
        left={op: Left(root, f"{lead}{op}", inside.get(op, {}), seen[op]) for op in reads},
        by_path=by_path,
    )


def _by_operator(by_path: Mapping[str, FileEntry], lead: str) -> dict[str, dict[str, FileEntry]]:
    """Sort the files below the folder of state by the operator that they belong to."""
    found: dict[str, dict[str, FileEntry]] = {}
    for path, entry in by_path.items():
        found.setdefault(path[len(lead) :].partition("/")[0], {})[path] = entry
    return found


def _suffixes_of_provider(provider: str, suffixes: set[str]) -> tuple[str, str] | None:
    """Return how a provider's bases and deltas end, by its class; None if it is not known.

    Old offsets name no class: then by the files that are there, which must be of one provider.
    """
    if provider:
        return _PROVIDERS.get(provider.rpartition(".")[2])
    return next((words for words in _PROVIDERS.values() if suffixes <= set(words)), None)


def _files_of_provider(
    versions: dict[int, list[StoredVersion]], words: tuple[str, str]
) -> dict[int, list[StoredVersion]]:
    """Leave out files of other providers, and versions without any other file."""
    kept = {v: [f for f in files if f.entry.path.endswith(words)] for v, files in versions.items()}
    return {version: files for version, files in kept.items() if files}


def _list_operators(by_path: Mapping[str, FileEntry], lead: str, named: Iterable[str]) -> list[str]:
    """List the operators; they are numbered from 0, so that a folder that is gone altogether leaves a hole."""
    seen = {path[len(lead) :].partition("/")[0] for path in by_path}
    numbers = {int(name) for name in {*seen, *named} if re.fullmatch(r"[0-9]{1,3}", name)}
    return [str(n) for n in range(max(numbers, default=-1) + 1)]


def _read_metadata(
    root: Root, by_path: Mapping[str, FileEntry], paths: Iterable[str], folder: str
) -> FileRead[OperatorMetadata] | None:
    """Read an operator's metadata, which is among `paths`: version 1, or the newest of version 2."""
    lead = f"{folder}/v2/"
    newer = [path for path in paths if path.startswith(lead) and _BATCH.fullmatch(path, len(lead))]
    path = max(newer, key=lambda path: int(path.rpartition("/")[2]), default=f"{folder}/metadata")
    if path not in by_path:
        return None
    return read(root, by_path[path], decode_operator, by_path.get(hadoop_crc.sidecar_of(path)))


def decode_operator(data: bytes) -> OperatorMetadata:
    """Decode a file of operator metadata."""
    head, _, body = data.partition(b"\n")
    version_of(head.decode(errors="replace"), 2)
    try:
        check_json(body)
        value = json.loads(body)
        stores = {str(row["storeName"]): row["numPartitions"] for row in value["stateStoreInfo"]}
        name = str(value["operatorInfo"]["operatorName"])
        schemas: list[str] = []
        for row in value["stateStoreInfo"]:
            schemas += map(str, row.get("stateSchemaFilePaths") or ())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Damaged("torn-batch-file", len(head) + 1, "no operator metadata from here on") from None
    if not stores or not all(type(n) is int and 0 < n <= MOST_PARTITIONS for n in stores.values()):
        raise Damaged("torn-batch-file", len(head) + 1, "no number of partitions")
    return OperatorMetadata(name, stores, tuple(schemas))

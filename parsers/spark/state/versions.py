"""The stored versions of all state stores of a Spark checkpoint, and what is wrong with those that were read.

A restart after batch c loads version c + 1 of every store: of the newest snapshot that can be read and every delta
after it. To which batch all stores can go back is judged in `cklog.runs.batches.state_line`, which says what to read.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from cklog.inputs.batches import FileFlaw, FileRead, MetadataLogs, spark_version
from cklog.inputs.pieces import PIECES, ChainName
from cklog.inputs.stored_state import StateOperator, StateSchemaRow, StateStoreRow, TablesSeen
from cklog.model.findings import InputUsed
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.metadata_log import read, size_of
from cklog.parsers.spark.state.files import Content, StateContents
from cklog.parsers.spark.state.listing import StateStores, StoredVersion, list_stores
from cklog.parsers.spark.state.of_batches import RequiredStores
from cklog.parsers.spark.state.schemas import StoredSchema, decode_schemas
from cklog.progress import stage
from cklog.storage import FileEntry, Root

_CODEC = "spark.sql.streaming.stateStore.compression.codec"
_SINCE_WITHOUT_IDS, _SINCE_WITH_IDS = (4, 1), (4, 2)
"""From which version on a damaged snapshot is passed over, before and with state checkpoint format 2."""
_SCHEMA, _SCHEMAS = "/_metadata/schema", "/_stateSchema/"
_JOINS = "spark.sql.streaming.join.stateFormatVersion"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class StateVersions:
    """All state stores as of one line of batches; a restart loads version `needed`, by default the newest commit's.

    Of each store, `_chosen` has the files that count by version: up to the needed one, and with ids (state checkpoint
    format 2) those of the ids that commits name. Which stores there must be depends on the version (`required`).
    """

    def __init__(
        self,
        root: Root,
        entries: Iterable[FileEntry],
        logs: MetadataLogs,
        format: str,
        thorough: bool = False,
        needed: int | None = None,
    ) -> None:
        self._format = format
        self.needed = logs.committed + 1 if needed is None else needed
        newest = logs.newest_plan
        conf = newest.conf if newest is not None else {}
        self._ids = {n + 1: read.value.ids for n, read in logs.commits.items() if read.value is not None}
        named = {operator: partitions for _, ids in sorted(self._ids.items()) for operator, partitions in ids.items()}
        provider = str(conf.get(_PROVIDER, ""))
        self._stores: StateStores = list_stores(root, entries, f"{logs.prefix}state", provider, named)
        self._required = RequiredStores(self._stores, logs, self._ids, named)
        since = _SINCE_WITH_IDS if any(self._ids.values()) else _SINCE_WITHOUT_IDS
        self.repairs_itself = spark_version(logs).since(since) is True
        self._joins_have_families = str(conf.get(_JOINS, "")) not in ("", "1", "2")
        self._root = root
        self._size_of = functools.partial(size_of, root)
        self._read_schema = functools.cache(self._decode_schema)
        self._contents = StateContents(root, self._stores.by_path, str(conf.get(_CODEC, "")), thorough)
        chains = sorted(self._stores.files.keys() | self.required(self.needed))
        self._chosen = {chain: self._choose_files(chain) for chain in chains}

    @property
    def folder(self) -> str:
        """The folder of all state, below PATH."""
        return self._stores.folder

    @property
    def is_here(self) -> bool:
        """Whether there is any file of state."""
        return bool(self._stores.by_path)

    @property
    def unknown(self) -> str:
        """Why the files of the stores cannot be understood, "" if they can: by a provider that is not known."""
        if self._stores.words is not None or not self.is_here:
            return ""
        named = self._stores.provider or "no offsets file names it, and its files are not of one kind"
        return f"the provider of the state stores is not known: {named}"

    @property
    def uncounted(self) -> str:
        """Why an operator may have had stores of which nothing is left, "" if none can have had any."""
        return self._required.unsure(self.needed) if self.is_here else ""

    @functools.cached_property
    def _paths(self) -> Mapping[str, Sequence[str]]:
        """The files of each operator."""
        found: dict[str, list[str]] = {}
        for path in self._stores.by_path:
            if path.startswith(f"{self.folder}/"):
                found.setdefault(path[len(self.folder) + 1 :].partition("/")[0], []).append(path)
        return found

    @functools.cached_property
    def _chains(self) -> Mapping[str, Sequence[ChainName]]:
        """The stores of each operator."""
        found: dict[str, list[ChainName]] = {}
        for chain in self._chosen:
            found.setdefault(chain.operator, []).append(chain)
        return found

    @property
    def operators(self) -> tuple[StateOperator, ...]:
        """The operators with state, in order."""
        return tuple(map(self._operator, self._stores.reads))

    def _operator(self, operator: str) -> StateOperator:
        """Describe an operator; only transformWithState has schemas of version 2, and only it needs the metadata."""
        folder, metadata = f"{self.folder}/{operator}", self._stores.reads[operator]
        inside = self._paths.get(operator, ())
        schemas = metadata.value.schemas if metadata is not None and metadata.value is not None else ()
        needs = any(path.startswith(folder + _SCHEMAS) for path in inside) or self._has_families(operator)
        compared = [] if needs or schemas else [entry for _, entry in self._schemas_of(operator)]
        return StateOperator(
            operator=operator,
            folder=folder,
            name=self._stores.names.get(operator),
            metadata=metadata,
            schemas=schemas,
            lost_schemas=tuple(self._lost_schemas(folder, schemas)),
            has_schema=any(path.endswith(_SCHEMA) or _SCHEMAS in path for path in inside),
            needs_metadata=needs,
            compared=tuple(map(self._read_schema, compared)),
            left_checksums=tuple(self._left_checksums(folder)),
            unseen_schemas=tuple(stored for stored in schemas if self._size_of(stored) == "outside"),
        )

    def _left_checksums(self, folder: str) -> Iterator[str]:
        """Yield checksum files of an operator's metadata, and of schemas in partition 0, whose own file is gone."""
        for path in sorted(path for path in self._stores.by_path if path.startswith(f"{folder}/")):
            owner = hadoop_crc.file_of(path) or ""
            written = owner == f"{folder}/_metadata/metadata" or (
                owner.startswith(f"{folder}/0/") and owner.endswith(_SCHEMA)
            )
            if written and owner not in self._stores.by_path:
                yield path

    def _schemas_of(self, operator: str) -> Iterator[tuple[str, FileEntry]]:
        """Yield the stores of an operator that have a schema of their own, with its file: that of partition 0."""
        lead = f"{self.folder}/{operator}/0"
        found = (path for path in self._paths.get(operator, ()) if path.startswith(f"{lead}/"))
        for path in sorted(path for path in found if path.endswith(_SCHEMA)):
            store = path[len(lead) + 1 : -len(_SCHEMA)]
            if "/" not in store:
                yield store, self._stores.by_path[path]

    def _decode_schema(self, entry: FileEntry) -> FileRead[tuple[StoredSchema, ...]]:
        sidecar = self._stores.by_path.get(hadoop_crc.sidecar_of(entry.path))
        return read(self._root, entry, decode_schemas, sidecar)

    def _lost_schemas(self, folder: str, stored: Iterable[str]) -> Iterator[tuple[str, FileFlaw]]:
        """Yield the schemas of an operator that cannot be used, of those that its metadata names by absolute paths."""
        for name in stored:
            path = f"{folder}{_SCHEMAS}{name.rpartition(_SCHEMAS)[2]}"
            entry = self._stores.by_path.get(path)
            if entry is not None:
                flaw = self._contents.schema_flaw(entry)
            elif isinstance(self._size_of(name), int):
                continue
            else:
                flaw = FileFlaw("missing-state-file", None, f"is missing, and the operator's metadata names it: {name}")
            if flaw is not None:
                yield path, flaw

    def _has_families(self, operator: str) -> bool:
        """Return whether a store of an operator, as far as it was read, has column families as transformWithState's."""
        contents = (self._contents.known(file) for file in self._files(self._chains.get(operator, ())))
        return not self._joins_have_families and any(one is not None and one.has_families for one in contents)

    def tried_in_vain(self, version: int) -> list[str]:
        """Return the snapshots read so far that cannot be used, though loading a version tries them before another."""
        found: list[str] = []
        for chain in sorted(self.required(version)):
            bases = (file for file in self._files([chain]) if file.form == "base" and file.version <= version)
            for file in bases:  # the newest first
                content = self._contents.known(file)
                if content is None or content.flaw is None:
                    break
                found.append(file.entry.path)
        return found

    @property
    def stores(self) -> int:
        """How many stores a restart loads."""
        return len(self.required(self.needed))

    def required(self, version: int) -> frozenset[ChainName]:
        """Return the stores that must have a version."""
        return self._required.of(version)

    def read(self, paths: Collection[str]) -> bool:
        """Read files that were not read before; return whether `table` may look different now."""
        unread = [file for file in self._files() if file.entry.path in paths and self._contents.known(file) is None]
        contents = self._read_files(unread)
        return any(content.flaw is not None or content.lineage or content.has_families for content in contents)

    def read_all(self) -> None:
        """Read every file that counts."""
        self._read_files([*self._files()])

    def _read_files(self, files: Sequence[StoredVersion]) -> list[Content]:
        """Return what is known of files, read now unless they were before."""
        found = []
        size = sum(file.entry.size for file in files)
        with stage("reading state", "bytes", size, size=size) as told:
            for file in files:
                found.append(self._contents.of(file))
                told.advance(file.entry.size)
        return found

    def flaws(self) -> list[tuple[str, FileFlaw]]:
        """Return the files read so far that cannot be used, by path."""
        return self._contents.flaws()

    def unproved(self) -> list[str]:
        """Return the files read so far whose bytes nothing proves."""
        return self._contents.unproved()

    def tables_seen(self) -> TablesSeen:
        """Return how far tables were looked into that nothing else proves."""
        return self._contents.tables.seen

    def table(self) -> pa.Table:
        """Return rows of `PIECES`, with a flaw where a file cannot be used or the needed version is missing."""
        rows = [row for chain in self._chosen for row in self._piece_rows(chain)]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(PIECES)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, PIECES, strict=True)], schema=PIECES)

    def later_files(self, batch: int) -> list[str]:
        """Return the files of versions that a query which goes back to `batch` writes anew, sorted."""
        found: list[str] = []
        for versions in self._stores.files.values():
            for version, files in versions.items():
                if version > batch + 1:
                    found += [file.entry.path for file in files]
        return sorted(found)

    def rows(self, batch: int) -> Iterator[StateStoreRow]:
        """Yield a row for each operator and store, of a restart after `batch`: its partitions, files and their size."""
        kinds: dict[tuple[int, str, str], list[ChainName]] = {}
        for chain in sorted(self.required(batch + 1)):
            kinds.setdefault((int(chain.operator), chain.operator, chain.store), []).append(chain)
        for (_, operator, store), chains in sorted(kinds.items()):
            files = [*self._files(chains)]
            yield {
                "operator": operator,
                "name": self._stores.names.get(operator),
                "store": store or "default",
                "partitions": len(chains),
                "loads_version": batch + 1,
                "files": len(files),
                "bytes": sum(file.entry.size for file in files),
            }

    def schemas(self) -> Iterator[StateSchemaRow]:
        """Yield the stored schema of every store, of transformWithState of each of its column families."""
        newest = {name.rpartition(_SCHEMAS)[2] for op in self.operators for name in op.schemas}
        first: dict[tuple[str, str], FileEntry] = {}
        for operator in self._stores.reads:
            first |= {(operator, store): entry for store, entry in self._schemas_of(operator)}
        for path, entry in self._stores.by_path.items():
            if _SCHEMAS in path and path.rpartition(_SCHEMAS)[2] in newest:
                parts = path.removeprefix(f"{self.folder}/").split("/")
                first[parts[0], parts[2]] = entry
        for (operator, store), entry in sorted(first.items()):
            for schema in self._read_schema(entry).value or (StoredSchema("", "", "", ()),):
                yield {
                    "operator": operator,
                    "store": store or "default",
                    "family": schema.family or None,
                    "key": schema.key or None,
                    "value": schema.value or None,
                    "path": entry.path,
                }

    def inputs(self) -> tuple[InputUsed, ...]:
        """Return the files that count as one input of an answer; none if there is no state."""
        if not self.is_here:
            return ()
        files = [*self._files()]
        return (InputUsed(self.folder, self._format, sum(file.entry.size for file in files), len(files)),)

    def missing(self, chain: ChainName, version: int) -> str:
        """Return the path at which a version that is missing should be."""
        ids = self._committed_ids(chain, version)
        return self._stores.expected(chain, version, ids if ids is not None and len(ids) == 1 else frozenset())

    def _files(self, chains: Iterable[ChainName] | None = None) -> Iterator[StoredVersion]:
        """Yield the files that count, of some stores or of all."""
        for chain in self._chosen if chains is None else chains:
            for files in self._chosen.get(chain, {}).values():
                yield from files

    def _choose_files(self, chain: ChainName) -> dict[int, list[StoredVersion]]:
        """Choose the files of each version up to the needed one, the newest version first."""
        chosen: dict[int, list[StoredVersion]] = {}
        for version, files in sorted(self._stores.files.get(chain, {}).items(), reverse=True):
            if version <= self.needed:
                ids = self._counting_ids(chain, version, files, chosen)
                kept = [file for file in files if file.id in ids]
                chosen |= {version: kept} if kept else {}
        return chosen

    def _counting_ids(
        self, chain: ChainName, version: int, files: Sequence[StoredVersion], chosen: dict[int, list[StoredVersion]]
    ) -> frozenset[str]:
        """Return the ids of a version that count, {""} before state checkpoint format 2.

        `files` are all of the version, `chosen` those that count of later ones: where the commit is gone, the version
        after names the state that it builds on.
        """
        if version in self._ids:
            ids = self._committed_ids(chain, version)
            return frozenset({""}) if ids is None else ids
        seen = frozenset(file.id for file in files)
        if len(seen) == 1:
            return seen
        above = (self._contents.of(file).lineage.get(version) for file in chosen.get(version + 1, ()))
        return frozenset(id for id in above if id)

    def _committed_ids(self, chain: ChainName, version: int) -> frozenset[str] | None:
        """Return the ids that a commit names of a version, None if it names none of this partition."""
        partitions = self._ids.get(version, {}).get(chain.operator, [])
        return partitions[chain.subtask] if chain.subtask < len(partitions) else None

    def _piece_rows(self, chain: ChainName) -> Iterator[tuple[Any, ...]]:
        """Yield the files of a store as rows, in the order of the columns of `PIECES`."""
        versions = self._chosen[chain]
        for version, files in versions.items():
            first = version == 1 and not self._has_base(chain, 1)
            for file in files:
                form = "base" if first else file.form  # the first delta stands on an empty store
                content = self._contents.known(file)
                size = file.entry.size if content is None else content.size
                parent = None if form == "base" else version - 1
                yield *chain, version, form, parent, size, None, file.entry.path, self._why_unusable(chain, file)
        if self.needed > 0 and self.needed not in versions and chain in self.required(self.needed):
            path = self.missing(chain, self.needed)
            yield *chain, self.needed, "delta", self.needed - 1, None, None, path, "is missing"

    def _has_snapshot(self, chain: ChainName, version: int) -> bool:
        """Return whether there is a snapshot to try: if all are damaged, a restart begins at the empty store."""
        older = (files for v, files in self._chosen[chain].items() if v <= version)
        return any(file.form == "base" for files in older for file in files)

    def _has_base(self, chain: ChainName, version: int) -> bool:
        """Return whether a version has a snapshot that can be read, as far as is known."""
        files = self._chosen[chain].get(version, ())
        return any(file.form == "base" and self._why_unusable(chain, file) is None for file in files)

    def _why_unusable(self, chain: ChainName, file: StoredVersion) -> str | None:
        """Return why a file cannot be used, None if it can or was not read yet."""
        content = self._contents.known(file)
        if content is None:
            return None
        if content.flaw is not None:
            return content.flaw.why
        if file.form == "base":
            return None
        if content.has_families and file.version == 1 and not self._has_base(chain, 1):
            return "it needs 1.zip, which holds the store's column families"
        if min(content.lineage, default=1) > 1 and not self._has_snapshot(chain, file.version):
            return f"its lineage begins at version {min(content.lineage)}, and no snapshot is left there or before"
        ground = content.lineage.get(file.version - 1)
        below = self._chosen[chain].get(file.version - 1, ())
        if ground is not None and below and all(one.id != ground for one in below):
            return f"its lineage names another state of version {file.version - 1}: {ground}"
        return None

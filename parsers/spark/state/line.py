"""To which batch can all state stores of a Spark checkpoint go back?

A restart after batch c loads version c + 1 of every store: of the newest snapshot that can be read and every delta
after it. Read off Spark 4.3 by damaging copies and restarting them: a snapshot that cannot be read is passed over
(from Spark 4.1 on, with state checkpoint format 2 from 4.2 on), a delta that is missing or damaged stops the restart.
Only files that a restart would read are read, unless all are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from cklog.chains.restorable import Chains, chains_of
from cklog.inputs.pieces import PIECES, ChainName
from cklog.model.findings import InputUsed
from cklog.parsers.spark.batches import MetadataLogs
from cklog.parsers.spark.state.files import StateContents
from cklog.parsers.spark.state.listing import StateStores, StoredVersion, list_stores
from cklog.storage import FileEntry, Root

UNSURE = ("unknown-version", "unreadable-file", "oversized-file")
"""Flaws of files that Spark may well be able to read."""
_CODEC = "spark.sql.streaming.stateStore.compression.codec"


class Broken(NamedTuple):
    """A link that a store cannot do without: its file, the finding's id, why ("": it is missing), and where in it."""

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
    broken: tuple[Broken, ...]
    unjudged: str


class State:
    """All state stores as of one line of batches; a restart after the newest commit loads version `needed`."""

    def __init__(self, root: Root, entries: Iterable[FileEntry], found: MetadataLogs) -> None:
        self._found = found
        self.needed = found.c + 1
        newest = next((read.value for _, read in sorted(found.offsets.items(), reverse=True) if read.value), None)
        conf = newest.conf if newest is not None else {}
        self.watermark = newest.watermark or 0 if newest is not None else 0
        self._ids = {n + 1: read.value.ids for n, read in found.commits.items() if read.value is not None}
        operators = {operator for ids in self._ids.values() for operator in ids}
        self.stores: StateStores = list_stores(root, entries, f"{found.prefix}state", conf, operators)
        self.contents = StateContents(root, self.stores.by_path, str(conf.get(_CODEC, "")))
        self._chosen = {chain: self._choose(chain) for chain in self.stores.files}

    def judge(self) -> JudgedState:
        """Go back as far as needed, reading what a restart there would read."""
        if self.stores.words is None and self.stores.by_path:
            named = self.stores.provider or "no offsets file names it, and its files are not of one kind"
            return JudgedState(
                self._found.c, self.needed, (), f"the provider of the state stores is not known: {named}"
            )
        chains = self._read_for(self._found.c)
        broken = tuple(self._broken(chains))
        batch = self._found.c if not broken else self._newest(chains)
        unsure = sorted({link.path for link in broken if link.id in UNSURE})
        return JudgedState(batch, self.needed, broken, f"{unsure[0]} cannot be judged" if unsure else "")

    def read_all(self) -> None:
        """Read every file that counts."""
        for versions in self._chosen.values():
            for files in versions.values():
                for file in files:
                    self.contents.of(file)

    def table(self) -> pa.Table:
        """Rows of `PIECES`; a flaw where a file was read and cannot be used, or where the needed version is missing."""
        rows = [row for chain in self._chosen for row in self._rows(chain)]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(PIECES)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, PIECES, strict=True)], schema=PIECES)

    def later_files(self, batch: int) -> list[str]:
        """Files of versions that a query which goes back to `batch` writes anew."""
        files = (f for versions in self.stores.files.values() for found in versions.values() for f in found)
        return sorted(file.entry.path for file in files if file.version > batch + 1)

    def rows(self, batch: int) -> Iterator[dict[str, Any]]:
        """A row for each operator and store: in how many partitions, and how many files of how many bytes."""
        kinds: dict[tuple[int, str, str], list[ChainName]] = {}
        for chain in self._chosen:
            kinds.setdefault((int(chain.operator), chain.operator, chain.store), []).append(chain)
        for (_, operator, store), chains in sorted(kinds.items()):
            files = [f for chain in chains for fs in self._chosen[chain].values() for f in fs]
            yield {
                "operator": operator,
                "name": self.stores.names.get(operator),
                "store": store or "default",
                "partitions": len(chains),
                "loads_version": batch + 1,
                "files": len(files),
                "bytes": sum(file.entry.size for file in files),
            }

    def inputs(self, format: str) -> tuple[InputUsed, ...]:
        """What the answer rests on."""
        files = list(self._files())
        size = sum(file.entry.size for file in files)
        return (InputUsed(self.stores.folder, format, size, len(files)),) if self.stores.by_path else ()

    def _choose(self, chain: ChainName) -> dict[int, list[StoredVersion]]:
        """The files of each version up to the needed one; with ids, those of the id that its commit names."""
        chosen: dict[int, list[StoredVersion]] = {}
        for version, files in sorted(self.stores.files[chain].items(), reverse=True):
            if version <= self.needed:
                ids = self._ids_of(chain, version, files, chosen)
                kept = [file for file in files if file.id in ids]
                chosen |= {version: kept} if kept else {}
        return chosen

    def _ids_of(
        self, chain: ChainName, version: int, files: Sequence[StoredVersion], chosen: dict[int, list[StoredVersion]]
    ) -> frozenset[str]:
        """The ids that count, "" before state checkpoint format 2."""
        if version in self._ids:
            partitions = self._ids[version].get(chain.operator, [])
            return partitions[chain.subtask] if chain.subtask < len(partitions) else frozenset({""})
        seen = frozenset(file.id for file in files)
        if len(seen) == 1:
            return seen
        above = (self.contents.of(file).lineage.get(version) for file in chosen.get(version + 1, ()))
        return frozenset(id for id in above if id)  # the commit is gone: the version after it names its own ground

    def _rows(self, chain: ChainName) -> Iterator[tuple[Any, ...]]:
        versions = self._chosen[chain]
        for version, files in versions.items():
            first = version == 1 and not self._has_base(chain, 1)
            for file in files:
                form = "base" if first else file.form  # the first delta stands on an empty store
                content = self.contents.known(file)
                size = file.entry.size if content is None else content.size
                parent = None if form == "base" else version - 1
                yield *chain, version, form, parent, size, None, file.entry.path, self._flaw(chain, file)
        if self._found.c >= 0 and self.needed not in versions:
            path = self._missing(chain, self.needed)
            yield *chain, self.needed, "delta", self.needed - 1, None, None, path, "is missing"

    def _has_snapshot(self, chain: ChainName, version: int) -> bool:
        """Whether there is a snapshot to try: if all of them are damaged, a restart begins at the empty store."""
        versions = self._chosen[chain].items()
        return any(file.form == "base" for v, files in versions if v <= version for file in files)

    def _has_base(self, chain: ChainName, version: int) -> bool:
        """Whether a version has a snapshot that can be read, as far as is known."""
        files = self._chosen[chain].get(version, ())
        return any(file.form == "base" and self._flaw(chain, file) is None for file in files)

    def _flaw(self, chain: ChainName, file: StoredVersion) -> str | None:
        content = self.contents.known(file)
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

    def _missing(self, chain: ChainName, version: int) -> str:
        partitions = self._ids.get(version, {}).get(chain.operator, [])
        ids = partitions[chain.subtask] if chain.subtask < len(partitions) else frozenset()
        return self.stores.expected(chain, version, ids if len(ids) == 1 else frozenset())

    def _read_for(self, batch: int) -> Chains:
        """The chains, after reading all that a restart after a batch would read."""
        while True:
            chains = chains_of(self.table())
            paths = chains.table["path"]
            rows = (row for i in range(len(chains.names)) for row in chains.reading(i, batch + 1))
            wanted = {paths[row].as_py() for row in rows}
            unread = [file for file in self._files() if file.entry.path in wanted and self.contents.known(file) is None]
            if not unread:
                return chains
            told = [self._tells(file) for file in unread]
            if not any(told):
                return chains

    def _tells(self, file: StoredVersion) -> bool:
        """Read a file: whether the chains may now look different."""
        content = self.contents.of(file)
        return content.flaw is not None or bool(content.lineage) or content.has_families

    def _files(self) -> Iterator[StoredVersion]:
        return (file for versions in self._chosen.values() for files in versions.values() for file in files)

    def _newest(self, chains: Chains) -> int:
        """The newest batch that every store can go back to, and whose offsets and commit can be read; -1 for none."""
        found = self._found
        whole = [n for n, read in found.commits.items() if read.flaw is None and found.ends(n) is not None]
        # a restart reads the offsets before as well: first the batches that have them
        order = sorted(whole, key=lambda n: (n > 0 and found.ends(n - 1) is None, -n))
        for batch in order:
            if self._can_all(chains, batch):
                chains = self._read_for(batch)
                if self._can_all(chains, batch):
                    return batch
        return -1

    @staticmethod
    def _can_all(chains: Chains, batch: int) -> bool:
        return all(chains.can_restore(i, batch + 1) for i in range(len(chains.names)))

    def _broken(self, chains: Chains) -> Iterator[Broken]:
        if self._found.c < 0:
            return
        flaws = dict(self.contents.flaws())
        for i, chain in enumerate(chains.names):
            link = chains.why_not(i, self.needed)
            if link is None:
                continue
            if link.row is None or link.flaw == "is missing":
                version = self.needed if link.version is None else link.version
                yield Broken(chain, self._missing(chain, version), "missing-state-file", "", None)
                continue
            path = chains.table["path"][link.row].as_py()
            flaw = flaws.get(path)
            found = (flaw.id, flaw.why, flaw.offset) if flaw is not None else ("missing-state-file", link.flaw, None)
            yield Broken(chain, path, *found)

"""Which stores of a Spark checkpoint must have a version: the number of partitions is that of the batch which wrote it.

An offline repartition (Spark 4.2 on) adds a batch with another number. What it leaves is a whole snapshot of each of
the new partitions; after a reduction the folders of the others stay, and nothing reads them any more.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from cklog.budgets import budgets
from cklog.inputs.batches import MetadataLogs
from cklog.inputs.pieces import ChainName
from cklog.parsers.spark.state.listing import StateStores
from cklog.parsers.spark.state.required import Required, required_stores

_Ids = Mapping[str, Sequence[frozenset[str]]]


class RequiredStores:
    """The stores that must be there, by version.

    `ids` are those that commits name, by version and operator; `named` the newest of each operator, for versions whose
    commit is gone.
    """

    def __init__(self, stores: StateStores, logs: MetadataLogs, ids: Mapping[int, _Ids], named: _Ids) -> None:
        self._stores, self._ids, self._named = stores, ids, named
        plans = {n: read.value for n, read in logs.offsets.items() if read.value is not None}
        self._plans = sorted(plans)
        self._settings = [plans[n].partitions for n in self._plans]
        self._by_numbers: dict[tuple[int | None, tuple[int, ...]], tuple[frozenset[ChainName], str]] = {}
        self._by_version: dict[int, frozenset[ChainName]] = {}
        self._seen: dict[int, list[ChainName]] = {}
        for chain, versions in stores.files.items():
            for version in versions:
                self._seen.setdefault(version, []).append(chain)

    def of(self, version: int) -> frozenset[ChainName]:
        """Return the stores that must have a version.

        A store that has it counts, unless ids say which do: settings that claim fewer may be damaged.
        """
        if version not in self._by_version:
            found = self._found(version)[0]
            seen = () if self._ids_of(version) else self._seen.get(version, ())
            self._by_version[version] = found.union(seen)
        return self._by_version[version]

    def unsure(self, version: int) -> str:
        """Return why there may have been more stores, "" if that is known."""
        return self._found(version)[1]

    def _found(self, version: int) -> tuple[frozenset[ChainName], str]:
        """Return the stores by the numbers of partitions that a version has, and why there may have been more."""
        setting, ids = self._setting(version - 1), self._ids_of(version)
        key = setting, tuple(len(ids.get(operator, ())) for operator in self._stores.reads)
        if key not in self._by_numbers:
            self._by_numbers[key] = self._find(setting, ids)
        return self._by_numbers[key]

    def _find(self, setting: int | None, ids: _Ids) -> tuple[frozenset[ChainName], str]:
        required: dict[str, Required] = {
            operator: required_stores(operator, read, self._stores.left[operator], setting, ids.get(operator, ()))
            for operator, read in self._stores.reads.items()
        }
        every = itertools.chain.from_iterable(one.stores for one in required.values())
        found = set(itertools.islice(every, budgets().files))
        for chain in self._stores.files:
            of_operator = required.get(chain.operator)
            if of_operator is None or chain.subtask < of_operator.partitions:
                found.add(chain)
        return frozenset(found), next((one.unsure for one in required.values() if one.unsure), "")

    def _setting(self, batch: int) -> int | None:
        """Return how many partitions are set for a batch: by its plan, else by the one before, else by the next."""
        at = bisect_right(self._plans, batch) - 1
        return self._settings[max(at, 0)] if self._plans else None

    def _ids_of(self, version: int) -> _Ids:
        own = self._ids.get(version)
        return self._named if own is None else {**self._named, **own}

"""Whom a sink asks for after a restart, and what it drops: by what the job counts and the format of the table.

Read off the sinks' sources, and held against what users saw (docs/sink-tables.md):

    Spark → Delta     asks by the query's id (or txnAppId); drops every batch up to the number that it finds
    Spark → Iceberg   asks by the query's id, along the parents of the head; drops every batch up to it
    Spark → Hudi      asks by the sink's id; drops every batch up to it
    Spark → Paimon    asks nothing: every commit has the same identifier, and all of them are taken
    Flink → Iceberg   asks by the restored job's id, and its operator's; what is pending up to it is dropped. What comes
                      under such numbers later is dropped for good (IcebergSink under an unchanged job id, which jobs in
                      application mode have), or held back and added beside the older rows (FlinkSink, new job id)
    Flink → Paimon    asks by the commit user that the state keeps; drops what is pending up to it, takes what is new
    Flink → Delta     asks by the appId that the state keeps; as Paimon
    Flink → Hudi      asks its own records of instants: what it drops is not known
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cklog.inputs.sink_tables import Numbered, TableFormat


@dataclass(frozen=True, slots=True)
class Rule:
    """What a sink does with numbers that the table remembers.

    `drops_new` : what is written after the restart under such a number is dropped; None: by version and settings
    `asks_user` : it asks by an id that only the state keeps, and not by that of the job
    `goes_back` : what the table remembers goes back with its rows, when it is taken back
    `commits_all` : every number makes a commit, one without rows, too
    """

    drops_new: bool | None
    asks_user: bool = False
    goes_back: bool = True
    commits_all: bool = False


_BATCHES: Mapping[TableFormat, Rule] = {
    "delta": Rule(drops_new=True, goes_back=False, commits_all=True),
    "iceberg": Rule(drops_new=True, commits_all=True),
    "hudi": Rule(drops_new=True, asks_user=True),
    "paimon": Rule(drops_new=False),
}
_CHECKPOINTS: Mapping[TableFormat, Rule] = {
    "iceberg": Rule(drops_new=None),
    "paimon": Rule(drops_new=False, asks_user=True),
    "delta": Rule(drops_new=False, asks_user=True, goes_back=False),
    "hudi": Rule(drops_new=None, asks_user=True),
}

UNNUMBERED = (1 << 63) - 1
"""What Paimon stamps on a commit that is no stream's."""


def rule_of(counts: Numbered, format: TableFormat) -> Rule:
    """Return what a sink of such a job does with a table of such a format."""
    return _BATCHES[format] if counts == "batch" else _CHECKPOINTS[format]


def same_numbers(job: Numbered, table: Numbered) -> bool:
    """Return whether a table's numbers may be the ones that a job counts.

    >>> same_numbers("checkpoint", "identifier"), same_numbers("batch", "checkpoint")
    (True, False)
    """
    return job == table or {job, table} == {"checkpoint", "identifier"}

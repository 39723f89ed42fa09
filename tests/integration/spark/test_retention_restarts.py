"""Real restarts after all that `retention` proposes was deleted: as things are, and going back to a kept batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.retention.policy import RetentionPolicy
from cklog.run import open_run
from cklog.runs.batches.plan import plan_of
from cklog.storage import Root
from tests.builders.spark_restarts import Restarts

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.mark.parametrize("provider", ["hdfs", "rocksdb", "rocksdb-ids"])
def test_a_query_starts_without_what_may_go(provider: str, restarting: Any, tmp_path: Path) -> None:
    restarts = Restarts(restarting, provider, tmp_path)
    whole = open_run(str(restarts.sample)).retention(RetentionPolicy(keep=3, pins=("query/0=1",))).result
    gone = [row.path for row in whole.rows if row.fate == "OBSOLETE"]
    kept = sorted({int(row.needed_by.rpartition("=")[2]) for row in whole.rows if row.needed_by})
    assert gone
    assert len(kept) == 4
    for batch in [None, *kept]:
        home = restarts.copy()
        for path in gone:
            (home / path).unlink(missing_ok=True)  # the copy has no checksums of the source's log
        if batch is not None:
            for path in plan_of(SparkCheckpoint(Root(str(home))), at=batch).remove:
                (home / path).unlink()
        assert restarts.starts(home), (provider, batch)

"""Short simulated dataflow runs, one of every kind, for the tests of the simulator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cklog.simulate.dataflow.queries import CYCLIC, NEXMARK, DataflowQuery
from cklog.simulate.dataflow.setting import DataflowSetting

Row = dict[str, Any]

START = 1_700_000_000_000


def setting(
    query: DataflowQuery = NEXMARK["q3"], protocol: str = "unc", workers: int = 3, **more: Any
) -> DataflowSetting:
    """A short run: ten checkpoints, a few messages per channel in each interval."""
    most: dict[str, Any] = {"rate": 40.0, "failure_s": 12.0, "first_round_s": 1.5, "interval_s": 2.0, "spread_s": 0.5}
    return DataflowSetting(query, protocol, workers, **(most | more))


DENSE = replace(CYCLIC, nodes=300)
"""The reachability query with so few nodes that results come back all the time."""

RUNS = [
    setting(),
    setting(protocol="cic-hmnr"),
    setting(protocol="cic-bcs"),
    setting(protocol="coor"),
    setting(protocol="coor", hot_items=0.5, seed=3),
    setting(NEXMARK["q1"], "cic-hmnr", seed=2),
    setting(NEXMARK["q8"], "coor", workers=2, jitter_ms=900.0),
    setting(NEXMARK["q12"], "cic-bcs", load=2.0, jitter_ms=300.0),
    setting(DENSE, "unc", rate=20.0, load=0.3, seed=5),
    setting(DENSE, "cic-hmnr", rate=20.0, load=0.3, seed=5, jitter_ms=400.0),
    setting(DENSE, "cic-bcs", rate=20.0, load=0.3, workers=2),
    setting(NEXMARK["q3"], "unc", workers=1, snapshot_ms=0.0, load=0.0, delay_ms=0.0, jitter_ms=0.0),
    setting(NEXMARK["q12"], "cic-bcs", workers=5, rate=0.5, failure_s=60.0),
]
NAMES = [f"{i}-{s.query.name}-{s.protocol}" for i, s in enumerate(RUNS)]


def rows_of(folder: Path, place: str) -> list[Row]:
    rows: list[Row] = []
    for part in sorted((folder / place).iterdir()):
        if part.suffix == ".parquet":
            found = pq.read_table(part).to_pylist()
            rows += [{name: _plain(value) for name, value in row.items() if value is not None} for row in found]
        else:
            rows += [json.loads(line) for line in part.read_text().splitlines()]
    return rows


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, list) else value

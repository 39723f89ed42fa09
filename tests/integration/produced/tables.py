"""Tables that jobs write to, and jobs that feed each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.produced.cases import Asked, produces, sample


@produces("sink-behind", "silent-loss", exit=3)
def _(folder: Path) -> Asked:
    pytest.importorskip("pyiceberg", reason="the extra iceberg reads tables of Iceberg")
    run = sample("tables/spark-iceberg-branch", folder)
    return "recovery-line", run / "ck", "--sink", f"orders={run / 'table'}?branch=audit"


@produces("sink-would-lose", exit=3)
def _(folder: Path) -> Asked:
    """The last batch is done, and the log of what the job wrote has lost it."""
    chain = sample("spark-chain", folder)
    for name in ("4", ".4.crc"):
        (chain / "clean/out/_spark_metadata" / name).unlink()
    return "recovery-line", chain / "clean", "--with", chain / "enrich"

"""Kafka Connect: offsets of source connectors."""

from __future__ import annotations

from pathlib import Path

from tests.integration.produced.cases import Asked, produces, sample


@produces("taken-again", "deleted-offset", "unfinished-snapshot", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", sample("connect-offsets", folder) / "topic"


@produces("position-gone", exit=3)
def _(folder: Path) -> Asked:
    topic = sample("connect-offsets", folder) / "topic"
    return "recovery-line", topic, "--source-from", "orders-mysql=mysql-bin.000124:4"


@produces("position-unknown", exit=5)
def _(folder: Path) -> Asked:
    """A set of transactions, for a connector that stored none."""
    topic = sample("connect-offsets", folder) / "topic"
    return "recovery-line", topic, "--source-from", "orders-mysql=3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"

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

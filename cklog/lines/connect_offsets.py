"""Offsets of source connectors as the body that Kafka Connect's offset API takes (KIP-875, Kafka 3.6 and later).

    PATCH /connectors/NAME/offsets      {"offsets": [{"partition": {…}, "offset": {…} | null}]}

A null offset deletes that of its partition. The connector has to be STOPPED. Partitions that the body does not name
stay as they are.
"""

from __future__ import annotations

import json

from cklog.errors import NothingToWrite, UsageError
from cklog.model.lines import RecoveryLine
from cklog.render.text import visible_json


def connect_body(line: RecoveryLine, connector: str = "", stored: bool = False) -> str:
    """Return the body for one connector.

    Parameters
    ----------
    connector : its name as the line has it; "" where there is one
    stored : what is stored now in place of what is planned: with it a plan is undone

    Raises
    ------
    UsageError : there are several connectors, none of this name, or the run has sources that are none
    NothingToWrite : the line has no source, or nothing tells where it resumes
    """
    rows = line.details.get("connectors")
    if not rows and not line.sources:
        raise NothingToWrite("there is no source offset to export: the line has no source")
    if not isinstance(rows, list) or not rows:
        raise UsageError("connect-json: no offset of a connector is here", "it goes with folders of the format connect")
    names = sorted({row["connector"] for row in rows})
    if connector not in names and (connector or len(names) > 1):
        whose = (
            f"no connector {connector}" if connector else f"{len(names)} connectors, and the API takes one at a time"
        )
        raise UsageError(f"connect-json: {whose}", f"choose one with --operator: {', '.join(names)}")
    mine = [row for row in rows if row["connector"] == (connector or names[0])]
    unknown = next((row["of"] for row in mine if row["resumes"] == "unknown"), None)
    if unknown is not None:
        raise NothingToWrite(f"nothing tells where {connector or names[0]} ({unknown}) resumes")
    offsets = [
        {"partition": row["stored"]["partition"], "offset": row["stored" if stored else "planned"]["offset"]}
        for row in mine
    ]
    return visible_json(json.dumps({"offsets": offsets}, ensure_ascii=False)) + "\n"

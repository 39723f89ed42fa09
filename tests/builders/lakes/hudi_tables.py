"""Timelines of Hudi, made by the format: the library that can be had without a JVM only reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.builders.lakes.avro import container

_TEXT, _LONG = ["null", "string"], ["null", "long"]


def _record(name: str, **fields: Any) -> dict[str, Any]:
    kinds = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "namespace": "org.apache.hudi.avro.model", "fields": kinds}


_STAT = _record(
    "HoodieWriteStat",
    **dict.fromkeys(("fileId", "path", "prevCommit"), _TEXT),
    **dict.fromkeys(("numWrites", "numInserts"), _LONG),
)
COMMIT = _record(
    "HoodieCommitMetadata",
    partitionToWriteStats=["null", {"type": "map", "values": {"type": "array", "items": _STAT}}],
    extraMetadata=["null", {"type": "map", "values": "string"}],
    version=["int", "null"],
    operationType=_TEXT,
)
ROLLBACK = _record(
    "HoodieRollbackMetadata",
    startRollbackTime="string",
    timeTakenInMillis="long",
    totalFilesDeleted="int",
    commitsRollback={"type": "array", "items": "string"},
)
RESTORE = _record(
    "HoodieRestoreMetadata",
    startRestoreTime="string",
    timeTakenInMillis="long",
    instantsToRollback={"type": "array", "items": "string"},
)


class HudiTable:
    """The timeline of a table of version 6 or 8."""

    def __init__(self, folder: Path, version: int, zone: str = "UTC") -> None:
        self.folder, self.version = folder, version
        self.timeline = folder / ".hoodie" / ("timeline" if version >= 8 else "")
        self.timeline.mkdir(parents=True)
        lines = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": version,
            "hoodie.timeline.layout.version": 2 if version >= 8 else 1,
            "hoodie.table.timeline.timezone": zone,
        }
        text = "#Properties saved\n" + "".join(f"{key}={value}\n" for key, value in lines.items())
        (folder / ".hoodie" / "hoodie.properties").write_text(text)

    def begin(self, instant: str, action: str = "commit") -> None:
        (self.timeline / f"{instant}.{action}.requested").touch()
        (self.timeline / (f"{instant}.inflight" if action == "commit" else f"{instant}.{action}.inflight")).touch()

    def place(self, instant: str, action: str = "commit") -> Path:
        """Where an instant that is done lies; in version 8 it was done a second after it began."""
        done = f"_{int(instant) + 1000}" if self.version >= 8 else ""
        return self.timeline / f"{instant}{done}.{action}"

    def commit(
        self, instant: str, extra: Mapping[str, str], operation: str = "UPSERT", action: str = "commit", rows: int = 2
    ) -> None:
        self.begin(instant, action)
        stats = [{"fileId": "f", "path": "f.parquet", "prevCommit": "null", "numWrites": rows, "numInserts": rows}]
        told = {"partitionToWriteStats": {"": stats}, "extraMetadata": dict(extra), "operationType": operation}
        avro = container(COMMIT, [{**told, "version": 1}])
        self.place(instant, action).write_bytes(avro if self.version >= 8 else json.dumps(told).encode())

    def take_back(self, instant: str, action: str, back: Sequence[str], codec: str = "deflate") -> None:
        """Roll back or restore: what was taken back leaves the timeline."""
        for one in back:
            for path in self.timeline.glob(f"{one}*"):
                path.unlink()
        schema = ROLLBACK if action == "rollback" else RESTORE
        names = {f["name"]: 0 if f["type"] in ("int", "long") else instant for f in schema["fields"]}
        told = {
            name: list(back) if name in ("commitsRollback", "instantsToRollback") else to for name, to in names.items()
        }
        self.begin(instant, action)
        self.place(instant, action).write_bytes(container(schema, [told], codec))


def sink(**batches: int) -> dict[str, str]:
    """What Spark's streaming sink writes beside a commit."""
    return {"_hudi_streaming_sink_checkpoint": json.dumps({name: str(batch) for name, batch in batches.items()})}

"""A simulated dataflow run as a native run folder (`docs/run-folder.md`), written as it goes, or as figures alone."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from cklog.errors import OutputError
from cklog.model.schemas import CHECKPOINTS, EVENTS, MESSAGES
from cklog.model.verdict import Answer
from cklog.simulate.dataflow.journal import Figures, Journal, figures_of
from cklog.simulate.dataflow.protocols import bytes_carried
from cklog.simulate.dataflow.setting import (
    CONTROL_BYTES,
    MARKER_BYTES,
    METADATA_BYTES,
    METADATA_CHANNEL_BYTES,
    DataflowSetting,
    InstanceLayout,
    Taken,
)
from cklog.simulate.dataflow.simulation import DataflowRun
from cklog.simulate.files import PART_BYTES, RunTable, refuse_encoding, require_empty, written_files

_CHECKPOINT_COLUMNS = pa.schema([f for f in CHECKPOINTS if f.name not in ("form", "parent", "uri", "status")])

_EVENT_COLUMNS = pa.schema([f for f in EVENTS if f.name != "bytes"])


def simulate(setting: DataflowSetting) -> Figures:
    """Simulate a run without keeping its log, and return its figures."""
    layout = InstanceLayout(setting.query, setting.workers)
    log = _RunRecords(layout, setting)
    return _figures_of_run(setting, layout, log)


def write(
    folder: str | os.PathLike[str],
    setting: DataflowSetting,
    *,
    encoding: str = "jsonl",
    part_bytes: int = PART_BYTES,
    channels: bool = True,
    events: bool = False,
) -> Figures:
    """Simulate a run and write what it leaves behind: `job.json`, checkpoints, and the logs of the messages.

    The same arguments write the same bytes. A coordinated job logs no messages: none is in flight across a round.

    Parameters
    ----------
    folder : made if missing; must hold nothing
    encoding : jsonl, jsonl.gz, jsonl.zst or parquet
    part_bytes : a file that has grown to this size is followed by a new one
    channels : write the message logs
    events : write every send, receipt and checkpoint, too

    Raises
    ------
    UsageError : the folder is not empty, or there is no such encoding
    OutputError : something cannot be written; names it
    """
    refuse_encoding(encoding, part_bytes)
    place = Path(folder)
    layout = InstanceLayout(setting.query, setting.workers)
    log = _RunRecords(layout, setting)
    tables = {"checkpoints": _CHECKPOINT_COLUMNS}
    if channels and setting.protocol != "coor":
        tables["channels"] = MESSAGES
    if events:
        tables["events"] = _EVENT_COLUMNS
    try:
        require_empty(place)
        place.mkdir(parents=True, exist_ok=True)
        _write_job(place, layout, setting)
        with ExitStack() as files:
            for name, schema in tables.items():
                log.tables[name] = files.enter_context(RunTable(place / name, schema, encoding, part_bytes))
            return _figures_of_run(setting, layout, log)
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: {error.strerror or error}") from None


def _figures_of_run(setting: DataflowSetting, layout: InstanceLayout, log: _RunRecords) -> Figures:
    run = DataflowRun(setting, layout, log)
    run.run()
    return figures_of(setting, run, log.journal)


class _RunRecords:
    """The records of a run: checkpoints go to the journal, and all records to the tables that are written."""

    def __init__(self, layout: InstanceLayout, setting: DataflowSetting) -> None:
        self.journal = Journal(layout)
        self.tables: dict[str, RunTable] = {}
        self._layout = layout
        self._carried = bytes_carried(setting)
        self._events = [0] * len(layout.subtasks)

    def message(self, channel: int, seq: int, time: int) -> None:
        """Write a row of `channels/`."""
        if "channels" in self.tables:
            row = {"channel": self._layout.channels[channel], "seq": seq, "time": time}
            payload = self._layout.operators[self._layout.sender[channel] // self._layout.workers].message_bytes
            size = {"bytes": payload + self._carried, "protocol_bytes": self._carried}
            self.tables["channels"].add(row | size)

    def event(self, instance: int, word: str, channel: int, number: int, time: int) -> None:
        """Write a row of `events/`."""
        if "events" in self.tables:
            operator, subtask = self._layout.subtasks[instance]
            about = (
                {"checkpoint": number} if channel < 0 else {"channel": self._layout.channels[channel], "seq": number}
            )
            row = {"event": word, "operator": operator, "subtask": subtask, "lsn": self._events[instance]}
            self.tables["events"].add({**row, **about, "time": time})
            self._events[instance] += 1

    def checkpoint(self, taken: Taken) -> None:
        """Add the checkpoint to the journal, and write a row of `checkpoints/`."""
        self.journal.add(taken)
        if "checkpoints" in self.tables:
            self.tables["checkpoints"].add(_checkpoint_row(self._layout, taken))


def _checkpoint_row(layout: InstanceLayout, taken: Taken) -> dict[str, Any]:
    """A checkpoint record (`docs/run-folder.md`), without the members that do not apply."""
    operator, subtask = layout.subtasks[taken.instance]
    sent = {layout.channels[c]: seq for c, seq in zip(layout.out[taken.instance], taken.sent, strict=True)}
    received = {layout.channels[c]: seq for c, seq in zip(layout.into[taken.instance], taken.received, strict=True)}
    row = {
        "operator": operator,
        "subtask": subtask,
        "checkpoint": taken.number,
        "time": taken.time,
        "sent": sent or None,
        "received": received or None,
        "sources": None if taken.offset is None else {f"{operator}-{subtask}": taken.offset},
        "kind": taken.kind,
        "round": taken.round,
        "index": taken.index,
        "duration_ms": taken.duration_us / 1000,
        "bytes": taken.bytes,
    }
    return {name: value for name, value in row.items() if value is not None}


def _write_job(place: Path, layout: InstanceLayout, setting: DataflowSetting) -> None:
    """The manifest of the run."""
    job = {
        "job": f"simulated-{setting.query.name}",
        "operators": [{"name": o.name, "parallelism": layout.workers, "kind": o.kind} for o in layout.operators],
        "channels": [{"channel": name} for name in layout.channels],
        "failure_time": setting.start_ms + round(setting.failure_s * 1000),
        "simulation": described(setting),
    }
    (place / "job.json").write_text(json.dumps(job, indent=2) + "\n", encoding="utf-8")


def described(setting: DataflowSetting) -> dict[str, Any]:
    """Describe all that a run depends on, as JSON."""
    return {
        **asdict(setting),
        "processing_us": setting.processing_us,
        "message_bytes": {
            "carried": bytes_carried(setting),
            "marker": MARKER_BYTES,
            "control": CONTROL_BYTES,
            "metadata": METADATA_BYTES,
            "metadata_per_channel": METADATA_CHANNEL_BYTES,
        },
    }


def dataflow_answer(folder: str, setting: DataflowSetting, figures: Figures) -> Answer[dict[str, Any]]:
    """Make the answer about a run, and about what was written to `folder` ("" if nothing was)."""
    result = {
        "folder": folder or None,
        "simulation": described(setting),
        "figures": asdict(figures),
        "files": written_files(folder),
    }
    return Answer("simulate-dataflow", verdict="ok", exit_code=0, inputs=(), findings=(), result=result)

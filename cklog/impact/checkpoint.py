"""The checkpoint that a non-distributed system goes back to: its processing image and the resume positions.

A checkpoint is one moment for the whole system (paper, section 4.2): the records of all operators with one number,
their `round` if they have one. The newest one taken before the crash in which every stateful operator is stored is
the processing image; without one, the newest of any operator still says where the input resumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cklog.engine.reading import Reading
from cklog.impact.dataflow import Dataflow
from cklog.inputs.offers import OffersRecords
from cklog.inputs.tables import as_it_is, read_table
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import parse_channel
from cklog.model.schemas import CHECKPOINTS

_COLUMNS = ("operator", "checkpoint", "round", "time", "sent", "received", "sources", "status", "uri")


@dataclass(frozen=True, slots=True)
class Image:
    """What one checkpoint stores.

    `time` : when it was taken, in ms; None: no record says
    `states` : where the state of each operator lies ("" if the record does not say)
    `positions` : the number of the first element that each source has to send again
    """

    number: int
    time: int | None
    states: Mapping[str, str]
    positions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StoredCheckpoints:
    """All checkpoint records of a run, by number."""

    images: tuple[Image, ...]
    findings: tuple[Finding, ...] = ()
    inputs: tuple[InputUsed, ...] = ()

    @property
    def times(self) -> tuple[int, ...]:
        """When checkpoints were taken, in ms: signs that the system was alive."""
        return tuple(image.time for image in self.images if image.time is not None)

    def newest(self, until: int, stateful: Iterable[str]) -> Image | None:
        """Return the checkpoint to go back to after a crash at `until` ms; records without a time do not count.

        That is the newest one with a state of every `stateful` operator, or if there is none the newest of all.
        """
        before = [image for image in self.images if image.time is not None and image.time <= until]
        whole = [image for image in before if set(stateful) <= set(image.states)]
        return max(whole or before, key=lambda image: (image.time or 0, image.number), default=None)


def read_images(tables: OffersRecords, reading: Reading, flow: Dataflow) -> StoredCheckpoints:
    """Scan the checkpoint records, and put those of one number together."""
    if not tables.has("checkpoints"):
        return StoredCheckpoints((), tables.findings("checkpoints"))
    schema = pa.schema([f for f in CHECKPOINTS if f.name in _COLUMNS])
    table, findings, inputs = read_table(tables, reading, "checkpoints", tuple(schema.names), as_it_is, schema)
    rows = [row for row in table.to_pylist() if row["status"] != "incomplete"]
    return StoredCheckpoints(tuple(_images_of(rows, flow)), tuple(findings), tuple(inputs))


def _images_of(rows: list[dict[str, Any]], flow: Dataflow) -> Iterable[Image]:
    """The checkpoint records of one number (of their round, if they have one) as one image, in order."""
    numbers: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        number = row["checkpoint"] if row["round"] is None else row["round"]
        if number > 0:
            numbers.setdefault(number, []).append(row)
    for number, mine in sorted(numbers.items()):
        times = [row["time"] for row in mine if row["time"] is not None]
        states = {row["operator"]: row["uri"] or "" for row in sorted(mine, key=lambda r: str(r["uri"] or ""))}
        yield Image(number, max(times, default=None), states, _first_to_send(mine, flow))


def _first_to_send(rows: list[dict[str, Any]], flow: Dataflow) -> dict[str, int]:
    """The first element to send again, by source: the smallest of those that records name."""
    found: dict[str, list[int]] = {}
    for row in rows:
        for key, value in row["sources"] or []:
            name = row["operator"] if row["operator"] in flow.periods else key.rpartition("-")[0]
            found.setdefault(name, []).append(value)
        for key, value in [*(row["received"] or []), *(row["sent"] or [])]:
            channel = parse_channel(key)
            if channel is not None and channel.sender.operator in flow.periods:
                found.setdefault(channel.sender.operator, []).append(value)
    return {name: min(values) for name, values in sorted(found.items()) if name in flow.periods}

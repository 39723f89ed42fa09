"""What streams write into the extra metadata of Hudi's commits.

_hudi_streaming_sink_checkpoint = {"SINK": "BATCH"}            Spark's streaming sink: by its identifier
deltastreamer.checkpoint.key = TOPIC,PARTITION:OFFSET,...      Hudi's own streamer, with Kafka as its source;
streamer.checkpoint.key.v2                                     its name in newer versions
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cklog.inputs.sink_tables import Stamp, Writer
from cklog.parsers.sink_tables.files import NoJson, json_of, text, whole

_SINK = "_hudi_streaming_sink_checkpoint"
_STREAMER = ("deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2")
_OFFSETS = re.compile(r"([A-Za-z0-9._-]{1,249})((?:,[0-9]{1,9}:[0-9]{1,19})+)")


def stamps_of(extra: Mapping[str, Any]) -> tuple[tuple[Stamp, ...], tuple[str, ...]]:
    """Return what streams stamped on a commit, and what is wrong with stamps that cannot be understood."""
    found = [*_stamps(extra)]
    return tuple(stamp for stamp, _ in found if stamp is not None), tuple(fault for _, fault in found if fault)


def _stamps(extra: Mapping[str, Any]) -> Iterator[tuple[Stamp | None, str]]:
    """Yield each stamp, or why it is none."""
    if text(extra.get(_SINK)):
        try:
            batches = json_of(text(extra[_SINK]).encode())
        except NoJson:
            batches = None
        for sink, batch in batches.items() if isinstance(batches, dict) else [("", None)]:
            number = whole(batch)
            if number is None:
                yield None, f"{_SINK} is {text(extra[_SINK])[:60]!r}, which names no batch"
            else:
                yield Stamp(Writer(text(sink), "batch"), number), ""
    for key in _STREAMER:
        match = _OFFSETS.fullmatch(text(extra.get(key)))
        if match:
            pairs = (pair.split(":") for pair in match[2][1:].split(","))
            yield Stamp(Writer("deltastreamer", "offsets"), None, {f"{match[1]}-{p}": int(o) for p, o in pairs}), ""

"""What streams write into the summaries of Iceberg's snapshots, and what their sinks ask of it on a restart.

    flink.job-id, flink.operator-id, flink.max-committed-checkpoint-id          Flink; older sinks name no operator
    spark.sql.streaming.queryId, spark.sql.streaming.epochId                    Spark
    kafka.connect.offsets.CONTROL_TOPIC.GROUP = {"PARTITION": offset}           Kafka Connect: of its control topic

Each sink walks from a head through the parents to the first snapshot that is its own, and reads no further. Flink's and
Connect's begin at the head of the branch that they write to; Spark's begins at the current snapshot, which is the main
branch's head, even if it writes to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cklog.inputs.sink_tables import Numbered, Stamp, Writer
from cklog.parsers.sink_tables.files import NoJson, json_of, members, text, whole

_JOB, _OPERATOR, _CHECKPOINT = "flink.job-id", "flink.operator-id", "flink.max-committed-checkpoint-id"
_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
_OFFSETS = "kafka.connect.offsets."
_GROUP = ".cg-control-"  # begins the group that Connect makes for a connector


def stamps_of(summary: Mapping[str, str]) -> tuple[tuple[Stamp, ...], tuple[str, ...]]:
    """Return what streams stamped on a snapshot, and what is wrong with stamps that cannot be understood."""
    found = [*_stamps(summary)]
    return tuple(stamp for stamp, _ in found if stamp is not None), tuple(fault for _, fault in found if fault)


def _stamps(summary: Mapping[str, str]) -> Iterator[tuple[Stamp | None, str]]:
    """Yield each stamp, or why it is none."""
    if _JOB in summary and _CHECKPOINT in summary:
        writer = Writer(text(summary[_JOB]), "checkpoint", text(summary.get(_OPERATOR)))
        yield _numbered(writer, _CHECKPOINT, summary[_CHECKPOINT])
    if _QUERY in summary:
        yield _numbered(Writer(text(summary[_QUERY]), "batch"), _EPOCH, summary.get(_EPOCH, ""))
    for key, value in summary.items():
        if key.startswith(_OFFSETS):
            yield _connect_offsets(key[len(_OFFSETS) :], key, value)


def _numbered(writer: Writer, key: str, value: str) -> tuple[Stamp | None, str]:
    number = whole(value)
    if number is None:
        return None, f"{key} is {text(value)[:40]!r}, which is no number: whoever restarts {writer.id[:80]} fails on it"
    return Stamp(writer, number), ""


def _connect_offsets(names: str, key: str, value: str) -> tuple[Stamp | None, str]:
    """Return the offsets of a control topic up to which the table has taken what was announced there.

    Topics and groups may both have dots in their names, with one between them.
    """
    topic, found, group = names.partition(_GROUP)
    group = _GROUP[1:] + group
    if not found:
        topic, _, group = names.partition(".") if names.count(".") == 1 else (names, "", names)
    try:
        offsets = {int(part): whole(offset) for part, offset in members(json_of(value.encode())).items()}
    except (NoJson, ValueError):
        offsets = {}
    kept = {f"{text(topic)}-{part}": offset for part, offset in sorted(offsets.items()) if offset is not None}
    if not kept or len(kept) < len(offsets):
        return None, f"{text(key)[:120]} is {text(value)[:40]!r}, which names no offsets"
    return Stamp(Writer(text(group), "offsets"), None, kept), ""


class Remembered:
    """What each writer finds when it asks, taken snapshot by snapshot on the way back from the head.

    Flink's sink takes a snapshot for its own if the job is, and the operator is or is not named: one without an
    operator answers every operator of its job that has not found its own by then.
    """

    def __init__(self) -> None:
        self._numbers: dict[Writer, int] = {}
        self._of_any: dict[str, int] = {}

    def take(self, stamps: tuple[Stamp, ...]) -> None:
        """Take the stamps of the next older snapshot."""
        for stamp in stamps:
            writer, number = stamp.writer, stamp.number
            if number is None or writer in self._numbers:
                continue
            if writer.counts == "checkpoint":
                number = self._of_any.get(writer.id, number)
                if not writer.operator:
                    self._of_any[writer.id] = number
            self._numbers[writer] = number

    def numbers(self, counts: Numbered) -> dict[Writer, int]:
        """Return the number that each writer finds who counts such."""
        return {writer: number for writer, number in self._numbers.items() if writer.counts == counts}

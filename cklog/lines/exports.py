"""Offsets in the words of the tools that will use them: exactly what each accepts, or nothing.

Each format's rules were read off its tool: Kafka 3.9, kcat 1.7, the Kafka connectors of Flink 4.0 and of Spark 4.
What a tool would misread is refused.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from cklog.errors import NothingToWrite, UsageError
from cklog.lines.connect_offsets import connect_body
from cklog.lines.resume_offsets import (
    ResumeOffset,
    all_bounded,
    committed_offsets,
    planned_offsets,
    sources_to_export,
    with_new_partitions,
)
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Answer, Verdict
from cklog.render.text import visible

_GROUPS = 'kafka-consumer-groups.sh --bootstrap-server "$BOOTSTRAP_SERVERS" --group "$GROUP" --reset-offsets'


def replay_formats(
    operator: str = "", topic: str = "", rollback: bool = False
) -> dict[str, Callable[[Answer[RecoveryLine]], str]]:
    """Return each format by name, as a function from an answer of `replay` to text.

    Parameters
    ----------
    operator : the reader of sources that is meant, "" for all; with `rollback` the consumer group
    topic : the topic that is meant, "" for all
    rollback : instead of where the line resumes, write what is committed in Kafka now, to undo the plan with

    Raises
    ------
    UsageError : (the functions) an offset that the tool would misread, or readers that disagree; says which
    NothingToWrite : (the functions) the line has no source, or no offset that is more than a bound
    """

    def from_answer(name: str, form: Callable[[list[ResumeOffset]], str]) -> Callable[[Answer[RecoveryLine]], str]:
        rows = committed_offsets if rollback else planned_offsets
        return lambda answer: form(_require_word(name, answer.verdict, rows(answer.result, operator, topic)))

    formats = {name: from_answer(name, form) for name, form in _FORMATS.items()}
    if not rollback:
        formats["spark-offsets"] = lambda answer: _spark_starting(
            with_new_partitions(
                answer.result,
                _require_word("spark-offsets", answer.verdict, planned_offsets(answer.result, operator, topic)),
            )
        )
    formats["connect-json"] = lambda answer: connect_body(answer.result, operator, rollback)
    if rollback:
        formats["kafka-delete-records"] = _refuse_undoing_deletion
        formats["csv"] = from_answer("csv", _committed_csv)
    else:
        formats["csv"] = lambda answer: _line_csv(answer.result)
    return formats


def export_steps(form: str) -> tuple[str, ...]:
    """Return what to do with a format, in order, and what its tool will not say; empty if it is for people."""
    return _STEPS.get(form, ())


def _line_csv(line: RecoveryLine) -> str:
    """Write every range and offset, with a header: for people and spreadsheets, not for a Kafka tool."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "name", "from", "to", "messages", "bytes", "retained"])
    for c in line.channels:
        held = "" if c.retained is None else str(c.retained).lower()
        writer.writerow(
            ["channel", _spreadsheet_cell(c.channel), c.replay_from, c.replay_to, c.messages, c.bytes, held]
        )
    for s in sources_to_export(line):
        writer.writerow(
            ["source", _spreadsheet_cell(s.source), _offset_cell(s.offset), _offset_cell(s.replay_to), "", "", ""]
        )
    return out.getvalue()


def _spreadsheet_cell(name: str) -> str:
    """Write a name on one line, and not as a formula: a spreadsheet would run it."""
    shown = visible(name)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown


def _offset_cell(offset: Any) -> str | int | None:
    """Write an offset that is no number or text as JSON."""
    if offset is None or isinstance(offset, int | str):
        return offset
    return json.dumps(offset, sort_keys=True)


def _committed_csv(rows: list[ResumeOffset]) -> str:
    """Write what is committed, with a header, for people."""
    return "topic,partition,offset\n" + _three_columns(rows, "csv")


def _kafka_csv(rows: list[ResumeOffset]) -> str:
    """Write for `kafka-consumer-groups.sh --reset-offsets --from-file`: topic,partition,offset for one --group.

    No header, no comment, no blank line: the tool fails on them. Of two rows for a partition the last would win.
    """
    return _three_columns(rows, "kafka-csv")


def _kafka_streams_csv(rows: list[ResumeOffset]) -> str:
    """Write for `kafka-streams-application-reset.sh --from-file`, which cuts at each comma and knows no quotes."""
    return _three_columns(rows, "streams-csv")


def _three_columns(rows: list[ResumeOffset], form: str) -> str:
    return "".join(f"{r.topic},{r.partition},{offset}\n" for r, offset in _with_offsets(rows, form))


def _kafka_to_offset(rows: list[ResumeOffset]) -> str:
    """Write a `kafka-consumer-groups.sh` command per partition: --to-offset takes one number for all of --topic.

    $MODE is --execute or, if not set, --dry-run.
    """
    to = ("--to-earliest" if row.offset is None else f"--to-offset {row.offset}" for row in rows)
    return "".join(
        f'{_GROUPS} --topic {shlex.quote(row.topic)}:{row.partition} {where} "${{MODE:---dry-run}}"\n'
        for row, where in zip(rows, to, strict=True)
    )


def _kafka_get_offsets(rows: list[ResumeOffset]) -> str:
    """Write what `kafka-get-offsets.sh` prints, topic:partition:offset, to lay beside what it says of the live log."""
    return "".join(f"{r.topic}:{r.partition}:{offset}\n" for r, offset in _with_offsets(rows, "kafka-get-offsets"))


def _kafka_delete_records(rows: list[ResumeOffset]) -> str:
    """Write for `kafka-delete-records.sh --offset-json-file`, version 1: it deletes what lies before the offsets."""
    found = _with_offsets(rows, "kafka-delete-records")
    partitions = [{"topic": r.topic, "partition": r.partition, "offset": offset} for r, offset in found]
    return json.dumps({"partitions": partitions, "version": 1}) + "\n"


def _refuse_undoing_deletion(_: Answer[RecoveryLine]) -> str:
    """Take the place of a format that cannot be undone."""
    raise UsageError(
        "kafka-delete-records: records that are deleted do not come back, so there is nothing to roll back"
    )


def _kcat_commands(rows: list[ResumeOffset]) -> str:
    """Write a kcat command per partition (without -p one offset would hit all); $BOOTSTRAP_SERVERS is the reader's.

    kcat ends after -c messages or at the log's end; -c 0 would mean no limit, so an empty range is a comment.
    """
    return "".join(_kcat_command(row) for row in rows)


def _kcat_command(row: ResumeOffset) -> str:
    if row.end is not None and row.end == (row.offset or 0):
        return f"# {row}: nothing to read before {row.end}\n"
    start = "beginning" if row.offset is None else row.offset
    count = f" -c {row.end - row.offset}" if row.end is not None and row.offset is not None else ""
    where = f"-t {shlex.quote(row.topic)} -p {row.partition} -o {start}{count}"
    return f'kcat -C -b "$BOOTSTRAP_SERVERS" {where} -e\n'


def _spark_starting(rows: list[ResumeOffset]) -> str:
    """Write Spark's `startingOffsets`; -2 is earliest. A query must name all partitions of its topics."""
    return _spark_json({row: -2 if row.offset is None else row.offset for row in rows})


def _spark_ending(rows: list[ResumeOffset]) -> str:
    """Write Spark's `endingOffsets`, exclusive, for batch queries; neither -2 nor a missing partition is allowed."""
    return _spark_json({row: row.end for row in _require_ends(rows, "spark-ending-offsets") if row.end is not None})


def _spark_json(offsets: dict[ResumeOffset, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for row, offset in offsets.items():
        topics.setdefault(row.topic, {})[str(row.partition)] = offset
    return json.dumps(topics) + "\n"


def _flink_offsets(rows: list[ResumeOffset]) -> str:
    """Write Flink SQL's `scan.startup.specific-offsets`: one topic per table, no spaces, this order of words."""
    return (
        _flink_partitions(
            (row, offset) for row, offset in _with_offsets(_require_one_topic(rows, "flink-offsets"), "flink-offsets")
        )
        + "\n"
    )


def _flink_sql(rows: list[ResumeOffset]) -> str:
    """Write options for a Flink SQL table's WITH clause; a bounded scan where every partition's end is known."""
    found = _with_offsets(_require_one_topic(rows, "flink-sql"), "flink-sql")
    options = {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": _flink_partitions(found)}
    if all_bounded(rows):
        ends = [(row, row.end) for row in rows if row.end is not None]
        options |= {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": _flink_partitions(ends)}
    return ",\n".join(f"'{name}' = '{value}'" for name, value in options.items()) + "\n"


def _flink_partitions(offsets: Iterable[tuple[ResumeOffset, int]]) -> str:
    return ";".join(f"partition:{row.partition},offset:{offset}" for row, offset in offsets)


def _require_one_topic(rows: list[ResumeOffset], form: str) -> list[ResumeOffset]:
    """Return `rows`, or refuse them if they are of several topics."""
    topics = sorted({row.topic for row in rows})
    if len(topics) > 1:
        raise UsageError(
            f"{form}: {len(topics)} topics ({', '.join(topics)}), and a table reads one", "choose one with --topic"
        )
    return rows


def _require_word(form: str, verdict: Verdict, rows: list[ResumeOffset]) -> list[ResumeOffset]:
    """Return `rows`; raise `NothingToWrite` where a line is none to restart from and a format has no word for that.

    Of a line that is, such a row is a reason to choose another format.
    """
    if verdict in ("unrecoverable", "indeterminate"):
        for row in rows:
            if form in _NO_START and row.offset is None:
                raise NothingToWrite(f"{row} resumes at its start, for which {form} has no word")
            if form in _ENDS and row.end is None:
                raise NothingToWrite(f"nothing tells where the replay of {row} ends")
    return rows


def _with_offsets(rows: list[ResumeOffset], form: str) -> list[tuple[ResumeOffset, int]]:
    """Return rows with their offsets; refuse one that resumes at its start, for which the tool has no word."""
    for row in rows:
        if row.offset is None:
            raise UsageError(
                f"{form}: {row} resumes at its start (initial state), for which {form} has no word",
                "use kafka-to-offset, spark-offsets or kcat, which have one",
            )
    return [(row, row.offset) for row in rows if row.offset is not None]


def _require_ends(rows: list[ResumeOffset], form: str) -> list[ResumeOffset]:
    """Return `rows`, or refuse them if one has no end."""
    for row in rows:
        if row.end is None:
            raise UsageError(f"{form}: nothing tells where the replay of {row} ends")
    return rows


_NO_START = ("kafka-csv", "kafka-get-offsets", "kafka-delete-records", "streams-csv", "flink-offsets", "flink-sql")
"""Formats without a word for the start of a partition."""

_ENDS = ("spark-ending-offsets",)
"""Formats of ends."""

_FORMATS: dict[str, Callable[[list[ResumeOffset]], str]] = {
    "kafka-csv": _kafka_csv,
    "kafka-to-offset": _kafka_to_offset,
    "kafka-get-offsets": _kafka_get_offsets,
    "kafka-delete-records": _kafka_delete_records,
    "streams-csv": _kafka_streams_csv,
    "kcat": _kcat_commands,
    "spark-offsets": _spark_starting,
    "spark-ending-offsets": _spark_ending,
    "flink-offsets": _flink_offsets,
    "flink-sql": _flink_sql,
}

_KEEP = f"first keep what is committed now: {_GROUPS} --to-current --all-topics --dry-run --export > before.csv"
_STOP = "stop every member of the group: the tool refuses an active one"
_CHECK = 'its exit code is 0 even when it fails: look for "Error:" in what it prints, and --describe the group again'
_CLAMP = "offsets outside the log are moved to its ends with a warning only; an unknown partition hangs it for a minute"
_NEW_QUERY = "used by a query with a new checkpointLocation only; name every partition of the topics"
_FLINK_IGNORES = (
    "ignored where the job restores from a checkpoint or savepoint",
    "a partition that is not named starts at the offset that the group has committed",
)

_STEPS: dict[str, tuple[str, ...]] = {
    "kafka-csv": (
        _KEEP,
        _STOP,
        f"then {_GROUPS} --from-file FILE --dry-run, and --execute if it is right",
        _CHECK,
        _CLAMP,
    ),
    "kafka-to-offset": (_KEEP, _STOP, "run it, read the plan, and run it again with MODE=--execute", _CHECK, _CLAMP),
    "kafka-get-offsets": ("lay it beside what kafka-get-offsets.sh --time -2 and --time -1 print: start and end",),
    "kafka-delete-records": (
        "everything before these offsets is deleted for all readers, and does not come back",
        "each partition has a line in what kafka-delete-records.sh prints: look for errors there",
    ),
    "streams-csv": (
        _KEEP,
        "stop every instance, then kafka-streams-application-reset.sh --input-topics … --from-file FILE --dry-run",
        "the tool deletes the application's internal topics as well; each instance's local state has to go too",
        _CHECK,
    ),
    "kcat": (
        "-c counts messages: where compaction or transaction markers left gaps, it reads on after the range's end",
    ),
    "spark-offsets": (_NEW_QUERY,),
    "spark-ending-offsets": ("of batch queries only, beside startingOffsets of spark-offsets",),
    "flink-offsets": _FLINK_IGNORES,
    "flink-sql": _FLINK_IGNORES,
    "connect-json": (
        "PUT /connectors/NAME/stop first: offsets are changed only while it is STOPPED (Kafka 3.6 and later)",
        "then PATCH /connectors/NAME/offsets with it, GET the same to check, and PUT /connectors/NAME/resume",
        "GET /connectors/NAME/offsets before, and keep what it says: with it the change is undone",
    ),
}

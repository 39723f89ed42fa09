"""What a line takes for granted: positions of sources, logs of channels and sinks that nothing was compared with."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import Any

from cklog.kafka_logs.absent import OTHER_BROKER
from cklog.model.about import findings_by_run
from cklog.model.actions import RunAction
from cklog.model.lines import UNREAD_POSITION, RecoveryLine, SourceOffset
from cklog.model.question import KafkaLogs, Question, given_options, still_helpful
from cklog.model.unchecked import Unchecked, unchecked_by
from cklog.model.values import is_integer
from cklog.model.verdict import Draft
from cklog.model.wording import numbered


def range_names(line: RecoveryLine) -> Callable[[SourceOffset], str]:
    """Return a function that names a source's range among the ranges that were compared with Kafka logs."""
    reader = line.reader_names()
    return lambda source: f"{source.source} ({reader(source)}/{source.subtask})"


def with_unchecked(
    found: Draft[RecoveryLine],
    question: Question,
    kafka: KafkaLogs,
    sources: bool,
    tables: bool,
    binds_sources: bool,
) -> Draft[RecoveryLine]:
    """Return a line whose runs say what nothing was compared with.

    `sources`, `tables`: whether to name positions of sources, and the tables that sinks write. `binds_sources`: a
    source of any name may be a partition of Kafka. Where the question is to explain the line, all of it is a detail of
    the answer, too, for people.
    """
    line = found.result
    alone = len(line.runs) == 1
    begins = {row["of"]: row["begins"] for row in line.details.get("positions", ())}
    compared = {row.get("of") for row in line.details.get("ranges", ())} | {of for of, told in begins.items() if told}
    elsewhere = {row["source"] for row in line.details.get("partitions_elsewhere", ())}
    read_tables = {row["of"]: row["table"] for row in line.details.get("source_tables", ())}
    names_sinks = len(question.sinks) > len({*read_tables.values()})
    given = given_options(question, kafka)
    name, runs = range_names(line), []
    by_job: dict[str, list[SourceOffset]] = {}
    for source in line.sources:
        by_job.setdefault(line.runs[0].run if alone else source.job, []).append(source)
    for run, about in zip(line.runs, findings_by_run(line.runs, found.findings), strict=True):
        rows = list(run.unchecked)
        if sources:
            left = [s for s in by_job.get(run.run, ()) if name(s) not in compared and s.source not in read_tables]
            rows += _of_sources(((s, name(s) in begins) for s in left), binds_sources, elsewhere)
        if alone:
            rows += _of_logs(line)
        has_log = bool(line.details.get("sink"))  # Spark's file sink has one of its own, which was read
        if tables and not names_sinks and not has_log:
            claim = "the tables that the job writes agree with this line"
            rows.append(Unchecked("sink", run.run, claim, "--sink URI"))
        rows += unchecked_by(about)
        runs.append(replace(run, unchecked=tuple(_with_options(row, given) for row in rows)))
    details = line.details | ({"not_checked": [*_rows(runs)]} if question.explain else {})
    return replace(found, result=replace(line, runs=tuple(runs), details=details))


def _with_options(row: Unchecked, given: Container[str]) -> Unchecked:
    """Return what was not checked with the options that were not given, though they would check it."""
    return row if row.option in (None, OTHER_BROKER) else replace(row, option=still_helpful(row.option, given) or None)


def _of_sources(
    sources: Iterable[tuple[SourceOffset, bool]], binds: bool, elsewhere: Container[str]
) -> Iterator[Unchecked]:
    """Yield the positions of sources; with each source, whether `--source-from` can name the start of its log.

    `elsewhere` : the sources whose partition another broker has than those whose logs were given
    """
    for source, database in sources:
        name, offset = source.source, source.offset
        if offset == UNREAD_POSITION:
            claim = f"source {name} still has the data at its position, which cklog cannot read"
            yield Unchecked("source", name, claim)
            continue
        if isinstance(offset, dict) and "logOffset" in offset:
            continue  # a folder of files: it has no position but the list of files that were read
        if isinstance(offset, dict) and "reservoirId" in offset:  # a stream that reads a table of Delta
            table, version = offset["reservoirId"], offset.get("reservoirVersion")
            claim = f"the Delta table {table} that source {name} reads still has version {version}"
            yield Unchecked("source", name, claim, "--sink URI")
            continue
        if offset is None:
            claim = f"source {name} still has its first record"
        elif is_integer(offset) and offset < 0:  # a marker of Flink's instead of an offset
            claim = f"source {name} starts at the right record, because the state holds no offset of it"
        else:
            claim = f"source {name} still has {'offset' if is_integer(offset) else 'position'} {_short(offset)}"
        known = offset is None or is_integer(offset)
        option = "--source-from NAME=POSITION" if database else None
        logs = OTHER_BROKER if name in elsewhere else _logs_option(name, binds)
        yield Unchecked("source", name, claim, logs if known else option)


def _logs_option(name: str, binds: bool = True) -> str | None:
    """Return the option that compares a source or channel with Kafka's logs: by its name, if it is a partition's.

    `binds`: one of another name may be a partition, too. Of engines that name every partition it is none.

    >>> _logs_option("orders-0", binds=False), _logs_option("source/0", binds=False), _logs_option("7")
    ('--kafka FOLDER', None, '--kafka FOLDER --channel NAME=TOPIC-PARTITION')
    """
    topic, _, number = name.rpartition("-")
    if topic and number.isdecimal():
        return "--kafka FOLDER"
    return "--kafka FOLDER --channel NAME=TOPIC-PARTITION" if binds else None


def _short(offset: Any) -> str:
    text = offset if isinstance(offset, str) else json.dumps(offset)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _of_logs(line: RecoveryLine) -> Iterator[Unchecked]:
    for one in line.channels:
        if one.retained is None and one.replay_from < one.replay_to:
            claim = f"the log of {one.channel} still has {numbered('message', one.replay_from, one.replay_to - 1)}"
            yield Unchecked("log", one.channel, claim, _logs_option(one.channel))


def _rows(runs: list[RunAction]) -> Iterator[dict[str, Any]]:
    for run in runs:
        for row in run.unchecked:
            yield {"run": run.run or "-", "of": row.subject, "not_checked": row.claim, "option": row.option}

"""What a program says of times, checkpoints and subtasks, as the parts of questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike, fspath

from cklog.errors import UsageError
from cklog.lines.verify import line_told
from cklog.model.lines import RecoveryLine
from cklog.model.moments import milliseconds, moment
from cklog.model.names import parse_subtask
from cklog.model.question import KafkaLogs, Question
from cklog.model.recovery_time import RecoveryRates
from cklog.model.verdict import Answer
from cklog.render.formats import plain

Moment = datetime | int | str | None
"""A time: a datetime (UTC unless it says otherwise), milliseconds since the epoch, or ISO 8601."""

Place = str | PathLike[str]
"""A path or URI."""

Names = str | Iterable[str]
"""One name, or several."""


def ms_of(time: Moment) -> int | None:
    """Return a time in ms since the epoch.

    >>> ms_of("1970-01-01T00:00:02"), ms_of(datetime(1970, 1, 1, 0, 0, 2)), ms_of(2000), ms_of(None)
    (2000, 2000, 2000, None)
    """
    if isinstance(time, datetime):
        return milliseconds(time)
    return moment(time) if isinstance(time, str) else time


def names_of(names: Names) -> tuple[str, ...]:
    """Return one name or several as a tuple.

    >>> names_of("join/0"), names_of(["a", "b"]), names_of("")
    (('join/0',), ('a', 'b'), ())
    """
    if isinstance(names, str):
        return (names,) if names else ()
    return tuple(names)


def checkpoint_of(name: str, checkpoint: int) -> tuple[str, int]:
    """Return a checkpoint by subtask (or job) and number, as questions have it."""
    if isinstance(checkpoint, bool) or not isinstance(checkpoint, int):
        raise UsageError(f"{name}: {checkpoint!r} is no checkpoint number")
    return name, checkpoint


def checkpoint_named(text: str) -> tuple[str, int]:
    """Return a checkpoint given as OP/SUB=CKPT.

    >>> checkpoint_named("join/1=5")
    ('join/1', 5)
    """
    name, _, number = text.rpartition("=")
    if parse_subtask(name) is None or not number.removeprefix("-").isdecimal():
        raise UsageError(f"{text!r} is no checkpoint", "such as join/1=5")
    return name, int(number)


def kafka_of(folder: Place, channels: Mapping[str, str] | None, group: str) -> KafkaLogs:
    """Return which Kafka logs a line is held against."""
    chosen = tuple(f"{name}={partition}" for name, partition in (channels or {}).items())
    if (chosen or group) and not fspath(folder):
        raise UsageError("channels and group are about Kafka logs", "say where they are: kafka=FOLDER")
    return KafkaLogs(fspath(folder), chosen, group)


def line_of(line: Mapping[str, int | None] | Answer[RecoveryLine]) -> Mapping[str, int | None]:
    """Return the checkpoint of each subtask: of a map, or of the answer that found them."""
    return line_told(plain(line.result), "line") if isinstance(line, Answer) else line


def maps_of(maps: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return where stored paths are now, by old prefix."""
    if not all(old and new for old, new in maps.items()):
        raise UsageError("maps: an empty prefix", 'such as {"file:///srv/run": "copy"}')
    return tuple(maps.items())


def question_of(
    failed: Names = "",
    as_of: Moment = None,
    at: Mapping[str, int] | None = None,
    earliest: bool = False,
    explain: bool = False,
    algorithm: str = "watermark-fixpoint",
    against: str = "",
    check_files: bool = True,
    check_contents: bool = False,
    rates: RecoveryRates | None = None,
    sinks: Mapping[str, str] | None = None,
    source_from: Mapping[str, str] | None = None,
    taken: Mapping[str, str] | None = None,
) -> Question:
    """Make the question about a line."""
    return Question(
        failed=names_of(failed),
        as_of=ms_of(as_of),
        at=tuple(checkpoint_of(name, number) for name, number in (at or {}).items()),
        explain=explain,
        earliest=earliest,
        algorithm=algorithm,
        against=against,
        check_files=check_files,
        check_contents=check_contents,
        rates=rates or RecoveryRates(),
        sinks=_named(sinks),
        source_from=_named(source_from),
        taken=_named(taken),
    )


def _named(given: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return NAME=VALUE of each pair, as the command line has it."""
    return tuple(f"{name}={value}" for name, value in (given or {}).items())

"""Options about the line that several commands take, and the words and numbers in options."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from cklog.commands.terminal import completion
from cklog.errors import UsageError
from cklog.model.moments import moment as moment
from cklog.model.question import KafkaLogs, Question
from cklog.model.recovery_time import RecoveryRates

_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(I?B)?", re.IGNORECASE)
_LENGTH = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(px|mm|cm|in)?", re.ASCII)
_PIXELS = {"px": 1.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}
_INTEGER = re.compile(r"-?\d{1,18}")

WordList = list[str] | None


class RecoveryName(StrEnum):
    """`--recovery`."""

    gap = "gap"
    stateless = "stateless-rollback"
    rollback = "rollback"
    precise = "precise"


class Algorithm(StrEnum):
    """`--algorithm`."""

    fixpoint = "watermark-fixpoint"
    propagation = "rollback-propagation"


Failed = Annotated[
    list[str] | None,
    typer.Option(
        "--failed",
        autocompletion=completion.failed,
        help="Only these lost their state; comma-separated or repeated.",
        metavar="OP[/SUB]",
    ),
]
AsOf = Annotated[str, typer.Option("--as-of", help="As if the job had failed then: ms or ISO 8601.", metavar="TIME")]
At = Annotated[list[str] | None, typer.Option("--at", help="The line through this checkpoint.", metavar="OP/SUB=CKPT")]
Earliest = Annotated[bool, typer.Option("--earliest", help="With --at: the earliest line through it, not the latest.")]
FailedAt = Annotated[
    str,
    typer.Option(
        "--failed-at",
        help="What a failure of all would have cost then: all checkpoint times, or some.",
        metavar="all|TIME,…",
    ),
]
OperatorOption = Annotated[
    str, typer.Option("--operator", autocompletion=completion.subtasks, help="Whose output queue.", metavar="OP[/SUB]")
]
Forward = Annotated[
    bool, typer.Option("--forward", help="Read the whole queue too, on the engine, and compare. Implied by Spark.")
]
OverTime = Annotated[
    bool, typer.Option("--over-time", help="How extent and replay went, by one pass over the whole queue.")
]
MaxExtent = Annotated[
    int | None, typer.Option("--max-extent", help="Exit 3 if the extent was ever over Q records.", metavar="Q")
]
MaxReplay = Annotated[
    int | None, typer.Option("--max-replay", help="Exit 3 if the replay was ever over U tuples.", metavar="U")
]
KafkaOption = Annotated[
    str, typer.Option("--kafka", metavar="FOLDER", help="Kafka logs (a broker's data folder) to hold the line against.")
]
ChannelOption = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="NAME=TOPIC-PARTITION", help="With --kafka: a channel's or source's log."),
]
GroupOption = Annotated[
    str, typer.Option("--group", metavar="G", help="Kafka logs (PATH or --kafka): only this group's offsets.")
]
SourceFromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source-from",
        metavar="NAME=POSITION",
        help="Connectors and CDC sources: oldest position still in the source's log; repeatable.",
    ),
]
TakenOption = Annotated[
    list[str] | None,
    typer.Option(
        "--taken", metavar="NAME=TOPIC|FILE", help="Of a connector: a topic or JSON lines that it has written."
    ),
]
SinkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sink", metavar="[NAME=]URI", help="A table that it writes to: what the line means for it; repeatable."
    ),
]
NoCheckFiles = Annotated[
    bool, typer.Option("--no-check-files", help="Of Flink: take the metadata's word, look at no state file.")
]
CheckContents = Annotated[
    bool,
    typer.Option("--check-contents", help="Of Flink, Spark: check every block of state files, not only their ends."),
]
ReadRate = Annotated[
    float | None,
    typer.Option("--read-rate", metavar="MB/S", help="How fast a subtask reads its state (else as the logs show)."),
]
ReplayRate = Annotated[
    float | None,
    typer.Option("--replay-rate", metavar="MSG/S", help="How fast a subtask processes messages (as the logs show)."),
]
InputRate = Annotated[
    float | None,
    typer.Option("--input-rate", metavar="MSG/S", help="How many messages arrive for a subtask (as the logs show)."),
]
MaxRecoveryTime = Annotated[
    float | None,
    typer.Option("--max-recovery-time", metavar="S", help="Exit 3 if a recovery surely takes longer."),
]
Explain = Annotated[bool, typer.Option("--explain", help="Why each subtask fell: the orphan messages.")]
AlgorithmName = Annotated[Algorithm, typer.Option("--algorithm", help="How to find the line; both agree.")]


def size(text: str) -> int:
    """Return bytes of `512MiB`, `1G` or `1000000`; K, M, G, T are powers of 1024.

    >>> size("512MiB"), size("1g"), size("12")
    (536870912, 1073741824, 12)
    """
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{text!r} is no size", "such as 512MiB, 2G or a number of bytes")
    return int(found.group(1)) << (10 * " KMGT".index(found.group(2).upper() or " "))


def pixels(option: str, text: str) -> float:
    """Return the pixels, of which 96 are an inch, of `1200`, `1200px`, `180mm`, `18cm` or `7in`.

    >>> pixels("--width", "1200"), pixels("--width", "25.4mm"), pixels("--width", "2in")
    (1200.0, 96.0, 192.0)
    """
    found = _LENGTH.fullmatch(text.strip().lower())
    if not found:
        raise UsageError(f"{option} {text!r}: no length", "such as 1200 (pixels), 180mm, 18cm or 7in")
    return round(float(found[1]) * _PIXELS[found[2] or "px"], 3)


def checkpoint_named(option: str, text: str) -> tuple[str, int]:
    """Return subtask and number of `OP/SUB=CKPT`.

    >>> checkpoint_named("--at", "join/1=5")
    ('join/1', 5)
    """
    name, number = assignment(option, text)
    if not _INTEGER.fullmatch(number):
        raise UsageError(f"{option} {text}: {number} is no checkpoint number")
    return name, int(number)


def assignment(option: str, text: str) -> tuple[str, str]:
    """Return both sides of `K=V`."""
    last = option != "--spark-conf"  # a value may hold another =, an operator's name too
    key, equals, value = text.rpartition("=") if last else text.partition("=")
    if not (key and equals and value):
        given = f"{option} {text}" if last else option  # a value of Spark's may be a secret
        raise UsageError(f"{given}: expected {'OP/SUB=CKPT' if last else 'K=V'}")
    return key, value


def question(
    failed: list[str] | None = None,
    as_of: str = "",
    at: list[str] | None = None,
    explain: bool = False,
    earliest: bool = False,
    algorithm: Algorithm = Algorithm.fixpoint,
    against: str = "",
    check_files: bool = True,
    check_contents: bool = False,
    rates: RecoveryRates | None = None,
    source_from: list[str] | None = None,
    taken: list[str] | None = None,
    sinks: list[str] | None = None,
) -> Question:
    """Make the question about the line of the options."""
    chosen = tuple(checkpoint_named("--at", part) for given in at or [] for part in given.split(","))
    if len({name for name, _ in chosen}) < len(chosen):
        raise UsageError(f"--at {','.join(at or [])}: two checkpoints of one subtask are on no line")
    if check_contents and not check_files:
        raise UsageError("--check-contents with --no-check-files", "leave one of them out")
    names = tuple(part.strip() for given in failed or [] for part in given.split(",") if part.strip())
    return Question(
        failed=names,
        as_of=moment(as_of),
        at=chosen,
        explain=explain,
        earliest=earliest,
        algorithm=algorithm.value,
        against=against,
        check_files=check_files,
        check_contents=check_contents,
        rates=rates or RecoveryRates(),
        source_from=tuple(source_from or ()),
        taken=tuple(taken or ()),
        sinks=tuple(sinks or ()),
    )


def words(given: WordList) -> tuple[str, ...]:
    """Return parts of options that are repeated or hold commas.

    >>> words(["1x,2x", "none"])
    ('1x', '2x', 'none')
    """
    return tuple(part.strip() for text in given or [] for part in text.split(",") if part.strip())


def numbers(option: str, given: list[str]) -> tuple[float, ...]:
    """Return the same as numbers, each once."""
    try:
        return tuple(dict.fromkeys(float(word) for word in words(given)))
    except ValueError:
        raise UsageError(f"{option} {','.join(given)}: numbers, separated by commas") from None


@dataclass(frozen=True, slots=True)
class LineOptions:
    """What says which line is meant, and what it is held against: of every command that answers about one."""

    failed: Failed = None
    as_of: AsOf = ""
    at: At = None
    no_check_files: NoCheckFiles = False
    check_contents: CheckContents = False
    kafka: KafkaOption = ""
    channel: ChannelOption = None
    group: GroupOption = ""
    source_from: SourceFromOption = None
    taken: TakenOption = None
    sink: SinkOption = None

    @property
    def logs(self) -> KafkaLogs:
        """What `--kafka`, `--channel` and `--group` say."""
        return KafkaLogs(self.kafka, tuple(self.channel or ()), self.group)

    def question(
        self,
        explain: bool = False,
        earliest: bool = False,
        algorithm: Algorithm = Algorithm.fixpoint,
        against: str = "",
        rates: RecoveryRates | None = None,
    ) -> Question:
        """Make the question about the line, with what a command has options of its own for."""
        return question(
            self.failed,
            self.as_of,
            self.at,
            explain,
            earliest,
            algorithm,
            against,
            not self.no_check_files,
            self.check_contents,
            rates,
            self.source_from,
            self.taken,
            self.sink,
        )

    def words(self) -> tuple[str, ...]:
        """Return the options as they are typed, those that were given."""
        return (
            *(("--failed", ",".join(self.failed)) if self.failed else ()),
            *(("--as-of", self.as_of) if self.as_of else ()),
            *(word for one in self.at or () for word in ("--at", one)),
            *(("--no-check-files",) if self.no_check_files else ()),
            *(("--check-contents",) if self.check_contents else ()),
            *(("--kafka", self.kafka) if self.kafka else ()),
            *(word for one in self.channel or () for word in ("--channel", one)),
            *(("--group", self.group) if self.group else ()),
            *(word for one in self.source_from or () for word in ("--source-from", one)),
            *(word for one in self.taken or () for word in ("--taken", one)),
            *(word for one in self.sink or () for word in ("--sink", one)),
        )


@dataclass(frozen=True, slots=True)
class RateOptions:
    """What says how fast a recovery goes."""

    read_rate: ReadRate = None
    replay_rate: ReplayRate = None
    input_rate: InputRate = None
    max_recovery_time: MaxRecoveryTime = None

    @property
    def rates(self) -> RecoveryRates:
        """The same as one value."""
        return RecoveryRates(self.read_rate, self.replay_rate, self.input_rate, self.max_recovery_time)

"""What is asked about a run's line: options as typed, before anything is read."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field

from cklog.model.recovery_time import RecoveryRates


@dataclass(frozen=True, slots=True)
class KafkaLogs:
    """Kafka logs to hold a line against: their `folder`, which partition a channel is (NAME=TOPIC-PARTITION), and
    whose committed offsets count ("": every group's)."""

    folder: str = ""
    channels: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What `recovery-line` and its kin are asked.

    `failed` as OP or OP/SUB, empty: the manifest's, or all; `as_of` in ms; `at` as ("op/sub", checkpoint);
    `earliest`: the earliest line through `at` instead of the latest; `everything` failed, whatever the manifest says.
    Of snapshots: `against` is another one to compare source offsets with; `check_files` False takes metadata's word.
    `check_contents` checks every block of state files, where as a rule what costs little is looked at. `rates` tell how
    long a recovery takes. Of connectors: `source_from` NAME=POSITION, where the log of a source begins; `taken`
    NAME=TOPIC or FILE, what one has written. `sinks` are the tables that the job writes to, each as [NAME=]URI.
    """

    failed: tuple[str, ...] = ()
    as_of: int | None = None
    at: tuple[tuple[str, int], ...] = ()
    explain: bool = False
    earliest: bool = False
    algorithm: str = "watermark-fixpoint"
    everything: bool = False
    against: str = ""
    check_files: bool = True
    check_contents: bool = False
    rates: RecoveryRates = field(default_factory=RecoveryRates)
    source_from: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InspectQuestion:
    """What `inspect` is asked beside what is here; of Flink's snapshots which operator has the uid `uid`, and what a
    job manager's log (the file `job_log`) says of checkpoints. `metrics`: those of the checkpointing protocol, too.
    `check_contents`: every block of state files is checked. `validate`: what the writer of a run folder got wrong is
    looked for."""

    metrics: bool = False
    uid: str = ""
    job_log: str = ""
    check_contents: bool = False
    validate: bool = False


def given_options(question: Question, kafka: KafkaLogs = KafkaLogs()) -> frozenset[str]:
    """Return the options that a question was asked with, of those that tell no more when they are given again."""
    values = {
        "--against": question.against,
        "--check-contents": question.check_contents,
        "--group": kafka.group,
        "--kafka": kafka.folder,
    }
    return frozenset(option for option, value in values.items() if value)


def still_helpful(options: str, given: Container[str]) -> str:
    """Return of options, as a text names them, those that were not given; "" for none.

    >>> still_helpful("--kafka FOLDER --channel NAME=TOPIC-PARTITION", ["--kafka"])
    '--channel NAME=TOPIC-PARTITION'
    """
    return " ".join(one for one in re.split(" (?=--)", options) if one.partition(" ")[0] not in given)

"""What is damaged: every sample, folders crafted for this, and the questions that each of them answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.conftest import SAMPLES, SHARED
from tests.fuzz import corpus

Files = dict[str, bytes]
Question = tuple[str, ...]

_LEFT_OUT = ("README.md", "expected.json")


@dataclass(frozen=True)
class Subject:
    """A folder to damage.

    `family` : whose format its files have, which says what a change of them may excuse
    `files` : makes them, by relative path
    `questions` : what is asked; PATH stands for the folder, and the first words are the command
    `weight` : how often it is chosen
    """

    name: str
    family: str
    files: Callable[[], Files]
    questions: tuple[Question, ...]
    weight: int = 4

    def is_one_of(self, chosen: Sequence[str]) -> bool:
        """Whether its family is chosen, or a beginning of its name."""
        return self.family in chosen or self.name.startswith(tuple(chosen))


ANY_RUN = tuple(
    tuple(question.split())
    for question in (
        "scan PATH --json",
        "runbook PATH",
        "runbook PATH --json",
        "runbook PATH --format script",
        "report PATH --json",
        "report PATH",
        "report PATH --format html",
    )
)
"""What is asked about any run, though seldom: a report takes as long as its eight parts."""

_LARGE = 1
"""The weight of folders of which a smaller one with the same files is chosen more often: these take thrice as long."""


def _asked(*questions: str) -> tuple[Question, ...]:
    return tuple(tuple(question.split()) for question in questions)


LINES = (
    "recovery-line PATH --json",
    "recovery-line PATH --json",
    "recovery-line PATH --explain --json",
    "replay PATH --json",
    "inspect PATH --json",
    "retention PATH --json",
    "retention PATH --json",
    "impact PATH --json",
    "chain PATH --json",
    "z-cycles PATH --json",
    "graph PATH --json",
    "inspect PATH --metrics --json",
    "recovery-line PATH --failed-at all --json",
    "retention PATH --keep 2 --json",
    "retention PATH --format script",
    "recovery-line PATH --explain",
    "replay PATH --format kafka-csv",
    "advise protocol PATH --json",
)
"""Twice: what harm is greatest if wrong."""

ROUNDS = (*LINES, "rounds PATH --json", "rounds PATH --json", "rounds PATH --sweep node --json")
EVENTS = (*LINES, "latency PATH --json")
RESULTS = ("latency PATH --results PATH/results --event-time created --json", "recovery-line PATH --json")
RESTORED = (*LINES, f"verify PATH --restored {SAMPLES}/checkmate-newest.json --json")

QUEUES = (
    "recovery-line PATH --json",
    "recovery-line PATH --json",
    "replay PATH --json",
    "inspect PATH --json",
    "impact PATH --json",
    "extent PATH --operator OPERATOR --json",
    "extent PATH --operator OPERATOR --forward --json",
    "extent PATH --operator OPERATOR --over-time --json",
    "eventual-checkpoint PATH --operator OPERATOR --json",
    "eventual-checkpoint PATH --operator OPERATOR --forward --json",
    "advise extent PATH --operator OPERATOR --json",
    "retention PATH --json",
    "recovery-line PATH",
)
SNAPSHOTS = (
    "recovery-line PATH MAP --json",
    "recovery-line PATH MAP --json",
    "recovery-line PATH --no-check-files --json",
    "replay PATH MAP --json",
    "inspect PATH MAP --json",
    "retention PATH MAP --json",
    "retention PATH MAP --json",
    "retention PATH MAP --keep 1 --jobs-stopped --json",
    "retention PATH MAP --jobs-stopped --format script",
    "chain PATH MAP --json",
    "impact PATH MAP --json",
    "recovery-line PATH MAP",
    "replay PATH MAP --format kafka-csv",
)
BATCHES = (
    "recovery-line PATH MAP --json",
    "recovery-line PATH MAP --json",
    "recovery-line PATH --json",
    "replay PATH MAP --json",
    "inspect PATH MAP --json",
    "retention PATH MAP --json",
    "retention PATH MAP --keep 2 --json",
    "retention PATH MAP --format script",
    "chain PATH MAP --json",
    "impact PATH MAP --json",
    "recovery-line PATH MAP",
)
PARTITIONS = (
    "recovery-line PATH --json",
    "recovery-line PATH --json",
    "replay PATH --json",
    "inspect PATH --json",
    "impact PATH --json",
    "recovery-line PATH",
    "replay PATH --operator billing --format kafka-csv",
)
STORES = (
    "recovery-line PATH/state --kafka PATH/kafka --json",
    "recovery-line PATH/state --kafka PATH/kafka --json",
    "replay PATH/state --kafka PATH/kafka --json",
    "recovery-line PATH/state --json",
    "inspect PATH/state --json",
    "recovery-line PATH/state --kafka PATH/kafka",
)
PIECES = (
    "inspect PATH --json",
    "chain PATH --json",
    "retention PATH --json",
    "retention PATH --marked totals/0=1 --json",
    "advise delta PATH --json",
    "chain PATH",
)
TIMING = ("advise timing PATH --period 5 --json", "recovery-line PATH --json", "inspect PATH --json")
SYSTEM = ("impact PATH --json", "impact PATH --recovery rollback --json", "inspect PATH --json", "impact PATH")
DELTAS = (*LINES, "advise delta PATH --json")

CONNECTORS = (
    "recovery-line PATH --json",
    "recovery-line PATH/topic --json",
    "recovery-line PATH/topic --source-from orders-mysql=mysql-bin.000124:4 --json",
    "recovery-line PATH/export --json",
    "recovery-line PATH/standalone --json",
    "replay PATH/topic --json",
    "replay PATH/topic --operator orders-mysql --format connect-json",
    "inspect PATH/topic --json",
    "recovery-line PATH/topic",
)
JOINT = (
    "recovery-line PATH/clean --with PATH/enrich --json",
    "recovery-line PATH/clean --with PATH/enrich --json",
    "recovery-line PATH/enrich --with PATH/clean",
)
TABLES = (
    "recovery-line PATH/JOB --sink t=PATH/table MAP --json",
    "recovery-line PATH/JOB --sink t=PATH/table MAP --json",
    "recovery-line PATH/JOB --sink t=PATH/table MAP",
    "replay PATH/JOB --sink t=PATH/table MAP --json",
    "impact PATH/JOB --sink t=PATH/table MAP --json",
    "report PATH/JOB --sink t=PATH/table MAP --json",
    "runbook PATH/JOB --sink t=PATH/table MAP --json",
)


def _questions(texts: tuple[str, ...], operator: str = "", origin: str = "") -> tuple[Question, ...]:
    mapped = f"--map {origin}=PATH" if origin else ""
    return _asked(*(text.replace("OPERATOR", operator).replace("MAP", mapped) for text in texts))


def folder_files(folder: Path) -> Files:
    """Every file below a folder but what is there for people and for other tests."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name not in _LEFT_OUT}


def _sample(
    name: str, family: str, texts: tuple[str, ...], operator: str = "", origin: str = "", weight: int = 4
) -> Subject:
    return Subject(name, family, partial(folder_files, SAMPLES / name), _questions(texts, operator, origin), weight)


def _tables() -> tuple[Subject, ...]:
    """Jobs with the tables that they write; rows in the tables are nobody's question."""
    return tuple(_table(folder) for folder in sorted((SAMPLES / "tables").glob("*-*")))


def _table(folder: Path) -> Subject:
    name, (family, job) = f"tables/{folder.name}", _JOBS[folder.name.partition("-")[0]]
    texts = tuple(text.replace("JOB", job) for text in TABLES)
    questions = _questions(texts, origin=f"{_SRV}/cklog-sample/{name}")
    return Subject(name, family, partial(_without_rows, folder), questions, weight=1)


def _without_rows(folder: Path) -> Files:
    files = folder_files(folder)
    return {name: data for name, data in files.items() if "/_delta_log/" in name or not name.endswith(".parquet")}


def _crafted(name: str, family: str, texts: tuple[str, ...], operator: str = "", origin: str = "") -> Subject:
    return Subject(f"crafted/{name}", family, corpus.MADE[name], _questions(texts, operator, origin))


_SRV = "file:///srv"
_JOBS = {"flink": ("flink", "checkpoints"), "spark": ("spark", "ck")}

SUBJECTS = (
    _sample("cec-aggregate", "native", QUEUES, "agg1", weight=_LARGE),
    _sample("cec-aggregate-kafka", "native", QUEUES, "agg1", weight=_LARGE),
    _sample("cec-aggregate-parquet", "native", QUEUES, "agg1", weight=_LARGE),
    _sample("cec-crashed", "native", QUEUES, "agg1", weight=_LARGE),
    _sample("checkmate-uncoordinated", "checkmate", RESTORED, weight=_LARGE),
    _sample("connect-offsets", "kafka", CONNECTORS),
    _sample("domino-cycle", "native", LINES),
    _sample("flink-orders", "flink", SNAPSHOTS, origin=f"{_SRV}/cklog-sample/flink-orders", weight=_LARGE),
    _sample("incremental", "native", DELTAS, weight=_LARGE),
    _sample("kafka-broker", "kafka", PARTITIONS),
    _sample("kafka-streams-state", "kafka", STORES),
    _sample("meteor-shower", "native", TIMING),
    _sample("odysseus-gap", "native", (*SYSTEM, *QUEUES), "count"),
    _sample("odysseus-precise", "native", (*SYSTEM, *QUEUES), "count"),
    _sample("patent-store", "patent", PIECES),
    _sample("q3-coordinated", "native", ROUNDS),
    _sample("raw-events", "native", EVENTS, weight=_LARGE),
    _sample("reachability-cic", "native", (*LINES, "z-cycles PATH --audit-cic --json"), weight=_LARGE),
    _sample("reachability-uncoordinated", "native", LINES, weight=_LARGE),
    _sample("sink-latency", "native", RESULTS),
    _sample("spark-chain", "spark", JOINT),
    _sample("spark-state-hdfs", "spark", BATCHES, origin=f"{_SRV}/cklog-words/hdfs"),
    _sample("spark-state-rocksdb", "spark", BATCHES, origin=f"{_SRV}/cklog-words/rocksdb"),
    _sample("spark-wordcount", "spark", BATCHES, origin=f"{_SRV}/cklog-sample/wordcount"),
    _sample("token-rounds", "native", ROUNDS),
    _sample("token-rounds-ap", "native", ROUNDS),
    _sample("uncoordinated-join", "native", LINES, weight=_LARGE),
    _sample("uncoordinated-join-parquet", "native", LINES, weight=_LARGE),
    *_tables(),
    _crafted("join-plain", "native", LINES),
    _crafted("join-gz", "native", LINES),
    _crafted("join-zst", "native", LINES),
    _crafted("join-parquet", "native", LINES),
    _crafted("events-short", "native", EVENTS),
    _crafted("chains-short", "native", DELTAS),
    _crafted("queues", "native", QUEUES, "agg1"),
    _crafted("queues-gz", "native", QUEUES, "agg1"),
    _crafted("flink-job", "flink", SNAPSHOTS, origin="file:/mnt/flink/ckpts"),
    _crafted("flink-savepoint", "flink", SNAPSHOTS, origin="file:/mnt/flink/ckpts"),
    _crafted("kafka-codecs", "kafka", PARTITIONS),
)

BY_NAME: Mapping[str, Subject] = {subject.name: subject for subject in SUBJECTS}


def shared_subjects() -> tuple[Subject, ...]:
    """Folders of real systems that lie beside the repository, with what of the questions they answer."""
    verified = SHARED / "engine-verified"
    kinds = {"flink": ("flink", SNAPSHOTS), "spark": ("spark", BATCHES), "checkmate": ("checkmate", LINES)}
    found = []
    for folder in sorted(path for path in verified.glob("*") if path.is_dir()):
        family, texts = kinds.get(folder.name.partition("-")[0], ("", ()))
        if family:
            made = partial(folder_files, folder)
            found.append(Subject(f"shared/{folder.name}", family, made, _questions(texts)))
    return tuple(found)

"""The rooms that decide, and the tests that mirror each."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import REPOSITORY

RUNS = ("batches", "connectors", "partitions", "pieces", "records", "snapshots", "stores")
DECIDING = ("history", "lines", "zigzag", "queues", "chains", "retention", "rounds", "impact", "sink_tables", "joint")
CORE = (*DECIDING, *(f"runs/{k}" for k in RUNS))
DECODERS = ("kafka", "flink", "spark", "patent", "checkmate", "pickles", "codecs", "jsonl", "tables", "native")

_BESIDE = {
    "history": ("tests/unit/parsers/native/test_records.py", "tests/unit/lines", "tests/unit/runs/records"),
    "zigzag": ("tests/property/test_lines.py", "tests/property/test_graphs.py"),
    "lines": ("tests/unit/rounds", "tests/unit/runs/records", "tests/property/history"),
    "joint": ("tests/unit/runs/batches/test_feeds.py",),
    "sink_tables": ("tests/unit/joint/test_tables.py", "tests/unit/impact/sinks"),
    "retention": ("tests/unit/runs/records", "tests/unit/runs/snapshots"),
    "runs/batches": (
        "tests/unit/joint",
        "tests/unit/parsers/spark",
        "tests/integration/spark/test_checkpoint.py",
        "tests/unit/impact/sinks/test_spark.py",
    ),
    "runs/partitions": ("tests/unit/parsers/kafka/test_broker_folder.py",),
    "runs/pieces": ("tests/property/runs/test_pieces.py", "tests/unit/parsers/patent"),
    "runs/records": ("tests/unit/impact/sinks/test_sinks.py", "tests/property/test_retention.py"),
    "runs/snapshots": (
        "tests/property/runs/test_generations.py",
        "tests/unit/retention/test_keep.py",
        "tests/unit/parsers/flink",
        "tests/unit/impact/sinks/test_flink.py",
    ),
    "runs/stores": tuple(f"tests/unit/parsers/kafka/test_{name}.py" for name in ("streams", "inside", "quix")),
    "kafka": ("tests/unit/parsers/native/test_kafka_tables.py",),
    "native": ("tests/unit/queues", "tests/unit/runs/records", "tests/unit/history"),
    "spark": (
        "tests/unit/runs/batches",
        "tests/integration/spark/test_state.py",
        "tests/integration/spark/test_checkpoint.py",
    ),
    "tables": (
        "tests/unit/parsers/native",
        "tests/unit/parsers/checkmate",
        "tests/property/parsers/test_parquet_loops.py",
    ),
    "jsonl": ("tests/unit/parsers/native",),
    "pickles": ("tests/unit/parsers/checkmate",),
    "codecs": ("tests/unit/parsers/spark", "tests/unit/parsers/jsonl/test_compressed.py"),
}
"""Tests of a room that stand in another's folder: they hold what both decide together."""


def files(room: str) -> list[str]:
    """The modules of a room."""
    below = REPOSITORY / ("cklog" if room in CORE else "parsers") / room
    found = [path.relative_to(REPOSITORY).as_posix() for path in sorted(below.rglob("*.py"))]
    return [path for path in found if not path.endswith(("__init__.py", "/view.py", "/exports.py"))]


def tests(room: str) -> list[str]:
    """The tests of a room, small ones first."""
    inner = "" if room in CORE else "parsers/"
    named = [f"tests/unit/{inner}{room}", f"tests/property/{inner}test_{room}.py", f"tests/property/{inner}{room}"]
    return [name for name in (*named, *_BESIDE.get(room, ())) if (REPOSITORY / Path(name)).exists()]

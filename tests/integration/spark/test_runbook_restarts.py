"""The script of a runbook, run on a real query that was killed with SIGKILL: what it starts goes on as foretold."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

import pyspark
import pytest

from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import plan_of
from cklog.storage import Root
from tests.builders.spark_restarts import delete, keep_few_inputs, kill, newest
from tests.conftest import REPOSITORY
from tests.program import cklog
from tests.standins import run_script

pytestmark = [pytest.mark.slow, pytest.mark.spark]

NAME = "counts/hdfs/each"
PROGRAM = f"""
import sys
from pathlib import Path
from tests.builders.spark_queries import session, start
home = Path(sys.argv[1])
spark = session(home.parent / "again")
query = start(spark, home, "{NAME}", once=True)
ended = query.awaitTermination(600)
spark.stop()
sys.exit(0 if ended else 1)
"""


def given(home: Path) -> list[tuple[int, list[str]]]:
    """What the sink got, batch by batch."""
    lines = (home / "out" / "ledger.jsonl").read_text().splitlines()
    return [(row["batch"], row["rows"]) for row in map(json.loads, lines)]


def counted(home: Path, batch: int) -> list[str]:
    """What a batch gives to the sink: how often each key of its file has come by then. Each batch reads one file."""
    files = [
        [json.loads(line)["k"] for line in path.read_text().splitlines()] for path in sorted((home / "in").iterdir())
    ]
    counts = Counter(key for keys in files[: batch + 1] for key in keys)
    return sorted(f"Row(k={key!r}, count={counts[key]})" for key in set(files[batch]))


@pytest.mark.parametrize("damage", ["none", "the newest state"])
def test_the_script_restarts_a_killed_query_as_foretold(damage: str, tmp_path: Path) -> None:
    kill(tmp_path, [NAME], random.Random(damage))
    home = tmp_path / NAME
    if damage != "none":
        version = newest(home / "ck/commits") + 1
        for path in (home / "ck/state/0").glob(f"[0-9]*/{version}.delta"):
            delete(path)
    plan = plan_of(SparkCheckpoint(Root(str(home))))
    keep_few_inputs(home, plan)
    answer = json.loads(cklog("recovery-line", home, "--json").out)["result"]
    script = cklog("runbook", home, "--format", "script")
    assert script.code in (0, 3), script.err
    before = given(home)
    program = tmp_path / "query.py"
    program.write_text(PROGRAM)
    ran = run_script(
        script.out,
        tmp_path / "work",
        str(program),
        str(home),
        SPARK_SUBMIT=str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        PYTHONPATH=str(REPOSITORY),
        PYSPARK_PYTHON=sys.executable,
        SPARK_HOME=str(Path(pyspark.__file__).parent),
    )
    assert ran.code == 0, ran.err[-2000:]
    assert answer["action"] == ("restart" if damage == "none" else "repair-first")
    assert answer["runs"][0]["chosen"] == f"batch {plan.committed}"
    assert [call[0] for call in ran.calls if call[0] != "job"] == ["spark-submit"]
    again = given(home)[len(before) :]
    assert again[0][0] == plan.committed + 1
    assert all(rows == counted(home, batch) for batch, rows in before)
    last = len(list((home / "in").iterdir())) - 1
    if damage == "none":
        assert [batch for batch, _ in again] == list(range(plan.committed + 1, last + 1))
        assert all(rows == counted(home, batch) for batch, rows in again)
    # After going back the source's own log holds files of batches that are gone: one batch takes all of them.
    newest_count = {row.partition(",")[0]: row for _, rows in [*before, *again] for row in rows}
    every = Counter(json.loads(line)["k"] for path in (home / "in").iterdir() for line in path.read_text().splitlines())
    assert sorted(newest_count.values()) == sorted(f"Row(k={key!r}, count={n})" for key, n in every.items())
    assert newest(home / "ck/commits") == again[-1][0]
    assert cklog("recovery-line", home).code == 0

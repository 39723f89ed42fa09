"""Real queries killed with SIGKILL at any moment, the answer given, the query run again, and the two compared.

A round kills several queries at once: one of them at a moment that its files show, the others wherever they are then.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import BatchPlan, plan_of
from cklog.storage import Root
from tests.builders.spark_queries import QUERIES, SINKS, STATES, names, session, start, write_inputs

pytestmark = [pytest.mark.slow, pytest.mark.spark]

AT_ONCE = 6
KILLS = 60
MOMENTS = ("offsets", "state", "sink", "commits")
"""What a batch writes, in its order; a query is killed as soon as it is there."""
_WAIT_S = 600.0
_ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = session(tmp_path_factory.mktemp("scratch"))
    yield made
    made.stop()


def rounds() -> list[list[str]]:
    """Which queries are killed together: every combination at least once, in a fixed order."""
    order = names()
    random.Random(14).shuffle(order)
    order = (order * 2)[:KILLS]
    return [order[i : i + AT_ONCE] for i in range(0, KILLS, AT_ONCE)]


def kill(folder: Path, which: list[str], chance: random.Random) -> None:
    """Run queries in a process of their own until each has committed two batches and one has written a certain file."""
    for name in which:
        write_inputs(folder / name / "in")
    command = [sys.executable, "-m", "tests.builders.spark_queries", str(folder), *which]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=log, start_new_session=True)

    def wait(what: Callable[[], bool], every: float) -> None:
        """A busy machine may take its time, but batches have to be committed."""
        size, since = -1, time.monotonic()
        while not what():
            assert running.poll() is None, (folder / "log").read_text()[-2000:]
            now, written = time.monotonic(), sum(written_at("commits", folder / name) for name in which)
            if written != size:
                size, since = written, now
            assert now - since < _WAIT_S, (folder / "log").read_text()[-2000:]
            time.sleep(every)

    try:
        wait(lambda: all(written_at("commits", folder / name) >= 2 for name in which), 0.1)
        moment, home = chance.choice(MOMENTS), folder / chance.choice(which)
        before = written_at(moment, home)
        wait(lambda: written_at(moment, home) > before, 0.001)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def written_at(moment: str, home: Path) -> int:
    """The newest batch, or version, of which there is what is written at a moment of it; -1 for none."""
    if moment == "sink":
        return max([newest(home / "out/_spark_metadata"), *ledger(home)])
    return newest(home / "ck" / moment)


def newest(folder: Path) -> int:
    """The highest number that a file begins with, in a folder and all below it."""
    numbers = (re.match(r"\d+", name) for _, _, names in os.walk(folder) for name in names)
    return max((int(found[0]) for found in numbers if found), default=-1)


def ledger(home: Path) -> list[int]:
    """The batches that a foreachBatch sink got."""
    path = home / "out" / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line)["batch"] for line in lines if line.endswith("\n")]


def run_again(spark: Any, home: Path, name: str) -> list[dict[str, Any]] | None:
    """What each batch of a restart reported, in order; None if the query died."""
    from pyspark.errors import StreamingQueryException

    query = start(spark, home, name, once=True)
    try:
        assert query.awaitTermination(_WAIT_S)
    except StreamingQueryException:
        return None
    finally:
        query.stop()
    return [json.loads(progress.json) for progress in query.recentProgress]


def keep_few_inputs(home: Path, plan: BatchPlan) -> None:
    """Leave the input files that were read or planned, and two more: a restart that ends soon."""
    logged = {path.rpartition("/")[2] for source in (home / "ck/sources").iterdir() for path in _paths_of(source)}
    later = [path for path in sorted((home / "in").iterdir()) if path.name not in logged]
    for path in later[2:]:
        path.unlink()


def _paths_of(source: Path) -> Iterator[str]:
    for log in source.iterdir():
        if not log.name.startswith("."):
            for line in log.read_text().splitlines()[1:]:
                yield json.loads(line)["path"]


def disproved(spark: Any, home: Path, name: str, tally: Counter[str]) -> str:
    """Why a restart did not do what was said, "" if it did; a way out that was named is tried, too."""
    plan = plan_of(SparkCheckpoint(Root(str(home), maps=())))
    keep_few_inputs(home, plan)
    before, planned = ledger(home), plan.planned
    has_log = (home / "out/_spark_metadata" / str(planned)).exists()
    reported = run_again(spark, home, name)
    tally["restarts"] += 1
    if plan.fails != (reported is None):
        return f"{name}: fails {plan.fails}, {[f.message for f in plan.findings]}"
    if reported is None:
        tally["failed as was said"] += 1
        for path in plan.remove:
            (home / path).unlink()
        tally["restarts"] += 1
        reported = run_again(spark, home, name)
        if reported is None:
            return f"{name}: not after removing {plan.remove}"
        has_log = False
    if not reported:
        return f"{name}: nothing ran"
    ran = reported[0]
    if ran["batchId"] != (plan.committed + 1 if planned is None else planned):
        return f"{name}: batch {ran['batchId']} ran, line {plan.committed}, planned {planned}"
    if planned is None:
        tally["batches new"] += 1
    else:
        tally["batches run a second time"] += 1
        said = [(source.start, source.end) for source in plan.sources]
        did = [(_offset(source["startOffset"]), _offset(source["endOffset"])) for source in ran["sources"]]
        if said != did:
            return f"{name}: read {did}, said {said}"
        if name.endswith("file") and plan.sink_has_planned != has_log and not plan.fails:
            return f"{name}: sink has batch {planned}: {has_log}, said {plan.sink_has_planned}"
        if name.endswith("each") and planned not in ledger(home)[len(before) :]:
            return f"{name}: batch {planned} was not given to the sink again"
    return ""


def _offset(stored: Any) -> Any:
    return json.loads(stored) if isinstance(stored, str) else stored


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What was done and found, told in one line at the end."""
    counted = Counter[str]()
    yield counted
    told = ", ".join(f"{count} {what}" for what, count in counted.items())
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(f"\n{told or 'nothing was killed'}")


@pytest.mark.parametrize("number", range(len(rounds())))
def test_a_killed_query_restarts_as_said(number: int, spark: Any, tally: Counter[str], tmp_path: Path) -> None:
    which = rounds()[number]
    kill(tmp_path, which, random.Random(number))
    tally["kills"] += len(which)
    wrong = []
    for name in which:
        said = disproved(spark, tmp_path / name, name, tally)
        wrong += [said] if said else []
        tally["answers equal to the restart"] += not said
    assert wrong == []


def test_every_query_state_and_sink_is_killed() -> None:
    killed = [name for round in rounds() for name in round]
    assert len(killed) == KILLS >= 50
    assert set(killed) == set(names())
    for part, every in enumerate((QUERIES, STATES, SINKS)):
        assert {name.split("/")[part] for name in killed} == set(every)
    assert len(QUERIES) == 5

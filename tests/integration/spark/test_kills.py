"""Real queries killed with SIGKILL at any moment, the answer given, the query run again, and the two compared.

A round kills several queries at once: one of them at a moment that its files show, the others wherever they are then.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import plan_of
from cklog.storage import Root
from tests.builders.spark_queries import MAINTAINED, QUERIES, SINKS, STATES, names, session, start
from tests.builders.spark_restarts import WAIT_S, keep_few_inputs, kill, ledger

pytestmark = [pytest.mark.slow, pytest.mark.spark]

AT_ONCE = 6
KILLS = 60


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = session(tmp_path_factory.mktemp("scratch"), MAINTAINED)
    yield made
    made.stop()


def rounds() -> list[list[str]]:
    """Which queries are killed together: every combination at least once, in a fixed order."""
    order = names()
    random.Random(14).shuffle(order)
    order = (order * 2)[:KILLS]
    return [order[i : i + AT_ONCE] for i in range(0, KILLS, AT_ONCE)]


def run_again(spark: Any, home: Path, name: str) -> list[dict[str, Any]] | None:
    """What each batch of a restart reported, in order; None if the query died."""
    from pyspark.errors import StreamingQueryException

    query = start(spark, home, name, once=True)
    try:
        assert query.awaitTermination(WAIT_S)
    except StreamingQueryException:
        return None
    finally:
        query.stop()
    return [json.loads(progress.json) for progress in query.recentProgress]


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
    assert len(QUERIES) == 6

"""Real queries into real tables, killed with SIGKILL, treated as people treat them, and run again: what came how often.

Every record has a number. What is expected is a table of cases, written from what the sinks of Delta and Iceberg define
(`expected`); nothing of cklog is in it. What cklog foretells of each restart is held against what came, too.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders.sinks.foretold import foretold, offered_under
from tests.builders.sinks.queries import PER_BATCH, SINKS, SOURCES, names
from tests.builders.sinks.restarts import BRANCH, VARIATIONS, Crash, applies, counted, crash, kill, run_again, until
from tests.builders.spark_queries import session
from tests.builders.spark_restarts import newest
from tests.program import cklog

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ROUNDS = 2
"""Kills; each takes every source and sink, at a moment of its own, and each of them is restarted in every way."""

#                                       delta-txn  iceberg-epoch  delta      iceberg
CASES = {
    "nothing":                         ("1 1 11 1", "1 1 11 1", "1 1 21 1", "1 1 21 1"),
    "commit lost":                     ("1 1 11 1", "1 1 11 1", "1 1 21 1", "1 1 21 1"),
    "back":                            ("1 1 11 1", "1 1 11 1", "1 2 21 1", "1 2 21 1"),
    "rolled back":                     ("1 0 01 1", "1 0 11 1", "1 0 11 1", "1 0 11 1"),
    "rolled back, and back":           ("1 0 01 1", "1 1 11 1", "1 1 11 1", "1 1 11 1"),
    "new checkpoint":                  ("2 2 21 1", "2 2 21 1", "2 2 21 1", "2 2 21 1"),
    "expired":                         ("1 1 11 1", "1 1 11 1", "1 1 21 1", "1 1 21 1"),
    "second writer":                   ("1 1 11 1", "1 1 11 1", "1 1 21 1", "1 1 21 1"),
    "second writer, expired":          ("1 1 11 1", "1 1 21 1", "1 1 21 1", "1 1 21 1"),
    "compacted":                       ("1 1 11 1", "1 1 11 1", "1 1 21 1", "1 1 21 1"),
    "compacted, expired":              ("1 1 11 1", "1 1 21 1", "1 1 21 1", "1 1 21 1"),
    "compacted, expired, and back":    ("1 1 11 1", "1 2 21 1", "1 2 21 1", "1 2 21 1"),
    "recreated":                       ("0 0 11 1", "0 0 11 1", "0 0 11 1", "0 0 11 1"),
    "branch":                          ("", "1 0 01 1", "", "1 0 11 1"),
}  # fmt: skip
"""How often the records of: the batches up to the older one; those from there to the kill; the batch in flight, if the
table had taken it, and if not; the batches after it."""

FILES = {
    "back":                            ("1 1 10 1", "1 1 10 1", "1 2 21 1", "1 2 21 1"),
    "rolled back, and back":           ("1 0 00 1", "1 1 11 1", "1 1 11 1", "1 1 11 1"),
    "compacted, expired, and back":    ("1 1 10 1", "1 2 21 1", "1 2 21 1", "1 2 21 1"),
}  # fmt: skip
"""Where the source is files: after going back, one batch takes all that its log has, so that every later batch has a
smaller number than it had, or would have had. As many batches as were taken beyond it are skipped with files in them
that no table has."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = session(tmp_path_factory.mktemp("scratch"))
    yield made
    made.stop()


def expected(crash: Crash, variation: str) -> dict[int, int]:
    """How often the table is to have each batch's records, by the table of cases."""
    planned, committed, to = crash.planned, crash.committed - (variation == "commit lost"), crash.to
    flight = planned if planned > committed else planned + 1
    cases = FILES.get(variation, CASES[variation]) if crash.reads_files else CASES[variation]
    before, since, in_flight, later = cases[SINKS.index(crash.sink)].split()
    said = {}
    for batch in range(until(crash) // PER_BATCH):
        if batch <= to and batch < flight:
            said[batch] = int(before)
        elif batch < flight:
            said[batch] = int(since)
        elif batch == flight:
            said[batch] = int(in_flight[0 if crash.taken >= flight else 1])
        else:
            said[batch] = int(later)
    if crash.reads_files and (variation, crash.sink) in SKIPPED:
        logged = newest(crash.saved / "ck/sources/0")
        for skipped in range(logged + 1, logged + 1 + crash.taken - to):
            if skipped > flight:  # where nothing was in flight, the first of them is what the cases call so
                said[skipped] = 0
    return said


SKIPPED = {
    ("back", "delta-txn"),
    ("back", "iceberg-epoch"),
    ("rolled back, and back", "delta-txn"),
    ("compacted, expired, and back", "delta-txn"),
}


@pytest.mark.parametrize("number", range(ROUNDS))
def test_records_come_as_often_as_the_sinks_define(
    number: int, spark: Any, tally: Counter[str], tmp_path: Path
) -> None:
    chance = random.Random(number)
    moments = kill(tmp_path, names(), chance)
    crashes = [crash(tmp_path, name, chance) for name in names()]
    tally["queries killed"] += len(crashes)
    for killed in crashes:
        tally[f"held when {moments[killed.name]}" if moments[killed.name] != "anywhere" else "anywhere"] += 1
    wrong: list[tuple[object, ...]] = []
    for variation, steps in VARIATIONS.items():
        these = [killed for killed in crashes if applies(variation, killed)]
        told = {}
        for killed in these:
            killed.again()
            for step in steps:
                step(killed)
            told[killed.name] = asked(killed, variation)
        run_again(spark, these, variation)
        for killed in these:
            branch = BRANCH if variation == "branch" else ""
            counts = counted(killed.home, killed.name, branch)
            said = expected(killed, variation)
            found = {batch: _times(counts, batch) for batch in said}
            tally["restarts"] += 1
            tally["as expected"] += found == said
            for times, what in ((0, "with loss"), (2, "with records twice")):
                tally[what] += times in said.values()
            if found != said or any(value // PER_BATCH not in said for value in counts):
                differs = {batch: (said[batch], found[batch]) for batch in said if said[batch] != found[batch]}
                wrong.append((killed.name, variation, killed, differs))
            answer = told[killed.name]
            if answer is not None:
                tally["asked of cklog"] += 1
                tally["foretold to the batch"] += all(answer[batch] == {found[batch]} for batch in found)
                tally["foretold as possible"] += any(1 < len(answer[batch]) < 3 for batch in found)
                tally["called unknown"] += any(len(answer[batch]) == 3 for batch in found)
                amiss = {batch: (set(answer[batch]), n) for batch, n in found.items() if n not in answer[batch]}
                if amiss:
                    wrong.append((killed.name, variation, killed, f"foretold: {amiss}"))
    assert wrong == []


def asked(crash: Crash, variation: str) -> dict[int, frozenset[int]] | None:
    """What cklog foretells; None where it cannot be asked: without a checkpoint."""
    if variation == "new checkpoint":
        return None
    branch = f"?branch={BRANCH}" if variation == "branch" else ""
    ended = cklog("recovery-line", crash.home / "ck", "--sink", f"t={crash.home / 'table'}{branch}", "--json")
    assert ended.code in (0, 3, 5), ended.err
    sinks = json.loads(ended.out)["result"]["details"]["sinks"]
    return foretold(sinks, until(crash) // PER_BATCH, offered_under(crash.home / "ck", crash.reads_files))


"""Whether there is anything to ask."""


def _times(counts: Counter[int], batch: int) -> int:
    """How often the table has a batch; -1 if not all of its records come as often."""
    times = {counts[batch * PER_BATCH + record] for record in range(PER_BATCH)}
    return times.pop() if len(times) == 1 else -1


def test_every_way_is_a_case() -> None:
    assert set(CASES) == set(VARIATIONS) >= set(FILES)
    assert len(SOURCES) * len(SINKS) * ROUNDS * len(VARIATIONS) > 50

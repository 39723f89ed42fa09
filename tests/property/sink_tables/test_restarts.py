"""What is foretold of a restart comes true in small jobs that really restart, record by record."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from cklog.inputs.sink_tables import Pending, TableFormat
from cklog.sink_tables.fitting import NamedTable, all_agree, fits, line_that_fits, rollbacks_for
from cklog.sink_tables.held import Account
from cklog.sink_tables.judge import judge
from cklog.sink_tables.model import HARMS, Restart, SinkFit
from tests.oracles.sink_runs import Job, Table, damage, flink_job, spark_job, ways_on, writer_of

SPARK: list[TableFormat] = ["delta", "iceberg"]
FLINK: list[TableFormat] = ["iceberg", "paimon"]


EVERY = -1


def restart_from(job: Job, line: int, place: int = 0) -> Restart:
    """What is known of a restart from outside: numbers, ids, pending commits; nothing of records."""
    if job.engine == "spark":
        same = job.same if job.same == line + 1 else None
        return Restart(line, "batch", frozenset({"q"}), "q", line if same is None else same)
    asks = job.wrote[line]
    pending = tuple(
        Pending(f"t{at}", writer_of(table, asks), n)
        for at, table in enumerate(job.tables)
        if place in (at, EVERY)
        for n in sorted(job.pending_at[at][line])
    )
    return Restart(line, "checkpoint", frozenset(job.ids), asks, line, pending)


def outcomes_of(job: Job, line: int, table: Table) -> tuple[bool, bool]:
    """Whether a restart leaves every record once whatever way it goes, and whether some way does."""
    end = max(job.ends.values()) + 2
    once = [all(rows.get(r, 0) == 1 for r in range(end)) for rows in ways_on(job, line, table, end)]
    return all(once), any(once)


def fit_of(job: Job, line: int, place: int) -> SinkFit:
    (found,) = judge(Account(job.tables[place].view()), restart_from(job, line, place))
    return found


def jobs(seed: int) -> Job:
    random = Random(seed)
    if seed % 2:
        job = spark_job(random, random.sample(SPARK, random.randint(1, 2)))
    else:
        fixed = random.random() < 0.5
        job = flink_job(random, random.sample(FLINK, random.randint(1, 2)), random.randint(1, 2), fixed)
    damage(random, job)
    return job


def check(job: Job, told: Counter[str]) -> None:
    for place, table in enumerate(job.tables):
        for line in job.lines:
            fit = fit_of(job, line, place)
            always, ever = outcomes_of(job, line, table)
            told[f"{table.format}:{fit.agrees}"] += 1
            if fit.agrees is True:
                assert always, (table, fit)
            if fit.agrees is False:
                assert not always, (table, fit)
                if any(one.fate in HARMS and one.strength == "sure" for one in fit.outcomes):
                    assert not ever, (table, fit)


SLOWLY = [pytest.param(n, marks=[pytest.mark.slow] if n >= 6 else []) for n in range(50)]


@pytest.mark.quarter
@pytest.mark.parametrize("chunk", SLOWLY)
def test_what_is_foretold_comes_true(chunk: int) -> None:
    told: Counter[str] = Counter()
    for seed in range(chunk * 100, chunk * 100 + 100):
        check(jobs(seed), told)
    assert all(told[f"{format}:{agrees}"] for format in (*SPARK, *FLINK) for agrees in (True, False)), told
    assert sum(n for key, n in told.items() if key.endswith("None")) < sum(told.values()) / 3, told


def named(job: Job) -> list[NamedTable]:
    return [NamedTable(f"t{place}", table.view()) for place, table in enumerate(job.tables)]


def good(job: Job, line: int) -> bool:
    return all(outcomes_of(job, line, table)[0] for table in job.tables)


@pytest.mark.quarter
@pytest.mark.parametrize("chunk", SLOWLY)
def test_the_line_that_fits_is_the_newest_that_leaves_every_record_once(chunk: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(chunk * 100, chunk * 100 + 100):
        job = jobs(seed)
        tables, lines = named(job), [restart_from(job, line, EVERY) for line in reversed(job.lines)]
        chosen = line_that_fits(tables, lines)
        known = [line.line for line in lines if all_agree(fits(tables, line)) is not None]
        best = max((line for line in known if good(job, line)), default=None)
        assert (None if chosen is None else chosen.line) == best, job
        found["none" if best is None else "newest" if best == job.lines[-1] else "older"] += 1
    assert min(found["none"], found["newest"], found["older"]) > 0, found


@pytest.mark.quarter
@pytest.mark.parametrize("chunk", SLOWLY)
def test_a_rollback_makes_the_line_fit_and_takes_back_as_little_as_any(chunk: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(chunk * 100, chunk * 100 + 100):
        job = jobs(seed)
        if not job.lines:
            continue
        line = job.lines[-1] if seed % 3 else job.lines[0]
        tables, restart = named(job), restart_from(job, line, EVERY)
        backs = rollbacks_for(tables, restart)
        for place, table in enumerate(job.tables):
            back = next((b for one, b in backs or () if one.name == f"t{place}"), None)
            sure = all_agree(fits([tables[place]], restart_from(job, line, place)))
            there = table.commits.values() if table.format == "delta" else table.chain()
            chain = [c.id for c in there if c.id not in table.forgotten]
            helping = [to for to in chain if _after(job, table, to, line)]
            if back is not None:
                assert helping, (table, back)
                assert int(back.commit) == max(helping), (table, back)
                found[f"{table.format}:back"] += 1
            elif backs is not None:
                assert sure, table
            elif len(job.tables) == 1 and sure is False and not table.forgotten:
                assert not helping, (table, line)
                found[f"{table.format}:none"] += 1
    assert found["iceberg:back"], found
    assert found["paimon:back"], found
    assert found["delta:none"], found
    assert found["delta:back"], found


def _after(job: Job, table: Table, to: int, line: int) -> bool:
    """Whether a restart leaves every record once after a table went back."""
    before = table.copy()
    table.go_back(to)
    try:
        return outcomes_of(job, line, table)[0]
    finally:
        table.commits, table.head, table.next, table.txn = before.commits, before.head, before.next, before.txn

"""The estimate of `auto`: on one machine local wins, a cluster wins where work is large, and docs/speed.md agrees."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.engine import costs
from cklog.engine.choosing import ESTIMATED_ABOVE
from cklog.engine.costs import Form, Work, estimate
from tests.conftest import REPOSITORY

SPEED = (REPOSITORY / "docs" / "speed.md").read_text(encoding="utf-8")
SAME = 2.0
"""A factor within which a table that is measured anew may differ from the numbers of the model."""

works = st.builds(
    Work,
    st.dictionaries(st.sampled_from(["text", "parquet", "batches"]), st.integers(0, 1 << 45)),
    st.integers(0, 1 << 20),
    st.integers(0, 1 << 20),
    st.integers(0, 1 << 24),
    st.integers(1, 1 << 20),
)
cores = st.integers(1, 512)


def table(name: str) -> list[list[str]]:
    """The rows of a table of the page, without the two that head it."""
    [text] = re.findall(rf"<!-- table: {name} -->\n(.*?)<!-- end", SPEED, flags=re.DOTALL)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"][2:]


def number(text: str) -> float:
    return float(text.replace(",", ""))


@given(works, cores)
def test_on_one_machine_local_is_never_later(work: Work, machine: int) -> None:
    assert not estimate(work, machine, machine).prefers_spark


@given(works, cores, cores, cores)
def test_more_cores_are_never_slower(work: Work, machine: int, cluster: int, more: int) -> None:
    before, after = estimate(work, machine, cluster), estimate(work, machine + more, cluster + more)
    assert after.local <= before.local
    assert after.spark <= before.spark


@given(works, cores, cores)
def test_a_running_session_saves_the_start_and_no_more(work: Work, machine: int, cluster: int) -> None:
    cold, warm = estimate(work, machine, cluster), estimate(work, machine, cluster, is_running=True)
    assert cold.local == warm.local
    assert cold.spark == pytest.approx(warm.spark + costs.SPARK_START_SECONDS)


@pytest.mark.parametrize("form", ["text", "parquet", "batches"])
def test_a_cluster_wins_where_there_is_enough_to_read(form: Form) -> None:
    """Doubled until it wins; never for what one task reads, however much that is."""
    size = ESTIMATED_ABOVE
    while not estimate(Work({form: size}, tasks=size >> 26), 2, 16).prefers_spark:
        size *= 2
        assert size < 1 << 40
    assert size > ESTIMATED_ABOVE
    assert not estimate(Work({form: size}, tasks=1), 2, 16).prefers_spark


@pytest.mark.parametrize("form", ["text", "parquet", "batches"])
def test_what_is_not_estimated_is_read_before_spark_has_started(form: Form) -> None:
    """On two cores; on one core a file of Parquet takes a second longer."""
    assert estimate(Work({form: ESTIMATED_ABOVE}, tasks=8), 2, 10_000).local < costs.SPARK_START_SECONDS


def test_runs_in_a_store_wait_for_it() -> None:
    here = Work(runs=1000, tasks=20)
    there = Work(runs=1000, requests=1000 * costs.REQUESTS_PER_RUN, tasks=20)
    assert not estimate(here, 2, 8).prefers_spark
    assert estimate(there, 2, 8).prefers_spark


def test_the_numbers_are_those_of_the_page() -> None:
    forward = {row[0].split(",")[0]: row for row in table("forward") if row[1] == "cklog, local"}
    on_spark = {row[0].split(",")[0]: row for row in table("forward") if row[1] == "cklog, spark"}
    measured: dict[str, tuple[float, float]] = {}
    for form, name in (("text", "jsonl"), ("parquet", "parquet")):
        size = number(re.findall(r"([\d,]+) MiB", forward[name][0])[0]) * 2**20
        measured[form] = costs.BYTES_PER_CPU_SECOND[form], size / number(forward[name][3])  # type: ignore[index]
    [records] = [row for row in table("kafka-records") if row[0] == "cklog, arrays, CRC verified"]
    measured["batches"] = (
        costs.BYTES_PER_CPU_SECOND["batches"],
        number(records[1].split()[0]) * 1e9 / number(records[2]),
    )
    files = {row[1].split()[-1].strip("`"): row for row in table("files") if row[0].startswith("100,000")}
    measured["a file"] = costs.CPU_SECONDS_PER_FILE, number(files["local"][3]) / 100_000
    measured["start"] = costs.SPARK_START_SECONDS, number(files["spark"][2]) - number(files["local"][2])
    measured["Spark's CPU"] = costs.SPARK_CPU_PER_LOCAL, number(on_spark["jsonl"][3]) / number(forward["jsonl"][3])
    [scan] = [row for row in table("folders") if row[0] == "`cklog scan`"]
    measured["a run"] = costs.CPU_SECONDS_PER_RUN, number(scan[6]) / 1000
    measured["requests"] = costs.REQUESTS_PER_RUN, number(scan[3])
    for what, (ours, page) in measured.items():
        assert page / SAME <= ours <= page * SAME, what

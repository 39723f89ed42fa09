"""`recovery-line --with`: real logs of two Spark queries, and topics that `job.json` names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.unit.joint.asking import ask, drop, points

CHAIN = SAMPLES / "spark-chain"


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    shutil.copytree(CHAIN, tmp_path / "chain")
    return tmp_path / "chain"


def test_jobs_that_fit_restart_where_each_would_alone() -> None:
    ended, answer = ask(CHAIN / "clean", "--with", CHAIN / "enrich")
    assert ended.code == 0
    assert points(answer) == {"clean": "batch 4", "enrich": "batch 4"}
    assert answer["result"]["action"] == "restart"


def test_a_reader_goes_back_with_its_writer_and_forgets_the_files_that_it_listed(chain: Path) -> None:
    ended, answer = ask(chain / "clean", "--at", "query/0=1", "--with", chain / "enrich")
    assert ended.code == 3
    assert points(answer) == {"clean": "batch 1", "enrich": "batch 1"}
    removed = answer["result"]["details"]["joint_remove"]["enrich"]
    assert {f"ck/sources/0/{n}" for n in (2, 3, 4)} <= set(removed)
    assert "ck/sources/0/1" not in removed
    assert [run["run"] for run in answer["result"]["runs"]] == ["clean", "enrich"]
    assert answer["result"]["runs"][1]["newest"] == "batch 4"


def test_files_that_a_reader_forgets_are_not_said_to_be_missing(chain: Path) -> None:
    """The folder that the writer reads is not in the copy, nor what it wrote: the first is read again."""
    moved = f"file:///srv/cklog-sample/spark-chain={chain}"
    ended, answer = ask(chain / "clean", "--at", "query/0=2", "--with", chain / "enrich", "--map", moved)
    missing = [finding["subject"] for finding in answer["findings"] if finding["id"] == "missing-input-file"]
    assert (ended.code, missing) == (3, ["clean/source/0"])


def test_the_order_of_the_paths_changes_nothing_but_who_is_asked_with_at() -> None:
    one = points(ask(CHAIN / "clean", "--with", CHAIN / "enrich")[1])
    other = points(ask(CHAIN / "enrich", "--with", CHAIN / "clean")[1])
    assert one == other
    assert [*other] == ["clean", "enrich"]


def test_a_checkpoint_from_a_backup_takes_its_reader_along(chain: Path) -> None:
    for log in ("offsets", "commits", "sources/0"):
        drop(chain / "clean/ck" / log, 3, 4)
    ended, answer = ask(chain / "clean", "--with", chain / "enrich")
    assert ended.code == 3
    assert points(answer) == {"clean": "batch 2", "enrich": "batch 2"}
    assert "out/_spark_metadata/3" in answer["result"]["details"]["joint_remove"]["clean"]


def test_a_batch_in_flight_whose_plan_is_kept_moves_nobody(chain: Path) -> None:
    drop(chain / "clean/ck/commits", 4)
    _, answer = ask(chain / "clean", "--with", chain / "enrich")
    assert points(answer) == {"clean": "batch 3", "enrich": "batch 4"}
    assert answer["result"]["details"]["joint_remove"] == {"clean": [], "enrich": []}


def test_a_reader_whose_way_back_is_damaged_goes_further_back(chain: Path) -> None:
    (chain / "enrich/ck/commits/2").write_text("")
    (chain / "enrich/ck/commits/.2.crc").unlink(missing_ok=True)
    _, answer = ask(chain / "clean", "--at", "query/0=2", "--with", chain / "enrich")
    assert points(answer) == {"clean": "batch 2", "enrich": "batch 1"}


def test_a_sink_log_that_cannot_be_read_leaves_it_undetermined(chain: Path) -> None:
    (chain / "clean/out/_spark_metadata/2").write_text("v1\nno json\n")
    (chain / "clean/out/_spark_metadata/.2.crc").unlink(missing_ok=True)
    ended, answer = ask(chain / "clean", "--with", chain / "enrich")
    assert ended.code == 5
    assert {run["command"] for run in answer["result"]["runs"]} == {None}
    assert "joint-undetermined" in {finding["id"] for finding in answer["findings"]}


def test_jobs_that_nothing_ties_are_undetermined_by_name() -> None:
    ended, answer = ask(SAMPLES / "domino-cycle", "--with", f"billing={SAMPLES / 'spark-wordcount'}")
    assert ended.code == 5
    found = [f["subject"] for f in answer["findings"] if f["id"] == "joint-undetermined"]
    assert found == ["billing", "domino-cycle"]


def query(folder: Path, ends: list[dict[str, Any]], outputs: dict[str, Any] | None = None) -> Path:
    """A query that reads partitions, by the end of each batch; all are committed."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": f"{len(folder.name):08}-0000-4000-8000-000000000000"}))
    for n, end in enumerate(ends):
        plan = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000 + n, "conf": {}})
        (folder / f"offsets/{n}").write_text(f"v1\n{plan}\n{json.dumps(end)}")
        (folder / f"commits/{n}").write_text('v1\n{"nextBatchWatermarkMs":0}')
    if outputs is not None:
        (folder / "job.json").write_text(json.dumps({"outputs": outputs}))
    return folder


def test_a_topic_that_keeps_its_messages_doubles_them_and_orphans_nobody(tmp_path: Path) -> None:
    first = query(tmp_path / "ingest", [{"raw": {"0": n}} for n in (5, 9)], {"clean": {"rule": "appends"}})
    second = query(tmp_path / "bill", [{"clean": {"0": n}} for n in (4, 8)])
    ended, answer = ask(first, "--at", "query/0=0", "--with", second)
    assert ended.code == 3, ended.err
    assert points(answer) == {"ingest": "batch 0", "bill": "batch 1"}
    [doubled] = [f for f in answer["findings"] if f["id"] == "joint-doubled"]
    assert doubled["subject"] == "ingest -> bill"
    assert answer["result"]["runs"][0]["doubled"] is None


def test_a_declared_output_of_which_nothing_tells_is_undetermined(tmp_path: Path) -> None:
    first = query(tmp_path / "ingest", [{"raw": {"0": 5}}], {"clean": {"rule": "skips"}})
    second = query(tmp_path / "bill", [{"clean": {"0": 4}}])
    ended, answer = ask(first, "--with", second)
    assert ended.code == 5
    assert [f["subject"] for f in answer["findings"] if f["id"] == "joint-undetermined"] == ["ingest -> bill"]


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"outputs": {"clean": {"rule": "eats"}}}'])
def test_a_manifest_that_says_nothing_of_use_is_refused(tmp_path: Path, text: str) -> None:
    first = query(tmp_path / "ingest", [{"raw": {"0": 5}}], {})
    (first / "job.json").write_text(text)
    ended, _ = ask(first, "--with", query(tmp_path / "bill", [{"clean": {"0": 4}}]))
    assert ended.code == 65
    assert "job.json" in ended.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--with", CHAIN / "clean"), 2),
        (("--with", CHAIN / "enrich", "--explain"), 2),
        (("--with", CHAIN / "none"), 66),
    ],
)
def test_what_cannot_be_asked_is_refused(words: tuple[object, ...], code: int) -> None:
    ended, _ = ask(CHAIN / "clean", *words)
    assert ended.code == code, ended.err


BROKER = SAMPLES / "kafka-broker"


@pytest.mark.parametrize(("newest", "point", "lost"), [(10_000, "batch 0", 0), (20, "batch 1", 0), (0, "batch 1", 1)])
def test_a_broker_that_lost_messages_takes_their_reader_back(
    tmp_path: Path, newest: int, point: str, lost: int
) -> None:
    first = query(tmp_path / "ingest", [{"raw": {"0": 5}}], {"orders": {"rule": "appends"}})
    second = query(tmp_path / "bill", [{"orders": {"0": min(newest, 12)}}, {"orders": {"0": newest}}])
    _, answer = ask(first, "--with", second, "--kafka", BROKER)
    assert points(answer)["bill"] == point
    assert [f["id"] for f in answer["findings"]].count("joint-lost") == lost


def test_snapshots_of_flink_are_points_of_a_reader(tmp_path: Path) -> None:
    first = query(tmp_path / "ingest", [{"raw": {"0": 5}}], {"orders": {"rule": "appends"}})
    _, answer = ask(first, "--with", SAMPLES / "flink-orders")
    assert points(answer) == {"ingest": "batch 0", "flink-orders": "chk-13"}
    assert {row["output"][0] for row in answer["result"]["details"]["joint_links"]} == {f"orders-{n}" for n in range(4)}

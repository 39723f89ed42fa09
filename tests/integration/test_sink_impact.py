"""`cklog impact` on what real Spark and Flink left behind: which batches, offsets and transactions come again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog


def impact(folder: Path, *options: str, exit: int = 0) -> dict[str, Any]:
    ended = cklog("impact", folder, "--json", "-q", *options)
    assert ended.code == exit, ended.err
    found: dict[str, Any] = json.loads(ended.out)["result"]
    return found


def spark(data: Path, name: str) -> dict[str, Any]:
    folder = data / "spark-checkpoints" / name
    return impact(folder, "--map", f"file:///mnt/spark/prod1/run_{name[0]}={folder}")


def flink(data: Path, name: str, *options: str, exit: int = 0) -> dict[str, Any]:
    root = data / "flink-checkpoints"
    return impact(root / name, "--map", f"file:/mnt/flink/prod/checkpts={root}", *options, exit=exit)


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("A_file_hdfs_parquetsink", 15),
        ("B_rate_rocksdb_changelog", 15),
        ("F_rocksdb_ckptformat_v2", 14),
        ("R_rocksdb_nochangelog_retain3", 14),
    ],
)
def test_a_file_sink_shows_the_batch_in_flight_once(shared_data: Path, name: str, batch: int) -> None:
    found = spark(shared_data, name)
    rows = [(r["sink"], r["readers"], r["fate"], r["from"], r["to"]) for r in found["intervals"]]
    assert rows == [
        ("out", "of the log", "once", batch, batch + 1),
        ("out", "of all files", "once", batch, batch + 1),
    ]
    assert {g["guarantee"] for g in found["guarantees"]} == {"exactly-once"}
    assert found["again"][0]["kept"] is True


def test_for_each_batch_may_get_the_batch_in_flight_twice(shared_data: Path) -> None:
    found = spark(shared_data, "C_transformWithState")
    first = found["intervals"][0]
    assert (first["readers"], first["fate"], first["from"], first["to"]) == (
        "foreachBatch, Kafka, console",
        "may-be-doubled",
        14,
        15,
    )
    assert [g["guarantee"] for g in found["guarantees"]] == ["at-least-once", "exactly-once"]


def test_offsets_that_flink_reads_again(shared_data: Path) -> None:
    """formats/flink.md section 2.2: orders-0..3 resume at 1637, 1624, 1637, 812."""
    found = flink(shared_data, "kafka")
    assert {(r["sink"], r["of"], r["fate"], r["from"], r["to"]) for r in found["intervals"]} == {
        ("discard", f"orders-{n}", "may-be-doubled", offset, None) for n, offset in enumerate((1637, 1624, 1637, 812))
    }
    older = flink(shared_data, "kafka", "--at", "9d2b=6")
    assert {r["of"]: (r["fate"], r["from"], r["to"], r["count"]) for r in older["intervals"]} == {
        "orders-0": ("doubled", 946, 1637, 691),
        "orders-1": ("doubled", 1513, 1624, 111),
        "orders-2": ("doubled", 947, 1637, 690),
        "orders-3": ("doubled", 756, 812, 56),
    }


def test_nothing_is_promised_where_nothing_can_be_restored(shared_data: Path) -> None:
    found = flink(shared_data, "f39964", exit=4)
    assert (found["line"], found["intervals"], found["guarantees"]) == ([], [], [])


def test_metadata_without_names_tells_of_any_sink(shared_data: Path) -> None:
    found = flink(shared_data, "f120-unaligned")
    assert {r["sink"] for r in found["intervals"]} == {"any sink"}
    assert "sinks-not-named" in found["notes"]


def test_a_batch_whose_plan_is_gone_may_come_twice_to_every_sink(tmp_path: Path) -> None:
    """What it was planned to read is not known any more: a sink that has its number may have other records of it."""
    folder = Path(shutil.copytree(SAMPLES / "spark-state-hdfs", tmp_path / "run"))
    (folder / "ck" / "offsets" / "7").unlink()  # its .crc stays
    found = impact(folder, f"--map=file:///srv/cklog-words/hdfs={folder}", exit=3)
    assert [(row["readers"], row["fate"], row["from"]) for row in found["intervals"]] == [("", "may-be-doubled", 7)]
    assert {row["guarantee"] for row in found["guarantees"]} == {"none"}
    line = json.loads(cklog("recovery-line", folder, "--json").out)["result"]
    assert (line["runs"][0]["doubled"], line["runs"][0]["reads_more"]) == (None, True)


STRENGTH = ("none", "at-most-once", "at-least-once", "exactly-once")


@pytest.mark.quarter
@pytest.mark.parametrize("damage", ["deleted", "emptied", "halved"])
@pytest.mark.parametrize("name", ["spark-wordcount", "flink-orders", "uncoordinated-join"])
def test_damage_promises_nothing_more(tmp_path: Path, name: str, damage: str) -> None:
    """Every file in turn: no bug, and with exit 0 no stronger guarantee than the intact run has."""
    folder = Path(shutil.copytree(SAMPLES / name, tmp_path / "run"))
    maps = [f"--map=file:///srv/cklog-sample/{part}={folder}" for part in ("wordcount", "flink-orders")]
    whole = {row["sink"] + row["readers"]: row["guarantee"] for row in impact(folder, *maps)["guarantees"]}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".md" and "state" not in p.parts):
        data = path.read_bytes()
        path.unlink()
        if damage != "deleted":
            path.write_bytes(data[: len(data) // 2] if damage == "halved" else b"")
        ended = cklog("impact", folder, "--json", "-q", *maps)
        assert ended.code in (0, 3, 4, 5, 65, 66), (path, ended.err)
        if ended.code == 0:
            for row in json.loads(ended.out)["result"]["guarantees"]:
                intact = whole.get(row["sink"] + row["readers"], "exactly-once")
                assert STRENGTH.index(row["guarantee"]) <= STRENGTH.index(intact), path
        path.write_bytes(data)


def test_nothing_is_known_of_a_sink_whose_inputs_nobody_names(tmp_path: Path) -> None:
    """No record is left that tells what it had taken: that it takes nothing again is not known either."""
    shutil.copytree(SAMPLES / "raw-events", tmp_path, dirs_exist_ok=True)
    [whole] = impact(tmp_path)["guarantees"]
    shutil.rmtree(tmp_path / "events")
    found = impact(tmp_path, exit=4)["guarantees"]
    assert (whole["sink"], whole["guarantee"]) == ("pack", "none")
    assert {row["guarantee"] for row in found if row["sink"] == "pack"} == {"none"}


def test_the_samples() -> None:
    words = SAMPLES / "spark-wordcount"
    found = impact(words, "--map", f"file:///srv/cklog-sample/wordcount={words}")
    assert {(r["from"], r["to"], r["fate"]) for r in found["intervals"]} == {(6, 7, "once")}
    orders = SAMPLES / "flink-orders"
    found = impact(orders, "--map", f"file:///srv/cklog-sample/flink-orders={orders}")
    assert {r["of"]: r["from"] for r in found["intervals"]} == {
        "orders-0": 2088,
        "orders-1": 2086,
        "orders-2": 2086,
        "orders-3": 2084,
    }

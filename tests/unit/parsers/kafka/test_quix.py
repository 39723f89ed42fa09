"""State folders of Quix Streams: the offset inside each store, and what recovery reads again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cklog.kinds.opening import runs_of
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.parsers.kafka.quix import QuixStreams
from cklog.parsers.kafka.state import rocksdb
from cklog.runs.stores.line import StoreRestores
from cklog.storage import Root
from tests.builders.stores import content, put_log, put_store
from tests.program import cklog
from tests.reading.concluded import Concluded
from tests.reading.stores import logs_of

pytest.importorskip("rocksdict", reason="the extra rocksdb is not installed")

GROUP = "app"
ORDERS = f"changelog__{GROUP}--orders--default"


def put(state: Path, store: str, partition: int, offset: int | None, stream: str = "orders") -> Path:
    """A store of a partition, as Quix Streams lays it out."""
    pairs = {} if offset is None else {b"__changelog_offset__": offset}
    return put_store(state / GROUP / store / stream / str(partition), "__metadata__", pairs)


def asked(folder: Path, logs: Path | None = None) -> Answer[Any]:
    analyses = StoreRestores(QuixStreams(Root(str(folder))), None if logs is None else logs_of(logs))
    answer: Answer[Any] = Concluded(analyses).line("recovery-line", Question())
    return answer


def rows(answer: Answer[Any]) -> dict[tuple[str, str], tuple[Any, ...]]:
    keys = ("start", "restore_from", "restore_to", "records")
    return {(r["task"], r["store"]): tuple(r[k] for k in keys) for r in answer.result.details["stores"]}


def test_stores_of_partitions(tmp_path: Path) -> None:
    put(tmp_path, "default", 0, 41)
    put(tmp_path, "default", 1, None)
    put(tmp_path, "tumbling_window_10000_sum", 0, 17)
    answer = asked(tmp_path)
    assert rows(answer) == {
        ("orders/0", "default"): ("checkpoint", 41, None, None),
        ("orders/0", "tumbling_window_10000_sum"): ("checkpoint", 17, None, None),
        ("orders/1", "default"): ("beginning", None, None, None),
    }
    assert [(e.operator, e.subtask, e.checkpoint, e.state) for e in answer.result.line] == [
        ("orders", 0, 17, "stored"),
        ("orders", 1, None, "initial"),
    ]
    assert not answer.findings
    assert rows(asked(tmp_path / GROUP)) == rows(answer)


@pytest.mark.parametrize("damage", ["zeros", "gone", "another", "no current"])
def test_a_store_that_names_no_column_family_is_there_beside_others(tmp_path: Path, damage: str) -> None:
    """It was proven to be one by nothing but its manifest; without a CURRENT it begins anew, and that is known."""
    put(tmp_path, "default", 0, 41)
    folder = put(tmp_path, "default", 1, 99)
    [manifest] = folder.glob("MANIFEST-*")
    if damage == "zeros":
        manifest.write_bytes(bytes(manifest.stat().st_size))
    elif damage == "gone":
        manifest.unlink()
    elif damage == "another":
        put_store(folder, "another", {})
    else:
        (folder / "CURRENT").unlink()
    answer = asked(tmp_path)
    kept = ("checkpoint", 41, None, None)
    if damage == "no current":
        assert rows(answer) == {("orders/0", "default"): kept, ("orders/1", "default"): ("beginning", None, None, None)}
        assert not answer.findings
        return
    assert rows(answer) == {("orders/0", "default"): kept, ("orders/1", "default"): ("unknown", None, None, None)}
    assert [(f.id, f.severity) for f in answer.findings] == [("unread-store", "error")]
    assert answer.result.action == "undetermined"


@pytest.mark.parametrize(
    ("offset", "found", "finding"),
    [
        (41, ("checkpoint", 41, 60, 19), None),  # its last record is read again
        (58, ("checkpoint", 58, 60, 2), None),
        (59, ("checkpoint", 60, 60, 0), None),  # unless it is the changelog's last one
        (60, ("checkpoint", 61, 60, 0), "store-beyond-log"),
        (99, ("checkpoint", 100, 60, 0), "store-beyond-log"),
        (7, ("unknown", None, 60, None), "store-below-log"),
        (None, ("beginning", 20, 60, 40), None),
    ],
)
def test_the_range_is_that_of_the_recovery(
    tmp_path: Path, offset: int | None, found: tuple[Any, ...], finding: str | None
) -> None:
    put(tmp_path / "state", "default", 0, offset)
    put_log(tmp_path / "kafka", ORDERS, 0, 60, start=20)
    answer = asked(tmp_path / "state", tmp_path / "kafka")
    assert rows(answer)["orders/0", "default"] == found
    assert {f.id for f in answer.findings if f.severity == "error"} == ({finding} if finding else set())


def test_the_changelog_of_an_internal_topic(tmp_path: Path) -> None:
    put(tmp_path, "default", 0, 5, stream=f"repartition__{GROUP}--orders--by-id")
    (row,) = asked(tmp_path).result.details["stores"]
    assert row["changelog"] == f"changelog__{GROUP}--repartition.orders.by-id--default-0"


def test_it_is_found_among_other_runs_and_not_written_to(tmp_path: Path) -> None:
    put(tmp_path / "state", "default", 0, 41)
    put_store(tmp_path / "other" / "default" / "orders" / "0", "offsets", {b"a-0": 1})
    before = content(tmp_path)
    assert runs_of(Root(str(tmp_path))) == [(f"state/{GROUP}", "quix-streams")]
    ended = cklog("recovery-line", tmp_path)
    assert ended.code == 0
    assert "1 of 1 store goes on from its checkpoint" in ended.out
    assert content(tmp_path) == before


def test_without_the_library_nothing_is_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "default", 0, 41)
    monkeypatch.setattr(rocksdb, "LIBRARY", "no_such_library")
    ended = cklog("recovery-line", tmp_path)
    assert ended.code == 5
    assert ended.out.count("pip install 'cklog[rocksdb]'") == 1


def test_what_the_library_itself_writes(tmp_path: Path) -> None:
    state: Any = pytest.importorskip("quixstreams.state.rocksdb", reason="quixstreams is not installed")
    store = state.RocksDBStore(name="default", stream_id="orders", base_dir=str(tmp_path / GROUP))
    for partition, offset in ((0, 41), (1, 99)):
        transaction = store.assign_partition(partition).begin()
        transaction.set("key", 1, prefix=b"k")
        transaction.prepare()
        transaction.flush(changelog_offset=offset)
    store.close()
    assert rows(asked(tmp_path)) == {
        ("orders/0", "default"): ("checkpoint", 41, None, None),
        ("orders/1", "default"): ("checkpoint", 99, None, None),
    }

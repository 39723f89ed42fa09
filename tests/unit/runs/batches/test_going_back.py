"""Ways back of a Spark query: what Spark 4.3 was seen to need of each (`data/engine-verified` and its README)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import crc32c
import pytest

from cklog.parsers.codecs.hadoop_crc import encode
from tests.builders.spark import Memory
from tests.builders.spark_state import KEY, schema_of, stream
from tests.reading.spark import said

CLASSES = "org.apache.spark.sql.execution.streaming.state."
DELTA = stream(b"\0\0\0\1k\0\0\0\1v" + b"\xff" * 4)
LAST = 6


def conf(provider: str, **more: str) -> dict[str, str]:
    settings = {"providerClass": CLASSES + provider, "compression.codec": "lz4", **more}
    return {f"spark.sql.streaming.stateStore.{name}": value for name, value in settings.items()}


def query(settings: dict[str, str]) -> dict[str, bytes]:
    """Batches 0 to 5 done, 6 in flight, of a file source; PATH holds `ck`, `in` and the file sink's `out`."""
    head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 5, "conf": settings})
    stores = [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 1}]
    operator = json.dumps({"operatorInfo": {"operatorName": "dedupe"}, "stateStoreInfo": stores})
    files = {"ck/metadata": b'{"id":"q"}', "ck/state/0/_metadata/metadata": b"v1\n" + operator.encode()}
    files |= {"ck/state/0/0/_metadata/schema": schema_of(KEY)}
    for n in range(LAST + 1):
        line = json.dumps({"path": f"file:///home/in/{n}.json", "timestamp": 1, "batchId": n})
        files |= {f"ck/offsets/{n}": f'v1\n{head}\n{{"logOffset":{n}}}'.encode(), f"in/{n}.json": b"{}"}
        files |= {f"ck/sources/0/{n}": b"v1\n" + line.encode()}
    for n in range(LAST):
        files |= {f"ck/commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}', f"out/_spark_metadata/{n}": b"v1"}
    return files


def memory(files: dict[str, bytes]) -> Memory:
    return Memory("memory", (), files, "file:///home")


def by_deltas() -> Memory:
    deltas = {f"ck/state/0/0/{v}.delta": DELTA for v in range(1, LAST + 1)}
    return memory(query(conf("HDFSBackedStateStoreProvider")) | deltas)


def by_ids() -> Memory:
    """State checkpoint format 2: commits name the states that they leave, and each has Spark's own checksum."""
    files = query(conf("RocksDBStateStoreProvider", checkpointFormatVersion="2"))
    for n in range(LAST):
        ids = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [[f"i{n + 1}"]]}}
        files[f"ck/commits/{n}"] = b"v2\n" + json.dumps(ids).encode()
        path = f"ck/state/0/0/{n + 1}_i{n + 1}.changelog"
        files[path] = changelog(n + 1)
        files[f"{path}.crc"] = own_sum(files[path])
    return memory(files)


def changelog(version: int, records: bytes = b"") -> bytes:
    """A changelog that stands on all versions before it."""
    lineage = json.dumps([{"version": v, "checkpointUniqueId": f"i{v}"} for v in range(1, version)]).encode()
    return stream(b"\0\2v3" + len(lineage).to_bytes(2, "big") + lineage + records + b"\xff" * 4)


def own_sum(data: bytes, **other: Any) -> bytes:
    """A checksum file as Spark writes it, of a signed number."""
    value = int.from_bytes(crc32c.crc32c(data).to_bytes(4, "big"), "big", signed=True)
    return json.dumps({"algorithm": "CRC32C", "value": value, "mainFileSize": len(data), **other}).encode()


def test_with_ids_a_batch_that_the_sink_has_can_never_be_committed() -> None:
    """Spark: `CheckpointInfo length: 0` at every restart; it restarts with the sink's entry removed."""
    root = by_ids()
    assert (root.plan().fails, said(root.plan())) == (False, [])
    root.files[f"out/_spark_metadata/{LAST}"] = b"v1"
    root.files[f"out/_spark_metadata/.{LAST}.crc"] = encode(b"v1")
    plan = root.plan()
    assert (plan.committed, plan.planned, plan.fails) == (LAST - 1, LAST, True)
    assert said(plan) == [("error", "sink-log-ahead", f"out/_spark_metadata/{LAST}")]
    assert set(plan.remove) == {f"out/_spark_metadata/{LAST}", f"out/_spark_metadata/.{LAST}.crc"}


def test_without_ids_the_sink_skips_the_batch_and_the_query_goes_on() -> None:
    root = by_deltas()
    root.files[f"out/_spark_metadata/{LAST}"] = b"v1"
    root.files[f"ck/state/0/0/{LAST + 1}.delta"] = DELTA
    plan = root.plan()
    assert (plan.fails, plan.sink_has_planned, plan.remove) == (False, True, ())
    assert said(plan) == [("info", "sink-log-ahead", f"out/_spark_metadata/{LAST}")]


def test_nobody_writes_the_state_of_a_batch_that_the_sink_skips() -> None:
    """Spark 4.3: a checkpoint put back from before the sink's newest batch fails in the batch after that."""
    root = by_deltas()
    entry = f"out/_spark_metadata/{LAST}"
    root.files[entry] = b"v1"
    plan = root.plan()
    assert (plan.committed, plan.planned, plan.fails, plan.remove) == (LAST - 1, LAST, True, (entry,))
    [finding] = plan.findings
    assert (finding.id, finding.effect) == ("sink-log-ahead", "restart-fails")
    assert f"ck/state/0/0/{LAST + 1}.delta is missing or damaged: batch {LAST + 1} fails" in finding.message
    del root.files[entry]
    assert (root.plan().fails, said(root.plan())) == (False, []), "once it is gone the batch runs again"


def test_state_that_could_not_be_listed_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the state of a batch that the sink skips is there is not known."""
    root = by_deltas()
    root.files[f"out/_spark_metadata/{LAST}"] = b"v1"
    monkeypatch.setattr(Memory, "refused", lambda _: iter(["ck/state/0/0"]))
    plan = root.plan()
    assert plan.unjudged
    assert ("error", "sink-log-ahead", f"out/_spark_metadata/{LAST}") not in said(plan)
    assert plan.remove == ()


def test_with_ids_a_sink_that_was_not_looked_at_is_said() -> None:
    """PATH is the checkpoint itself: whether the restart fails cannot be told."""
    files = {p.removeprefix("ck/"): d for p, d in by_ids().files.items() if p.startswith("ck/")}
    alone = Memory("memory", (), files, "file:///home")
    assert ("warning", "unchecked-sink", f"offsets/{LAST}") in said(alone.plan())
    del alone.files[f"offsets/{LAST}"]
    assert "unchecked-sink" not in {id for _, id, _ in said(alone.plan())}


def test_a_whole_but_stale_changelog_is_seen_by_sparks_own_checksum() -> None:
    """Without Hadoop's checksum files, as on an object store, nothing else tells."""
    root = by_ids()
    path = f"ck/state/0/0/{LAST}_i{LAST}.changelog"
    root.files[path] = changelog(LAST, b"\0\0\0\1k\0\0\0\1w")
    plan = root.plan()
    assert (plan.committed, plan.fails) == (LAST - 2, True)
    assert ("error", "checksum-mismatch", path) in said(plan)
    del root.files[f"{path}.crc"]  # a missing one passes
    assert root.plan().committed == LAST - 1


def test_of_the_same_size_the_value_tells() -> None:
    root = by_ids()
    path = f"ck/state/0/0/{LAST}_i{LAST}.changelog"
    root.files[f"{path}.crc"] = own_sum(root.files[path], value=1)
    assert ("error", "checksum-mismatch", path) in said(root.plan())


def test_a_checksum_by_an_algorithm_that_is_not_known_refutes_nothing() -> None:
    """A newer Spark may write it: the restart is older, and not known to fail; a wrong size is wrong by any."""
    root = by_ids()
    path = f"ck/state/0/0/{LAST}_i{LAST}.changelog"
    root.files[f"{path}.crc"] = own_sum(root.files[path], algorithm="XXH3")
    plan = root.plan()
    assert (plan.fails, plan.unjudged) == (False, f"{path} cannot be judged")
    assert ("error", "unknown-version", path) in said(plan)
    root.files[f"{path}.crc"] = own_sum(root.files[path], algorithm="XXH3", mainFileSize=1)
    assert ("error", "checksum-mismatch", path) in said(root.plan())


def test_beginning_anew_removes_all_state() -> None:
    """Spark: `STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY` where anything is left below `state`."""
    root = by_deltas()
    root.remove("ck/state/0/0/1.delta")
    root.files["ck/state/0/0/.5.delta.x.tmp"] = b"left over"
    plan = root.plan()
    assert (plan.committed, plan.fails) == (-1, True)
    gone = {path for path in root.files if path.startswith(("ck/state/", "ck/offsets/", "ck/commits/", "out/"))}
    assert set(plan.remove) == gone
    assert not any(path.startswith("ck/sources/") for path in plan.remove)  # where the sources began


def purged() -> Memory:
    """Only batches 3 to 6 are kept, as with few batches to retain."""
    root = by_deltas()
    for n in range(3):
        root.remove(f"ck/offsets/{n}")
        root.remove(f"ck/commits/{n}")
    return root


def test_where_the_plan_before_is_purged_the_one_after_stays() -> None:
    """Spark: `batch 2 doesn't exist` without it; with it, batch 4 runs again with its stored range."""
    root = purged()
    root.remove("ck/state/0/0/5.delta")
    plan = root.plan()
    assert (plan.committed, plan.planned, plan.sink_has_planned) == (3, 4, False)
    assert [(source.start, source.end) for source in plan.sources] == [({"logOffset": 3}, {"logOffset": 4})]
    logs = {"ck/offsets/5", "ck/offsets/6", "ck/commits/4", "ck/commits/5"}
    sink = {"out/_spark_metadata/4", "out/_spark_metadata/5"}
    assert set(plan.remove) == {*logs, *sink, "ck/state/0/0/6.delta"}


def test_asked_to_go_back_there_likewise() -> None:
    plan = purged().plan(at=3)
    assert (plan.committed, plan.planned) == (3, 4)
    assert "ck/offsets/4" not in plan.remove
    assert "ck/offsets/5" in plan.remove
    assert said(plan) == []


def test_a_batch_with_neither_plan_beside_it_is_no_way_back() -> None:
    root = purged()
    root.remove("ck/state/0/0/5.delta")
    root.write("ck/offsets/4", b"v1")
    plan = root.plan()
    assert plan.committed == -1
    at = root.plan(at=3)
    assert (at.committed, said(at)[0][:2]) == (-1, ("error", "unreachable-batch"))


def test_a_batch_beyond_the_sources_log_is_no_way_back() -> None:
    """Spark: `batch 4 doesn't exist`, where the file source's own log does not reach as far."""
    root = by_deltas()
    root.remove("ck/state/0/0/6.delta")
    for n in (4, 5, 6):
        root.remove(f"ck/sources/0/{n}")
    plan = root.plan()
    assert (plan.committed, plan.fails) == (3, True)
    assert not {"ck/offsets/3", "ck/commits/3"} & {*plan.remove}


def test_no_plan_to_go_back_is_given_where_the_restart_would_fail_there_too() -> None:
    root = by_deltas()
    root.remove("ck/state/0/0/6.delta")
    assert root.plan().remove
    root.remove("ck/metadata")
    plan = root.plan()
    assert (plan.committed, plan.remove) == (4, ())
    assert "does not help by itself" in plan.restart


@pytest.mark.parametrize(
    "path", [f"ck/commits/{LAST - 1}", f"ck/offsets/{LAST}", f"ck/offsets/{LAST - 3}", "ck/metadata"]
)
@pytest.mark.parametrize("make", [by_deltas, by_ids])
def test_the_chain_tells_what_the_plan_tells_of_the_logs(make: Callable[[], Memory], path: str) -> None:
    """Which version is needed, and which files count, is read from the logs: their damage is the chain's as well."""
    root = make()
    root.write(path, root.files[path][:-3])
    ids = {(finding.id, finding.subject) for finding in root.pieces().findings}
    assert ("torn-batch-file", path) in ids
    assert {(id, place) for _, id, place in said(root.plan()) if place.startswith(("ck/offsets", "ck/commits"))} <= ids


@pytest.mark.parametrize("kept", [True, False])
def test_a_compact_sink_log_goes_only_where_the_entries_before_it_are_left(kept: bool) -> None:
    root = by_deltas()
    root.remove("ck/state/0/0/6.delta")
    root.files["out/_spark_metadata/5.compact"] = root.files.pop("out/_spark_metadata/5")
    if not kept:
        for n in range(5):
            root.remove(f"out/_spark_metadata/{n}")
    plan = root.plan()
    assert plan.committed == 4
    assert ("out/_spark_metadata/5.compact" in plan.remove) is kept
    assert (("error", "sink-log-ahead", "out/_spark_metadata/5") in said(plan)) is not kept
    assert bool(plan.remove) is kept


TORN = b"v1\n{"
LATER = ("ck/offsets/6", "ck/offsets/5", "ck/commits/5")


@pytest.mark.parametrize("path", LATER)
def test_damage_after_the_batch_asked_for_is_removed_and_said(path: str) -> None:
    root = by_deltas()
    root.files[path] = TORN
    plan = root.plan(at=3)
    assert (plan.committed, plan.fails, path in plan.remove) == (3, False, True)
    [finding] = plan.findings
    assert (finding.severity, finding.subject, finding.effect) == ("warning", path, "none")
    assert finding.message.endswith("Going back to batch 3 removes it.")


@pytest.mark.parametrize("path", LATER)
def test_nothing_is_removed_that_nobody_understands(path: str) -> None:
    root = by_deltas()
    root.files[path] = b"v9" + root.files[path][2:]
    plan = root.plan(at=3)
    assert (plan.committed, plan.remove, plan.remove_folders) == (3, (), ())
    assert f"{path} cannot be judged" in plan.unjudged
    assert said(plan) == [("error", "unknown-version", path)]
    assert plan.restart == f"What going back to batch 3 removes is not known: {path} cannot be judged."


def moments(root: Memory) -> Memory:
    """The same query, each batch a second after the one before."""
    for n in range(LAST + 1):
        text = root.files[f"ck/offsets/{n}"].replace(b'"batchTimestampMs": 5', b'"batchTimestampMs": %d' % (1000 * n))
        root.files[f"ck/offsets/{n}"] = text
    return root


@pytest.mark.parametrize("path", LATER)
def test_damage_after_the_moment_asked_about_stops_a_restart_of_today(path: str) -> None:
    root = moments(by_deltas())
    assert said(root.plan(as_of=3500)) == []
    root.files[path] = TORN
    plan = root.plan(as_of=3500)
    assert (plan.committed, plan.fails, plan.remove) == (3, True, ())
    assert plan.restart.startswith("A restart of the query fails as the files are now; the findings say why.")
    [finding] = plan.findings
    assert (finding.severity, finding.subject, finding.effect) == ("error", path, "restart-fails")


def test_a_version_after_the_moment_asked_about_that_nobody_knows_is_said() -> None:
    root = moments(by_deltas())
    root.files["ck/offsets/6"] = b"v9" + root.files["ck/offsets/6"][2:]
    plan = root.plan(as_of=3500)
    assert (plan.fails, bool(plan.unjudged)) == (False, True)
    assert said(plan) == [("error", "unknown-version", "ck/offsets/6")]

"""Burst failures: which subtasks restart where, what they read, and which round their disks leave."""

from __future__ import annotations

import json
from pathlib import Path

from cklog.rounds.burst import copy_at
from tests.builders.native import write
from tests.builders.token_rounds import AB, chain, manifest
from tests.reading.rounds import asked

CHAIN = Path("sample_logs/token-rounds")


def test_a_burst_failure(tmp_path: Path) -> None:
    """HAUs of failed nodes restart elsewhere from the shared storage, all others roll back (section III-A)."""
    code, found, _ = asked(CHAIN, "--failed-nodes", "n2,n3")
    assert (code, found["round"]) == (0, 3)
    fates = {r["operator"]: (r["fate"], r["on"], r["read_from"], r["bytes"]) for r in found["restart"]}
    assert fates == {
        "HAU1": ("rolls back", "n1", "local disk", 3000),
        "HAU2": ("restarts elsewhere", "n5", "shared storage", 48000),
        "HAU3": ("restarts elsewhere", "n1", "shared storage", 20000),
        "HAU4": ("restarts elsewhere", "n4", "shared storage", 25000),
        "HAU5": ("rolls back", "n4", "local disk", 90000),
    }
    loads = {n["node"]: (n["failed"], n["local_bytes"], n["shared_bytes"]) for n in found["nodes"]}
    assert loads["n4"] == (False, 90000, 25000)
    assert loads["n2"] == (True, 0, 0)


def test_all_nodes_failed_is_the_papers_worst_case() -> None:
    """Every HAU is restarted on another healthy node and reads from the shared storage (section IV-C)."""
    _, found, _ = asked(CHAIN, "--failed-nodes", "n1,n2", "--failed-nodes", "n3,n4")
    assert {(r["fate"], r["on"], r["read_from"]) for r in found["restart"]} == {
        ("restarts elsewhere", "n5", "shared storage")
    }
    assert [n["shared_bytes"] for n in found["nodes"]] == [0, 0, 0, 0, 186000]


def test_a_round_on_a_failed_disk_is_not_used(tmp_path: Path) -> None:
    manifest(tmp_path)
    records = chain(3)
    for record in records:
        lost = record["operator"] == "b" and record["round"] == 3
        record["uri"] = "file:///disk/b/3" if lost else "s3://bucket/x"
    write(tmp_path, "checkpoints", records)
    assert asked(tmp_path)[1]["round"] == 3
    assert asked(tmp_path, "--failed-nodes", "n-c")[1]["round"] == 3
    code, found, findings = asked(tmp_path, "--failed-nodes", "n-b")
    assert (code, found["round"]) == (3, 2)
    assert "the only copies of b/0 lie on failed nodes (n-b)" in findings["unreachable-checkpoint"]
    assert {t["channel"]: t["from"] for t in found["preserved"]} == {AB: 20}


def test_a_delta_on_a_base_on_a_failed_disk_is_not_used(tmp_path: Path) -> None:
    manifest(tmp_path)
    records = chain(2, form="base", uri="s3://bucket/x")
    records[-2] |= {"form": "delta", "bytes": 7}  # b/0 in round 2, on round 1
    write(tmp_path, "checkpoints", records)
    restart = asked(tmp_path)[1]["restart"]
    assert [r["bytes"] for r in restart] == [100, 107, 100]
    records[1]["uri"] = "file://n-b/disk/b/1"
    write(tmp_path, "checkpoints", records)
    code, found, _ = asked(tmp_path, "--failed-nodes", "n-b")
    assert (code, found["round"]) == (4, None)


def test_what_nobody_tells_of_a_burst_is_indeterminate(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", chain(2))
    manifest(tmp_path)
    code, found, findings = asked(tmp_path, "--failed-nodes", "n-b")
    assert (code, found["restart"][1]["read_from"]) == (5, "unknown")
    assert "the checkpoints of b/0" in findings["unknown-store"]
    operators = [{"name": "a", "placement": {"0": "n1"}}, {"name": "b", "placement": "n2"}, {"name": "c"}]
    (tmp_path / "job.json").write_text(json.dumps({"operators": operators, "nodes": 7}))
    code, found, findings = asked(tmp_path, "--failed-nodes", "n1")
    assert code == 5
    assert {"bad-placement", "unknown-placement"} <= set(findings)
    assert [r["fate"] for r in found["restart"]] == ["restarts elsewhere"] * 3


def test_where_copies_lie() -> None:
    assert copy_at("hdfs:///ckpt/1", "n1").store == "shared storage"
    assert (copy_at("file://n7/ckpt/1", "n1").node, copy_at("file://localhost/1", "n1").node) == ("n7", "n1")
    assert copy_at("file:///ckpt", None).store == "unknown"
    assert copy_at("C:/ckpt", "n1").store == copy_at("http://[", "n1").store == copy_at(None, None).store == "unknown"
    assert copy_at(None, "n1", "n2").node == "n2"

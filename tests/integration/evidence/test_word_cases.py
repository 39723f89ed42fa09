"""Sentences that once said the opposite of what they mean, or hid what is urgent: the right words, by their READMEs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.conftest import SAMPLES
from tests.integration.evidence.cases import CASES, kept
from tests.program import cklog

WORDS = CASES / "words"


def test_an_offset_that_can_be_restored_is_at_or_after_the_start_of_its_log(tmp_path: Path) -> None:
    """Case `behind-means-after`."""
    (tmp_path / "line.json").write_text(cklog("recovery-line", SAMPLES / "kafka-broker", "--json", "-q").out)
    said = cklog("verify", SAMPLES / "kafka-broker", "--line", tmp_path / "line.json", "--maximal").out
    assert re.search(r"restorable +holds +every offset is at or after the log start offset", said)
    for command in ("verify", "impact", "replay", "recovery-line", "runbook"):
        line = ("--line", tmp_path / "line.json") if command == "verify" else ()
        assert not re.search(r"\bbehind\b", cklog(command, SAMPLES / "kafka-broker", *line).out), command
    assert "after the committed offset" in cklog("impact", SAMPLES / "kafka-broker").out


def test_the_action_of_several_connectors_is_that_of_most_with_a_count() -> None:
    """Case `connect-start-over`."""
    ended = cklog("recovery-line", SAMPLES / "connect-offsets", "--brief")
    found = json.loads(cklog("recovery-line", SAMPLES / "connect-offsets", "--json").out)["result"]
    actions = sorted(run["action"] for run in found["runs"])
    assert (ended.code, found["action"], actions) == (0, "restart", ["restart"] * 6 + ["start-over"])
    assert "Action: restart (nothing found that stops it) for 6 of 7, start-over for 1." in ended.out
    assert "2 start over, 3 records in topics are produced again" in ended.out


def test_names_of_sinks_are_quoted_and_one_batch_has_one_statement_for_each_kind_of_sink() -> None:
    """Case `impact-out-of`."""
    flink, spark = (cklog("impact", SAMPLES / name, "--brief").out for name in ("flink-orders", "spark-state-hdfs"))
    assert 'results of orders-0 from 2088 on in "out"' in flink
    assert "out of orders" not in flink
    assert 'May be doubled: batch 7 of "query/0" if it is foreachBatch, Kafka or console' in spark
    assert 'written again and seen once: batch 7 of "query/0" if it stores batch numbers' in spark


@kept
def test_the_run_that_needs_somebody_is_the_first_row_of_a_long_scan(tmp_path: Path) -> None:
    """Case `scan-hides`: 44 runs of no concern, and a broker whose name is the last."""
    for number in range(44):
        shutil.copytree(SAMPLES / "domino-cycle", tmp_path / f"run-{number:02d}")
    shutil.copytree(WORDS / "scan-hides" / "zz-broker", tmp_path / "zz-broker")
    said = cklog("scan", tmp_path).out
    rows = [text for text in said.splitlines() if re.match(r"\S*(run-\d\d|zz-broker)\s", text)]
    assert "zz-broker" in rows[0]
    assert "salvage-first" in rows[0]
    assert len(rows) == 40, "of the 45 rows a table shows 40"

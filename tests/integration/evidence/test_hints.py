"""A text names an option only where that can help and was not given."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integration.evidence.cases import CASES, answer, kept

REPORTS = CASES / "reports"
PENDING = "08-pending-manifest-orphan-removed"

pytestmark = kept


def options(found: Any) -> list[str]:
    """What an answer says is not checked, or not known, and every note and finding."""
    result = found["result"]
    rows = [row["option"] or "" for run in result.get("runs", ()) for row in run["unchecked"]]
    timed = result.get("recovery_time") or {"unknown": []}
    return [*rows, *timed["unknown"], *result["notes"], *(one["message"] for one in found["findings"])]


def names(option: str, found: Any) -> bool:
    return any(option in text for text in options(found))


@pytest.mark.parametrize(
    "case", ["05-topic-recreated/ckpt", "05-topic-recreated/spark-ck", "20-two-instances/instance1"]
)
def test_kafka_is_named_where_it_was_not_given(case: str) -> None:
    path = REPORTS / case
    logs = next(one.parent.parent for one in sorted((REPORTS / case.partition("/")[0]).rglob("0" * 16 + "*.log")))
    _, without = answer("recovery-line", path)
    _, given = answer("recovery-line", path, "--kafka", logs)
    assert (names("--kafka", without), names("--kafka FOLDER", given), names("(--kafka", given)) == (True, False, False)


def test_a_table_is_named_where_none_was_given(tmp_path: Path) -> None:
    """A table at another place than its metadata say: the pending files were not looked for in it."""
    pytest.importorskip("pyiceberg")
    table = shutil.copytree(REPORTS / PENDING / "wh/d/t", tmp_path / "t")
    for path in table.rglob("*.metadata.json"):
        path.write_bytes(path.read_bytes().replace(b"/srv/job/", b"/srv/old/"))
    for given in ((), ("--sink", table)):
        _, found = answer("recovery-line", REPORTS / PENDING / "ckpt", *given)
        [message] = [one["message"] for one in found["findings"] if one["id"] == "pending-unchecked"]
        assert message.endswith("with --map OLD=NEW" if given else "with --map OLD=NEW, or the table with --sink")


def test_impact_names_what_can_show_how_far_the_job_had_come() -> None:
    path = REPORTS / "07-transaction-committed-already"
    _, found = answer("impact", path / "ckpt")
    reach = [note for note in found["result"]["notes"] if note.startswith("reach")]
    assert reach == ["reach-unknown", "reach-by-kafka"], "there is no other snapshot"
    _, found = answer("impact", path / "ckpt", "--kafka", path / "kafka")
    assert [note for note in found["result"]["notes"] if note.startswith("reach")] == [
        "reach-unknown",
        "reach-by-group",
    ]

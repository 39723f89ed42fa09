"""Checkpoints whose state file is gone are in no line, nor what stands on them; older ones may go on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders.native import checkpoint, write
from tests.program import cklog


def run_with_files(folder: Path) -> None:
    """a/0 with a base and two deltas, another base and a delta, each with a state file."""
    forms = [("base", None), ("delta", 1), ("delta", 2), ("base", None), ("delta", 4)]
    rows = []
    for number, (form, parent) in enumerate(forms, start=1):
        uri = f"state-files/a/{number}"
        (folder / uri).parent.mkdir(parents=True, exist_ok=True)
        (folder / uri).write_bytes(b"x")
        more = {"parent": parent} if parent else {}
        rows.append(checkpoint("a/0", number, form=form, uri=uri, **more))
    write(folder, "checkpoints", rows)


def asked(folder: Path, *command: str) -> tuple[int, Any, list[tuple[str, str]]]:
    ended = cklog(*command, folder, "--json")
    found = json.loads(ended.out)
    return ended.code, found["result"], [(f["id"], f["subject"]) for f in found["findings"]]


def line(folder: Path) -> tuple[int, int, list[tuple[str, str]]]:
    code, result, findings = asked(folder, "recovery-line")
    return code, result["line"][0]["checkpoint"], findings


def test_without_loss_the_newest_is_taken(tmp_path: Path) -> None:
    run_with_files(tmp_path)
    assert line(tmp_path) == (0, 5, [])


def test_a_missing_file_takes_what_stands_on_it(tmp_path: Path) -> None:
    run_with_files(tmp_path)
    (tmp_path / "state-files/a/4").unlink()
    broken = ("broken-chain", "a/0=5")
    assert line(tmp_path) == (3, 3, [broken, ("missing-state-file", "a/0=4")])
    (tmp_path / "state-files/a/2").unlink()
    told = [("broken-chain", "a/0=3"), broken, *(("missing-state-file", f"a/0={n}") for n in (2, 4))]
    assert line(tmp_path) == (3, 1, told)


def test_files_of_older_checkpoints_may_be_gone(tmp_path: Path) -> None:
    run_with_files(tmp_path)
    for number in (1, 2, 3):
        (tmp_path / f"state-files/a/{number}").unlink()
    assert line(tmp_path) == (0, 5, [])


def test_verify_refutes_a_line_of_a_checkpoint_without_its_file(tmp_path: Path) -> None:
    run_with_files(tmp_path)
    stated = tmp_path / "line.json"
    stated.write_text(cklog("recovery-line", tmp_path, "--json").out)
    assert asked(tmp_path, "verify", "--maximal", "--line", str(stated))[0] == 0
    (tmp_path / "state-files/a/4").unlink()
    code, result, _ = asked(tmp_path, "verify", "--line", str(stated))
    checks = {check["check"]: check for check in result["checks"]}
    assert (code, checks["restorable"]["holds"]) == (3, False)
    older = json.loads(stated.read_text())
    older["result"]["line"][0]["checkpoint"] = 3
    stated.write_text(json.dumps(older))
    _, result, _ = asked(tmp_path, "verify", "--maximal", "--line", str(stated))
    assert all(check["holds"] for check in result["checks"])


def test_retention_keeps_what_the_older_line_needs(tmp_path: Path) -> None:
    run_with_files(tmp_path)
    (tmp_path / "state-files/a/4").unlink()
    _, result, _ = asked(tmp_path, "retention")
    fates = {row["checkpoint"]: row["fate"] for row in result["rows"] if row["checkpoint"]}
    assert {fates[f"a/0={n}"] for n in (1, 2, 3)} <= {"VALID", "KEEP"}

"""Every exit code, every error and every action is produced by the tool, and each is in its document."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cklog.explanations.pages import all_pages
from cklog.kinds.snapshots import SnapshotsKind
from cklog.model.actions import ACTIONS, MEANINGS
from cklog.run import Run
from tests.builders.native import checkpoint
from tests.conftest import SAMPLES
from tests.integration.produced.cases import Asked, checkpoints, cut, job, pair, put, sample
from tests.program import Ended, cklog, hide_java

JOIN = SAMPLES / "uncoordinated-join"
FLINK = "file:///srv/cklog-sample/flink-orders"


def rows_of(kind: str) -> set[str]:
    return {page.id for page in all_pages() if page.kind == kind}


def nothing(folder: Path) -> Asked:
    return "recovery-line", folder


def garbled(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, "{garbled\n")


def unreadable(folder: Path) -> Asked:
    """The only file of records is a link that leads elsewhere."""
    put(folder / "elsewhere" / "part.jsonl", checkpoint("a/0", 1))
    run = checkpoints(job(folder / "run"))
    (run / "checkpoints" / "part.jsonl").unlink()
    (run / "checkpoints" / "part.jsonl").symlink_to(folder / "elsewhere" / "part.jsonl")
    return "recovery-line", run


def of_later_version(folder: Path) -> Asked:
    """The only file of records is compressed by a method of gzip that there is not yet."""
    run = checkpoints(job(folder / "run"))
    (run / "checkpoints" / "part.jsonl").unlink()
    data = gzip.compress(json.dumps(checkpoint("a/0", 1)).encode())
    (run / "checkpoints" / "part.jsonl.gz").write_bytes(data[:2] + b"\x09" + data[3:])
    return "recovery-line", run


def too_large(folder: Path) -> Asked:
    run = checkpoints(folder, checkpoint("a/0", 1))
    (run / "checkpoints" / "more.jsonl.gz").write_bytes(gzip.compress(bytes(1 << 26)))
    return "recovery-line", run, "--max-memory", "64MiB"


def unproven(folder: Path) -> Asked:
    """Nothing tells what `b`, which runs on, holds now."""
    return "recovery-line", checkpoints(folder, *pair(3, 3)), "--failed", "a"


ERRORS: dict[str, tuple[int, Callable[[Path], Asked]]] = {
    "usage": (2, lambda _: ("recovery-line", JOIN, "--at", "nonsense")),
    "engine-unavailable": (69, lambda _: ("recovery-line", JOIN, "--engine", "spark")),
    "corrupt-input": (65, garbled),
    "over-budget": (65, too_large),
    "not-found": (66, nothing),
    "self-check-failed": (70, lambda _: ("recovery-line", JOIN)),
    "output-error": (73, lambda folder: ("recovery-line", JOIN, "-o", folder / "no" / "such" / "place")),
    "unreadable-file": (5, unreadable),
    "unknown-version": (5, of_later_version),
    "not-finished": (5, lambda folder: ("scan", sample("flink-orders", folder).parent)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_ends_with_its_code_and_its_id(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, make = ERRORS[name]
    if name == "self-check-failed":
        monkeypatch.setattr(Run, "recovery_line", lambda _run, *_: 1 // 0)
    if name == "engine-unavailable":
        hide_java(monkeypatch)
    if name == "not-finished":  # as if its time were up: it is an error of a row
        monkeypatch.setattr(SnapshotsKind, "recovery_line", lambda _kind, *_: signal.raise_signal(signal.SIGALRM))
    ended = cklog(*make(tmp_path), "--json")
    assert (ended.code, f'id": "{name}"' in ended.out) == (code, True), ended


def interrupted(number: int) -> Ended:
    """A command that takes long, ended by a signal."""
    work = "import time, cklog.commands as p\np._run = lambda: time.sleep(600)\nprint(1, flush=True)\np.main()\n"
    running = subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    running.stdout.readline()
    while running.poll() is None:
        time.sleep(0.3)
        os.kill(running.pid, number)
    out, err = running.communicate()
    return Ended(running.returncode, out, err)


CODES: dict[str, Callable[[Path], Ended]] = {
    "0": lambda _: cklog("recovery-line", JOIN),
    "1": lambda _: cklog("diff", JOIN, SAMPLES / "domino-cycle", "--exit-code"),
    "2": lambda _: cklog("recovery-line", JOIN, "--at", "nonsense"),
    "3": lambda _: cklog("recovery-line", SAMPLES / "kafka-broker"),
    "4": lambda _: cklog("recovery-line", JOIN, "--at", "join/0=5"),
    "5": lambda folder: cklog(*unproven(folder)),
    "65": lambda folder: cklog(*garbled(folder)),
    "66": lambda folder: cklog(*nothing(folder)),
    "69": lambda _: cklog("recovery-line", JOIN, "--engine", "spark"),
    "73": lambda folder: cklog("recovery-line", JOIN, "-o", folder / "no" / "such" / "place"),
    "130": lambda _: interrupted(signal.SIGINT),
    "143": lambda _: interrupted(signal.SIGTERM),
}


@pytest.mark.parametrize("code", [*CODES, "70"])
def test_an_exit_code_is_produced(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if code == "69":
        hide_java(monkeypatch)
    if code == "70":
        monkeypatch.setattr(Run, "recovery_line", lambda _run, *_: 1 // 0)
    ended = CODES["0" if code == "70" else code](tmp_path)
    assert ended.code == int(code), ended


def test_every_documented_exit_code_and_error_is_produced_and_no_other_is() -> None:
    assert {*CODES, "70"} == rows_of("exit-code")
    assert set(ERRORS) == rows_of("error")


def older(folder: Path) -> Asked:
    run = sample("flink-orders", folder)
    [metadata] = run.glob("125c*/chk-13/_metadata")
    cut(metadata)
    return "recovery-line", run, "--map", f"{FLINK}={run}"


def repaired(folder: Path) -> Asked:
    run = sample("spark-wordcount", folder)
    (run / "ck" / "metadata").unlink()
    return "recovery-line", run


def started_over(folder: Path) -> Asked:
    run = checkpoints(folder, checkpoint("a/0", 1, uri="state/1"))
    put(folder / "state" / "2", "another one")
    return "recovery-line", run


PRODUCED: dict[str, Callable[[Path], Asked]] = {
    "restart": lambda _: ("recovery-line", JOIN),
    "restart-older": older,
    "repair-first": repaired,
    "salvage-first": lambda _: ("recovery-line", SAMPLES / "kafka-broker"),
    "start-over": started_over,
    "undetermined": unproven,
}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_printed_with_its_meaning(action: str, tmp_path: Path) -> None:
    ended = cklog(*PRODUCED[action](tmp_path))
    assert f"Action: {action} (" in ended.out, ended


def test_every_action_is_documented() -> None:
    assert set(ACTIONS) == set(MEANINGS) == set(PRODUCED) == rows_of("action")

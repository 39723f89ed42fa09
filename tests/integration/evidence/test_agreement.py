"""Commands agree with each other about one folder, and about logs that end at a moment."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.builders.native import write
from tests.conftest import SAMPLES
from tests.fuzz.oracle import Told
from tests.integration.evidence.cases import CASES, answer, kept
from tests.oracles.answers.agreement import COMMANDS, disagreements
from tests.program import cklog

FOLDERS = sorted(path for path in SAMPLES.iterdir() if path.is_dir() and path.name != "tables")
KINDS = ("brute", "engines", "mission", "reports", "users")
CASE_FOLDERS = sorted(path for kind in KINDS for path in (CASES / kind).glob("*") if path.is_dir())


def agrees(folder: Path) -> None:
    """Compare all commands, where the folder has an answer."""
    said = {command: Told(cklog(command, folder, "--json"), True) for command in COMMANDS if command != "verify"}
    assert list(disagreements(said)) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_commands_agree_about_a_sample(folder: Path) -> None:
    agrees(folder)


@pytest.mark.quarter
@kept
@pytest.mark.parametrize("folder", CASE_FOLDERS, ids=lambda path: path.name)
def test_commands_agree_about_a_case(folder: Path) -> None:
    agrees(folder)


NAMES = ("a/0", "b/0", "c/0")
CHANNELS = [f"{one}->{other}" for one in NAMES for other in NAMES if one != other]


def execution(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Checkpoints and messages of three subtasks that send, receive and take checkpoints at random."""
    rng, sent, received = random.Random(seed), dict.fromkeys(CHANNELS, 0), dict.fromkeys(CHANNELS, 0)
    checkpoints: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for time in range(1000, 1000 + 10 * rng.randint(30, 60), 10):
        what, channel = rng.random(), rng.choice(CHANNELS)
        if what < 0.45:
            messages.append({"channel": channel, "seq": sent[channel], "time": time, "bytes": 1})
            sent[channel] += 1
        elif what < 0.8:
            received[channel] += received[channel] < sent[channel]
        else:
            name = rng.choice(NAMES)
            number = sum(row["operator"] == name[0] for row in checkpoints) + 1
            record = {"operator": name[0], "checkpoint": number, "time": time}
            record["sent"] = {one: sent[one] for one in CHANNELS if one.startswith(name)}
            record["received"] = {one: received[one] for one in CHANNELS if one.endswith(name)}
            checkpoints.append(record)
    return checkpoints, messages


def stored(folder: Path, seed: int, until: int | None = None) -> Path:
    """Write an execution, or what was there of it at a moment."""
    job: dict[str, Any] = {"operators": [{"name": name[0]} for name in NAMES], "channels": []}
    job["channels"] = [{"channel": channel} for channel in CHANNELS]
    for place, rows in zip(("checkpoints", "channels"), execution(seed), strict=True):
        write(folder, place, [row for row in rows if until is None or row["time"] <= until])
    (folder / "job.json").write_text(json.dumps(job | ({} if until is None else {"failure_time": until})))
    return folder


@pytest.mark.parametrize("seed", range(4))
def test_a_moment_is_one_whichever_way_it_is_asked_about(seed: int, tmp_path: Path) -> None:
    run = stored(tmp_path / "run", seed)
    times = sorted(row["time"] for row in execution(seed)[0])
    moment = times[len(times) // 2]
    cut = stored(tmp_path / "cut", seed, moment)
    _, of_cut = answer("recovery-line", cut)
    _, as_of = answer("recovery-line", run, "--as-of", str(moment))
    for member in ("action", "line", "channels", "rollback", "useless"):
        assert of_cut["result"][member] == as_of["result"][member], member
    back = as_of["result"]["rollback"]
    (failure,) = answer("recovery-line", run, "--failed-at", str(moment))[1]["result"]["moments"]
    counts = [row["checkpoints"] for row in back]
    assert failure["rolled_past"] == sum(counts)
    assert failure["distance"] == max(counts)
    lost = [row["time_ms"] for row in back]
    assert failure["lost_ms"] == (None if None in lost else max(lost))


@pytest.mark.parametrize("failed", [(), ("--failed", "a")])
@pytest.mark.parametrize("seed", range(4))
def test_a_useless_checkpoint_is_obsolete(seed: int, failed: tuple[str, ...], tmp_path: Path) -> None:
    found = json.loads(cklog("z-cycles", stored(tmp_path, seed), *failed, "--json").out)["result"]
    assert found["counts"]["useless"] <= found["counts"]["obsolete"]

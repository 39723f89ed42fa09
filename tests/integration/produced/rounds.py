"""Token rounds and burst failures."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.builders.native import write
from tests.builders.token_rounds import chain, manifest
from tests.conftest import SAMPLES
from tests.integration.produced.cases import Asked, job, produces


def tokens(folder: Path, place: str, old: str, new: str) -> Path:
    """The sample with the first line that holds a text changed, and without its checksums."""
    run = Path(shutil.copytree(SAMPLES / "token-rounds", folder / "run", ignore=shutil.ignore_patterns("*.crc")))
    path = run / place / "part-00000.jsonl"
    lines = [line.partition(',"crc32c"')[0].removesuffix("}") + "}\n" for line in path.read_text().splitlines()]
    at = next(i for i, line in enumerate(lines) if old in line)
    lines[at] = lines[at].replace(old, new)
    path.write_text("".join(lines))
    return run


@produces("unreachable-checkpoint", exit=3)
def _(folder: Path) -> Asked:
    manifest(folder)
    records = chain(3, uri="s3://bucket/x")
    records[-2]["uri"] = "file:///disk/b/3"
    write(folder, "checkpoints", records)
    return "rounds", folder, "--failed-nodes", "n-b"


@produces("bad-placement", "unknown-placement", exit=5)
def _(folder: Path) -> Asked:
    write(folder, "checkpoints", chain(2))
    operators = [{"name": "a", "placement": {"0": "n1"}}, {"name": "b", "placement": "n2"}, {"name": "c"}]
    return "rounds", job(folder, operators=operators), "--failed-nodes", "n1"


@produces("unknown-store", exit=5)
def _(folder: Path) -> Asked:
    write(folder, "checkpoints", chain(2))
    manifest(folder)
    return "rounds", folder, "--failed-nodes", "n-b"


@produces("unrecorded-checkpoint", exit=3)
def _(folder: Path) -> Asked:
    return "rounds", tokens(folder, "checkpoints", '"operator":"HAU5","subtask":0,"checkpoint":3', "")


@produces("misplaced-token", exit=0)
def _(folder: Path) -> Asked:
    return "rounds", tokens(
        folder, "system", *(f'received","channel":"HAU4/0->HAU5/0","round":3,"seq":{n}' for n in (48, 47))
    )


@produces("bad-token", exit=0)
def _(folder: Path) -> Asked:
    run = tokens(folder, "system", "{", "{")
    write(run, "system", [{"event": "token-sent", "channel": "HAU1", "round": 4}], "more.jsonl")
    return "rounds", run

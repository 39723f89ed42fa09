"""Where the action is undetermined, no sentence of an answer tells a person to start, restart or remove anything.

One run of every kind, with a file of a version that cklog does not know.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.codecs.block_checksums import masked_crc32c
from tests.builders.checkmate import START, put_snapshot
from tests.builders.native import checkpoint, line
from tests.builders.patent import export, usual
from tests.builders.stores import put_store, put_task
from tests.conftest import SAMPLES
from tests.program import cklog

_ADVICE = re.compile(
    r"\b(?:start every|start the|restart from|go(?:es)? on by|begin anew|restores? its|then (?:re)?start"
    r"|rm|remove[sd]?|delete[sd]?|restart (?:it|them|the))\b",
    re.IGNORECASE,
)


def _sample(name: str, part: str, change: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    """Return what copies a sample and changes the newest of its files whose path ends like `part`."""

    def put(folder: Path) -> Path:
        shutil.copytree(SAMPLES / name, folder)
        found = [path for path in folder.rglob("*") if path.is_file() and re.search(part, str(path))]
        path = max(found, key=lambda one: [int(n) for n in re.findall(r"[0-9]+", one.name)])
        path.write_bytes(change(path.read_bytes()))
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        return folder

    return put


def _native(folder: Path) -> Path:
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints/a.jsonl").write_bytes(line(checkpoint("agg", 1, kind="local")))
    packed = gzip.compress(line(checkpoint("agg", 2, kind="local")))
    (folder / "checkpoints/b.jsonl.gz").write_bytes(packed[:2] + b"\x09" + packed[3:])
    return folder


def _native_without_a_checkpoint(folder: Path) -> Path:
    _native(folder)
    (folder / "checkpoints/a.jsonl").unlink()
    return folder


def _streams(folder: Path) -> Path:
    put_task(folder / "shop", "0_0", ("counts",), {"shop-counts-changelog 0": 7})
    file = folder / "shop/0_0/.checkpoint"
    file.write_bytes(b"99" + file.read_bytes()[1:])
    return folder


def _quix(folder: Path) -> Path:
    pytest.importorskip("rocksdict")
    store = put_store(folder / "group/store/topic/0", "__metadata__", {b"__changelog__offset": 7})
    manifest = max(store.glob("MANIFEST-*"))
    data = manifest.read_bytes()
    body = b"\x09" + data[7 : 7 + int.from_bytes(data[4:6], "little")]
    manifest.write_bytes(struct.pack("<I", masked_crc32c(body)) + data[4:6] + body + data[6 + len(body) :])
    return folder


def _checkmate(folder: Path) -> Path:
    for worker in (1, 2):
        put_snapshot(folder, worker, "a", START + 100 + worker, sent={}, received={}, clock=1)
    newest = max(folder.rglob("snapshot_1_*.bin"))
    newest.write_bytes(newest.read_bytes()[:1] + b"\x06" + newest.read_bytes()[2:])
    return folder


def _patent(folder: Path) -> Path:
    pairs: Mapping[str, bytes] = {k.replace("5 INDEX", "5 COLUMNS"): value for k, value in usual().pairs.items()}
    return export(folder, "window", pairs)


KINDS: dict[str, Callable[[Path], Path]] = {
    "native": _native,
    "native-without-a-checkpoint": _native_without_a_checkpoint,
    "spark": _sample("spark-wordcount", r"/ck/commits/[0-9]+$", lambda data: data.replace(b"v1\n", b"v99\n", 1)),
    "flink": _sample("flink-orders", r"125c.*/chk-13/_metadata$", lambda data: data[:7] + b"\x63" + data[8:]),
    "streams": _streams,
    "quix": _quix,
    "kafka": _sample("kafka-broker", r"/orders-0/0+\.log$", lambda data: data[:16] + b"\x09" + data[17:]),
    "connect": _sample(
        "connect-offsets", r"/connect-offsets-\d+/\d+\.log$", lambda data: data[:16] + b"\x09" + data[17:]
    ),
    "checkmate": _checkmate,
    "patent-store": _patent,
}


def _sentences(result: Mapping[str, Any]) -> Iterator[str]:
    for run in result["runs"]:
        if run["action"] == "undetermined":
            assert run["command"] is None, run
            yield str(run["note"])


@pytest.mark.parametrize("kind", KINDS)
def test_an_undetermined_action_advises_nothing_but_to_supply_what_is_missing(kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / "run")
    ended = cklog("recovery-line", folder, "--json")
    assert ended.code == 5, ended
    found = json.loads(ended.out)
    if "error" in found:
        assert found["error"]["id"] == "unknown-version"
        return
    assert {"unknown-version", "unread-store"} & {row["id"] for row in found["findings"]}
    assert found["result"]["action"] == "undetermined"
    told = list(_sentences(found["result"]))
    assert told
    assert not [one for one in told if _ADVICE.search(one)]
    assert not found["result"].get("details", {}).get("restore")
    shown = cklog("recovery-line", folder, "--brief", "-q").out
    assert shown.startswith(("Undetermined: ", "Indeterminate"))
    assert "flink run" not in shown

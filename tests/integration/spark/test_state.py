"""State stores of real checkpoints: whole, and with each file damaged in turn, against the definition."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import tempfile
import zipfile
from pathlib import Path

import pytest

from cklog.chains.restorable import chains_of
from cklog.parsers.codecs.hadoop_crc import sidecar_of
from cklog.parsers.spark.state.lz4_blocks import decoded
from cklog.runs.batches.plan import BatchPlan
from tests.builders.spark import REAL, Memory, load, needs_real
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog
from tests.reading.spark import said

FOLDERS = {
    "A_file_hdfs_parquetsink": 14,
    "B_rate_rocksdb_changelog": 14,
    "C_transformWithState": 13,
    "F_rocksdb_ckptformat_v2": 13,
    "R_rocksdb_nochangelog_retain3": 13,
}
OURS = {"spark-state-hdfs": 6, "spark-state-rocksdb": 6}
_NAME = re.compile(r"ck/state/(\d+/\d+)/(\d+)(?:_[^./]+)?\.(delta|snapshot|changelog|zip)")


def root_of(name: str) -> Memory:
    if name in OURS:
        return load(SAMPLES / name, f"file:///srv/cklog-words/{name[12:]}")
    return load(REAL / name, f"file:///mnt/spark/prod1/run_{name[0]}")


def newest(name: str) -> int:
    return {**FOLDERS, **OURS}[name]


def by_definition(root: Memory, committed: int, bad: frozenset[str]) -> int:
    """The newest batch at which every partition can load its version: a base, and every delta after it."""
    there: dict[str, dict[int, set[str]]] = {}
    for path in root.files:
        match = _NAME.fullmatch(path)
        if match and path not in bad:
            there.setdefault(match[1], {}).setdefault(int(match[2]), set()).add(match[3])
    stores = {match[1] for match in map(_NAME.fullmatch, root.files) if match}

    def loads(store: str, version: int) -> bool:
        kinds = there.get(store, {}).get(version, set())
        if version == 0 or kinds & {"snapshot", "zip"}:
            return True
        return bool(kinds & {"delta", "changelog"}) and loads(store, version - 1)

    batches = [b for b in range(committed + 1) if f"ck/commits/{b}" in root.files and f"ck/offsets/{b}" in root.files]
    whole = [b for b in batches if all(loads(store, b + 1) for store in stores)]
    followed = [b for b in whole if b == 0 or f"ck/offsets/{b - 1}" in root.files]
    return max(followed or whole, default=-1)


def plan_with(root: Memory, path: str, data: bytes | None) -> BatchPlan:
    """The plan with one file deleted or replaced, without checksums."""
    files = {p: d for p, d in root.files.items() if p != path}
    return root.with_files(files if data is None else {**files, path: data}).plan()


def users_of(root: Memory, sst: str) -> frozenset[str]:
    """The zips whose metadata names an SST file, found without the code under test."""
    name = sst.rpartition("/")[2].encode()
    folder = sst.rpartition("/SSTs/")[0] + "/"
    zips = [path for path in root.files if path.startswith(folder) and path.endswith(".zip")]
    return frozenset(z for z in zips if name in zipfile.ZipFile(io.BytesIO(root.files[z])).read("metadata"))


@needs_real
@pytest.mark.parametrize("name", [*FOLDERS, *OURS])
def test_every_store_of_a_killed_query_loads_the_last_batch(name: str) -> None:
    plan = root_of(name).plan()
    assert (plan.committed, plan.fails, plan.rolled_back, plan.unjudged) == (newest(name), False, (), "")
    assert [(row["operator"], row["partitions"], row["loads_version"]) for row in plan.stores] == [
        ("0", 2, newest(name) + 1)
    ]
    assert said(plan) == []


@pytest.mark.quarter
@needs_real
@pytest.mark.parametrize("name", [*FOLDERS, *OURS])
def test_with_any_state_file_damaged_the_line_is_by_definition(name: str) -> None:
    whole = root_of(name).without_checksums()
    committed = newest(name)
    damaged = 0
    for path in sorted(whole.files):
        if not path.startswith("ck/state/") or "_" in path.removeprefix("ck/state/").split("/")[-2]:
            continue
        if path.endswith("_metadata/v2/0"):
            continue
        bad = users_of(whole, path) if path.endswith(".sst") else frozenset({path})
        expected = by_definition(whole, committed, bad)
        data, is_schema = whole.files[path], "/_stateSchema/" in path
        for version in (None, b"", data[: len(data) // 2], data[:-1]):
            plan = plan_with(whole, path, version)
            assert plan.committed == expected, path
            assert plan.fails == (expected < committed or (is_schema and not version)), path
            assert plan.findings or (expected == committed and not is_schema)
        damaged += 1
    assert damaged > 6


@needs_real
@pytest.mark.parametrize("name", [*FOLDERS, *OURS])
def test_chains_agree_with_the_line_and_read_every_file(name: str) -> None:
    root = root_of(name)
    table, findings, inputs = root.pieces()[:3]
    chains = chains_of(table)
    assert findings == ()
    assert set(chains.common("run")) == {newest(name) + 1}
    assert bool(chains.restorable.all())
    assert inputs[0].records == table.num_rows


@needs_real
def test_a_flipped_bit_is_found_with_and_without_checksums() -> None:
    """But in RocksDB's own tables without a checksum file, which are read whole with --check-contents only."""
    for name in ("spark-state-hdfs", "spark-state-rocksdb", "F_rocksdb_ckptformat_v2"):
        for root in (root_of(name), root_of(name).without_checksums()):
            for path in [p for p in root.files if _NAME.fullmatch(p) and p.split("/")[3] == "0"]:
                data = root.files[path]
                at = len(data) // 2
                flipped = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
                told = root.with_files({**root.files, path: flipped}).pieces()[1]
                subjects = [finding.subject for finding in told if finding.severity != "info"]
                assert subjects == [path] or is_the_same(path, data, flipped), path


def is_the_same(path: str, data: bytes, flipped: bytes) -> bool:
    """A run of one byte can be copied from two places, so that another bit means the same."""
    return not path.endswith(".zip") and list(decoded([data])) == list(decoded([flipped]))


@pytest.mark.parametrize("name", [*OURS])
def test_the_samples_are_small_and_hold_no_path_of_the_machine(name: str) -> None:
    files = [path for path in (SAMPLES / name).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000
    above = (Path(tempfile.gettempdir()), Path.home(), REPOSITORY.parent)
    places = [str(place).encode() for place in above if len(place.parts) > 1]
    for path in files:
        data = path.read_bytes()
        assert not [place for place in places if place in data], path


def copy_without(folder: Path, name: str, *gone: str) -> Path:
    """A copy of a sample in which files, and their checksums, are missing."""
    home = folder / name
    shutil.copytree(SAMPLES / name, home)
    for path in gone:
        (home / path).unlink()
        (home / sidecar_of(path)).unlink(missing_ok=True)
    return home


def moved(name: str, home: Path) -> tuple[str, str]:
    return "--map", f"file:///srv/cklog-words/{name[12:]}={home}"


@pytest.mark.parametrize("name", [*OURS])
def test_exit_codes_tell_whether_the_query_can_go_on(name: str, tmp_path: Path) -> None:
    delta = "changelog" if name.endswith("rocksdb") else "delta"
    assert cklog("recovery-line", SAMPLES / name, *moved(name, SAMPLES / name)).code == 0
    home = copy_without(tmp_path / "back", name, f"ck/state/0/1/7.{delta}")
    for command in ("recovery-line", "replay", "inspect", "chain"):
        assert cklog(command, home, *moved(name, home)).code == 3, command
    told = json.loads(cklog("recovery-line", home, *moved(name, home), "--json").out)["result"]
    assert [row["checkpoint"] for row in told["line"]] == [5]
    assert told["rolled_back"] == [{"operator": "query", "subtask": 0, "checkpoint": 6}]
    assert f"ck/state/0/0/7.{delta}" in told["details"]["remove"]
    assert "ck/commits/6" in told["details"]["remove"]
    everything = [
        path.relative_to(SAMPLES / name).as_posix() for path in (SAMPLES / name / "ck/state/0/1").glob("[0-9]*")
    ]
    bare = copy_without(tmp_path / "bare", name, *everything)
    assert cklog("recovery-line", bare, *moved(name, bare)).code == 4


def test_verify_says_which_batch_can_be_loaded(tmp_path: Path) -> None:
    home = copy_without(tmp_path, "spark-state-hdfs", "ck/state/0/0/6.delta")
    line = tmp_path / "line.json"
    for batch, code in ((6, 3), (5, 3), (4, 0), (3, 0)):
        line.write_text(json.dumps({"query/0": batch}))
        ended = cklog("verify", home, *moved("spark-state-hdfs", home), "--line", line)
        assert ended.code == code, ended.out
    assert "all 2 state stores can load version 4" in ended.out
    line.write_text(json.dumps({"query/0": 6}))
    told = json.loads(cklog("verify", home, "--line", line, "--json").out)["result"]
    assert {check["check"]: check["holds"] for check in told["checks"]} == {
        "committed": True,
        "consistent": True,
        "loadable": False,
        "replayable": True,
    }
    assert cklog("recovery-line", home, "--at", "query/0=5").code == 3
    assert cklog("recovery-line", home, "--at", "query/0=3").code == 3, "files have to go first"


def test_an_unknown_provider_is_indeterminate(tmp_path: Path) -> None:
    home = copy_without(tmp_path, "spark-state-hdfs")
    for path in (home / "ck/offsets").glob("[0-9]*"):
        path.write_text(path.read_text().replace("state.HDFSBackedStateStoreProvider", "state.OtherProvider"))
        (path.parent / f".{path.name}.crc").unlink()
    ended = cklog("recovery-line", home, *moved("spark-state-hdfs", home))
    assert ended.code == 5
    assert "OtherProvider" in ended.out


@pytest.mark.quarter
@needs_real
@pytest.mark.parametrize("name", [*FOLDERS, *OURS])
def test_random_damage_anywhere_in_the_state_ends_in_an_answer(name: str) -> None:
    """No traceback, and no line newer than that of the whole checkpoint."""
    whole = root_of(name).without_checksums()
    paths = sorted(path for path in whole.files if path.startswith("ck/state/"))
    chance = random.Random(name)
    for _ in range(60):
        files = dict(whole.files)
        for path in chance.sample(paths, 3):
            data = bytearray(files[path])
            for _ in range(chance.randint(0, 4)):
                if data:
                    data[chance.randrange(len(data))] = chance.randrange(256)
            files[path] = bytes(data[: chance.randint(0, len(data))]) if chance.random() < 0.5 else bytes(data)
        root = whole.with_files(files)
        assert root.plan().committed <= newest(name)
        chains_of(root.pieces()[0])


A, B = "A_file_hdfs_parquetsink", "B_rate_rocksdb_changelog"
ONE, OTHER = "ck/state/0/0/", "ck/state/0/1/"
DID: list[tuple[str, list[str], bool, int, list[tuple[str, str, str]]]] = [
    # which, deleted (or cut, with "…"), restart fails, line, findings
    (A, [OTHER + "15.delta"], True, 13, [("error", "missing-state-file", OTHER + "15.delta")]),
    (A, [OTHER + "15.delta…"], True, 13, [("error", "checksum-mismatch", OTHER + "15.delta")]),
    (A, [ONE + "11.delta"], False, 14, []),
    (A, [ONE + "3.delta"], False, 14, []),
    (A, [ONE + "11.snapshot"], False, 14, []),
    (A, [ONE + "11.snapshot…"], False, 14, [("warning", "checksum-mismatch", ONE + "11.snapshot")]),
    (B, [ONE + "15.changelog"], True, 13, [("error", "missing-state-file", ONE + "15.changelog")]),
    (B, [ONE + "15.changelog…"], True, 13, [("error", "checksum-mismatch", ONE + "15.changelog")]),
    (B, [ONE + "12.zip"], False, 14, []),
    (B, [ONE + "12.zip…"], False, 14, [("warning", "checksum-mismatch", ONE + "12.zip")]),
    (
        B,
        [ONE + "SSTs/000010-89456d44-d48e-48cb-a719-33648a1b2d3d.sst"],
        False,
        14,
        [("warning", "missing-state-file", ONE + "12.zip")],
    ),
    (A, [ONE + "_metadata/schema"], False, 14, [("info", "missing-state-file", "ck/state/0")]),
    (A, ["ck/state/0/_metadata/metadata"], False, 14, [("info", "missing-state-file", "ck/state/0/_metadata")]),
    (B, [OTHER + f"{v}.changelog" for v in range(13, 16)], True, 11, []),
]


@needs_real
@pytest.mark.parametrize(("name", "damaged", "fails", "line", "findings"), DID)
def test_what_a_restart_did_is_said_beforehand(
    name: str, damaged: list[str], fails: bool, line: int, findings: list[tuple[str, str, str]]
) -> None:
    """The rows about state in the study of the format, each restarted for real; the last one is more of the same."""
    root = root_of(name)
    for path in damaged:
        if path.endswith("…"):
            root.files[path[:-1]] = root.files[path[:-1]][: len(root.files[path[:-1]]) // 2]
        else:
            root.remove(path)
    plan = root.plan()
    assert (plan.fails, plan.committed) == (fails, line)
    assert not findings or said(plan) == findings
    assert plan.rolled_back == tuple(range(line + 1, 15))

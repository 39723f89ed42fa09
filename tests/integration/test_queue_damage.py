"""Every byte of a small output queue, of every record type and in each encoding: no traceback, nothing wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.errors import CklogError
from cklog.parsers.codecs.hadoop_crc import encode
from cklog.parsers.tables.records import NotARecord, members_of, strict_json
from cklog.render.formats import plain
from cklog.run import open_run
from tests.builders.kafka import Row, batch
from tests.oracles.operators import Record
from tests.oracles.recovery import SCENARIOS
from tests.program import cklog

DOCUMENTED = {2, 3, 4, 5, 65, 66}


def small_run(name: str) -> tuple[Any, list[Record]]:
    """A run with every type of record that the operator writes, and a log of a dozen or so."""
    for seed in range(1000):
        tuples, log = SCENARIOS[name].generate(random.Random(seed).randrange)
        kinds = {"open", "check", "result"} | ({"emit"} if name == "join" else set())
        if 8 <= len(log) <= 12 and {r["type"] for r in log} == kinds:
            return tuples, log
    raise AssertionError("no such run")


def lines(log: list[Record]) -> bytes:
    bodies = [json.dumps(record, separators=(",", ":"))[:-1].encode() for record in log]
    return b"".join(b'%s,"crc32c":"%08x"}\n' % (body, crc32c.crc32c(body)) for body in bodies)


def injuries(data: bytes, every: bool = False) -> Iterator[tuple[str, bytes]]:
    """Every byte cut at, zeroed, or changed in one bit: one of these in turn, or `every` one of them."""
    for at in range(len(data)):
        for kind in range(3) if every else (at % 3,):
            if kind == 0:
                yield f"cut at {at}", data[:at]
            elif kind == 1:
                yield f"zero at {at}", data[:at] + b"\x00" + data[at + 1 :]
            else:
                yield f"flip at {at}", data[:at] + bytes([data[at] ^ 1 << (at % 8)]) + data[at + 1 :]


def answer_of(folder: Path, **more: Any) -> dict[str, Any] | None:
    """The result and findings, or None where the input is refused with a documented exit code."""
    answer, refused = None, None
    try:
        with open_run(str(folder)) as run:
            answer = run.eventual_checkpoint("op", **more)
    except CklogError as error:
        refused = error
    if answer is None:
        assert refused is not None
        assert refused.exit_code in DOCUMENTED
        assert len(refused.message.splitlines()) == 1
        return None
    found: dict[str, Any] = json.loads(json.dumps(plain(answer.result)))
    found["findings"] = [f.id for f in answer.findings]
    assert answer.exit_code in (0, 3, 5)
    return found


def intact(data: bytes) -> list[Record]:
    """The records whose lines still hold: as they were written, if only one byte was touched."""
    found = []
    for piece in data.split(b"\n")[:-1]:
        try:
            record = strict_json(piece, known=members_of("outputs"))
        except NotARecord:
            continue
        found.append(record)
    return found


@pytest.mark.quarter
@pytest.mark.parametrize("name", ["count", "sliding-time", "join"])
def test_json_lines(name: str, tmp_path: Path) -> None:
    injure_lines(name, tmp_path, every=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["count", "time", "sliding-count", "join", "reusing"])
def test_json_lines_in_every_way(name: str, tmp_path: Path) -> None:
    injure_lines(name, tmp_path, every=True)


def injure_lines(name: str, tmp_path: Path, every: bool) -> None:
    tuples, log = small_run(name)
    path = tmp_path / "outputs" / "op" / "part-0.jsonl"
    path.parent.mkdir(parents=True)
    for what, data in injuries(lines(log), every):
        path.write_bytes(data)
        found = answer_of(tmp_path)
        if found is None:
            continue
        if found["proof"] == "proven":
            found["proof"] = "after-replay"  # what was lost before T stays lost
        try:
            SCENARIOS[name].check(found, tuples, intact(data))
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None


@pytest.mark.quarter
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_kafka(codec: str, tmp_path: Path) -> None:
    _, log = small_run("count")
    values = [json.dumps(record).encode() for record in log]
    batches = [batch(at, [Row(v) for v in values[at : at + 3]], codec) for at in range(0, len(values), 3)]
    path = tmp_path / "outputs" / "op" / "topic-0" / f"{0:020d}.log"
    path.parent.mkdir(parents=True)
    no_newer_than_the_truth(tmp_path, path, b"".join(batches), log)


def test_parquet_beside_its_checksums(tmp_path: Path) -> None:
    _, log = small_run("count")
    path = tmp_path / "outputs" / "op" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    names = sorted({name for record in log for name in record})
    columns = {n: [json.dumps(r.get(n)) if n == "state" else r.get(n) for r in log] for n in names}
    pq.write_table(pa.table(columns), path, row_group_size=4)
    data = path.read_bytes()
    path.with_name(".part-0.parquet.crc").write_bytes(encode(data))
    sample = random.Random(3).sample(range(len(data)), 150)
    for at in sample:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        assert answer_of(tmp_path) is None  # the only file, and it is not what was written


def no_newer_than_the_truth(folder: Path, path: Path, data: bytes, log: list[Record]) -> None:
    """Windows and states are those of records that were written; what is missing is said, or lies behind the tail."""
    path.write_bytes(data)
    whole = answer_of(folder)
    assert whole is not None
    written = {(r["window"], r["type"], r["input"], json.dumps(r.get("state"))) for r in log}
    for what, changed in injuries(data):
        path.write_bytes(changed)
        found = answer_of(folder)
        if found is None:
            continue
        rows = {(w["window"], w["type"], w["input"], json.dumps(w["state"])) for w in found["windows"]}
        assert rows <= written, what
        assert found["t_c"] is None or found["t_c"] <= whole["t_c"], what
        assert found["findings"] or _same(found, whole) or _is_cut(found, log), what


def _same(found: dict[str, Any], whole: dict[str, Any]) -> bool:
    return all(found[name] == whole[name] for name in ("windows", "closed", "T_input", "t_c", "proof"))


def _is_cut(found: dict[str, Any], log: list[Record]) -> bool:
    """An earlier crash between two batches: nothing shows it, and the checkpoint is right as of then."""
    return any(record["ts"] == found["t_c"] for record in log) and found["proof"] == "proven"


def test_the_forward_pass_survives_all_of_it_too(tmp_path: Path) -> None:
    _, log = small_run("count")
    path = tmp_path / "outputs" / "op" / "part-0.jsonl"
    path.parent.mkdir(parents=True)
    for _, data in list(injuries(lines(log)))[::7]:
        path.write_bytes(data)
        answer_of(tmp_path, forward=True)


def test_strict_refuses_any_damage(tmp_path: Path) -> None:
    _, log = small_run("count")
    path = tmp_path / "outputs" / "op" / "part-0.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(log)[:-3])
    assert cklog("extent", tmp_path).code == 0
    ended = cklog("extent", tmp_path, "--strict", "--json")
    assert ended.code == 65
    assert json.loads(ended.out)["error"]["exit"] == 65


WILD = [
    {
        "type": "open",
        "window": "=cmd|'!A0",
        "ts": -(2**63) + 1,
        "open_windows": 1,
        "state": [[[1]]],
        "input": 0,
        "pos": 0,
    },
    {"type": "open", "window": "[red]x\n\x1b[2J", "ts": 2**63 - 2, "open_windows": 2**62, "input": 1, "pos": 1},
    {"type": "emit", "ts": 2**63 - 2, "open_windows": 2**62, "input": 2**63 - 2, "pos": 2**63 - 2},
]


@pytest.mark.parametrize(
    "asked",
    ["extent", "extent --forward", "extent --over-time --max-extent 1", "recovery-line", "inspect", "advise extent",
     "eventual-checkpoint", "eventual-checkpoint --json", "eventual-checkpoint --format md"],
)  # fmt: skip
def test_the_largest_numbers_and_the_strangest_names(asked: str, tmp_path: Path) -> None:
    path = tmp_path / "outputs" / "op" / "part-0.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in WILD))
    ended = cklog(*asked.split(), tmp_path)
    assert ended.code in {0, 3, 5, 65}, ended.err
    assert "\x1b" not in ended.out + ended.err
    assert "a bug" not in ended.err

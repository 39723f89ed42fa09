"""JSON lines that ask for much: compressed ones, and values that are long, many or deep."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bombs import MIB, RECORD, gzipped, run_with, zstd
from tests.conftest import SAMPLES
from tests.measured import measured

STREAMS: dict[str, Callable[[], bytes]] = {
    "gz": lambda: gzipped(b"\n" * MIB, 700),
    "zst": lambda: zstd(b"\n" * MIB, 700),
}


@pytest.mark.parametrize("suffix", STREAMS)
def test_blank_lines_of_700_mb(tmp_path: Path, suffix: str) -> None:
    data = STREAMS[suffix]()
    assert len(data) < MIB
    folder = run_with(tmp_path, lambda path: (path / f"x.jsonl.{suffix}").write_bytes(data))
    ended = measured("recovery-line", folder)
    assert (ended.code, ended.out) == (65, "")
    assert ended.err.startswith(f"cklog: checkpoints/x.jsonl.{suffix}: what its {len(data)} compressed bytes become ")
    assert ended.peak < 300


VALUES: dict[str, tuple[bytes, str]] = {
    "many": (b"[" + b"[]," * 300_000 + b"[]]", "the number of values in the JSON is over the budget of 131072"),
    "members": (b"{" + b",".join(b'"%d":0' % i for i in range(300_000)) + b"}", "the number of values in the JSON"),
    "long": (b'"' + b"y" * 20_000_000 + b'"', "a line is over the budget of 4194304"),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_line_that_asks_for_much(tmp_path: Path, case: str) -> None:
    value, why = VALUES[case]
    line = RECORD[:-2] + b',"x":' + value + b"}\n"
    folder = run_with(tmp_path, lambda path: (path / "x.jsonl").write_bytes(line))
    ended = measured("recovery-line", folder, "--max-memory", "256MiB")
    assert (ended.code, ended.out) == (65, "")
    assert ended.err.startswith("cklog: checkpoints/x.jsonl at byte 0: ")
    assert why in ended.err.splitlines()[0]
    assert ended.peak < 300


SKIPPED: dict[str, bytes] = {"deep": b"[" * 200_000 + b"]" * 200_000, "a number": b"9" * 5_000_000}


@pytest.mark.parametrize("case", SKIPPED)
def test_a_line_that_is_no_record_costs_its_own_bytes(tmp_path: Path, case: str) -> None:
    """No other is lost with it, and the finding says where it is."""
    line = RECORD[:-2] + b',"x":' + SKIPPED[case] + b"}\n"
    folder = run_with(tmp_path, lambda path: (path / "x.jsonl").write_bytes(line))
    ended = measured("recovery-line", folder)
    assert ended.code == 3
    assert "error [bad-record] checkpoints/x.jsonl: 1 record cannot be read and is skipped at byte 0" in ended.out
    assert ended.peak < 300


MANIFEST = b'{"operators":[{"name":"a","parallelism":%s}],"x":%s}'


@pytest.mark.parametrize(
    ("manifest", "code", "why"),
    [
        (MANIFEST % (b"1", VALUES["many"][0]), 65, "cklog: job.json: the number of values in the JSON is over"),
        (MANIFEST % (b"1", b"[" * 100_000), 5, "error [bad-manifest] job.json"),
        (MANIFEST % (b"99999", b"0"), 65, "cklog: job.json: the number of subtasks is over the budget of 65536"),
    ],
)
def test_a_manifest_that_asks_for_much(tmp_path: Path, manifest: bytes, code: int, why: str) -> None:
    folder = run_with(tmp_path)
    (folder / "job.json").write_bytes(manifest)
    ended = measured("recovery-line", folder, "--max-memory", "256MiB")
    assert ended.code == code
    assert why in ended.out + ended.err
    assert ended.peak < 300


@pytest.mark.parametrize("value", [b"[" * 800 + b"]" * 800, b"[" * 100_000, b'"' + b"y" * 2_000_000 + b'"'])
def test_a_line_to_verify_that_holds_anything(tmp_path: Path, value: bytes) -> None:
    folder = run_with(tmp_path)
    (folder / "line.json").write_bytes(b'{"a/0":' + value + b"}")
    ended = measured("verify", folder, "--line", folder / "line.json")
    assert ended.code in (2, 65)
    assert len(ended.err) < 1000
    assert ended.peak < 300


PACKED: dict[str, Callable[[bytes, int], bytes]] = {"gz": gzipped, "zst": zstd}
FILLS = {"lines": b"\n" * MIB, "spaces": b" " * MIB, "both": b" \n" * (MIB // 2)}


@pytest.mark.quarter
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("table", ["channels", "checkpoints"])
def test_nothing_behind_records_costs_little(tmp_path: Path, table: str, suffix: str, fill: str) -> None:
    """Millions of empty lines in a block of records, or a line of nothing, within the budget."""
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "uncoordinated-join", run)
    pack = PACKED[suffix]
    for path in (run / table).glob("*.jsonl"):
        path.with_name(f"{path.name}.{suffix}").write_bytes(pack(path.read_bytes(), 1) + pack(FILLS[fill], 24))
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    whole = SAMPLES / "uncoordinated-join"
    before, ended = (measured("recovery-line", folder, "--json") for folder in (whole, run))
    assert ended.peak - before.peak < 130
    first, second = (json.loads(told.out)["result"] for told in (before, ended))
    checked, more = (answer["runs"][0].pop("unchecked") for answer in (first, second))
    assert first == second
    assert [row for row in more if row in checked] == checked
    unsealed = sorted((run / table).glob("*.zst")) if fill != "spaces" else []
    expected = [path.relative_to(run).as_posix() for path in unsealed]  # gzip has checksums, and so have lines
    assert [row["subject"] for row in more if row not in checked] == expected

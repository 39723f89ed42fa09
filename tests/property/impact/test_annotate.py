"""Results with a trust column: equal to the three-line loop, in any files, in any order of splits, on both engines."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cklog.engine.local import LocalEngine
from cklog.engine.reading import Reading
from cklog.engine.scan import Engine
from cklog.errors import NotFound, OutputError, UsageError
from cklog.inputs.annotate import Annotated, TrustInterval, annotate, annotate_results, steps_of
from cklog.model.findings import Finding
from cklog.model.trust import TRUSTS
from cklog.parsers.results.files import ResultFiles
from cklog.parsers.tables.records import strict_json
from cklog.storage import Root
from tests.examples import examples

Row = dict[str, Any]
Again = tuple[int, int | None] | None
EDGES = st.none() | st.integers(-5, 60)
SPANS = st.lists(st.builds(TrustInterval, EDGES, EDGES, st.sampled_from(TRUSTS)), max_size=5)
TIMES = st.lists(st.none() | st.integers(-10, 70), max_size=30)


def trust_at(time: int | None, spans: list[TrustInterval]) -> str:
    """What the lowest of the spans around a time says."""
    if time is None:
        return "indefinite"
    around = [s for s in spans if (s.from_ is None or s.from_ <= time) and (s.to is None or time < s.to)]
    return max((span.trust for span in around), key=TRUSTS.index, default="trustworthy")


def restart(times: list[int | None], again: tuple[int, int | None]) -> int:
    """The first row whose time lies below one before it; 0, so that times alone tell: none, or one of no restart."""
    for row, time in enumerate(times):
        most = max((before for before in times[:row] if before is not None), default=None)
        if time is not None and most is not None and most > time:
            return row if again[0] <= time and (again[1] is None or most < again[1]) else 0
    return 0


@given(TIMES, SPANS, st.integers(0, 5))
def test_every_row_has_the_lowest_trust_of_its_time(
    times: list[int | None], spans: list[TrustInterval], before: int
) -> None:
    batch = pa.RecordBatch.from_pydict({"time": pa.array(times, pa.int64()), "trust": ["old"] * len(times)})
    found = annotate(batch, "time", steps_of(spans), before)
    expected = [trust_at(time, spans) if row >= before else "trustworthy" for row, time in enumerate(times)]
    assert found.schema.names == ["time", "trust"]
    assert found.column("trust").to_pylist() == expected


def test_timestamps_are_times() -> None:
    batch = pa.RecordBatch.from_pydict({"t": pa.array([9_999, 10_000], pa.timestamp("us", "UTC"))})
    assert annotate(batch, "t", steps_of([TrustInterval(10, None, "untrustworthy")])).column("trust").to_pylist() == [
        "trustworthy",
        "untrustworthy",
    ]


# Whole files


def line_of(row: Row, style: str) -> bytes:
    text = json.dumps(row, separators=(",", ":"), ensure_ascii=False)
    if style == "spaced":
        return json.dumps(row).encode() + b" \n"
    if style == "summed":
        return f'{text[:-1]},"crc32c":"{crc32c.crc32c(text[:-1].encode()):08x}"}}\n'.encode()
    return text.encode() + b"\n"


def written(folder: Path, rows: list[Row], form: str, files: int, style: str, rng: random.Random) -> None:
    """Rows over files in the order of their numbers; Parquet in row groups of a few rows."""
    cuts = sorted(rng.randint(0, len(rows)) for _ in range(files - 1))
    for number, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        path = folder / f"part-{number}.{form}"
        if form == "parquet":
            columns = {"time": pa.array([r["time"] for r in rows[a:b]], pa.int64()), "n": [r["n"] for r in rows[a:b]]}
            pq.write_table(pa.table(columns), path, row_group_size=rng.randint(1, 9))
        else:
            data = b"".join(line_of(row, style) for row in rows[a:b])
            path.write_bytes(gzip.compress(data) if form.endswith(".gz") else data)


def read(folder: Path) -> list[Row]:
    """Every part, in order."""
    found: list[Row] = []
    for path in sorted(folder.glob("part-*")):
        if path.suffix == ".parquet":
            found += pq.read_table(path).to_pylist()
        else:
            found += [strict_json(line) for line in path.read_bytes().split(b"\n")[:-1]]  # checksums fit
    return found


def ran(
    source: Path,
    spans: list[TrustInterval],
    target: Path,
    form: str,
    again: Again,
    split: int,
    engine: Engine | None = None,
) -> tuple[Annotated, list[Finding]]:
    chosen: Engine = engine or LocalEngine()
    return annotate_results(
        ResultFiles(Root(str(source))), spans, "time", str(target), form, again, Reading(lambda size: chosen, split)
    )


AGAIN = st.none() | st.tuples(st.integers(-10, 30), st.none() | st.integers(0, 80))
FORMS = st.sampled_from(["parquet", "jsonl", "jsonl.gz"])


@settings(max_examples=examples(80))
@given(TIMES, SPANS, FORMS, st.sampled_from(["plain", "spaced", "summed"]), AGAIN, st.integers(0, 1 << 30))
@example([1, None, 0], [], "parquet", "plain", (0, None), 306934)  # a row without a time, first in the restart's file
def test_files_keep_their_rows_in_order(
    times: list[int | None], spans: list[TrustInterval], form: str, style: str, again: Again, seed: int
) -> None:
    rng = random.Random(seed)
    rows: list[Row] = [{"time": time, "n": row} for row, time in enumerate(times)]
    before = 0 if again is None else restart(times, again)
    expected = [r | {"trust": trust_at(r["time"], spans) if r["n"] >= before else "trustworthy"} for r in rows]
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "in"
        source.mkdir()
        written(source, rows, form, rng.randint(1, 3), style, rng)
        out = "parquet" if form == "parquet" else "jsonl"
        found, findings = ran(source, spans, Path(name) / "out", out, again, rng.choice([1, 40, 1 << 20]))
        assert read(Path(name) / "out") == expected
        assert found.rows == len(rows)
        assert found.trust == {t: sum(row["trust"] == t for row in expected) for t in TRUSTS}
        untimed = sum(time is None for time in times)
        assert [f.id for f in findings] == ["untimed-results"] * bool(untimed)


@pytest.mark.parametrize(("form", "out"), [("jsonl", "parquet"), ("parquet", "jsonl")])
def test_either_form_becomes_the_other(tmp_path: Path, form: str, out: str) -> None:
    rows = [{"time": 10 * n, "n": n} for n in range(1000)]
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", rows, form, 2, "plain", random.Random(1))
    ran(tmp_path / "in", [TrustInterval(500, 700, "indefinite")], tmp_path / "out", out, None, 4000)
    assert read(tmp_path / "out") == [
        row | {"trust": "indefinite" if 500 <= row["time"] < 700 else "trustworthy"} for row in rows
    ]


def test_rows_of_any_type_become_lines(tmp_path: Path) -> None:
    table = pa.table(
        {
            "time": pa.array([1, None], pa.timestamp("ms")),
            "text": ['a "b" \\ \n é', None],
            "f": [0.5, None],
            "b": [True, None],
            "l": [[1, None], None],
            "d": pa.array(["x", None]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "r.parquet")
    ran(tmp_path / "r.parquet", [], tmp_path / "out", "jsonl", None, 1 << 20)
    first, second = read(tmp_path / "out")
    assert first == {"time": 1, "text": 'a "b" \\ \n é', "f": 0.5, "b": True, "l": [1, None], "d": "x"} | {
        "trust": "trustworthy"
    }
    assert second == dict.fromkeys(table.column_names) | {"trust": "indefinite"}


def test_what_is_no_record_is_left_out_and_told(tmp_path: Path) -> None:
    good = b'{"time":1,"n":1}\n'
    (tmp_path / "r.jsonl").write_bytes(good + b"{nonsense\n\n" + good + b'{"time":2,"trust":"old"}\n{"time":3')
    found, findings = ran(
        tmp_path / "r.jsonl", [TrustInterval(2, None, "untrustworthy")], tmp_path / "out", "jsonl", None, 9
    )
    assert read(tmp_path / "out") == [{"time": 1, "n": 1, "trust": "trustworthy"}] * 2 + [
        {"time": 2, "trust": "untrustworthy"}
    ]
    assert found.rows == 3
    assert sorted(f.id for f in findings) == ["bad-record", "torn-tail"]


def test_a_damaged_page_ends_its_part_and_is_told(tmp_path: Path) -> None:
    table = pa.table({"time": np.arange(9000), "n": np.random.default_rng(1).integers(0, 1 << 60, 9000)})
    path = tmp_path / "r.parquet"
    pq.write_table(table, path, row_group_size=3000, write_page_checksum=True, compression="none")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    found, findings = ran(path, [], tmp_path / "out", "parquet", (0, None), 1)
    assert found.rows == 6000
    assert [(f.id, f.severity) for f in findings] == [("corrupt-file", "error")]


def test_no_footer_is_told(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_bytes(b"PAR1 and no more")
    found, findings = ran(tmp_path / "r.parquet", [], tmp_path / "out", "parquet", (0, None), 1)
    assert (found.rows, [f.id for f in findings]) == (0, ["corrupt-file"])


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(b'{"time":1}\n')
    (tmp_path / "out").mkdir()
    ran(tmp_path / "r.jsonl", [], tmp_path / "out", "jsonl", None, 1 << 20)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["_SUCCESS", "part-00000.jsonl"]
    for target in (tmp_path / "out", tmp_path / "r.jsonl"):
        with pytest.raises(OutputError):
            ran(tmp_path / "r.jsonl", [], target, "jsonl", None, 1 << 20)


def test_results_that_cannot_be_found_or_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        ResultFiles(Root(str(tmp_path)))
    (tmp_path / "r.jsonl").write_bytes(b'{"time":1,"ts":2}\n')
    with pytest.raises(UsageError):
        ResultFiles(Root(str(tmp_path))).time_column()
    (tmp_path / "r.jsonl").write_bytes(b'{"ts":2}\n')
    assert ResultFiles(Root(str(tmp_path / "r.jsonl"))).time_column() == "ts"
    pq.write_table(pa.table({"time": [1]}), tmp_path / "r.parquet")
    assert ResultFiles(Root(str(tmp_path / "r.parquet"))).time_column() == "time"
    with pytest.raises(UsageError):
        ResultFiles(Root(str(tmp_path)))


def test_each_folder_has_an_order_of_its_own(tmp_path: Path) -> None:
    """Two subtasks, each of which yields 40 to 60 again; and two files that lie in no order at all."""
    times = [*range(0, 60, 10), *range(40, 90, 10)]
    for number in range(2):
        (tmp_path / "in" / str(number)).mkdir(parents=True)
        rows: list[Row] = [{"time": time, "n": n} for n, time in enumerate(times)]
        written(tmp_path / "in" / str(number), rows, "jsonl", 1, "plain", random.Random(1))
    spans = [TrustInterval(40, 80, "indefinite")]
    ran(tmp_path / "in", spans, tmp_path / "out", "jsonl", (40, 60), 1 << 20)
    assert [row["trust"] for row in read(tmp_path / "out")] == (
        ["trustworthy"] * 6 + ["indefinite"] * 4 + ["trustworthy"]
    ) * 2
    (tmp_path / "loose").mkdir()
    for number, start in enumerate((40, 0)):
        lines = b"".join(line_of({"time": time}, "plain") for time in range(start, start + 40, 10))
        (tmp_path / "loose" / f"part-{number}.jsonl").write_bytes(lines)
    ran(tmp_path / "loose", spans, tmp_path / "out2", "jsonl", (40, 60), 1 << 20)
    assert [row["trust"] for row in read(tmp_path / "out2")] == ["indefinite"] * 4 + ["trustworthy"] * 4


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_both_engines_write_the_same_bytes(tmp_path: Path, spark: Engine, form: str) -> None:
    times = [*range(0, 6000, 10), *range(4000, 9000, 10)]
    rows: list[Row] = [{"time": time, "n": n} for n, time in enumerate(times)]
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", rows, form, 3, "plain", random.Random(2))
    spans = [TrustInterval(4000, 8000, "indefinite")]
    for number, engine in enumerate((LocalEngine(), spark)):
        ran(tmp_path / "in", spans, tmp_path / f"out{number}", form, (4000, 6000), 2000, engine)
    one, other = ({p.name: p.read_bytes() for p in (tmp_path / f"out{n}").iterdir()} for n in range(2))
    assert one == other
    assert sum(row["trust"] == "indefinite" for row in read(tmp_path / "out1")) == 400

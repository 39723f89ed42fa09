"""The eventual checkpoint of small queues: the golden log, damage of every kind, odd but legal logs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.errors import CorruptInput, NotFound, UsageError
from cklog.model.eventual import EventualCheckpoint, Extent
from cklog.model.verdict import Answer
from cklog.run import Options, open_run
from tests.builders.native import line, zstd
from tests.builders.queues import GOLDEN, Row, queue, records
from tests.conftest import SAMPLES
from tests.reading.answers import ids


def extent(folder: Path, operator: str = "agg1", **options: Any) -> tuple[Extent, Answer[Any]]:
    with open_run(str(folder), Options(**options)) as run:
        answer = run.extent(operator)
    return answer.result, answer


def checkpoint(folder: Path, forward: bool = False, **options: Any) -> tuple[EventualCheckpoint, Answer[Any]]:
    with open_run(str(folder), Options(**options)) as run:
        answer = run.eventual_checkpoint("agg1", forward)
    return answer.result, answer


def windows(found: EventualCheckpoint) -> list[str]:
    return [row["window"] for row in found.windows]


def test_the_golden_log(tmp_path: Path) -> None:
    queue(tmp_path, records(GOLDEN))
    found, answer = extent(tmp_path)
    assert (found.open_windows, found.T, found.t_c) == (3, 4, 6)
    assert (found.records, found.from_, found.to) == (3, 4, 6)
    assert found.by_type == {"open": 2, "check": 1, "result": 0, "emit": 0}
    assert [o["window"] for o in found.oldest] == ["w3", "w2", "w4"]
    assert (answer.exit_code, found.proof) == (0, "proven")
    loaded, _ = checkpoint(tmp_path)
    assert windows(loaded) == ["w3", "w2", "w4"]
    assert [row["state"] for row in loaded.windows] == [{"n": 4}, {"n": 5}, {"n": 6}]
    assert loaded.T == 4


def test_without_position_5_the_extent_reaches_back_to_the_older_footprint(tmp_path: Path) -> None:
    rows = records(GOLDEN)
    queue(tmp_path, rows[:4] + rows[5:])
    found, answer = extent(tmp_path)
    assert (found.T, found.records, found.open_windows) == (2, 5, 3)
    assert found.proof == "proven"  # one record is missing and N did not change: it was a check
    assert ids(answer) == {"output-gap"}


def test_records_are_named_by_number_and_without_one_by_their_place(tmp_path: Path) -> None:
    rows = records([("open", "w1", 1, 1), ("open", "w2", 2, 2), ("open", "w3", 3, 3), ("open", "w4", 4, 4)])
    queue(tmp_path / "numbered", rows[:2] + rows[3:])
    _, answer = extent(tmp_path / "numbered")
    assert any("between record 2 and record 4" in f.message for f in answer.findings)
    rows = [{name: value for name, value in row.items() if name != "pos"} for row in rows]
    file = queue(tmp_path / "placed", rows[:2] + rows[3:])
    lines, path = file.read_bytes().splitlines(keepends=True), file.relative_to(tmp_path / "placed")
    _, answer = extent(tmp_path / "placed")
    told = f"between byte {len(lines[0])} of {path} and byte {len(lines[0] + lines[1])} of {path}"
    assert any(told in f.message for f in answer.findings)


def test_a_result_more_closes_its_window(tmp_path: Path) -> None:
    queue(tmp_path, records([*GOLDEN, ("result", "w4", 7, 2)]))
    found, _ = extent(tmp_path)
    assert (found.open_windows, found.T, found.records) == (2, 4, 4)
    loaded, _ = checkpoint(tmp_path)
    assert windows(loaded) == ["w3", "w2"]
    assert [row["window"] for row in loaded.closed] == ["w4"]


def test_a_window_id_that_opens_again_is_not_hidden_by_its_old_result(tmp_path: Path) -> None:
    queue(tmp_path, records([*GOLDEN, ("open", "w1", 7, 4)]))
    found, _ = extent(tmp_path)
    assert (found.open_windows, found.T, found.records) == (4, 4, 4)
    loaded, _ = checkpoint(tmp_path)
    assert windows(loaded) == ["w3", "w2", "w4", "w1"]


def test_a_torn_record_is_left_out(tmp_path: Path) -> None:
    path = queue(tmp_path, records(GOLDEN))
    path.write_bytes(path.read_bytes()[:-9])
    found, answer = extent(tmp_path)
    assert (found.open_windows, found.T, found.t_c) == (2, 4, 5)
    assert (ids(answer), answer.exit_code) == ({"torn-tail"}, 0)


def test_a_result_lost_in_the_middle_makes_no_ghost(tmp_path: Path) -> None:
    """A plain search would stop at w1, which is closed, and miss w0, which is open."""
    rows: list[Row] = [
        ("open", "w0", 1, 1),
        ("open", "w1", 2, 2),
        ("open", "w2", 3, 3),
        ("result", "w1", 4, 2),
        ("check", "w2", 5, 2),
    ]
    found = records(rows)
    queue(tmp_path, found[:3] + found[4:])
    loaded, answer = checkpoint(tmp_path)
    assert loaded.proof == "after-replay"
    assert windows(loaded) == ["w0", "w1", "w2"]
    assert loaded.T == 1
    assert ids(answer) == {"output-gap", "doubtful-window"}
    assert answer.exit_code == 3


def test_a_gap_before_all_that_is_needed_does_not_matter(tmp_path: Path) -> None:
    rows: list[Row] = [
        ("open", "w1", 1, 1),
        ("open", "w2", 2, 2),
        ("result", "w1", 3, 1),
        ("result", "w2", 4, 0),
        ("open", "w3", 5, 1),
        ("check", "w3", 6, 1),
    ]
    found = records(rows)
    queue(tmp_path, found[:2] + found[4:])
    loaded, answer = checkpoint(tmp_path)
    assert (loaded.proof, windows(loaded), answer.exit_code) == ("proven", ["w3"], 0)


def test_a_window_that_may_have_closed_on_the_very_tuple_t_is_replayed_from_before(tmp_path: Path) -> None:
    """The tuple at 5 may have closed w2 and opened w3: without its result the replay would open w2 again."""
    rows: list[Row] = [("open", "w2", 2, 1), ("result", "w2", 4, 0), ("open", "w3", 5, 1)]
    found = records(rows)
    queue(tmp_path, [found[0], found[2]])
    loaded, answer = checkpoint(tmp_path)
    assert (loaded.proof, windows(loaded), loaded.T, answer.exit_code) == ("after-replay", ["w2", "w3"], 2, 3)
    assert "at least 1 of them did" in next(f.message for f in answer.findings if f.id == "doubtful-window")


def test_a_record_that_cannot_be_read_names_its_place(tmp_path: Path) -> None:
    path = queue(tmp_path, [{k: v for k, v in r.items() if k != "pos"} for r in records(GOLDEN)])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = b"x" * (len(lines[4]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    loaded, answer = checkpoint(tmp_path)
    assert (loaded.proof, loaded.T) == ("after-replay", 2)
    assert windows(loaded) == ["w2", "w3", "w4"]
    assert ids(answer) >= {"bad-record", "output-gap"}
    bad = next(f for f in answer.findings if f.id == "bad-record")
    assert bad.where[0].offset == sum(map(len, lines[:4]))


def test_footprints_before_the_head_are_lost(tmp_path: Path) -> None:
    queue(tmp_path, records(GOLDEN)[2:])
    loaded, answer = checkpoint(tmp_path)
    assert (loaded.proof, answer.exit_code, answer.verdict) == ("proven", 0, "ok")  # the check of w2 is there
    queue(tmp_path, [r for r in records(GOLDEN)[2:] if r["type"] != "check"])
    loaded, answer = checkpoint(tmp_path)
    assert (loaded.proof, answer.exit_code, answer.verdict) == ("lost", 5, "indeterminate")
    assert "lost-footprint" in ids(answer)
    assert windows(loaded) == ["w3", "w4"]


@pytest.mark.parametrize("n", [0, None])
def test_a_stateless_operator_has_an_empty_checkpoint(tmp_path: Path, n: int | None) -> None:
    rows = [{"type": "emit", "ts": t, "open_windows": n, "input": t, "pos": t} for t in range(5)]
    queue(tmp_path, [{k: v for k, v in row.items() if v is not None} for row in rows])
    loaded, answer = checkpoint(tmp_path)
    assert (loaded.windows, loaded.closed, loaded.T, loaded.T_input) == ((), (), 4, 4)
    assert (loaded.proof, loaded.emitted, answer.exit_code) == ("proven", 1, 0)


def test_results_only(tmp_path: Path) -> None:
    queue(tmp_path, records([("result", f"w{t}", t, 0) for t in range(1, 6)]))
    found, answer = extent(tmp_path)
    assert (found.open_windows, found.records, found.T, found.proof) == (0, 0, 5, "proven")
    assert answer.exit_code == 0


def test_a_window_that_opens_and_closes_on_one_tuple(tmp_path: Path) -> None:
    rows = records([("open", "a", 1, 1), ("result", "a", 1, 0), ("open", "b", 2, 1), ("result", "b", 2, 0)])
    for row in rows:
        row["input"] = row["ts"]
    queue(tmp_path, rows)
    loaded, answer = checkpoint(tmp_path)
    assert (windows(loaded), [c["window"] for c in loaded.closed], loaded.T_input) == ([], ["b"], 2)
    queue(tmp_path, rows[:3])
    loaded, _ = checkpoint(tmp_path)
    assert (windows(loaded), loaded.T_input, answer.exit_code) == (["b"], 2, 0)


def test_one_timestamp_in_several_records_is_ambiguous_without_input_numbers(tmp_path: Path) -> None:
    rows = records([("open", "a", 1, 1), ("open", "b", 1, 2)])
    queue(tmp_path, rows)
    _, answer = checkpoint(tmp_path)
    assert (ids(answer), answer.exit_code) == ({"ambiguous-tie"}, 3)
    queue(tmp_path, [row | {"input": i} for i, row in enumerate(rows)])
    _, answer = checkpoint(tmp_path)
    assert ids(answer) == set()


@pytest.mark.parametrize(("stamps", "tied"), [((0, 1, 2), False), ((0, 1, 1), True)])
def test_an_upstream_whose_timestamps_differ_settles_ties(tmp_path: Path, stamps: tuple[int, ...], tied: bool) -> None:
    queue(tmp_path, records([("open", "a", 1, 1), ("open", "b", 1, 2)]))
    path = tmp_path / "outputs" / "src" / "part-0.jsonl"
    path.parent.mkdir()
    rows = [{"type": "emit", "ts": ts, "open_windows": 0, "pos": i} for i, ts in enumerate(stamps)]
    path.write_bytes(b"".join(map(line, rows)))
    (tmp_path / "job.json").write_text(json.dumps({"channels": [{"channel": "src/0->agg1/0"}]}))
    _, answer = checkpoint(tmp_path)
    assert ("ambiguous-tie" in ids(answer)) == tied


def test_n_may_be_missing_on_results(tmp_path: Path) -> None:
    rows = records([*GOLDEN, ("result", "w4", 7, 2)])
    for row in rows:
        if row["type"] == "result":
            del row["open_windows"]
    queue(tmp_path, rows)
    found, answer = extent(tmp_path)
    assert (found.open_windows, found.T, found.records, found.proof) == (2, 4, 4, "proven")
    assert answer.exit_code == 0


def test_a_wrong_n_is_found(tmp_path: Path) -> None:
    rows = records(GOLDEN)
    rows[4]["open_windows"] = 4
    rows[5]["open_windows"] = 5
    queue(tmp_path, rows)
    loaded, answer = checkpoint(tmp_path)
    assert loaded.proof != "proven"
    assert "window-count-mismatch" in ids(answer)
    assert answer.exit_code in (3, 5)


def test_records_written_twice_count_once(tmp_path: Path) -> None:
    rows = records(GOLDEN)
    queue(tmp_path, rows[:5] + rows[3:])
    found, _ = extent(tmp_path)
    assert (found.open_windows, found.T, found.records, found.proof) == (3, 4, 3, "proven")


def test_encodings_agree(tmp_path: Path) -> None:
    rows = [row | {"input": row["ts"], "bytes": 10} for row in records([*GOLDEN, ("result", "w4", 7, 2)])]
    queue(tmp_path / "plain", rows)
    plain = queue(tmp_path / "zst", rows)
    plain.with_name("part-0.jsonl.zst").write_bytes(zstd(plain.read_bytes()))
    plain.unlink()
    plain = queue(tmp_path / "gz", rows)
    plain.with_name("part-0.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    (tmp_path / "parquet" / "outputs" / "agg1").mkdir(parents=True)
    pq.write_table(table, tmp_path / "parquet" / "outputs" / "agg1" / "a.parquet", row_group_size=2)
    first = checkpoint(tmp_path / "plain", forward=True)
    for name in ("zst", "gz", "parquet"):
        other = checkpoint(tmp_path / name, forward=True)
        assert other[0] == first[0]
        assert other[1].findings == first[1].findings == ()


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_compressed_queue_cut_short_is_as_of_its_last_whole_record(tmp_path: Path, suffix: str) -> None:
    path = queue(tmp_path, records(GOLDEN * 2000, pos=None))
    data = path.read_bytes()
    packed = gzip.compress(data) if suffix == "gz" else zstd(data)
    path.with_name(f"part-0.jsonl.{suffix}").write_bytes(packed[: len(packed) // 2])
    path.unlink()
    found, answer = extent(tmp_path)
    assert "torn-tail" in ids(answer)
    assert found.t_c is not None


def test_a_queue_goes_on_in_its_next_file(tmp_path: Path) -> None:
    rows = records(GOLDEN)
    for i, row in enumerate(rows):
        queue(tmp_path, [row], f"part-{i + 7}.jsonl")  # part-10 comes after part-9
    found, answer = extent(tmp_path)
    assert (found.open_windows, found.T, found.records, answer.exit_code) == (3, 4, 3, 0)
    (tmp_path / "outputs/agg1/part-11.jsonl").unlink()
    found, answer = extent(tmp_path)
    assert (found.T, found.records, ids(answer)) == (2, 5, {"output-gap"})


QUEUE = SAMPLES / "cec-aggregate" / "outputs" / "agg1" / "part-00000.jsonl"


@pytest.mark.parametrize("name", ["part-00000-copy.jsonl", "part-00001.jsonl"])
@pytest.mark.parametrize(("first", "end"), [(0, 16), (0, 300), (200, 230), (300, 505), (480, 509), (0, 509)])
def test_a_copy_of_older_records_beside_a_queue_changes_nothing(
    name: str, first: int, end: int, tmp_path: Path
) -> None:
    """Records are numbered: what an older copy holds was written before, whatever its file is called."""
    lines = QUEUE.read_bytes().splitlines(keepends=True)
    for folder in ("alone", "beside"):
        place = tmp_path / folder / "outputs" / "agg1"
        place.mkdir(parents=True)
        (place / "part-00000.jsonl").write_bytes(b"".join(lines))
    (place / name).write_bytes(b"".join(lines[first:end]))
    alone, beside = (checkpoint(tmp_path / folder)[0] for folder in ("alone", "beside"))
    assert (windows(beside), beside.t_c, beside.T_input) == (windows(alone), alone.t_c, alone.T_input)


def test_forward_names_the_windows_whose_results_are_missing(tmp_path: Path) -> None:
    rows: list[Row] = [("open", "w1", 1, 1), ("result", "w1", 2, 0), ("open", "w2", 3, 1)]
    found = records([*rows, ("check", "w2", 4, 1), ("open", "w3", 5, 2)])
    queue(tmp_path, [found[0], *found[2:]])
    loaded, answer = checkpoint(tmp_path)
    assert (windows(loaded), answer.exit_code) == (["w2", "w3"], 0)
    _, answer = checkpoint(tmp_path, forward=True)
    assert ids(answer) == {"forward-mismatch"}
    assert "w1" in answer.findings[0].message


def test_upstream_is_replayed_from_the_record_that_t_names(tmp_path: Path) -> None:
    rows = [row | {"input": row["ts"]} for row in records(GOLDEN)]
    queue(tmp_path, rows)
    source = [{"type": "emit", "ts": t, "open_windows": 0, "pos": t, "bytes": 7} for t in range(8)]
    path = tmp_path / "outputs" / "filter1" / "part-0.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(map(line, source)))
    (tmp_path / "job.json").write_text(json.dumps({"channels": [{"channel": "filter1/0->agg1/0"}]}))
    found, answer = extent(tmp_path)
    offset = found.replay.upstream[0]
    assert (offset.pos, offset.by, offset.tuples, offset.bytes) == (4, "input", 4, 28)
    assert offset.offset == sum(len(line(s)) for s in source[:4])
    assert (found.replay.from_input, found.replay.tuples, answer.exit_code) == (4, 3, 0)
    path.write_bytes(b"".join(map(line, source[5:])))
    found, answer = extent(tmp_path)
    assert (ids(answer), answer.exit_code, found.proof) == ({"retention-hole"}, 5, "lost")


def test_asks_for_a_queue_that_is_there(tmp_path: Path) -> None:
    queue(tmp_path, records(GOLDEN))
    with pytest.raises(NotFound, match="agg2"):
        extent(tmp_path, "agg2")
    queue(tmp_path, records(GOLDEN), "3/part-0.jsonl")
    with pytest.raises(UsageError, match="2 match"):
        extent(tmp_path, "agg1")
    assert extent(tmp_path, "agg1/3")[0].subtask == 3


def test_nothing_that_can_be_read(tmp_path: Path) -> None:
    path = queue(tmp_path, records(GOLDEN))
    path.write_bytes(b"\x00" * 100 + b"\n")
    with pytest.raises(CorruptInput):
        extent(tmp_path)


def test_what_was_read_of_a_queue_is_counted_from_its_end() -> None:
    """filter1's queue is decided by its last step: 256 KiB of 267,780 bytes."""
    with open_run(str(SAMPLES / "cec-aggregate")) as run:
        run.extent("filter1")
        assert run.spoken == ["read 262,144 of 267,780 bytes of filter1/0's queue, from its end (97.895%)"]


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("harm", ["gone", "cut", "torn", "last torn"])
def test_tuples_that_are_gone_from_the_middle_of_what_is_replayed_are_missed(
    tmp_path: Path, harm: str, numbered: bool
) -> None:
    """Of three files of the upstream's queue, the second is gone, or ends early: only the last may, after a crash.

    Without numbers nothing shows whole lines that are gone.
    """
    queue(tmp_path, [row | {"input": row["ts"]} for row in records(GOLDEN)])
    (tmp_path / "job.json").write_text(json.dumps({"channels": [{"channel": "filter1/0->agg1/0"}]}))
    source = [{"type": "emit", "ts": t, "open_windows": 0, "bytes": 7} for t in range(12)]
    lines = [line(row | {"pos": row["ts"]} if numbered else row) for row in source]
    folder = tmp_path / "outputs" / "filter1"
    folder.mkdir()
    for number in range(3):
        (folder / f"part-{number}.jsonl").write_bytes(b"".join(lines[4 * number : 4 * number + 4]))
    assert ids(extent(tmp_path)[1]) == set()
    second, last = folder / "part-1.jsonl", folder / "part-2.jsonl"
    if harm == "gone":
        second.unlink()
    elif harm == "cut":
        second.write_bytes(b"".join(lines[4:7]))
    else:
        torn = last if harm == "last torn" else second
        torn.write_bytes(torn.read_bytes()[:-3])
    found, answer = extent(tmp_path)
    missed = "retention-hole" in ids(answer)
    assert missed == (harm == "torn" or (numbered and harm in ("gone", "cut")))
    if missed:
        assert (answer.exit_code, found.proof) == (5, "lost")

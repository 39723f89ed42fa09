"""Checkpoint stores in the patent's layout: every number of its text, and each kind of damage with its place."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pyarrow as pa
import pytest

from cklog.errors import CorruptInput, UsageError
from cklog.parsers.patent.keys import BASE, DELTA, HEADER
from cklog.parsers.patent.parser import PatentStore
from cklog.retention.links import deletable
from cklog.spark_source import SourceTable
from cklog.storage import Root
from tests.builders.patent import FIGURE, base, chunked, delta, export, header, lines_of, number, usual
from tests.conftest import SAMPLES, sample_script
from tests.program import cklog
from tests.reading.patent import chains, ids, newest, pieces, read_of, rows
from tests.reading.tables import scan_whole

# --- the numbers of the patent


def test_an_index_entry_has_9_bytes_in_base_form_and_25_in_delta_form() -> None:
    assert (BASE.size, DELTA.size) == (1 + 8, 1 + 8 + 8 + 8) == (9, 25)
    assert (len(base(0)), len(delta(0, 1, 0))) == (9, 25)
    assert HEADER.size == len(header(1, 0, 1)) == 3 * 8


def test_the_figures_are_read_as_the_text_says(tmp_path: Path) -> None:
    folder = export(tmp_path, "window", FIGURE)
    assert read_of(folder, "variable-1", 3) == [(2, "base", 10), (3, "delta", 9)]
    assert read_of(folder, "variable-2", 3) == [(1, "base", 10), (2, "delta", 9), (3, "delta", 9)]
    assert read_of(folder, "", 3) == [(3, "base", 10 + 50)]
    assert pieces(folder)[1] == ()
    assert newest(folder) == 3
    data4 = rows(pieces(folder)[0])["window", "variable-2", 2]
    assert (data4["form"], data4["parent"]) == ("delta", 1)


def test_a_store_of_one_operator_is_a_line_and_one_that_is_gone_has_nothing_to_read(tmp_path: Path) -> None:
    folder = export(tmp_path, "window", FIGURE)
    alone = json.loads(cklog("recovery-line", folder, "--json").out)["result"]
    assert alone["consistent"] is True
    (folder / "variables.json").write_text('{"window": ["data3", "data4"], "other": ["x"]}')
    found = json.loads(cklog("recovery-line", folder, "--json").out)["result"]
    assert found["consistent"] is False
    gone = {"subtask": "other/0", "chains": 0, "pieces": 0, "bytes": None}
    assert found["details"]["together"][0] == gone


def test_names_of_variables_may_be_given(tmp_path: Path) -> None:
    folder = export(tmp_path, "window", FIGURE)
    (folder / "variables.json").write_text('{"window": ["data3", "data4"], "other": ["x"]}')
    assert {store for _, store, _ in rows(pieces(folder)[0])} == {"", "data3", "data4"}
    assert len(read_of(folder, "data4", 3)) == 3


@pytest.mark.parametrize(("size", "chunk"), [(0, 8), (1, 8), (7, 8), (8, 8), (9, 8), (16, 8), (250, 8), (250, 1000)])
def test_a_value_of_m_bytes_is_in_ceil_m_c_chunks_and_a_header(tmp_path: Path, size: int, chunk: int) -> None:
    made = chunked("1 INCR", b"x" * size, chunk)
    assert len(made) == math.ceil(size / chunk) + 1
    pairs = {"1 NON": b"", "1 INDEX": base(0)} | made
    folder = export(tmp_path, "window", pairs)
    assert read_of(folder, "variable-1", 1) == [(1, "base", size)]
    assert pieces(folder)[1] == ()


def test_every_value_may_be_in_chunks_and_entries_may_lie_across_two(tmp_path: Path) -> None:
    made = usual()
    whole = rows(pieces(export(tmp_path / "whole", "window", made.pairs))[0])
    for size in (1, 3, 7, 64):
        in_chunks = rows(pieces(export(tmp_path / str(size), "window", made.in_chunks(size)))[0])
        assert {k: {**r, "path": ""} for k, r in in_chunks.items()} == {k: {**r, "path": ""} for k, r in whole.items()}


def test_deletion_waits_for_the_last_dependant_and_takes_every_marked_ancestor() -> None:
    """The patent: mark while a dependant exists; when none does, delete it and the marked ones that it stands on."""
    stands = {2: [1], 3: [2], 4: [3]}
    assert deletable([1, 2, 3, 4], stands, {1}) == set()
    assert deletable([1, 2, 3, 4], stands, {1, 2, 3}) == set()
    assert deletable([1, 2, 3, 4], stands, {1, 2, 3, 4}) == {1, 2, 3, 4}
    assert deletable([1, 2, 3, 4], stands, {4}) == {4}
    assert deletable([1, 2, 3, 4, 5], stands, {1, 2, 3, 4}) == {1, 2, 3, 4}, "5 is a base: nothing stands on 4"


def test_deletion_keeps_what_another_branch_or_an_unmarked_one_needs() -> None:
    branches = {2: [1], 3: [1], 4: [2]}
    assert deletable([1, 2, 3, 4], branches, {1, 2, 4}) == {2, 4}
    assert deletable([1, 2, 3, 4], branches, {1, 3, 4}) == {3, 4}
    assert deletable([1, 2], {1: [2], 2: [1]}, {1, 2}) == set(), "only damage writes circles: they stay"
    assert deletable([2], {2: [1]}, {1, 2, 7}) == {2}


# --- files


def test_compressed_exports_and_several_operators(tmp_path: Path) -> None:
    data = b"".join(lines_of(usual().pairs))
    (tmp_path / "plain.jsonl").write_bytes(data)
    (tmp_path / "zipped.jsonl.gz").write_bytes(gzip.compress(data, mtime=0))
    with pa.CompressedOutputStream(str(tmp_path / "dense.jsonl.zst"), "zstd") as file:
        file.write(data)
    table = rows(pieces(tmp_path)[0])
    by_operator = [
        {k[1:]: {**r, "operator": "", "path": ""} for k, r in table.items() if k[0] == operator}
        for operator in ("plain", "zipped", "dense")
    ]
    assert by_operator[0] == by_operator[1] == by_operator[2] != {}


def test_two_stores_of_one_operator_are_refused(tmp_path: Path) -> None:
    export(tmp_path, "window", usual().pairs)
    (tmp_path / "window.jsonl.gz").write_bytes(gzip.compress(b"".join(lines_of(usual().pairs))))
    with pytest.raises(UsageError, match=r"window\.jsonl and window\.jsonl\.gz are both a store of operator window"):
        pieces(tmp_path)


def test_a_store_cut_to_nothing_is_told_and_none_at_all_is_no_answer(tmp_path: Path) -> None:
    export(tmp_path, "window", usual().pairs)
    (tmp_path / "other.jsonl").write_bytes(b"")
    assert ids(tmp_path) == {"empty-file": "warning"}
    (tmp_path / "window.jsonl").write_bytes(b"")
    with pytest.raises(CorruptInput, match="no checkpoint can be read"):
        pieces(tmp_path)


def test_recognised_by_what_is_inside(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"a": 1}\n')
    assert not PatentStore.recognises(Root(str(tmp_path)))
    export(tmp_path, "window", usual().pairs)
    assert PatentStore.recognises(Root(str(tmp_path)))


def test_a_scan_gives_the_pieces(tmp_path: Path) -> None:
    folder = export(tmp_path, "window", usual().pairs)
    parser = PatentStore(Root(str(folder)))
    schema = parser.tables["pieces"]
    assert scan_whole(parser, "pieces", schema).table.to_pylist() == parser.pieces()[0].to_pylist()


# --- the sample, and the other commands


def test_the_sample_is_what_its_script_makes(tmp_path: Path) -> None:
    script = sample_script("make_patent_store")
    vars(script)["HERE"] = tmp_path / "made"
    script.main()
    made = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    assert made == {name: (SAMPLES / "patent-store" / name).read_bytes() for name in made}
    assert set(made) == {"figure.jsonl", "totals.jsonl", "variables.json"}


def test_the_sample_s_answer() -> None:
    found = chains(SAMPLES / "patent-store")
    by_name = dict(zip(map(str, found.names), found.common("subtask"), strict=True))
    assert by_name["figure/0"] == 3
    assert by_name["totals/0"] == 4
    assert ids(SAMPLES / "patent-store") == {"damaged-value": "error", "kept-for-deltas": "warning"}


def test_inspect_lists_the_operators_and_questions_about_messages_are_refused() -> None:
    told = cklog("inspect", SAMPLES / "patent-store", "--json")
    assert told.code == 3
    operators = json.loads(told.out)["result"]["operators"]
    assert [(o["operator"], o["checkpoints"], o["variables"], o["deltas"]) for o in operators] == [
        ("figure", 3, 2, 3),
        ("totals", 8, 2, 12),
    ]
    for command in ("graph", "z-cycles"):
        ended = cklog(command, SAMPLES / "patent-store")
        assert (ended.code, ended.out) == (66, "")
        assert "patent-store folder says nothing of" in ended.err


def test_each_operator_goes_back_to_the_newest_version_that_its_chains_restore() -> None:
    """`totals` has eight versions; the chain of its variable `counts` ends at 4."""
    told = cklog("recovery-line", SAMPLES / "patent-store", "--json")
    found = json.loads(told.out)
    line = {e["operator"]: (e["checkpoint"], e["rolled_back"]) for e in found["result"]["line"]}
    assert (told.code, line) == (3, {"figure": (3, False), "totals": (4, True)})
    assert {r["run"]: r["action"] for r in found["result"]["runs"]} == {
        "figure/0": "restart",
        "totals/0": "restart-older",
    }
    assert not found["result"]["consistent"]  # nothing tells
    assert "unrelated-chains" in {f["id"] for f in found["findings"]}
    assert cklog("recovery-line", SAMPLES / "patent-store", "--at", "totals/0=3").code == 2


def test_numbers_are_big_endian() -> None:
    assert number(258) == b"\x00\x00\x00\x00\x00\x00\x01\x02"


def test_the_pieces_are_a_table_of_a_data_source() -> None:
    table = SourceTable(PatentStore, {"path": str(SAMPLES / "patent-store"), "places": "true"})
    found = [row for split in table.splits() for batch in table.read(split) for row in batch.to_pylist()]
    assert len(found) == 32
    assert {row["_path"] for row in found} >= {"figure.jsonl:0", "totals.jsonl:0"}

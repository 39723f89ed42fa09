"""Damage to stores in the patent's layout: each kind is told with its place, and costs no more than it must."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cklog.errors import CorruptInput
from cklog.model.findings import Where
from tests.builders.patent import Operator, Pairs, base, delta, export, header, lines_of, usual
from tests.program import cklog
from tests.reading.patent import chains, flaws, ids, newest, pieces, read_of, rows


def test_a_missing_chunk_costs_only_what_lies_in_it(tmp_path: Path) -> None:
    pairs = usual().in_chunks(8)
    lost = pairs.pop("3 INCR 3")
    assert lost == b"b" * 8, "bytes 24 to 32; `a` has the first 23"
    folder = export(tmp_path, "window", pairs)
    assert flaws(folder) == {("variable-2", 3): "needs 3 INCR 3, which is not there"}
    assert ids(folder) == {"damaged-value": "error"}
    found = chains(folder)
    chain = found.chain_named(("window", 0, "variable-2"))
    assert chain is not None
    assert [v for v in range(1, 6) if found.can_restore(chain, v)] == [1, 2, 4, 5]
    assert newest(folder) == 5


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        ({"4 INCR 4": b"bbbbbb"}, "needs 4 INCR 4, which has 6 bytes and not 8"),
        ({"4 INCR H": header(8, 4, 7)}, "needs 4 INCR 4, which has 8 bytes and not 7"),
        ({"4 INCR H": header(8, 5, 8)}, "needs 4 INCR 5, which is not there"),
        ({"4 INCR H": header(8, 1 << 63, 8)}, "needs 4 INCR 5 to 9223372036854775808, which are not there"),
        ({"4 INCR H": header(8, 3, 8)}, "needs 4 INCR H, which ends at chunk 3, and there is 4 INCR 4"),
        ({"4 INCR H": header(8, 4, 9)}, "needs 4 INCR H, which gives the last chunk 9 bytes, and each 8"),
        ({"4 INCR H": header(0, 4, 0)}, "needs 4 INCR H, which gives the last chunk 0 bytes, and each 0"),
        ({"4 INCR H": b"\x00" * 16}, "needs 4 INCR H, which has 16 bytes and not 24"),
        ({"4 INCR": b"x" * 38}, "needs 4 INCR, which is stored in one piece and in chunks"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_chunks_and_header_must_agree(tmp_path: Path, change: Pairs, flaw: str) -> None:
    pairs = usual().in_chunks(8)
    assert len(pairs["4 INCR 4"]) == 6
    pairs["4 INCR 4"] += b"xx"
    pairs["4 INCR H"] = header(8, 4, 8)
    folder = export(tmp_path, "window", pairs | change)
    assert flaws(folder)["variable-2", 4] == flaw
    assert ids(folder) == {"damaged-value": "error"}
    assert newest(folder) == 3


def test_a_value_of_no_bytes_has_no_chunk(tmp_path: Path) -> None:
    """Its header says that the last chunk is 0 and has 0 bytes; a chunk 0, be it empty, is of another value."""
    pairs = {"1 NON": b"", "1 INCR H": header(8, 0, 0), "1 INDEX": base(0)}
    assert flaws(export(tmp_path / "empty", "window", pairs)) == {}
    for chunk in (b"", b"x", b"x" * 8):
        folder = export(tmp_path / f"with-{len(chunk)}", "window", pairs | {"1 INCR 0": chunk})
        assert flaws(folder) == {("variable-1", 1): "needs 1 INCR H, which ends at chunk 0, and there is 1 INCR 0"}


@pytest.mark.parametrize("wrong", range(3))
def test_a_wrong_chunk_costs_the_variables_that_lie_in_it(tmp_path: Path, wrong: int) -> None:
    """Five variables of eight bytes each, one a chunk."""
    made = Operator()
    made.checkpoint(1, {f"v{n}": ("base", b"%d" % n * 8) for n in range(5)})
    pairs = made.in_chunks(8)
    pairs[f"1 INCR {wrong}"] = b"short"
    folder = export(tmp_path, "window", pairs)
    assert {name for name, _ in flaws(folder)} == {f"variable-{wrong + 1}"}


@pytest.mark.parametrize("more", [0, 1, 3])
def test_of_many_damaged_values_the_first_are_told_and_how_many_more_there_are(tmp_path: Path, more: int) -> None:
    made = Operator()
    for k in range(1, 41 + more):
        made.checkpoint(k, {"a": ("base", b"a" * 20)})
    pairs = {key: value for key, value in made.in_chunks(8).items() if not key.endswith("INCR 1")}
    told = [f.message for f in pieces(export(tmp_path, "window", pairs))[1] if f.id == "damaged-value"]
    assert len(told) == 40 + (more > 0)
    if more:
        assert f"{more} more" in told[-1]


def test_without_its_header_a_value_cannot_be_told(tmp_path: Path) -> None:
    pairs = usual().in_chunks(8)
    del pairs["4 INCR H"]
    folder = export(tmp_path, "window", pairs)
    assert set(flaws(folder)) == {("variable-1", 4), ("variable-2", 4)}
    assert newest(folder) == 3


@pytest.mark.parametrize(
    ("entry", "flaw"),
    [
        (delta(900, 3, 25), "starts at byte 900 of 4 INCR, which has 38"),
        (delta(1 << 63, 3, 25), "starts at byte 9223372036854775808 of 4 INCR, which has 38"),
        (delta(24, 3, 24), "stands on byte 24 of 3 INDEX, where no entry begins"),
        (delta(24, 3, 1 << 63), "stands on byte 9223372036854775808 of 3 INDEX, where no entry begins"),
        (delta(24, 3, 0), "stands on byte 0 of 3 INDEX, which is another variable"),
        (delta(24, 1 << 63, 0), "stands on checkpoint 9223372036854775808, which cannot be"),
    ],
)
def test_an_entry_that_cannot_be_right_is_told_and_costs_its_variable(tmp_path: Path, entry: bytes, flaw: str) -> None:
    pairs = usual().pairs
    assert pairs["4 INDEX"][:25] == delta(0, 3, 0)
    pairs["4 INDEX"] = pairs["4 INDEX"][:25] + entry
    folder = export(tmp_path, "window", pairs)
    assert flaws(folder) == {("variable-2", 4): flaw}
    [finding] = [f for f in pieces(folder)[1] if f.severity == "error"]
    assert finding.message == f"window: the variable at byte 25 of 4 INDEX {flaw}"
    assert finding.where == (Where("window.jsonl", b"".join(lines_of(pairs)).find(b'{"key": "4 INDEX"')),)
    assert newest(folder) == 3


def test_a_checkpoint_that_is_not_there_is_a_link_that_fails(tmp_path: Path) -> None:
    pairs = {key: value for key, value in usual().pairs.items() if not key.startswith("2 ")}
    folder = export(tmp_path, "window", pairs)
    assert flaws(folder) == {}
    found = chains(folder)
    [one, two] = [found.chain_named(("window", 0, f"variable-{n}")) for n in (1, 2)]
    assert one is not None
    assert two is not None
    link = found.why_not(one, 5)
    assert link is not None
    assert (link.version, link.flaw) == (2, "is not there")
    assert found.newest(two) == 5
    assert newest(folder) == 1


def test_variables_that_start_in_the_wrong_order_are_both_in_doubt(tmp_path: Path) -> None:
    pairs = usual().pairs
    pairs["1 INDEX"] = base(0) + base(21) + base(5)
    folder = export(tmp_path, "window", {k: v for k, v in pairs.items() if k.startswith("1 ")})
    assert flaws(folder) == {
        ("variable-2", 1): "starts at byte 21 of 1 INCR, and the variable after it at byte 5",
        ("variable-3", 1): "starts at byte 5 of 1 INCR, and the one before it at byte 21",
    }
    first = export(tmp_path / "first", "window", {"1 NON": b"", "1 INCR": b"xxx", "1 INDEX": base(1)})
    assert flaws(first) == {("variable-1", 1): "starts at byte 1 of 1 INCR, and it is the first variable there"}


def test_index_data_is_read_on_behind_a_fault_where_a_later_link_leads(tmp_path: Path) -> None:
    """The link from 4 to its entry in 3 is all that a restart of `b` needs; a restart at 3 itself is not possible."""
    made = Operator()
    for k in range(1, 5):
        made.checkpoint(k, {name: ("base" if k == 1 else "delta", name.encode() * k) for name in "abc"})
    spoilt = bytearray(made.pairs["3 INDEX"])
    spoilt[0] = 7
    folder = export(tmp_path, "window", made.pairs | {"3 INDEX": bytes(spoilt)})
    why = "needs 3 INDEX, which has no entry at byte 0: 7 is no form"
    assert flaws(folder) == {("", 3): why, ("variable-1", 4): "stands on byte 0 of 3 INDEX, where no entry begins"}
    assert [v for v, _, _ in read_of(folder, "variable-2", 4)] == [1, 2, 3, 4]
    assert [n for _, _, n in read_of(folder, "variable-3", 4)] == [1, 2, 3, 4]
    assert newest(folder) == 2


def test_a_form_that_is_not_known_makes_no_other_damage_unknown(tmp_path: Path) -> None:
    """Only what the entry of that form hides is unknown; bytes that are gone from another checkpoint are lost."""
    pairs = dict(usual().pairs)
    spoilt = b"\x07" + pairs["3 INDEX"][1:]
    assert ids(export(tmp_path / "form", "window", pairs | {"3 INDEX": spoilt})) == {"unknown-version": "error"}
    del pairs["5 INCR"]
    folder = export(tmp_path / "both", "window", pairs | {"3 INDEX": spoilt})
    assert ids(folder) == {"unknown-version": "error", "missing-part": "error"}


def test_a_link_behind_a_fault_is_believed_only_if_entries_follow_to_the_end(tmp_path: Path) -> None:
    made = Operator()
    for k in range(1, 4):
        made.checkpoint(k, {name: ("base" if k == 1 else "delta", name.encode() * 200) for name in "abc"})
    wrong = delta(400, 2, 59)  # bytes 59 to 68 look like a base that starts at byte 256; what follows is no entry
    pairs = made.pairs | {"2 INDEX": b"\x07" + made.pairs["2 INDEX"][1:], "3 INDEX": made.pairs["3 INDEX"][:50] + wrong}
    folder = export(tmp_path, "window", pairs)
    assert pairs["2 INDEX"][59:68] == base(256)
    assert flaws(folder)["variable-3", 3] == "stands on byte 59 of 2 INDEX, where no entry begins"
    assert newest(folder) == 1


def test_where_an_empty_variable_ends_is_not_known_if_the_last_chunk_is_wrong(tmp_path: Path) -> None:
    made = Operator()
    made.checkpoint(1, {"a": ("base", b"a" * 12), "b": ("base", b"")})
    pairs = made.in_chunks(8)
    folder = export(tmp_path, "window", pairs)
    assert flaws(folder) == {}
    why = "needs 1 INCR 1, which has 5 bytes and not 4"
    folder = export(tmp_path, "window", pairs | {"1 INCR 1": b"aaaa?"})
    assert flaws(folder) == {("variable-1", 1): why, ("variable-2", 1): why}


def test_a_stream_whose_checksum_is_wrong_counts_only_lines_with_their_own(tmp_path: Path) -> None:
    for summed, checkpoint in ((False, None), (True, 5)):
        packed = bytearray(gzip.compress(b"".join(lines_of(usual().pairs, summed)), mtime=0))
        packed[-5] ^= 1
        folder = tmp_path / str(summed)
        folder.mkdir()
        (folder / "window.jsonl.gz").write_bytes(packed)
        if checkpoint is None:
            with pytest.raises(CorruptInput, match="no checkpoint can be read"):
                pieces(folder)
        else:
            assert ids(folder) == {"corrupt-file": "error"}
            assert newest(folder) == checkpoint


def test_a_cut_index_ends_at_the_last_whole_entry(tmp_path: Path) -> None:
    pairs = usual().pairs
    pairs["5 INDEX"] = pairs["5 INDEX"][:40]
    folder = export(tmp_path, "window", pairs)
    why = "needs 5 INDEX, whose entry at byte 25 has 25 bytes, 15 of them there"
    assert flaws(folder) == {("", 5): why}
    assert rows(pieces(folder)[0])["window", "variable-1", 5]["bytes"] is None, "where it ends is not known"
    assert newest(folder) == 4


def test_a_deleted_non_leaves_a_checkpoint_that_only_serves_others(tmp_path: Path) -> None:
    """The patent deletes the non-incremental data of a checkpoint at once, the rest when nothing stands on it."""
    pairs = usual().pairs
    del pairs["4 NON"], pairs["1 NON"]
    folder = export(tmp_path, "window", pairs)
    assert flaws(folder) == {("", 1): "lacks 1 NON", ("", 4): "lacks 4 NON"}
    assert ids(folder) == {"kept-for-deltas": "warning"}
    assert newest(folder) == 5
    del pairs["5 NON"]
    assert newest(export(tmp_path, "window", pairs)) == 3


@pytest.mark.parametrize(
    ("part", "lost"), [("INDEX", {("", 4), ("variable-1", 5), ("variable-2", 5)}), ("INCR", {("", 4), 1, 2})]
)
def test_a_missing_part_is_an_error(tmp_path: Path, part: str, lost: set[Any]) -> None:
    pairs = usual().pairs
    del pairs[f"4 {part}"]
    folder = export(tmp_path, "window", pairs)
    lost = {(f"variable-{n}", 4) if isinstance(n, int) else n for n in lost}
    assert set(flaws(folder)) == lost
    assert ids(folder)["missing-part"] == "error"
    assert newest(folder) == 3


def test_keys_stored_twice(tmp_path: Path) -> None:
    lines = lines_of(usual().pairs)
    folder = export(tmp_path, "window", {})
    again = json.dumps({"key": "4 INCR", "value_hex": (b"c" * 38).hex()}).encode() + b"\n"
    (folder / "window.jsonl").write_bytes(b"".join([*lines, lines[0]]))
    assert ids(folder) == {"duplicate-key": "warning"}
    assert newest(folder) == 5
    (folder / "window.jsonl").write_bytes(b"".join([*lines, again]))
    assert ids(folder) == {"duplicate-key": "error", "damaged-value": "error"}
    assert flaws(folder)["variable-1", 4] == "needs 4 INCR, which is stored twice and not the same"
    assert newest(folder) == 3


def test_lines_that_are_none_and_keys_that_are_none(tmp_path: Path) -> None:
    pairs = usual().pairs
    lines = lines_of(pairs)
    odd = [b"no json\n", b'{"key":"9 NON"}\n', b'{"key":"9 NON","value_hex":"0g"}\n', b'{"key":7,"value_hex":""}\n']
    keys = [
        json.dumps({"key": key, "value_hex": ""}).encode() + b"\n" for key in ("x", "01 NON", f"{1 << 63} NON", "1 non")
    ]
    folder = export(tmp_path, "window", {})
    (folder / "window.jsonl").write_bytes(b"".join([*lines, *odd, *keys, b'{"key":"9 NON","value_hex":""}']))
    found = {f.id: f for f in pieces(folder)[1]}
    assert {id: f.severity for id, f in found.items()} == {
        "bad-record": "error",
        "torn-tail": "warning",
        "unknown-key": "warning",
    }
    assert "4 records cannot be read" in found["bad-record"].message
    assert found["unknown-key"].where == (Where("window.jsonl", sum(map(len, [*lines, *odd]))),)
    assert newest(folder) == 5


def test_a_variable_that_nothing_names_stands_alone(tmp_path: Path) -> None:
    made = Operator()
    made.checkpoint(1, {"a": ("base", b"a"), "b": ("base", b"b")})
    made.checkpoint(2, {"b": ("base", b"b")})
    made.checkpoint(3, {"a": ("base", b"a"), "b": ("base", b"b")})
    folder = export(tmp_path, "window", made.pairs)
    assert {store for _, store, _ in rows(pieces(folder)[0])} == {"", "variable-1", "variable-2", "variable-2@0"}
    assert ids(folder) == {"unnamed-variable": "info"}
    assert newest(folder) == 3


def test_links_name_the_variables_of_checkpoints_that_lack_some(tmp_path: Path) -> None:
    made = Operator()
    made.checkpoint(1, {"b": ("base", b"b")})
    made.checkpoint(2, {"b": ("delta", b"b")})
    made.checkpoint(3, {"a": ("base", b"a"), "b": ("delta", b"b")})
    made.checkpoint(4, {"b": ("delta", b"b")})
    folder = export(tmp_path, "window", made.pairs)
    assert [v for v, _, _ in read_of(folder, "variable-2", 4)] == [1, 2, 3, 4]
    assert pieces(folder)[1] == ()


@pytest.mark.parametrize("text", ["[1]", "{", '{"window": "a"}', '{"window": ["a", "a"]}', '{"window": ["a"]}'])
def test_names_that_do_not_fit_are_ignored(tmp_path: Path, text: str) -> None:
    folder = export(tmp_path, "window", usual().pairs)
    (folder / "variables.json").write_text(text)
    assert ids(folder) == {"bad-manifest": "error"}
    assert {store for _, store, _ in rows(pieces(folder)[0])} == {"", "variable-1", "variable-2"}


# --- a store of which nothing can be read


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def scrambled(path: Path) -> None:
    path.write_bytes(b"\xff\n" * 40)


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def made_a_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere.jsonl")
    path.symlink_to(path.parent.parent / "elsewhere.jsonl")


def made_a_link_to_a_folder(path: Path) -> None:
    path.unlink()
    path.with_suffix("").symlink_to(path.parent)


@pytest.mark.parametrize(
    ("change", "action", "code"),
    [
        (emptied, "start-over", 0),
        (scrambled, "start-over", 3),
        (made_a_folder, "undetermined", 5),
        (made_a_link, "undetermined", 5),
        (made_a_link_to_a_folder, "undetermined", 5),
        (Path.unlink, "undetermined", 5),
    ],
)
def test_a_store_of_which_nothing_can_be_read_is_no_plain_restart(
    tmp_path: Path, change: Callable[[Path], None], action: str, code: int
) -> None:
    """Its operator is in the answer all the same: that the others can restart says nothing of it."""
    folder = tmp_path / "stores"
    export(folder, "window", usual().pairs)
    export(folder, "join", usual().pairs)
    (folder / "variables.json").write_text(json.dumps({"join": ["a", "b"], "window": ["a", "b"]}))
    change(folder / "join.jsonl")
    ended = cklog("recovery-line", folder, "--json")
    answer = json.loads(ended.out)
    told = {run["run"]: run["action"] for run in answer["result"]["runs"]}
    assert (answer["result"]["action"], ended.code) == (action, code)
    assert told["join/0"] == action
    assert {entry["operator"]: entry["state"] for entry in answer["result"]["line"]}["join"] == "initial"

"""Chains: every tree of one base and six deltas with each file lost in turn, and `cklog chain` on native runs."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.chains.answer import ChainAnswer, ChainQuestion, ChainRow
from cklog.chains.restorable import Chains, chains_of
from cklog.engine import Engine
from cklog.engine.local import LocalEngine
from cklog.errors import NotFound, UsageError
from cklog.inputs.pieces import PIECES, UNFINISHED
from cklog.model import Answer, Where
from cklog.model.question import Question
from cklog.parsers.native.parser import Native
from cklog.policies.delta_number import RESTORE
from cklog.run import Options, open_run
from cklog.runs.records.pieces import pieces_of_records
from cklog.storage import Root
from tests.builders.kafka import Log, Row, batch
from tests.conftest import SAMPLES
from tests.program import cklog
from tests.unit.parsers.native.test_records import checkpoint, write

DELTAS = 6


def piece(version: int, parent: int | None = None, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(PIECES.names) | {"operator": "a", "subtask": 0, "store": "", "path": f"{version}"}
    return empty | {"version": version, "form": "base" if parent is None else "delta", "parent": parent} | more


def chains(rows: list[dict[str, Any]]) -> Chains:
    return chains_of(pa.Table.from_pylist(rows, schema=PIECES))


def trees() -> Iterator[tuple[int, ...]]:
    """The parents of versions 1 to 6, each of them older: all 720 trees on a base, version 0."""
    return itertools.product(*(range(version) for version in range(1, DELTAS + 1)))


def descendants(parents: tuple[int, ...], lost: int) -> set[int]:
    """The lost version and all that stand on it."""
    found = {lost}
    for version, parent in enumerate(parents, 1):
        if parent in found:
            found.add(version)
    return found


@pytest.mark.parametrize("harm", ["deleted", "corrupted"])
def test_exactly_the_descendants_of_what_is_lost_cannot_be_restored(harm: str) -> None:
    """Of every tree, with each file lost in turn, a chain each; and the newest that can be restored is right."""
    for parents in trees():
        whole = [piece(0), *(piece(version, parent) for version, parent in enumerate(parents, 1))]
        left = [row | {"subtask": lost} for lost in range(DELTAS + 1) for row in whole]
        for row in left:
            row["flaw"] = "is torn" if row["version"] == row["subtask"] else None
        found = chains([row for row in left if harm != "deleted" or row["flaw"] is None])
        for lost in range(DELTAS + 1):
            gone = descendants(parents, lost)
            able = [version for version in range(DELTAS + 1) if found.can_restore(lost, version)]
            assert able == [version for version in range(DELTAS + 1) if version not in gone]
            assert found.newest(lost) == max(able, default=None)
            for version in gone:
                link = found.why_not(lost, version)
                assert link is not None
                assert (link.version, link.row is None) == (lost, harm == "deleted")


def test_all_trees_are_tried() -> None:
    assert len(set(trees())) == 720


def test_a_chain_is_read_from_its_base_on() -> None:
    rows = [piece(0), piece(1, 0), piece(2, 1), piece(3, 1)]
    found = chains(rows)
    assert [found.reading(0, version) for version in (0, 2, 3, 9)] == [[0], [0, 1, 2], [0, 1, 3], []]


def test_a_base_beside_a_delta_is_what_is_read_and_the_delta_where_the_base_is_flawed() -> None:
    """As Spark's stores have it: V.snapshot and V.delta."""
    rows = [piece(0), piece(1, 0), piece(1, path="1.snapshot")]
    assert chains(rows).reading(0, 1) == [2]
    rows[2]["flaw"] = "is torn"
    assert chains(rows).reading(0, 1) == [0, 1]


def test_parents_that_are_not_older_are_told_as_cycles_and_never_followed() -> None:
    rows = [piece(1), piece(4, 6), piece(5, 4), piece(6, 5), piece(7, 7), piece(8, 99)]
    found = chains(rows)
    assert [found.can_restore(0, version) for version in (1, 4, 5, 6, 7, 8)] == [True] + [False] * 5
    told = found.findings[0]
    assert (told.id, told.severity, told.where) == ("bad-parent", "error", (Where("4"),))
    assert "a/0=4 is a delta on 6, which is not older: 4 on 6 on 5 on 4 is a cycle" in told.message
    assert "2 more deltas of this chain too" in told.message


def test_pieces_that_disagree_are_not_used_and_equal_ones_count_once() -> None:
    same = [piece(1), piece(2, 1, bytes=5), piece(2, 1, bytes=5, path="copy")]
    assert chains(same).reading(0, 2) == [0, 1]
    assert chains(same).findings == ()
    other = [*same[:2], piece(2, 1, bytes=6)]
    assert not chains(other).can_restore(0, 2)
    assert [f.id for f in chains(other).findings] == ["conflicting-piece"]


def test_what_a_run_restores_together_every_chain_must_have() -> None:
    rows = [piece(v, operator=o) for o, v in (("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2))]
    assert chains(rows).common("run") == [2, 2]
    assert chains(rows).common("subtask") == [3, 2]
    assert chains([*rows[:3], piece(9, operator="b")]).common("run") == [None, None]


def test_variables_of_a_subtask_come_and_go() -> None:
    rows = [piece(1, store="x"), piece(2, store="x"), piece(2, store="y", flaw="is torn"), piece(3, store="y")]
    assert chains(rows).common("subtask") == [3, 3]
    assert chains(rows[:3]).common("subtask") == [1, 1]


def ask(folder: Path, asked: ChainQuestion = ChainQuestion(), **options: Any) -> Answer:
    with open_run(str(folder), Options(**options)) as run:
        return run.chain(asked)


def result(answer: Answer) -> ChainAnswer:
    assert isinstance(answer.result, ChainAnswer)
    return answer.result


def rows_of(answer: Answer) -> dict[str, ChainRow]:
    return {f"{row.operator}/{row.subtask} {row.store}".strip(): row for row in result(answer).chains}


def ids(answer: Answer) -> list[str]:
    return [finding.id for finding in answer.findings]


def history(numbers: str, **more: Any) -> list[dict[str, Any]]:
    """Checkpoints of a/0: `1b 2d1` is a base 1 and a delta 2 on 1; 100 bytes and 10 ms each."""
    rows = []
    for word in numbers.split():
        number, form, parent = word.partition("b" if "b" in word else "d")
        named = {"parent": int(parent)} if parent else {}
        form = "base" if form == "b" else "delta"
        rows.append(checkpoint("a/0", int(number), form=form, bytes=100, duration_ms=10.0, **named, **more))
    return rows


def test_an_intact_chain_and_what_restoring_it_reads(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", history("1b 2d1 3d2 4b 5d4 6d5"))
    answer = ask(tmp_path)
    row = rows_of(answer)["a/0"]
    assert (row.status, row.restorable, row.deltas, row.bytes) == ("intact chain", 6, 2, 300)
    assert (row.time_ms, row.time_from) == (RESTORE * 30, "history")
    assert [(step.checkpoint, step.form) for step in result(answer).read] == [(4, "base"), (5, "delta"), (6, "delta")]
    assert all(step.path == "checkpoints/part.jsonl" and step.offset is not None for step in result(answer).read)
    assert (answer.exit_code, answer.findings) == (0, ())


def test_a_broken_chain_says_up_to_where_and_because_of_what(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", history("1b 2d1 4d3 5d4"))
    answer = ask(tmp_path)
    row = rows_of(answer)["a/0"]
    assert (row.status, row.restorable, row.unrestorable, row.checkpoint) == ("broken chain", 2, 2, 2)
    assert row.because is not None
    assert (row.because.checkpoint, row.because.needed_by, row.because.flaw) == (3, 4, "is not there")
    told = answer.findings[0]
    assert told.id == "broken-chain"
    assert told.message == "a/0: restorable up to 2 of 5, because checkpoint 3, on which 4 stands, is not there"
    assert answer.exit_code == 3


def test_orphaned_deltas_leave_nothing_to_restore(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", history("2d1 3d2"))
    answer = ask(tmp_path)
    assert rows_of(answer)["a/0"].status == "orphaned deltas"
    assert ids(answer) == ["orphaned-deltas"]
    assert answer.exit_code == 4


def test_a_checkpoint_in_the_making_breaks_no_chain(tmp_path: Path) -> None:
    rows = [*history("1b 2d1"), checkpoint("a/0", 3, form="delta", parent=2, status="incomplete")]
    write(tmp_path, "checkpoints", rows)
    answer = ask(tmp_path)
    assert (rows_of(answer)["a/0"].status, rows_of(answer)["a/0"].newest, answer.exit_code) == ("intact chain", 2, 0)
    write(tmp_path, "checkpoints", [*rows, checkpoint("a/0", 4, form="delta", parent=3)])
    because = rows_of(ask(tmp_path))["a/0"].because
    assert because is not None
    assert (because.checkpoint, because.flaw) == (3, UNFINISHED)


def test_older_checkpoints_that_are_lost_are_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", history("1b 3d2 4b"))
    answer = ask(tmp_path)
    assert ids(answer) == ["unrestorable-checkpoints"]
    assert (rows_of(answer)["a/0"].unrestorable, answer.exit_code) == (1, 0)


def variables(*parts: tuple[str, int | None]) -> list[dict[str, Any]]:
    return [
        {"name": name, "form": "base" if parent is None else "delta", "parent": parent, "bytes": 50}
        for name, parent in parts
    ]


def with_variables() -> list[dict[str, Any]]:
    """`x` is whole throughout, `y` lost its checkpoint 3."""
    return [
        checkpoint("a/0", 1, duration_ms=10.0, variables=variables(("x", None), ("y", None))),
        checkpoint("a/0", 2, duration_ms=10.0, form="delta", variables=variables(("x", 1), ("y", 1))),
        checkpoint("a/0", 4, duration_ms=10.0, form="delta", variables=variables(("x", 2), ("y", 3))),
    ]


def test_a_checkpoint_is_restorable_if_every_variable_is(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", with_variables())
    answer = ask(tmp_path)
    rows = rows_of(answer)
    assert [(name, row.status, row.restorable) for name, row in rows.items()] == [
        ("a/0 x", "intact chain", 4),
        ("a/0 y", "broken chain", 2),
    ]
    assert [r.checkpoint for r in result(answer).together] == [2]
    assert rows["a/0 x"].checkpoint == 2
    assert rows["a/0 x"].time_ms == RESTORE * (5 + 5)


@pytest.mark.parametrize("member", ["no list", '[{"form":"base"}]', '[{"name":"x"},{"name":"x"}]', '{"name":"x"}'])
def test_variables_that_cannot_be_understood_restore_nothing(tmp_path: Path, member: str) -> None:
    value = member if member == "no list" else json.loads(member)
    write(tmp_path, "checkpoints", [*history("1b"), checkpoint("a/0", 2, variables=value)])
    answer = ask(tmp_path)
    assert rows_of(answer)["a/0"].restorable == 1
    assert "does not say what its variables are" in answer.findings[0].message
    with open_run(str(tmp_path)) as run:
        line = run.recovery_line(Question())
    assert line.result.line[0].checkpoint == 1
    assert line.findings[0].id == "broken-chain"


def test_recovery_line_and_verify_go_by_the_variables_too(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", with_variables())
    with open_run(str(tmp_path)) as run:
        line = run.recovery_line(Question())
        assert line.result.line[0].checkpoint == 2
        assert [f.id for f in line.findings] == ["broken-chain"]
        assert "variable y of checkpoint a/0=4 is a delta on 3" in line.findings[0].message
        assert run.verify({"a/0": 2}, True, Question()).result["summary"].startswith("Proved")
        refuted = run.verify({"a/0": 4}, True, Question())
    assert "its variable y is a delta on 3, which cannot be restored" in refuted.findings[1].message


def test_jsonl_parquet_and_kafka_give_the_same_chains(tmp_path: Path) -> None:
    rows = with_variables()
    write(tmp_path / "jsonl", "checkpoints", rows)
    packed = tmp_path / "parquet" / "checkpoints"
    packed.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(rows[1]) | row for row in rows]), packed / "part.parquet")
    topic = tmp_path / "kafka" / "checkpoints" / "ck-0"
    topic.mkdir(parents=True)
    log = Log()
    log.add(batch(0, [Row(json.dumps(row).encode()) for row in rows]))
    (topic / f"{0:020}.log").write_bytes(bytes(log.data))
    found = [result(ask(tmp_path / kind)) for kind in ("jsonl", "parquet", "kafka")]
    plain = [[(row.status, row.restorable, row.bytes, row.time_ms) for row in one.chains] for one in found]
    assert plain[0] == plain[1] == plain[2]
    assert plain[0][1][:2] == ("broken chain", 2)


def test_a_delta_that_names_no_parent_stands_on_the_record_before_it_unless_that_may_be_lost(tmp_path: Path) -> None:
    rows = history("1b 2d 4d")
    path = write(tmp_path, "checkpoints", rows)
    assert rows_of(ask(tmp_path))["a/0"].restorable == 4
    path.write_bytes(path.read_bytes() + b'{"operator":"a","checkpoint":3,\n')
    answer = ask(tmp_path)
    assert rows_of(answer)["a/0"].restorable == 2
    assert "names no parent, and a record before it may be lost" in answer.findings[1].message


def test_state_files_that_are_gone_and_those_nobody_looked_at(tmp_path: Path) -> None:
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "1").write_bytes(b"state")
    rows = history("1b 2d1 3d2")
    for row, uri in zip(rows, ("ck/1", f"{tmp_path}/ck/2", "s3://elsewhere/3"), strict=True):
        row["uri"] = uri
    write(tmp_path, "checkpoints", rows)
    answer = ask(tmp_path)
    assert rows_of(answer)["a/0"].restorable == 1
    assert sorted(ids(answer)) == ["broken-chain", "missing-state-file", "unchecked-input"]
    (tmp_path / "ck" / "2").write_bytes(b"state")
    answer = ask(tmp_path)
    assert (rows_of(answer)["a/0"].restorable, ids(answer), answer.exit_code) == (3, ["unchecked-input"], 0)


@pytest.mark.parametrize("parents", [(0, 1, 2, 3, 4, 5), (0, 0, 1, 1, 2, 2), (0, 0, 0, 3, 3, 0)])
def test_each_state_file_deleted_in_turn(tmp_path: Path, parents: tuple[int, ...]) -> None:
    """Checkpoints 1 to 7 of a run, the first of them a base: version 0 of the tree is checkpoint 1."""
    rows = [checkpoint("a/0", 1, form="base", uri="ck/1")]
    for number, parent in enumerate(parents, 2):
        rows.append(checkpoint("a/0", number, form="delta", parent=parent + 1, uri=f"ck/{number}"))
    write(tmp_path, "checkpoints", rows)
    (tmp_path / "ck").mkdir()
    for number in range(1, 8):
        (tmp_path / "ck" / str(number)).touch()
    for lost in range(1, 8):
        (tmp_path / "ck" / str(lost)).unlink()
        row = rows_of(ask(tmp_path))["a/0"]
        gone = {version + 1 for version in descendants(parents, lost - 1)}
        assert (row.restorable, row.unrestorable) == (max({*range(1, 8)} - gone, default=None), len(gone))
        for number in range(1, 8):
            code = ask(tmp_path, ChainQuestion(checkpoint=number)).exit_code
            assert (code == 4) == (number in gone)
        (tmp_path / "ck" / str(lost)).touch()


def test_a_checkpoint_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", history("1b 2d1 4d3 5b"))
    answer = ask(tmp_path, ChainQuestion(checkpoint=2))
    assert [step.checkpoint for step in result(answer).read] == [1, 2]
    lost = ask(tmp_path, ChainQuestion(checkpoint=4))
    assert (lost.exit_code, result(lost).read) == (4, ())
    assert "not-restorable" in ids(lost)
    with pytest.raises(NotFound, match="no checkpoint 9"):
        ask(tmp_path, ChainQuestion(checkpoint=9))


def test_chains_are_chosen_by_operator_and_store(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [*with_variables(), checkpoint("b/1", 1)])
    assert list(rows_of(ask(tmp_path, ChainQuestion(operator="b")))) == ["b/1"]
    assert list(rows_of(ask(tmp_path, ChainQuestion(operator="a/0", store="y")))) == ["a/0 y"]
    for wrong in (ChainQuestion(operator="c"), ChainQuestion(operator="b", store="y")):
        with pytest.raises(NotFound):
            ask(tmp_path, wrong)


def test_without_durations_a_read_rate_gives_times_and_without_it_there_are_none(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "duration_ms"} for row in history("1b 2d1")]
    write(tmp_path, "checkpoints", rows)
    assert rows_of(ask(tmp_path))["a/0"].time_ms is None
    row = rows_of(ask(tmp_path, ChainQuestion(read_rate=0.1)))["a/0"]
    assert (row.time_ms, row.time_from) == (2.0, "read-rate")
    with pytest.raises(UsageError):
        ask(tmp_path, ChainQuestion(read_rate=0.0))


def test_sizes_that_overflow_are_told_and_never_wrap(tmp_path: Path) -> None:
    rows = history("1b " + " ".join(f"{n}d{n - 1}" for n in range(2, 1025)))
    for row in rows:
        row["bytes"] = 1 << 53
    write(tmp_path, "checkpoints", rows)
    answer = ask(tmp_path)
    assert (rows_of(answer)["a/0"].bytes, ids(answer)) == (None, ["sum-overflow"])
    rows[0]["bytes"] = (1 << 63) - 2
    write(tmp_path, "checkpoints", rows[:2])
    answer = ask(tmp_path)
    assert (rows_of(answer)["a/0"].bytes, ids(answer)) == (None, ["bad-size"])


@pytest.mark.parametrize("name", ["incremental", "uncoordinated-join", "domino-cycle", "uncoordinated-join-parquet"])
def test_both_engines_give_the_same_bytes(name: str, spark: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_run(str(SAMPLES / name)) as run:
        local = run.chain(ChainQuestion())
    with open_run(str(SAMPLES / name)) as run:
        monkeypatch.setattr(run, "engine_for", lambda size: spark)
        assert run.chain(ChainQuestion()) == local


def test_the_parser_offers_the_same_pieces() -> None:
    table, findings, inputs = pieces_of_records(Native(Root(str(SAMPLES / "incremental"))), lambda size: LocalEngine())
    assert set(PIECES.names) <= set(table.column_names)
    assert (len(table), findings, inputs[0].records) == (384, (), 240)


def test_the_sample_with_a_record_lost(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "incremental", tmp_path / "run")
    (tmp_path / "run" / "checkpoints" / ".join.jsonl.crc").unlink()
    path = tmp_path / "run" / "checkpoints" / "join.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:46] + lines[47:]))
    ended = cklog("chain", tmp_path / "run")
    assert ended.code == 3
    assert (
        "join/0 left: restorable up to 46 of 48, because checkpoint 47, on which 48 stands, is not there" in ended.out
    )
    assert "6 of 8 chains are intact, 2 broken" in ended.out


def test_what_has_no_chains_says_so() -> None:
    ended = cklog("chain", SAMPLES / "kafka-broker")
    assert (ended.code, ended.out) == (66, "")

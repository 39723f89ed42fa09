"""`cklog chain` on native runs: what can be restored, up to where, and what that reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.chains.answer import ChainQuestion
from cklog.chains.model import ChainAnswer, ChainRow
from cklog.engine.scan import Engine
from cklog.errors import NotFound, UsageError
from cklog.inputs.pieces import PIECES, UNFINISHED
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.parsers.native.parser import Native
from cklog.policies.delta_number import RESTORE
from cklog.run import Options, open_run
from cklog.runs.records.reading import RecordReader, pieces_of_records
from cklog.storage import Root
from tests.builders.flink_folders import ORIGIN, job
from tests.builders.kafka import Log, Row, batch
from tests.builders.native import checkpoint, write
from tests.conftest import SAMPLES
from tests.oracles.chains import descendants
from tests.program import cklog
from tests.reading.concluded import READING


def ask(folder: Path, asked: ChainQuestion = ChainQuestion(), **options: Any) -> Answer[Any]:
    with open_run(str(folder), Options(**options)) as run:
        return run.chain(asked)


def result(answer: Answer[Any]) -> ChainAnswer:
    assert isinstance(answer.result, ChainAnswer)
    return answer.result


def rows_of(answer: Answer[Any]) -> dict[str, ChainRow]:
    return {f"{row.operator}/{row.subtask} {row.store}".strip(): row for row in result(answer).chains}


def ids(answer: Answer[Any]) -> list[str]:
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


def test_each_step_says_what_its_own_record_says(tmp_path: Path) -> None:
    rows = [record | {"bytes": size} for record, size in zip(history("1b 2d1 3d2"), (100, 0, None), strict=True)]
    path = write(tmp_path, "checkpoints", rows)
    begins = [path.read_bytes().index(b'"checkpoint":%d,' % k) for k in (1, 2, 3)]
    begins = [path.read_bytes().rindex(b"{", 0, at) for at in begins]
    found = result(ask(tmp_path)).read
    assert [(step.bytes, step.time_ms, step.offset) for step in found] == [
        (100, RESTORE * 10, begins[0]),
        (0, RESTORE * 10, begins[1]),
        (None, RESTORE * 10, begins[2]),
    ]
    write(tmp_path / "silent", "checkpoints", [{**row, "duration_ms": None} for row in rows])
    assert [step.time_ms for step in result(ask(tmp_path / "silent")).read] == [None] * 3
    timed = result(ask(tmp_path / "silent", ChainQuestion(read_rate=1.0)))
    assert [step.time_ms for step in timed.read] == [100 / 1_000_000 * 1000, 0, None]


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
        assert run.verify({"a/0": 2}, True, Question()).result.summary.startswith("Proved")
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
    parser = Native(Root(str(SAMPLES / "incremental")))
    table, findings, inputs = pieces_of_records(RecordReader(parser, READING))[:3]
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


def test_a_chain_of_shared_files_goes_back_to_the_oldest_checkpoint_that_wrote_one(tmp_path: Path) -> None:
    """Of each chk-N a file is of N - 1, one of N shared, and one its own: two are read that N itself has written."""
    job(tmp_path, numbers=(5, 6, 7))
    ended = cklog("chain", tmp_path, "--map", f"{ORIGIN}={tmp_path}", "--json")
    found = json.loads(ended.out)["result"]
    [count] = [row for row in found["chains"] if row["store"] == "count"]
    written = {"s6": 6, "s7": 7, "p7": 7}
    assert (count["checkpoint"], count["pieces"], count["deltas"]) == (7, len(written), 1)
    assert count["back_to"] == min(written.values())
    assert {row["path"].rpartition("/")[2]: row["checkpoint"] for row in found["read"][1:]} == written

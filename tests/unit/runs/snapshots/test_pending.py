"""What a snapshot has pending for its sinks: grouped, named as tables name it, and looked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cklog.engine.reading import Reading
from cklog.inputs.sink_tables import Pending, Writer
from cklog.kinds.snapshots import SnapshotsKind
from cklog.model.question import Question
from cklog.parsers.flink.derived import operator_id
from cklog.run import Options, open_run
from cklog.runs.snapshots.plan import plan_snapshots
from cklog.runs.snapshots.waiting import waiting_in
from tests.builders import flink as fb
from tests.builders.sinks import flink as sinks
from tests.program import cklog
from tests.reading.impact import fates, impact

JOB = "a" * 32
COMMITTERS, WRITERS = "streaming_committer_raw_states", "writer_raw_states"
HERE = Writer(sinks.JOB, "checkpoint", sinks.OPERATOR)


def state(lists: dict[str, Sequence[bytes]], bare: bool = False) -> fb.Built:
    data, places = sinks.bare_state(lists) if bare else fb.operator_state(lists)
    return fb.states(fb.inline(data), places)


def job(root: Path, number: int, *operators: tuple[str, fb.Built]) -> Path:
    """A checkpoint of a job with these operators, each with its state."""
    made = [
        fb.operator(6, [fb.subtask(6, 0, managed=held)], bytes.fromhex(operator_id(name)), name)
        for name, held in operators
    ]
    folder = root / JOB / f"chk-{number}"
    folder.mkdir(parents=True)
    data = fb.metadata(6, made, checkpoint=number, properties=fb.properties((), "Checkpoint", "FORWARD_BACKWARD"))
    (folder / "_metadata").write_bytes(data.data)
    return folder


def committer(number: int, *committables: tuple[int, bytes], name: str = "orders") -> tuple[str, fb.Built]:
    held = [fb.versioned(2, sinks.collected(number, committables))] if committables else []
    return f"{name}: Committer", state({COMMITTERS: held})


def table_files(*names: str) -> list[str]:
    return [f"s3://lake/orders/metadata/{name}.avro" for name in names]


def held(root: Path, *options: str, command: str = "recovery-line", exit: int = 0) -> dict[str, Any]:
    ended = cklog(command, root, "--json", "-q", *options)
    assert ended.code == exit, ended.err + ended.out
    found: dict[str, Any] = json.loads(ended.out)
    return found


def findings(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(f["id"], f["severity"], f["subject"]) for f in answer["findings"] if f["id"].startswith("pending")]


def values(root: Path, *maps: tuple[str, str]) -> tuple[Pending, ...]:
    """What a restore of the newest snapshot commits."""
    with open_run(str(root), Options(engine="local", maps=maps)) as run:
        kind = run.kind
        assert isinstance(kind, SnapshotsKind)
        parser, reading = kind._parser, kind._opened.reading
        assert isinstance(reading, Reading)
        plan = plan_snapshots(parser, reading, Question())
        (chosen,) = plan.chosen.values()
        assert chosen is not None
        table = plan.survey.tables[chosen.folder.path]
        return tuple(one.pending for one in waiting_in(parser, chosen.folder.path, table) if one.commits)


def test_manifests_that_are_there_and_gone(tmp_path: Path) -> None:
    first, second = table_files("m0", "m1")
    committable = sinks.iceberg(17, sinks.manifests(first, second))
    job(tmp_path / "run", 17, committer(17, (1, committable)))
    lake = tmp_path / "lake" / "orders" / "metadata"
    lake.mkdir(parents=True)
    (lake / "m1.avro").write_bytes(b"a manifest")
    mapped = ("--map", f"s3://lake={tmp_path / 'lake'}")
    answer = held(tmp_path / "run", *mapped, exit=5)
    assert answer["result"]["action"] == "undetermined"  # only the table knows whether they were committed
    (row,) = answer["result"]["details"]["pending"]
    assert (row["named"], row["gone"], row["missing"]) == (2, 1, [first])
    assert (row["writer"], row["operator"], row["checkpoint"]) == (sinks.JOB, sinks.OPERATOR, 17)
    assert answer["result"]["notes"][0] == "Pending for sink orders: checkpoint 17: 2 manifests, 1 of them is gone."
    assert findings(answer) == [("pending-file-missing", "error", "orders")]
    (finding,) = [f for f in answer["findings"] if f["id"] == "pending-file-missing"]
    assert sinks.JOB in finding["message"]
    (lake / "m0.avro").write_bytes(b"a manifest")
    assert findings(held(tmp_path / "run", *mapped)) == []
    assert held(tmp_path / "run", command="inspect", exit=3)["result"]["pending"][0]["gone"] is None


@pytest.mark.parametrize(("taken", "told"), [(17, []), (16, ["pending-files-gone"])])
def test_a_table_tells_whether_manifests_that_are_gone_were_committed(
    tmp_path: Path, taken: int, told: list[str]
) -> None:
    """A committer deletes them once it has; else the restore fails."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    from tests.builders.sinks.iceberg_folder import FolderCatalog

    lake = FolderCatalog(tmp_path / "lake" / "orders")
    table = lake.create(Schema(NestedField(1, "value", LongType(), required=False)))
    said = {"flink.job-id": sinks.JOB, "flink.operator-id": sinks.OPERATOR}
    said["flink.max-committed-checkpoint-id"] = str(taken)
    table.append(pa.table({"value": [1]}), snapshot_properties=said)
    data, deletes = table_files("m0", "m1")
    job(tmp_path / "run", 17, committer(17, (1, sinks.iceberg(17, sinks.manifests(data, deletes)))))
    where = ("--map", f"s3://lake={tmp_path / 'lake'}", "--sink", f"orders={tmp_path / 'lake' / 'orders'}")
    answer = held(tmp_path / "run", *where, exit=3 if told else 0)
    assert [id for id, _, _ in findings(answer)] == told
    assert answer["result"]["action"] == ("repair-first" if told else "restart")


def test_what_nobody_could_look_for_is_not_known(tmp_path: Path) -> None:
    job(
        tmp_path,
        17,
        committer(17, (1, sinks.iceberg(17, sinks.manifests("s3://lake/m/m0.avro", "s3://lake/m/m1.avro")))),
    )
    answer = held(tmp_path, exit=5)
    (row,) = answer["result"]["details"]["pending"]
    assert (row["gone"], row["missing"]) == (None, None)
    assert findings(answer) == [("pending-unchecked", "error", "orders")]
    assert (answer["result"]["action"], answer["result"]["runs"][0]["command"]) == ("undetermined", None)
    unchecked = held(tmp_path, "--no-check-files")
    assert unchecked["result"]["details"]["pending"][0]["missing"] is None
    assert findings(unchecked) == []


def test_values_for_whoever_knows_the_table(tmp_path: Path) -> None:
    files = table_files("m0", "m1", "m2")
    own = operator_id("older: Committer")
    held_by_checkpoint = sinks.by_checkpoint([(16, sinks.manifests(files[2])), (17, b"")])
    older: dict[str, Sequence[bytes]] = {
        "iceberg-files-committer-state": [held_by_checkpoint],
        "iceberg-flink-job-id": [sinks.text(sinks.JOB)],
    }
    paimon_state: dict[str, Sequence[bytes]] = {COMMITTERS: [fb.versioned(5, sinks.paimon(5, 17))]}
    tables = [
        (2, sinks.dynamic(2, "db.a", 17, [sinks.manifests(files[0])])),
        (2, sinks.dynamic(2, "db.b", 17, [sinks.manifests(files[1])])),
    ]
    job(
        tmp_path,
        17,
        ("older: Committer", state(older, bare=True)),
        committer(17, *tables, name="many"),
        committer(17, (2, b"somebody's own"), name="other"),
        ("paimon", state(paimon_state)),
    )
    found = values(tmp_path)
    assert found == (
        Pending("db.a", HERE, 17, (files[0],), renamed=True),
        Pending("db.b", HERE, 17, (files[1],), renamed=True),
        Pending("older", Writer(sinks.JOB, "checkpoint", own), 16, (files[2],)),
        Pending("older", Writer(sinks.JOB, "checkpoint", own), 17, (), ()),
        Pending("other", None, 17, version=2),
        Pending("paimon", None, 17, version=11),
    )


def test_paimon_s_user_is_who_commits(tmp_path: Path) -> None:
    committed = [fb.versioned(5, sinks.paimon(5, 17, messages=0))]
    data, places = fb.operator_state({COMMITTERS: committed, "commit_user_state": []})
    places["commit_user_state"] = (0, [len(data)])
    made = fb.states(fb.inline(data + sinks.text("a user")), places)
    job(tmp_path, 17, ("Global Committer : t", made))
    found = values(tmp_path)
    writer = Writer("a user", "identifier")
    assert found == (Pending("Global Committer : t", writer, 17, (), ()),)


def file_sink(root: Path, number: int, *, open: bool = False, part: int | str = 0) -> tuple[str, str]:
    """A checkpoint with a file of a sink, to be renamed or to be gone on with; both of its names."""
    held, target = str(root / "out" / f".part-{part}.inprogress.1"), str(root / "out" / f"part-{part}")
    place = sinks.place(target, held, 5)
    (root / "out").mkdir(exist_ok=True)
    if open:
        bucket = sinks.file_bucket(sinks.file_in_progress(place, f"file:{target}"), f"file:{root / 'out'}")
        job(root, number, ("out: Writer", state({WRITERS: [fb.versioned(3, bucket)]})), committer(number, name="out"))
    else:
        committable = sinks.file_committable(sinks.pending_file(place, f"file:{target}", 5))
        job(root, number, committer(number, (2, committable), name="out"))
    return held, target


@pytest.mark.parametrize("which", ["held", "renamed"])
def test_a_file_that_is_there_under_one_of_its_names(tmp_path: Path, which: str) -> None:
    names = dict(zip(("held", "renamed"), file_sink(tmp_path, 7), strict=True))
    Path(names[which]).write_bytes(b"12345")
    answer = held(tmp_path)
    assert answer["result"]["details"]["pending"][0]["missing"] == []
    assert findings(answer) == []


def errors(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(f["id"], f["subject"], f["effect"]) for f in answer["findings"] if f["severity"] == "error"]


def test_rows_of_a_file_that_is_gone_are_lost(tmp_path: Path) -> None:
    name, _ = file_sink(tmp_path, 7)
    answer = held(tmp_path, exit=3)
    assert answer["result"]["action"] == "repair-first"
    assert answer["result"]["details"]["pending"][0]["missing"] == [name]
    assert errors(answer) == [("pending-file-missing", "out", "data-lost")]


@pytest.mark.parametrize("content", [None, b"1234"])
def test_without_its_file_a_lone_checkpoint_has_to_wait_and_not_to_start_over(
    tmp_path: Path, content: bytes | None
) -> None:
    """As Flink 2.3.0 does: a file in progress that is gone is a FileNotFoundException of the sink's writer."""
    name, renamed = file_sink(tmp_path, 7, open=content is None)
    Path(renamed).write_bytes(b"12345") if content is None else Path(name).write_bytes(content)
    answer = held(tmp_path, exit=4)
    assert answer["result"]["action"] == "repair-first"
    assert "out/.part-0.inprogress.1" in answer["result"]["runs"][0]["note"]
    assert errors(answer) == [("pending-file-missing", "out", "older-line")]
    assert answer["result"]["details"]["snapshots"][0]["verdict"] == "sink-file-missing"
    Path(name).write_bytes(b"12345")
    assert errors(held(tmp_path)) == []


def three(root: Path, *contents: bytes | None, opened: Sequence[int] = ()) -> None:
    """Checkpoints 5, 6 and 7, each with a file of its own that holds five bytes; None: it is gone."""
    for number, content in zip((5, 6, 7), contents, strict=True):
        name, _ = file_sink(root, number, open=number in opened, part=number)
        if content is not None:
            Path(name).write_bytes(content)


@pytest.mark.parametrize("open", [False, True])
def test_a_restore_that_fails_leaves_the_older_checkpoint_to_every_command(tmp_path: Path, open: bool) -> None:
    three(tmp_path, b"12345", b"1", None if open else b"1234", opened=[7] if open else [])
    answer = held(tmp_path, exit=3)
    (run,) = answer["result"]["runs"]
    assert (run["action"], run["newest"], run["chosen"]) == ("restart-older", "chk-7", "chk-5")
    assert run["command"].endswith("chk-5")
    assert {effect for _, _, effect in errors(answer)} == {"older-line"}
    assert [row["checkpoint"] for row in held(tmp_path, command="impact", exit=3)["result"]["line"]] == [5]
    assert held(tmp_path, "--at", f"{JOB}/0=7", exit=4)["result"]["action"] == "repair-first"
    line = tmp_path.with_suffix(".json")
    line.write_text(json.dumps({f"{JOB}/0": 7}))
    refuted = held(tmp_path, "--line", str(line), command="verify", exit=3)["result"]
    assert "sink-file-missing" in str(refuted)
    kept = held(tmp_path, "--keep", "1", command="retention", exit=3)["result"]["rows"]
    assert {row["path"].split("/")[1]: row["fate"] for row in kept} == {
        "chk-5": "VALID",
        "chk-6": "KEEP",
        "chk-7": "KEEP",
    }


def test_rows_of_a_file_that_is_gone_come_again_from_an_older_checkpoint(tmp_path: Path) -> None:
    three(tmp_path, b"12345", b"1", None)
    answer = held(tmp_path, exit=3)
    (run,) = answer["result"]["runs"]
    assert (run["action"], run["chosen"]) == ("repair-first", "chk-7")
    assert errors(answer) == [("pending-file-missing", "out", "data-lost")]
    (finding,) = [f for f in answer["findings"] if f["id"] == "pending-file-missing"]
    assert f"{JOB}/chk-5 has all of its files (--at {JOB}/0=5)" in finding["message"]


def test_older_checkpoints_lack_files_as_a_matter_of_course(tmp_path: Path) -> None:
    """A file in progress has its last name once a newer checkpoint is complete: nobody keeps them for that."""
    three(tmp_path, b"12345", None, b"12345", opened=[5, 6, 7])
    answer = held(tmp_path)
    assert answer["result"]["action"] == "restart"
    assert [row["verdict"] for row in answer["result"]["details"]["snapshots"]] == [
        "restorable",
        "sink-file-missing",
        "restorable",
    ]
    for options, expected in (
        ([], ["VALID", "KEEP", "VALID"]),
        (["--keep", "2"], ["KEEP", "OBSOLETE", "VALID"]),
        (["--keep", "1"], ["OBSOLETE", "OBSOLETE", "VALID"]),
    ):
        plan = held(tmp_path, *options, command="retention")["result"]
        assert [row["fate"] for row in plan["rows"]] == expected


def test_a_file_that_was_renamed_and_is_too_short_has_lost_rows(tmp_path: Path) -> None:
    """As Flink 2.3.0 does: a restore passes over it, as over one that was committed."""
    name, renamed = file_sink(tmp_path, 7)
    Path(renamed).write_bytes(b"1234")
    answer = held(tmp_path, exit=3)
    assert answer["result"]["action"] == "repair-first"
    assert answer["result"]["details"]["pending"][0]["missing"] == [name]
    assert errors(answer) == [("pending-file-missing", "out", "data-lost")]
    (finding,) = [f for f in answer["findings"] if f["id"] == "pending-file-missing"]
    assert "of out/part-0 4 of 5 bytes are there" in finding["message"]
    Path(renamed).write_bytes(b"12345")
    assert errors(held(tmp_path)) == []


ID = "0f1e2d3c-0000-4000-8000-000000000001"
WRITER = f"part-{ID}"


@pytest.mark.parametrize("open", [False, True])
def test_files_that_a_lost_checkpoint_has_committed_are_written_again(tmp_path: Path, open: bool) -> None:
    """As Flink 2.3.0 does: files are numbered by their writer, and the restored job writes the rows of later ones."""
    name, _ = file_sink(tmp_path, 7, open=open, part=f"{ID}-9")
    Path(name).write_bytes(b"12345")
    out = tmp_path / "out"
    for fine in (
        f"{WRITER}-8",
        f"{WRITER}-08",
        f".{WRITER}-10.inprogress.1",
        f"part-{'0' * 32}-10",
        f"old-{WRITER}-10",
    ):
        (out / fine).write_bytes(b"1")
    assert errors(held(tmp_path)) == []
    for later in (f"{WRITER}-10", f"{WRITER}-11.csv"):
        (out / later).write_bytes(b"1")
    answer = held(tmp_path, exit=3)
    assert answer["result"]["action"] == "repair-first"
    assert errors(answer) == [("files-committed-since", "out", "data-duplicated")]
    (finding,) = [f for f in answer["findings"] if f["id"] == "files-committed-since"]
    assert [where["path"] for where in finding["where"]] == [f"out/{WRITER}-10", f"out/{WRITER}-11.csv"]
    assert ("out", "", "may-be-doubled", "2 files", None, "committed-later") in fates(impact(tmp_path, exit=3))
    assert errors(held(tmp_path, command="inspect")) == []
    file_sink(tmp_path, 8, open=open, part=f"{ID}-11")
    (out / f".{WRITER}-11.inprogress.1").write_bytes(b"12345")
    assert errors(held(tmp_path)) == []


def test_files_of_a_newer_checkpoint_are_seen_and_come_again(tmp_path: Path) -> None:
    name, _ = file_sink(tmp_path, 7)
    Path(name).write_bytes(b"12345")
    file_sink(tmp_path, 8)
    found = impact(tmp_path, "--at", f"{JOB}=7")
    assert fates(found) == [
        ("out", "", "may-be-doubled", "checkpoint 8", None, "committed-later"),
        ("out", "", "once", "checkpoint 7", None, "committed-by-restore"),
    ]
    assert [(row["sink"], row["readers"]) for row in found["guarantees"]] == [("out", "")]
    assert [row["fate"] for row in found["transactions"]] == ["committed", "visible"]


def test_an_open_file_hides_what_comes_again_unless_a_newer_checkpoint_may_have_shown_it(tmp_path: Path) -> None:
    name, _ = file_sink(tmp_path, 7, open=True)
    Path(name).write_bytes(b"12345")
    (row,) = impact(tmp_path)["guarantees"]
    (held,) = [piece for piece in row["evidence"] if piece["piece"] == "output"]
    assert (row["sink"], held["holds"], held["because"]) == ("out", True, "pending-files")
    file_sink(tmp_path, 8, open=True)
    (row,) = impact(tmp_path, "--at", f"{JOB}=7")["guarantees"]
    (held,) = [piece for piece in row["evidence"] if piece["piece"] == "output"]
    assert held["holds"] is None


def test_what_a_table_has_taken_is_not_guessed(tmp_path: Path) -> None:
    job(tmp_path, 17, committer(17, (1, sinks.iceberg(17, b""))))
    (row,) = impact(tmp_path)["guarantees"]
    assert (row["sink"], row["readers"], row["at_best"]) == ("orders", "", "exactly-once")
    assert row["guarantee"] != "exactly-once"
    assert "table-not-asked" in {piece["because"] for piece in row["evidence"]}


def test_snapshots_that_have_nothing_for_sinks_say_nothing(tmp_path: Path) -> None:
    job(tmp_path, 17, committer(17))
    answer = held(tmp_path)
    assert "pending" not in answer["result"]["details"]
    assert "pending" not in held(tmp_path, command="inspect")["result"]

"""What committers of Flink's sinks keep: by the layouts of their serializers, version by version.

Bytes of Iceberg and Paimon are made by hand from the formats; of the file sink, `REAL` is what Flink 2.3.0 wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import flink as fb
from tests.builders.flink import Built
from tests.builders.sinks import flink as sinks
from tests.reading.flink import said, scanned

COMMITTERS, WRITERS = "streaming_committer_raw_states", "writer_raw_states"
DATA, DELETES = "s3://lake/orders/metadata/a-m0.avro", "s3://lake/orders/metadata/b-m1.avro"
BOTH = sinks.manifests(DATA, DELETES, files=("s3://lake/orders/data/1.parquet",))
PLACE = sinks.place("/out/part-0", "/out/.part-0.inprogress.1", 1135)
Cells = dict[str, Any]
KEPT = ("pending", "committer", "transaction", "unread")

ICEBERG = {"form": "iceberg", "uid": sinks.JOB, "detail": sinks.OPERATOR, "kind": "pending", "checkpoint": 17}


def kept(folder: Path, data: bytes, places: dict[str, tuple[int, list[int]]]) -> list[Cells]:
    """Rows of sinks in operator state, without whose they are; the detail of what is unread as its sentence."""
    path = folder / "_metadata"
    managed = fb.states(fb.inline(data), places)
    path.write_bytes(fb.metadata(6, [fb.operator(6, [fb.subtask(6, 1, managed=managed)])]).data)
    rows = [row for row in said(path) if row["entry"] in KEPT]
    return [{name: cell for name, cell in row.items() if name not in ("operator", "subtask")} for row in rows]


def committed(folder: Path, *committables: tuple[int, bytes], checkpoint: int = 17, **how: Any) -> list[Cells]:
    """Rows of a committer's state with these committables."""
    data, places = fb.operator_state({COMMITTERS: [fb.versioned(2, sinks.collected(checkpoint, committables, **how))]})
    return kept(folder, data, places)


def bare(folder: Path, lists: dict[str, Sequence[bytes]]) -> list[Cells]:
    return kept(folder, *sinks.bare_state(lists))


def pending(rows: Sequence[Cells]) -> list[Cells]:
    assert {row["entry"] for row in rows} <= {"pending"}, rows
    return [{name: cell for name, cell in row.items() if name != "entry"} for row in rows]


@pytest.mark.parametrize("versions", [(0, 0), (0, 1), (1, 1), (1, 2)])
def test_a_row_for_each_manifest_of_iceberg(tmp_path: Path, versions: tuple[int, int]) -> None:
    found = committed(tmp_path, (1, sinks.iceberg(17, BOTH)), versions=versions)
    assert pending(found) == [ICEBERG | {"file": DATA}, ICEBERG | {"file": DELETES}]


def test_manifests_before_deletes_were_known(tmp_path: Path) -> None:
    """Version 1 is the manifest alone."""
    found = committed(tmp_path, (1, sinks.iceberg(17, sinks.manifests(DATA, version=1))))
    assert pending(found) == [ICEBERG | {"file": DATA}]


def test_a_checkpoint_without_rows_is_a_number_and_no_file(tmp_path: Path) -> None:
    assert pending(committed(tmp_path, (1, sinks.iceberg(17, b"")))) == [ICEBERG]
    assert pending(committed(tmp_path, (1, sinks.iceberg(17, sinks.manifests(None))))) == [ICEBERG]


@pytest.mark.parametrize("version", [3, 4, 99])
def test_manifests_of_another_version_are_named_and_not_guessed(tmp_path: Path, version: int) -> None:
    """Versions 3 and 4 are proposals whose layouts contradict each other."""
    row, unread = committed(tmp_path, (1, sinks.iceberg(17, fb.versioned(version, b"whatever"))))
    assert pending([row]) == [ICEBERG | {"version": version}]
    assert unread["kind"] == "later-version"
    assert unread["detail"] == (
        f"1 list of manifests of {COMMITTERS}, of serializer version {version}, is laid out in no known way"
    )


def test_a_schema_whose_first_field_is_no_path_is_not_guessed(tmp_path: Path) -> None:
    schema = sinks.SCHEMA.replace("manifest_path", "something_else")
    held = fb.versioned(1, sinks.manifest(DATA, schema))
    assert committed(tmp_path, (1, sinks.iceberg(17, held)))[0] == ICEBERG | {"entry": "pending", "version": 1}


@pytest.mark.parametrize("version", [1, 2])
def test_a_sink_of_several_tables_names_each(tmp_path: Path, version: int) -> None:
    held = [sinks.manifests(DATA)] if version == 1 else [sinks.manifests(DATA), sinks.manifests(DELETES)]
    found = committed(
        tmp_path,
        (version, sinks.dynamic(version, "db.orders", 17, held)),
        (version, sinks.dynamic(version, "db.returns", 17, [b""], branch="audit")),
    )
    cells = ICEBERG | {"form": "iceberg-dynamic"}
    files = [DATA] if version == 1 else [DATA, DELETES]
    assert pending(found) == [
        *(cells | {"name": "db.orders", "file": file} for file in files),
        cells | {"name": "db.returns audit"},
    ]


def test_the_older_sink_of_iceberg_keeps_a_map_and_the_id_of_its_job(tmp_path: Path) -> None:
    held = sinks.by_checkpoint([(15, BOTH), (16, b""), (17, sinks.manifests(DELETES)), (18, None)])
    found = bare(tmp_path, {"iceberg-files-committer-state": [held], "iceberg-flink-job-id": [sinks.text(sinks.JOB)]})
    cells = {"entry": "pending", "form": "iceberg-files", "kind": "pending"}
    assert found == [
        cells | {"checkpoint": 15, "file": DATA},
        cells | {"checkpoint": 15, "file": DELETES},
        cells | {"checkpoint": 16},
        cells | {"checkpoint": 17, "file": DELETES},
        {"entry": "committer", "uid": sinks.JOB, "form": "iceberg-files"},
    ]


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("iceberg-files-committer-state", sinks.by_checkpoint([(17, BOTH), (17, BOTH)])),
        ("iceberg-files-committer-state", sinks.by_checkpoint([(-1, BOTH)])),
        ("iceberg-files-committer-state", sinks.by_checkpoint([(17, BOTH)])[:-1]),
        ("iceberg-files-committer-state", b"\x7f\xff\xff\xff"),
        ("iceberg-flink-job-id", sinks.text("not a job")),
        ("iceberg-flink-job-id", b"\xff\xff\xff\xff\xff\xff"),
        ("iceberg-flink-job-id", b"\0"),
        ("commit_user_state", sinks.text("")),
        ("commit_user_state", sinks.text("x" * 40)[:20]),
    ],
)
def test_other_bytes_in_these_lists_are_unread(tmp_path: Path, name: str, element: bytes) -> None:
    (unread,) = bare(tmp_path, {name: [element]})
    assert unread["kind"] == "unknown-committable"
    assert unread["detail"] == f"1 element of {name}, of no version of its own, is laid out in no known way"


def test_values_without_a_length_are_read_once_however_often_they_are_named(tmp_path: Path) -> None:
    """A hundred thousand places that each lead to the same long value, which is none: time would grow with both."""
    name = "iceberg-files-committer-state"
    long = fb.i32(20_001) + sinks.by_checkpoint([(n, b"") for n in range(20_000)])[4:] + fb.i64(3) + b"\2"
    data, places = sinks.bare_state({name: [long]})
    mode, (at,) = places[name]
    (unread,) = kept(tmp_path, data, {name: (mode, [at] * 100_000)})
    assert unread["detail"].startswith("100000 elements of iceberg-files-committer-state")


def test_a_manifest_s_bytes_are_avro_s() -> None:
    """Those made here are read by another decoder."""
    decoder = pytest.importorskip("pyiceberg.avro.decoder", reason="pyiceberg is not installed")
    made = sinks.manifest(DATA)
    behind = decoder.new_decoder(made[2 + 2 + len(sinks.SCHEMA) :])
    assert (behind.read_utf8(), behind.read_int()) == (DATA, 6000)


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_paimon_tells_its_identifier_and_that_files_are_not_read(tmp_path: Path, version: int) -> None:
    element = fb.versioned(version, sinks.paimon(version, 17, messages=2, watermark=9))
    data, places = fb.operator_state({COMMITTERS: [element]})
    row, unread = kept(tmp_path, data, places)
    cells = {"entry": "pending", "form": "paimon", "kind": "pending", "checkpoint": 17}
    assert row == cells | {"version": 11, "detail": "2 commit messages"}
    assert unread["kind"] == "unread-messages"


def test_paimon_with_nothing_to_commit_but_its_identifier(tmp_path: Path) -> None:
    last = (1 << 63) - 1
    for identifier in (0, 17, last):
        data, places = fb.operator_state({COMMITTERS: [fb.versioned(5, sinks.paimon(5, identifier, messages=0))]})
        (row,) = pending(kept(tmp_path, data, places))
        assert row == {"form": "paimon", "kind": "pending", "checkpoint": identifier}


@pytest.mark.parametrize(
    "element",
    [
        fb.versioned(1, sinks.paimon(2, 17)),
        fb.versioned(5, sinks.paimon(5, -1)),
        fb.versioned(5, sinks.paimon(5, 1 << 60)),
        fb.versioned(5, sinks.paimon(5, 17, of=0)),
        fb.versioned(5, sinks.paimon(5, 17, messages=0) + b"\0"),
    ],
)
def test_other_committers_are_unread(tmp_path: Path, element: bytes) -> None:
    data, places = fb.operator_state({COMMITTERS: [element]})
    (unread,) = kept(tmp_path, data, places)
    assert unread["kind"] == "unknown-committable"
    assert f"of serializer version {element[3]}" in unread["detail"]


@pytest.mark.parametrize(
    "element",
    [
        fb.versioned(3, fb.collector(7, [])),
        fb.versioned(2, fb.collector(7, [], (2, 2))),
        fb.versioned(2, fb.collector(7, [b""], (1, 3))),
        fb.versioned(2, fb.collector(7, [b""], fate=4)),
    ],
)
def test_committers_of_later_versions_are_told_from_unknown_ones(tmp_path: Path, element: bytes) -> None:
    data, places = fb.operator_state({COMMITTERS: [element]})
    (unread,) = kept(tmp_path, data, places)
    assert unread["kind"] == "later-version"


@pytest.mark.parametrize("version", [7, 255])
def test_a_committable_of_paimon_is_known_by_the_list_of_its_user(tmp_path: Path, version: int) -> None:
    element = fb.versioned(version, b"of another layout")
    data, places = fb.operator_state({COMMITTERS: [element]})
    (unread,) = kept(tmp_path, data, places)
    assert unread["kind"] == "unknown-committable"
    data, places = sinks.bare_state({COMMITTERS: [fb.blob(element)], "commit_user_state": [sinks.text("me")]})
    assert [row["kind"] for row in kept(tmp_path, data, places) if row["entry"] == "unread"] == ["later-version"]


@pytest.mark.parametrize("version", [3, 9, 255])
def test_files_of_sinks_of_later_versions(tmp_path: Path, version: int) -> None:
    held = sinks.file_committable(sinks.pending_file(PLACE, "file:/out/part-0"))
    (unread,) = committed(tmp_path, (version, held))
    assert unread["kind"] == "later-version"
    bucket = sinks.file_bucket(sinks.file_in_progress(PLACE, "file:/out/part-0"), "file:/out")
    data, places = fb.operator_state({WRITERS: [fb.versioned(version + 1, bucket)]})
    (unread,) = kept(tmp_path, data, places)
    assert unread["kind"] == "later-version"


def test_the_user_of_paimon(tmp_path: Path) -> None:
    user = "e5f0a1b2-0000-4000-8000-00000000äöü"
    assert bare(tmp_path, {"commit_user_state": [sinks.text(user)]}) == [
        {"entry": "committer", "uid": user, "form": "paimon"}
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_to_be_renamed(tmp_path: Path, version: int) -> None:
    held = sinks.file_committable(
        sinks.pending_file(PLACE, "file:/out/part-0", 1135, version),
        version,
        removed=sinks.file_in_progress(PLACE, "file:/out/part-0", version),
        compacted="file:/out/part-9",
    )
    (row,) = pending(committed(tmp_path, (version, held)))
    target = "file:/out/part-0" if version == 2 else "/out/part-0"
    cells = {"form": "file", "file": "/out/.part-0.inprogress.1", "bytes": 1135, "detail": target, "kind": "pending"}
    assert row == cells | {"checkpoint": 17} | ({"name": "day=1"} if version == 2 else {})


def test_a_file_of_hadoop_s_file_systems(tmp_path: Path) -> None:
    there = sinks.place("hdfs://n/out/p", "hdfs://n/out/.p.inprogress.1", 7, "5e6c43d7")
    (row,) = pending(committed(tmp_path, (2, sinks.file_committable(sinks.pending_file(there, "hdfs://n/out/p")))))
    assert (row["file"], row["detail"]) == ("hdfs://n/out/.p.inprogress.1", "hdfs://n/out/p")


def test_of_a_store_only_the_target_is_told(tmp_path: Path) -> None:
    upload = sinks.pending_file(b"parts of an upload", "s3://b/out/p", 7, of=2)
    row, unread = committed(tmp_path, (2, sinks.file_committable(upload)))
    assert (row.get("file"), row["detail"], row["version"]) == (None, "s3://b/out/p", 2)
    assert unread["kind"] == "unknown-place"


def test_what_is_only_removed_is_not_pending(tmp_path: Path) -> None:
    held = sinks.file_committable(None, removed=sinks.file_in_progress(PLACE), compacted="file:/out/part-9")
    assert committed(tmp_path, (2, held)) == []


def test_files_that_writers_go_on_with(tmp_path: Path) -> None:
    bucket = sinks.file_bucket(sinks.file_in_progress(PLACE, "file:/out/part-0"), "file:/out")
    data, places = fb.operator_state({WRITERS: [fb.versioned(3, bucket)]})
    (row,) = pending(kept(tmp_path, data, places))
    cells = {"form": "file", "file": "/out/.part-0.inprogress.1", "bytes": 1135, "detail": "file:/out/part-0"}
    assert row == cells | {"kind": "in-progress", "name": "file:/out"}
    older = sinks.file_bucket(None, "file:/out", sinks.pending_file(PLACE, "file:/out/part-0"))
    data, places = fb.operator_state({WRITERS: [fb.versioned(2, older)]})
    (row,) = pending(kept(tmp_path, data, places))
    assert row == cells | {"kind": "pending", "name": "file:/out", "checkpoint": 4}


@pytest.mark.parametrize(("fate", "kind"), [(0, "pending"), (1, "pending"), (2, "failed"), (3, "committed")])
def test_what_became_of_a_request(tmp_path: Path, fate: int, kind: str) -> None:
    (row,) = pending(committed(tmp_path, (1, sinks.iceberg(17, sinks.manifests(DATA))), fate=fate))
    assert row["kind"] == kind


def test_of_an_unknown_committable_its_checkpoint_and_version_are_told(tmp_path: Path) -> None:
    *rows, unread = committed(tmp_path, (2, b"somebody's own"), (2, b"another"), checkpoint=5)
    assert pending(rows) == [{"kind": "pending", "checkpoint": 5, "version": 2}] * 2
    assert unread["kind"] == "unknown-committable"
    assert unread["detail"] == (
        f"2 committables of {COMMITTERS}, of serializer version 2, are laid out in no known way"
    )
    *_, unread = committed(tmp_path, (7, b"somebody's own"), (7, b"another"))
    assert unread["kind"] == "unknown-committable"


def test_versions_without_end_are_told_as_others(tmp_path: Path) -> None:
    found = committed(tmp_path, *((-version, b"?") for version in range(100)))
    unread = [row["detail"] for row in found if row["entry"] == "unread"]
    assert len(unread) == 9
    assert unread[-1].startswith(f"92 committables of {COMMITTERS}, of other serializer versions")


REAL = bytes.fromhex(
    "0000000200000188b91f252c000000010000000100000178000000000000002e00000002000000020000000100000160000000000000"
    "0000000000010000014800000002000001381e765c8000000100000002000001272c853c8901004766696c653a2f7372762f70617274"
    "732f636c6f7365642f6f75742f706172742d39323439613866652d666331662d343731662d393731632d316438353637646165626438"
    "2d3435000000000000091000000001000000c9574b741e100900000000000042000000730000002f7372762f70617274732f636c6f73"
    "65642f6f75742f706172742d39323439613866652d666331662d343731662d393731632d3164383536376461656264382d34352f7372"
    "762f70617274732f636c6f7365642f6f75742f2e706172742d39323439613866652d666331662d343731662d393731632d3164383536"
    "376461656264382d34352e696e70726f67726573732e66633930336362652d636138382d343635622d626231382d3036383931623063"
    "66646238000000000000000000000000000100000000"
)


def test_what_flink_wrote(tmp_path: Path) -> None:
    """The element of a committer in checkpoint 46 of a job of Flink 2.3.0 that writes files, closed by checkpoints.

    The folder's name is another of the same length.
    """
    data, places = fb.operator_state({COMMITTERS: [REAL]})
    (row,) = pending(kept(tmp_path, data, places))
    name = "part-9249a8fe-fc1f-471f-971c-1d8567daebd8-45"
    assert row == {
        "form": "file",
        "kind": "pending",
        "checkpoint": 46,
        "file": f"/srv/parts/closed/out/.{name}.inprogress.fc903cbe-ca88-465b-bb18-06891b0cfdb8",
        "detail": f"file:/srv/parts/closed/out/{name}",
        "bytes": 2320,
    }


ELEMENTS = {
    "iceberg": fb.versioned(2, sinks.collected(17, [(1, sinks.iceberg(17, BOTH))])),
    "dynamic": fb.versioned(2, sinks.collected(17, [(2, sinks.dynamic(2, "db.t", 17, [BOTH, b""]))])),
    "files": REAL,
    "paimon": fb.versioned(5, sinks.paimon(5, 17)),
}


@pytest.mark.quarter
@pytest.mark.parametrize("name", ELEMENTS)
def test_no_changed_byte_becomes_a_traceback_or_more_than_there_was(tmp_path: Path, name: str) -> None:
    """There is no checksum: a changed byte may be another name or number, but never more that is pending."""
    data, places = fb.operator_state({COMMITTERS: [ELEMENTS[name]]})
    begin = places[COMMITTERS][1][0]
    before = [row for row in kept(tmp_path, data, places) if row["entry"] == "pending"]
    for at in range(begin, len(data)):
        for changed in (data[at] ^ 0xFF, data[at] ^ 1, 0):
            path = _written(tmp_path, data[:at] + bytes([changed]) + data[at + 1 :], places)
            rows, damage = scanned(path)
            assert {d.id for d in damage} <= {"unknown-version"}
            after = [row for row in rows if row["entry"] == "pending"]
            assert len(after) <= len(before)
            told = [row for row in rows if row["entry"] in ("pending", "unread", "transaction")]
            assert told or damage, f"byte {at} as {changed:#x}: nothing is told of what was there"


def test_no_changed_byte_of_the_older_sink_s_map_becomes_a_traceback(tmp_path: Path) -> None:
    held = sinks.by_checkpoint([(15, BOTH), (17, sinks.manifests(DELETES))])
    data, places = sinks.bare_state({"iceberg-files-committer-state": [held]})
    for at in range(places["iceberg-files-committer-state"][1][0], len(data)):
        path = _written(tmp_path, data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :], places)
        rows, damage = scanned(path)
        assert {d.id for d in damage} <= {"unknown-version"}
        assert len([row for row in rows if row["entry"] == "pending"]) <= 3


def _written(folder: Path, data: bytes, places: dict[str, tuple[int, list[int]]]) -> Path:
    path = folder / "_metadata"
    managed: Built = fb.states(fb.inline(data), places)
    path.write_bytes(fb.metadata(6, [fb.operator(6, [fb.subtask(6, 1, managed=managed)])]).data)
    return path


paths = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cn"]), max_size=40)


@given(paths, st.integers(0, 2**63 - 1), st.none() | paths)
def test_every_manifest_is_read(
    tmp_path_factory: pytest.TempPathFactory, path: str, number: int, more: str | None
) -> None:
    folder = tmp_path_factory.mktemp("any")
    held = sinks.manifests(f"/{path}", None if more is None else f"/{more}")
    rows = pending(committed(folder, (1, sinks.iceberg(number, held)), checkpoint=3))
    assert [row["file"] for row in rows] == [f"/{path}"] + ([] if more is None else [f"/{more}"])
    assert {row["checkpoint"] for row in rows} == {number}

"""Every file of a checkpoint emptied, cut, changed or deleted: no line newer, no traceback, no silence."""

from __future__ import annotations

import pytest

from cklog.parsers.codecs.hadoop_crc import sidecar_of
from tests.builders.spark import REAL, batch_time, load, needs_real, sample
from tests.reading.spark import said, shape

READ = ("ck/metadata", "ck/.metadata.crc", "ck/offsets/", "ck/commits/", "ck/sources/", "out/_spark_metadata/")
READ_PATHS = sorted(path for path in sample().files if path.startswith(READ))


def cuts(data: bytes) -> list[bytes]:
    places = {0, 3, len(data) // 3, len(data) // 2, len(data) - 1}
    return [data[:at] for at in sorted(places) if 0 <= at < len(data)]


def flips(data: bytes) -> list[bytes]:
    places = sorted({0, len(data) // 3, len(data) // 2, len(data) - 1} & set(range(len(data))))
    return [data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :] for at in places for bit in (1, 0x80)]


@pytest.mark.quarter
@pytest.mark.parametrize("path", READ_PATHS)
def test_no_damage_to_a_file_is_silent_or_makes_the_line_newer(path: str) -> None:
    """But for a checksum file that still proves its file: longer chunks with the same one sum."""
    whole = sample()
    for data in cuts(whole.files[path]) + flips(whole.files[path]):
        plan = whole.with_files({**whole.files, path: data}).plan()
        assert plan.committed <= 5
        assert plan.findings or (path.endswith(".crc") and shape(plan) == shape(whole.plan())), data


@pytest.mark.quarter
@pytest.mark.parametrize("path", [path for path in READ_PATHS if not path.endswith(".crc")])
def test_without_checksums_a_cut_is_still_found(path: str) -> None:
    """A changed digit is not, and a sink's batch may list no file: "v1" alone is whole."""
    whole = sample().without_checksums()
    assert whole.plan().findings == ()
    for data in cuts(whole.files[path]):
        plan = whole.with_files({**whole.files, path: data}).plan()
        assert plan.committed <= 5
        assert plan.findings or (data.strip() == b"v1" and path.startswith("out/")), data
    for data in flips(whole.files[path]):
        assert whole.with_files({**whole.files, path: data}).plan().committed <= 5


@pytest.mark.parametrize("path", sorted(sample().files))
def test_a_deleted_file_never_makes_the_line_newer(path: str) -> None:
    whole = sample()
    root = whole.copy()
    del root.files[path]
    plan = root.plan()
    assert plan.committed <= 5
    needed = path.startswith(READ) and not path.endswith(".crc")
    assert plan.findings or not needed or path in ("ck/offsets/0", "ck/commits/0")  # as a purge leaves it


@needs_real
@pytest.mark.parametrize("checksums", [True, False])
def test_a_compact_file_stands_for_all_before_it(checksums: bool) -> None:
    whole = load(REAL / "A_file_hdfs_parquetsink", "file:///mnt/spark/prod1/run_A")
    whole = whole if checksums else whole.without_checksums()
    for folder in ("ck/sources/0", "out/_spark_metadata"):
        older = [path for path in whole.files if path in {f"{folder}/{n}" for n in range(9)}]
        root = whole.copy()
        for path in older:
            root.remove(path)
        assert said(root.plan()) == []
        root.remove(f"{folder}/9.compact")
        assert [finding.severity for finding in root.plan().findings] == ["error"]


@pytest.mark.quarter
@pytest.mark.parametrize("path", [path for path in READ_PATHS if path.startswith(("ck/offsets/", "ck/commits/"))])
def test_damage_never_makes_an_earlier_line_newer(path: str) -> None:
    whole = sample()
    for data in (b"", whole.files[path][:40], None):
        files = {p: d for p, d in {**whole.files, path: data}.items() if d is not None}
        for batch in range(7):
            time = batch_time(batch)
            plan, undamaged = whole.with_files(files).plan(as_of=time), whole.plan(as_of=time)
            assert plan.committed <= undamaged.committed
            assert plan.findings or plan.committed == undamaged.committed
            assert plan.findings or path == "ck/offsets/6" or shape(plan) == shape(undamaged)


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * 100_000,
        b"1" * 100_000,
        b'{"logOffset":1e999}',
        b'{"logOffset":99999999999999999999999}',
        b'{"logOffset":-1}',
        b"NaN",
        b"\xff\xfe",
        b'{"path":"\\ud800","batchId":6}',
        b'{"path":"file:///srv/cklog-sample/wordcount/../../etc/passwd","batchId":6}',
        b'{"path":"file:///\\u0000","batchId":6}',
        b'{"\\u0661":{"\\u0662":1}}',
    ],
    ids=repr,
)
def test_hostile_lines_end_in_a_finding(hostile: bytes) -> None:
    for path in ("ck/offsets/6", "ck/offsets/5", "ck/commits/5", "ck/sources/0/6", "out/_spark_metadata/5"):
        root = sample().without_checksums()
        lines = root.files[path].split(b"\n")
        root.files[path] = b"\n".join([*lines[:-1], hostile])
        plan = root.plan()
        assert plan.committed <= 5
        assert plan.findings or path.startswith(("out/", "ck/sources/"))


def test_a_checksum_file_belongs_to_each_file_of_the_sample() -> None:
    """Otherwise the damage tests above would prove less than they say."""
    files = sample().files
    assert all(sidecar_of(path) in files for path in READ_PATHS if not path.endswith(".crc"))

"""Folders of file sinks beside a checkpoint."""

from __future__ import annotations

from cklog.parsers.spark.file_sinks import find_sinks
from cklog.storage import FileEntry


def test_a_folder_with_a_log_of_its_own_is_a_sink() -> None:
    paths = [
        "ck/commits/0",
        "out/_spark_metadata/0",
        "out/part-0.parquet",
        "a/b/_spark_metadata",
        "c/_spark_metadata/d/0",
    ]
    entries = [FileEntry(path, 1) for path in paths]
    assert find_sinks(entries, "ck/") == ("out",)
    assert find_sinks(entries, "") == ()

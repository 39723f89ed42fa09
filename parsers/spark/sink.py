"""The folder of a Spark file sink: its part files against its log, `_spark_metadata/N` (layout in `spark_log`).

Tasks write part files where readers find them; a batch counts when its log file appears. A batch that was cut short
leaves part files that no log lists, and runs again with other names: each has a random one.
"""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from cklog.inputs.sink_files import SinkFiles
from cklog.parsers.spark.file_logs import SINK_LOG, read_file_log
from cklog.parsers.spark.metadata_log import list_log
from cklog.storage import FileEntry, Root


def sink_files(root: Root, entries: list[FileEntry], folder: str) -> SinkFiles:
    """The files of a sink's folder, by the batches that list them."""
    log = read_file_log(root, list_log(entries, f"{folder}/{SINK_LOG}"))
    here = {posixpath.basename(e.path): e.path for e in entries if _is_result(e.path, folder)}
    listed: dict[int, tuple[str, ...]] = {}
    for number, read in log.reads.items():
        names = (posixpath.basename(unquote(line.path)) for line in read.value or ())
        listed[number] = tuple(sorted(here[name] for name in names if name in here))
    known = {path for paths in listed.values() for path in paths}
    whole = {number for number, read in log.reads.items() if read.flaw is None}
    first = log.listing.base if log.listing.compacts else 0
    lacking = tuple(n for n in range(first, log.listing.newest) if n not in whole)
    return SinkFiles(listed, tuple(sorted(set(here.values()) - known)), log.listing.newest, lacking)


def _is_result(path: str, folder: str) -> bool:
    """Whether readers of the folder take a file for data: no part of its path begins with a dot or an underscore."""
    inside = path.removeprefix(f"{folder}/").split("/")
    return path.startswith(f"{folder}/") and not any(part.startswith((".", "_")) for part in inside)

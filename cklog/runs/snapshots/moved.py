"""Snapshots that are not where they were written, and how to put back together what was moved together.

A checkpoint names its files, and those of its sinks, by the paths that they had. If the folders were moved, a restored
job looks for them there. What was found under another path goes back to the stored one; of what was not found the
command that puts the rest back makes sure that it is there.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from cklog.inputs.offers import OffersSnapshots
from cklog.local_files import without_file_scheme
from cklog.model.findings import Finding, Where
from cklog.model.wording import first_few
from cklog.runs.snapshots.findings import name_of
from cklog.runs.snapshots.verdicts import JudgedSnapshot, Survey
from cklog.runs.snapshots.waiting import SinkFile, unseen_sink_files


class _Part(NamedTuple):
    """A folder that a snapshot names: where it was when the snapshot was written, and where it is now; None: unseen."""

    stored: str
    now: str | None
    sink: str = ""


def moved_findings(
    parser: OffersSnapshots, survey: Survey, chosen: Iterable[JudgedSnapshot], check_files: bool
) -> list[Finding]:
    """Report files that are not where the metadata says, and were found by their job's id or their sink's folder."""
    moved = [(j, parts) for j in chosen if (parts := _parts(parser, survey.tables[j.folder.path], j, check_files))]
    if not moved:
        return []
    first, parts = moved[0]
    others = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
    message = (
        f"{name_of(first)}{others}: {_what(first, parts)}. cklog assumes that PATH is a copy and that the originals "
        "still exist (--map OLD=NEW says so). If the directory was moved, a restore fails in the tasks, because only "
        f"savepoints can be moved: {_put_back(parts)}"
    )
    where = (Where(first.folder.metadata or name_of(first)),)
    return [Finding("stored-elsewhere", "warning", name_of(first), message, where)]


def _parts(parser: OffersSnapshots, table: pa.Table, judged: JudgedSnapshot, check_files: bool) -> list[_Part]:
    """Return what of a snapshot lies elsewhere: its job's folders, then those of its sinks; nothing if none does."""
    folders = posixpath.dirname(judged.folder.job)
    sinks = [_sink_part(parser, folders, one) for one in unseen_sink_files(parser, judged.folder.path, table)]
    sinks = list(dict.fromkeys(sinks)) if check_files else []
    if not judged.moved and all(part.now is None for part in sinks):
        return []
    jobs = [_job_part(parser, judged)] if judged.moved else []
    return [*jobs, *(part for part in sinks if not any(_goes_with(part, job) for job in jobs))]


def _job_part(parser: OffersSnapshots, judged: JudgedSnapshot) -> _Part:
    """Return the folder of the folders of jobs; stored "": the metadata does not say where that was."""
    job = judged.folder.job
    uri = without_file_scheme(judged.uri or "")
    before, found, _ = uri.rpartition(f"/{posixpath.basename(job)}/") if job else ("", "", "")
    return _Part(before if found else "", parser.original(posixpath.dirname(job)))


def _sink_part(parser: OffersSnapshots, folders: str, one: SinkFile) -> _Part:
    """Return the folder of a sink that was moved with `folders`: the one beside them, or below them, if it is there."""
    stored = posixpath.dirname(without_file_scheme(one.stored))
    if one.found is None:
        return _Part(stored, None, one.sink)
    now = posixpath.dirname(one.found)
    common = posixpath.commonpath([f"/{folders}", f"/{now}"])
    inner = posixpath.relpath(f"/{now}", common).split("/")[1:]
    if inner and not f"{stored}/".endswith(f"/{'/'.join(inner)}/"):
        return _Part(stored, None, one.sink)
    for _ in inner:
        stored, now = posixpath.dirname(stored), posixpath.dirname(now)
    return _Part(stored, parser.original(now), one.sink)


def _goes_with(part: _Part, job: _Part) -> bool:
    """Return whether putting a job's folders back puts a sink's folder back, too."""
    return part.now is not None and any(
        part.now == f"{job.now}{rest}" and part.stored == f"{job.stored}{rest}"
        for rest in [part.now.removeprefix(str(job.now))]
    )


def _what(judged: JudgedSnapshot, parts: Iterable[_Part]) -> str:
    told = f" (as in {judged.uri})" if judged.uri else ""
    if not judged.moved:
        sink = next(part for part in parts if part.now is not None)
        return f"files of sink {sink.sink} are stored under another path ({sink.stored}), and cklog found their names"
    if not judged.files:
        return f"it was written to {judged.uri}"
    return f"files are stored under another path{told}, and cklog found them by their job's id"


def _put_back(parts: list[_Part]) -> str:
    """Say how a snapshot that was moved can be restored: from where it was written, with all that was moved with it."""
    unseen = [part for part in parts if part.now is None]
    named = first_few([f"{part.stored} (sink {part.sink})" for part in unseen], 3)
    also = f". The files also name {named}, which cklog did not find: put that back, too, if it was moved"
    words = list(_command(parts))
    if not words:
        return f"put its files back at the stored path first{also if unseen else ''}"
    several = (
        "put all of it back together first" if sum(part.now is not None for part in parts) > 1 else "put it back first"
    )
    return f"{several}, with {' && '.join(words)}{also if unseen else ''}"


def _command(parts: list[_Part]) -> Iterator[str]:
    """Yield the steps that move every folder back if none is in the way and all others are there; none if not local."""
    moves = [(part.stored, _really(part.now)) for part in parts if part.now is not None]
    if not all(stored.startswith("/") and "://" not in now for stored, now in moves):
        return
    for stored, _ in moves:
        yield f"test ! -e {shlex.quote(stored)}"
    for part in parts:
        if part.now is None and part.stored.startswith("/"):
            yield f"test -e {shlex.quote(part.stored)}"
    for above in dict.fromkeys(posixpath.dirname(stored) for stored, _ in moves):
        yield f"mkdir -p {shlex.quote(above)}"
    for stored, now in moves:
        yield f"mv -- {shlex.quote(now)} {shlex.quote(stored)}"


def _really(now: str) -> str:
    """Return a folder by a name that mv moves."""
    return os.path.realpath(now) if now == os.curdir or os.path.islink(now) else now

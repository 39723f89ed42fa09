"""What is wrong with snapshots, in sentences: why one cannot be restored, what it needs of others, where that is."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from cklog.inputs.damage import damage_findings
from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.snapshots import LATER_VERSION, SPLITS
from cklog.model.findings import Finding, Severity, Where, effect_of_error
from cklog.model.wording import agreeing, first_few, many
from cklog.runs.snapshots.generations import programs
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.lineage import Candidates, has_lost_metadata, programs_apart
from cklog.runs.snapshots.verdicts import JudgedSnapshot, SnapshotFlaw, Survey


def name_of(judged: JudgedSnapshot) -> str:
    """Return a snapshot's folder, `.` where that is PATH itself."""
    return judged.folder.path or "."


def snapshot_findings(
    survey: Survey, chosen: Mapping[str, JudgedSnapshot | None], groups: Sequence[Candidates]
) -> list[Finding]:
    """Return a finding for every snapshot that cannot be restored; an error if it is newer than what is chosen.

    Parameters
    ----------
    chosen : by the job's folder what it restarts from, None: nothing
    """
    newer = {
        j.folder.path
        for group in groups
        for j in group.snapshots
        if chosen[group.job] is None or _is_newer(j, chosen[group.job])
    }
    older = {j.folder.metadata for j in survey.judged if j.folder.path not in newer}
    unnumbered = {j.folder.metadata for j in survey.judged if j.id is None and j.folder.path in newer}
    found = [_of_age(f, older, unnumbered) for f in damage_findings(survey.damage)]
    found += survey.contents.findings() if survey.contents is not None else []
    found += [_lost_metadata(group) for group in groups if has_lost_metadata(group)]
    for j in survey.judged:
        severity: Severity = "error" if j.folder.path in newer else "warning"
        if j.verdict in ("missing-state-file", "size-mismatch"):
            found += _broken(j, severity)
            found += [_damaged(j, severity)] if any(f.why for f in j.flaws) else []
        elif j.verdict == "corrupt-state-file":
            found.append(_damaged(j, severity))
        elif j.verdict == "unknown-version" and j.damage is None:
            found.append(_of_unknown_version(j, severity))
        elif j.verdict == "sink-file-missing" and severity == "error":  # older ones lack files as a matter of course
            found.append(_without_sink_files(j))
        elif j.verdict == "no-metadata":
            found.append(_torn(j))
        elif j.verdict == "unchecked":
            found += _unchecked(j, severity)
        if j.disputed:
            found.append(_misnumbered(j, [chosen[group.job] for group in groups if j in group.snapshots]))
    return found


def _of_age(damage: Finding, older: Collection[str | None], unnumbered: Collection[str | None]) -> Finding:
    """Return a finding about metadata by what its snapshots are: older than what is restored, or without a number."""
    files = {place.path for place in damage.where}
    if files and files <= set(older):
        return damage.as_warning()
    if files & set(unnumbered) and damage.severity == "error":
        return replace(damage, message=f"{damage.message}. Its number cannot be read, so it may be the newest")
    return damage


def _misnumbered(j: JudgedSnapshot, chosen: Sequence[JudgedSnapshot | None]) -> Finding:
    """A number inside that something else contradicts; an error if it is, or may be, the newest that is whole."""
    newest = any(one is None or one is j or max(j.numbers) > (one.id or 0) for one in chosen)
    if j.order:
        message = (
            f"{name_of(j)} says that it is checkpoint {j.numbers[0]}, and its sources are "
            f"{'before' if j.numbers[0] > j.numbers[1] else 'after'} those of {j.order}: a bit of the number is "
            f"wrong, or the job went back, and neither is believed: it counts as checkpoint {j.id}"
        )
    else:
        message = (
            f"{name_of(j)} holds the metadata of checkpoint {j.numbers[1]}: the folder was renamed, or a bit of the "
            f"number is wrong, and neither is believed: it counts as checkpoint {j.id}"
        )
    if newest and all(one is not j for one in chosen):
        message += f". If it is checkpoint {max(j.numbers)}, it is newer than what is restored"
    severity: Severity = "error" if newest else "warning"
    # the files of one that is restored are named under its other number, where they are not
    effect = effect_of_error(severity, "restart-fails" if any(one is j for one in chosen) else "older-line")
    where = (Where(j.folder.metadata or name_of(j), 8),)
    return Finding("renamed-snapshot", severity, name_of(j), message, where, effect)


def _is_newer(one: JudgedSnapshot, other: JudgedSnapshot | None) -> bool:
    if other is None or other.id is None:
        return True
    number = one.folder.number if one.id is None else one.id
    return number is None or number > other.id  # without a number it may be the newest


def _place(j: JudgedSnapshot) -> tuple[Where, ...]:
    return (Where(j.folder.metadata or name_of(j)),)


def _broken(j: JudgedSnapshot, severity: Severity) -> Iterator[Finding]:
    """Yield what is wrong with files: that they are missing, or of a wrong size."""
    gone = [f for f in j.flaws if f.size is None and not f.outside]
    wrong = [f for f in j.flaws if f.size is not None and not f.why and not f.unknown]
    effect = effect_of_error(severity, "older-line")
    if gone:
        message = (
            f"{name_of(j)}: {_some_of(len(gone), j)} missing (first {gone[0].path}); a "
            f"restore from it is accepted and fails when tasks start{_found_again(gone)}"
        )
        yield Finding("missing-state-file", severity, name_of(j), message, tuple(Where(f.path) for f in gone), effect)
    if wrong:
        first = wrong[0]
        message = (
            f"{name_of(j)}: {many(len(wrong), 'file')} of another size than stored: {first.path} has {first.size} "
            f"bytes, {first.needed} were stored"
        )
        yield Finding("size-mismatch", severity, name_of(j), message, tuple(Where(f.path) for f in wrong), effect)


def _damaged(j: JudgedSnapshot, severity: Severity) -> Finding:
    """Files of the right size whose bytes are not what was written."""
    bad = [f for f in j.flaws if f.why]
    first = bad[0]
    message = (
        f"{name_of(j)}: {_some_of(len(bad), j)} damaged at the right size: {first.path}, from byte {first.at} on: "
        f"{first.why}. A restore from it is accepted and fails when tasks start, or when they come to the damaged bytes"
    )
    where = tuple(Where(f.path, f.at) for f in bad)
    return Finding("corrupt-file", severity, name_of(j), message, where, effect_of_error(severity, "older-line"))


def _of_unknown_version(j: JudgedSnapshot, severity: Severity) -> Finding:
    """Files that may be right, of a version that is not known."""
    odd = [f for f in j.flaws if f.unknown]
    first = odd[0]
    message = (
        f"{name_of(j)}: {_some_of(len(odd), j)} not read (first {first.path}, at byte {first.at}: {first.unknown}): "
        "whether it can be restored is not known. Use a newer cklog"
    )
    where = tuple(Where(f.path, f.at) for f in odd)
    return Finding("unknown-version", severity, name_of(j), message, where, effect_of_error(severity, "unknown"))


def _without_sink_files(j: JudgedSnapshot) -> Finding:
    """Report files of sinks on which a restore fails."""
    flaws = [f for f in j.flaws if f.sink]
    first = flaws[0]
    how = "is gone" if first.size is None else f"has {first.size} of {first.needed} bytes"
    more = f" ({many(len(flaws) - 1, 'more file')} likewise)" if len(flaws) > 1 else ""
    message = (
        f"{name_of(j)}: {first.path}, a file of sink {first.sink}, {how}{more}: a restore from it fails. From an older "
        "checkpoint the job writes the rows since then again, also those that complete files have already"
    )
    where = tuple(Where(f.path) for f in flaws)
    return Finding("pending-file-missing", "error", first.sink, message, where, effect="older-line")


def _some_of(count: int, j: JudgedSnapshot) -> str:
    """Return so many of the files that a snapshot names, with a verb."""
    if j.files == 1:
        return "the file that it names is"
    return f"{'one' if count == 1 else count} of the {j.files} files that it names {agreeing(count, 'are')}"


def _found_again(gone: Sequence[SnapshotFlaw]) -> str:
    """Where missing files lie, if all or some are below PATH with their size."""
    found = [flaw for flaw in gone if flaw.found]
    if not found:
        return ""
    folders = sorted({posixpath.dirname(flaw.found[0]) for flaw in found})
    where = ", ".join(folders)
    if len(found) < len(gone):
        return f". {len(found)} of them, by name and size, lie in {where}: not enough to mend it"
    return f". All of them, by name and size, lie in {where}: copied to where it names them, they make it whole"


def _lost_metadata(group: Candidates) -> Finding:
    count, job = len(group.snapshots), group.job or "."
    message = (
        f"{job}: none of {count} checkpoints has metadata. A job keeps the last complete one until the next one is: "
        "files called _metadata were lost, as by a copy that left them out, or no checkpoint ever was complete. Look "
        "for them where the job wrote before anything starts over"
    )
    return Finding(
        "no-metadata", "error", job, message, tuple(Where(name_of(j)) for j in group.snapshots[:3]), effect="unknown"
    )


def _torn(j: JudgedSnapshot) -> Finding:
    message = (
        f"{name_of(j)} has no metadata ({many(j.folder.files, 'file')}, {j.folder.bytes} bytes): it was in progress, "
        "or torn, when the job stopped; it cannot be restored"
    )
    return Finding(id="no-metadata", severity="info", subject=name_of(j), message=message, where=(Where(name_of(j)),))


def _unchecked(j: JudgedSnapshot, severity: Severity) -> Iterator[Finding]:
    """Files that nobody looked at, and files that are there and cannot be read."""
    unread = [f for f in j.flaws if f.unread]
    if unread:
        first = unread[0]
        message = (
            f"{name_of(j)}: {_some_of(len(unread), j)} not readable (first "
            f"{first.path}: {first.unread}): whether it can be restored is not known"
        )
        yield Finding("unreadable-file", severity, name_of(j), message, where=tuple(Where(f.path) for f in unread))
    outside = [f for f in j.flaws if f.outside and not f.unread]
    if not outside:
        return
    message = (
        f"{name_of(j)}: {_some_of(len(outside), j)} outside PATH and not looked at (first "
        f"{outside[0].file}); say where with --map OLD=NEW"
    )
    yield Finding(id="files-outside", severity=severity, subject=name_of(j), message=message, where=_place(j))


def not_checked(judged: Iterable[JudgedSnapshot]) -> Finding:
    """Say that nobody looked at files, because that was asked for."""
    count = sum(j.verdict in ("restorable", "unchecked") for j in judged)
    message = f"no file was looked at: {many(count, 'snapshot')} are taken by their metadata's word alone"
    return Finding("files-not-checked", "warning", "--no-check-files", message)


def later_state_findings(survey: Survey, chosen: Iterable[JudgedSnapshot | None]) -> Iterator[Finding]:
    """Yield what sources and sinks of what is restored keep in a version that cklog does not know of their class."""
    for j in (one for one in chosen if one is not None):
        rows = rows_of(survey.tables[j.folder.path], "unread")
        for row in (row for row in rows if row["kind"] == LATER_VERSION):
            means = "where the source resumes" if row["name"] == SPLITS else "what a restore commits for the sink"
            message = f"{name_of(j)}: not read: {row['detail']}, so {means} is unknown. Use a newer cklog"
            yield Finding("unknown-version", "error", name_of(j), message, _place(j), "unknown")


def lineage_findings(
    survey: Survey, groups: Sequence[Candidates], chosen: Mapping[str, JudgedSnapshot | None]
) -> list[Finding]:
    """Say which jobs are taken for restarts of others, and which run one program without anything that shows it."""
    found = []
    for group in (group for group in groups if group.restarts):
        message = (
            f"{group.job or '.'} is taken for a restart of {first_few(group.restarts, 3)}: in one folder of jobs they "
            "have the same operators, checkpoints that count on and sources that go on, and one is to be started. "
            "If they are jobs of their own, ask each one's folder alone"
        )
        found.append(Finding("inferred-lineage", "info", group.job or ".", message, (Where(group.job or "."),)))
    for jobs in programs(survey, [j for j in chosen.values() if j is not None]):
        names = sorted(name_of(j) for j in jobs)
        message = (
            f"{first_few(names, 3)} have the same operators, and nothing shows that one job goes on from another: "
            "start all of them only if they are pipelines of their own, and not restarts of one"
        )
        found.append(Finding("same-program", "warning", names[0], message, tuple(Where(name) for name in names)))
    return found


def program_findings(
    parser: OffersSnapshots, survey: Survey, groups: Sequence[Candidates], asked: Collection[str]
) -> list[Finding]:
    """Say which jobs are several programs under one id; no error of a job whose checkpoint was asked for."""
    found = []
    for group in groups:
        newest = [
            [j for j in one.snapshots if j.folder.path in survey.tables] for one in programs_apart(survey, [group])
        ]
        if len(newest) < 2:
            continue
        severity: Severity = "warning" if group.job in asked else "error"
        told = [
            f"{first_few([name_of(j).rpartition('/')[2] for j in its], 3)} ({_reads(survey, its[0])})" for its in newest
        ]
        ask = " or ".join(f"--at {parser.job_id(group.job)}/0={its[0].id}" for its in newest[:5])
        message = (
            f"{group.job or '.'}: one job id has the checkpoints of {len(newest)} programs: {'; '.join(told[:5])}. "
            "Application mode with high availability gives every job the same id. A program cannot be restored from a "
            f"checkpoint of another one. Choose the program with {ask}"
        )
        where = tuple(Where(name_of(its[0])) for its in newest)
        found.append(Finding("several-programs", severity, group.job or ".", message, where))
    return found


def _reads(survey: Survey, judged: JudgedSnapshot) -> str:
    """What tells a program: its sources, else its operators."""
    table = survey.tables[judged.folder.path]
    sources = sorted({row["name"] for row in rows_of(table, "source")})
    operators = sorted(row["uid"] or row["name"] or row["operator"] for row in rows_of(table, "operator"))
    return f"source {first_few(sources, 2)}" if sources else f"operator {first_few(operators, 2)}"


def claim_findings(survey: Survey, chosen: Iterable[JudgedSnapshot]) -> list[Finding]:
    """Return what it means to claim a snapshot, for each that can be restored in no other way (`must_be_claimed`)."""
    found = []
    for j in chosen:
        if must_be_claimed(survey, j):
            others = [o for o in survey.judged if o is not j and o.wanted and o.uses & j.uses]
            named = first_few([name_of(o) for o in others], 3)
            lost = f"; {named} {'names' if len(others) == 1 else 'name'} some of them too" if others else ""
            message = (
                f"{name_of(j)} was written with a changelog, and such a job cannot be restored without claiming: with "
                "NO_CLAIM, the default, it starts and fails at its first checkpoint. With -claimMode CLAIM (before "
                "Flink 1.20: -restoreMode CLAIM) the new job owns this snapshot, and deletes it and what it names, in "
                f"the old job's folder too, once its own checkpoints need it no more{lost}. Copy first what is to "
                "stay, and start it once only"
            )
            found.append(Finding("claim-needed", "warning", name_of(j), message, _place(j)))
    return found


def must_be_claimed(survey: Survey, judged: JudgedSnapshot) -> bool:
    """Return whether a restore works only if the new job claims the snapshot: its state backend can do no other."""
    return bool(rows_of(survey.tables[judged.folder.path], "claim"))


class NeededFolder(TypedDict):
    """A folder outside its own job's that a snapshot needs files of; `other_job`: by its id, another job's."""

    snapshot: str
    needs: str
    files: int
    other_job: bool


def dependencies(
    judged: Sequence[JudgedSnapshot], owners: Mapping[str, str], job_id: Callable[[str], str]
) -> list[NeededFolder]:
    """Return the folders outside its own job's of which a snapshot needs files, per snapshot.

    Of snapshots that can be restored, or may be: what the others name is of no use.
    """
    rows: list[NeededFolder] = []
    for j in (j for j in judged if j.wanted):
        counts: dict[str, int] = {}
        for path in j.uses:
            owner = owners.get(path)
            if owner is not None and owner != j.folder.job:
                counts[owner] = counts.get(owner, 0) + 1
        for owner, count in sorted(counts.items()):
            other = job_id(owner) != job_id(j.folder.job)
            rows.append({"snapshot": name_of(j), "needs": owner or ".", "files": count, "other_job": other})
    return rows


def dependency_findings(rows: Sequence[NeededFolder]) -> list[Finding]:
    """Say that a folder must stay, because the snapshots of another job need its files."""
    by_folder: dict[str, list[str]] = {}
    for row in rows:
        if row["other_job"]:
            by_folder.setdefault(row["needs"], []).append(row["snapshot"])
    return [
        Finding(
            id="needed-by-other-job",
            severity="warning",
            subject=folder,
            message=(
                f"{folder} must stay: {', '.join(snapshots[:3])}{' and more' if len(snapshots) > 3 else ''} "
                f"of another job {'needs' if len(snapshots) == 1 else 'need'} files in it"
            ),
            where=(Where(folder),),
        )
        for folder, snapshots in sorted(by_folder.items())
    ]

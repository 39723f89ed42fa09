"""What each job restarts from: snapshots judged, grouped by job, and one chosen for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cklog.engine.reading import Reading
from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import OffersSnapshots
from cklog.model.findings import Effect, Finding
from cklog.model.question import Question
from cklog.model.wording import first_few
from cklog.runs.snapshots.findings import (
    NeededFolder,
    dependencies,
    dependency_findings,
    later_state_findings,
    lineage_findings,
    name_of,
    not_checked,
    program_findings,
    snapshot_findings,
)
from cklog.runs.snapshots.lineage import Candidates, candidates, has_lost_metadata, owners_of
from cklog.runs.snapshots.moved import moved_findings
from cklog.runs.snapshots.order import survey
from cklog.runs.snapshots.verdicts import NOT_READ, VERDICTS, JudgedSnapshot, Survey


class SnapshotPlan(NamedTuple):
    """What each job restarts from.

    `groups` are the jobs with their snapshots, newest first; `chosen` the one that each restarts from, by the job's
    folder, None: none can be restored; `mixed` the folders of jobs that are several programs, of which nobody said
    which one is meant; `asked` the folders of jobs that `--at` names; `rows` which snapshots need files of others;
    `refused` why what was asked for cannot be restored.
    """

    survey: Survey
    groups: Sequence[Candidates]
    chosen: Mapping[str, JudgedSnapshot | None]
    findings: Sequence[Finding]
    rows: Sequence[NeededFolder]
    refused: Sequence[str]
    mixed: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()

    def written(self, job_id: Callable[[str], str]) -> dict[str, int]:
        """Return when what each job restarts from was last written, by the job's id, as far as its files say."""
        times = {job_id(job): j.folder.written for job, j in self.chosen.items() if j is not None}
        return {job: time for job, time in times.items() if time is not None}


def plan_snapshots(parser: OffersSnapshots, reading: Reading, question: Question) -> SnapshotPlan:
    """Find what each job restarts from, as the question asks.

    Raises
    ------
    NotFound : there is no such job or snapshot as asked for
    UsageError : options that snapshots know no answer to
    """
    _refuse(question)
    found = survey(parser, reading, question.check_files, question.check_contents)
    owners = owners_of(parser)
    groups = candidates(parser, found, owners)
    trusted = ("restorable",) if question.check_files else ("restorable", "unchecked")
    chosen = {group.job: newest_of(group, trusted) for group in groups}
    findings = snapshot_findings(found, chosen, groups)
    refused: list[str] = []
    for name, number in question.at:
        group = job_named(parser, groups, name)
        chosen[group.job], more = _asked_for(group, name, number, trusted)
        findings += more
        refused += [finding.message.partition(":")[0] for finding in more]
    findings += later_state_findings(found, chosen.values())
    findings += lineage_findings(found, groups, chosen)
    asked = {job_named(parser, groups, name).job for name, _ in question.at}
    several = program_findings(parser, found, groups, asked)
    findings += several
    subjects = {f.subject for f in several}
    rows = dependencies(found.judged, owners, parser.job_id)
    restored = [j for j in chosen.values() if j is not None]
    findings += moved_findings(parser, found, restored, question.check_files)
    findings += dependency_findings(rows)
    if not question.check_files:
        findings = [f for f in findings if f.id != "files-outside"]
        findings.append(not_checked(found.judged))
    return SnapshotPlan(
        survey=found,
        groups=groups,
        chosen=chosen,
        findings=findings,
        rows=rows,
        refused=refused,
        asked=frozenset(asked),
        mixed=frozenset(group.job for group in groups if (group.job or ".") in subjects) - asked,
    )


def snapshot_named(found: Survey, name: str) -> JudgedSnapshot:
    """Find the snapshot that `--against` names: its folder, the end of it, or its number.

    Raises
    ------
    NotFound : there is no such snapshot, there are several, or it cannot be read
    """
    wanted = name.rstrip("/")
    named = [j for j in found.judged if f"/{j.folder.path}".endswith(f"/{wanted}")]
    named = named or [j for j in found.judged if str(j.id) == wanted]
    readable = [j for j in named if j.folder.path in found.tables]
    if len(readable) != 1:
        why = "no snapshot" if not named else "none that can be read" if not readable else "more than one"
        raise NotFound(f"--against {name}: {why} of that name", "name its folder, as in --against chk-7")
    return readable[0]


def job_named(parser: OffersSnapshots, groups: Sequence[Candidates], name: str) -> Candidates:
    """Find the job that a name means: its folder, its id, or the beginning of its id; with or without `/0`."""
    wanted = name.removesuffix("/0")
    found = [g for g in groups if wanted in (g.job, parser.job_id(g.job))]
    found = found or [g for g in groups if len(wanted) > 3 and parser.job_id(g.job).startswith(wanted)]
    if len(found) != 1:
        known = first_few([parser.job_id(g.job) for g in groups], 5)
        raise NotFound(f"{name}: {'no' if not found else 'more than one'} job of that name", f"jobs: {known}")
    return found[0]


def _refuse(question: Question) -> None:
    if question.failed:
        raise UsageError("--failed: a restored job restarts as a whole from its snapshot", "leave --failed out")
    if question.as_of is not None:
        raise UsageError("--as-of: Flink's snapshots hold no time", "choose one with --at JOB/0=CKPT")
    if question.earliest:
        raise UsageError("--earliest: a snapshot is a line by itself", "choose one with --at JOB/0=CKPT")


def newest_with_metadata(group: Candidates) -> JudgedSnapshot | None:
    """Return the newest snapshot that has metadata: one without never was complete."""
    return next((j for j in group.snapshots if j.folder.metadata is not None), None)


def older_than(group: Candidates, judged: JudgedSnapshot) -> Iterator[JudgedSnapshot]:
    """Yield the older snapshots that can be restored instead of one, the newest first."""
    older = group.snapshots[group.snapshots.index(judged) + 1 :]
    return (j for j in older if j.verdict == "restorable" and j.id is not None and not j.disputed)


def newest_of(group: Candidates, trusted: tuple[str, ...] = ("restorable",)) -> JudgedSnapshot | None:
    """Return the newest snapshot of a job whose verdict is one of `trusted`; None: there is none."""
    return next((j for j in group.snapshots if j.verdict in trusted), None)


def is_unsure(group: Candidates, judged: JudgedSnapshot | None, check_files: bool = True) -> bool:
    """Return whether a snapshot newer than the chosen one may be whole, for all that is known."""
    newer = newer_than(group, judged)
    doubtful = (*NOT_READ, "unchecked") if check_files else NOT_READ
    return has_lost_metadata(group) or any(j.verdict in doubtful for j in newer)


def may_be_older(group: Candidates, judged: JudgedSnapshot) -> bool:
    """Return whether another snapshot of a job is the newer one if the larger of its two numbers is the right one."""
    return any(j.disputed and j is not judged and max(j.numbers) > min(judged.numbers) for j in group.snapshots)


def is_hidden(group: Candidates, judged: JudgedSnapshot | None) -> bool:
    """Return whether a snapshot newer than one of a job was not read to its end, so that nobody knows what it is."""
    return any(j.verdict not in _READ for j in newer_than(group, judged))


_READ = (
    *("restorable", "missing-state-file", "size-mismatch", "corrupt-state-file", "sink-file-missing", "no-metadata"),
)


def newer_than(group: Candidates, judged: JudgedSnapshot | None) -> Sequence[JudgedSnapshot]:
    """Return what is newer than one of the snapshots of a job; all of them, if that is None."""
    return group.snapshots if judged is None else group.snapshots[: group.snapshots.index(judged)]


def _asked_for(
    group: Candidates, name: str, number: int, trusted: tuple[str, ...]
) -> tuple[JudgedSnapshot | None, list[Finding]]:
    """The snapshot of that number; None and why, if it cannot be restored."""
    found = [j for j in group.snapshots if number in j.numbers]
    if not found:
        known = ", ".join(str(j.id) for j in group.snapshots if j.id is not None)
        raise NotFound(f"--at {name}={number}: no such checkpoint", f"there are {known}" if known else "")
    whole = next((j for j in found if j.verdict in trusted), None)
    if whole is not None:
        return whole, []
    message = f"{name_of(found[0])} ({found[0].verdict}): {VERDICTS[found[0].verdict]}"
    effect: Effect = "unknown" if any(j.verdict in NOT_READ for j in found) else "restart-fails"
    return None, [Finding("checkpoint-unreachable", "error", f"{name}={number}", message, effect=effect)]

"""The line of several jobs as an answer: a row and a command for each, links, reasons, and the order of restarts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cklog.inputs.feeds import Feeds, Point
from cklog.joint.graph import Fall, Link, Vector, lost_of
from cklog.joint.order import Turn, restart_order
from cklog.joint.rules import EVERYTHING, Effect, effect_of
from cklog.model.actions import RunAction, worst
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import LineEntry, RecoveryLine, SourceOffset
from cklog.model.verdict import Draft
from cklog.model.wording import first_few
from cklog.runs.batches.line import removal_command


@dataclass(frozen=True, slots=True)
class Told:
    """All that the answer is made of; by job, but for `links`. `own` are the names that kinds give to jobs, if any."""

    jobs: Sequence[Feeds]
    own: Sequence[str]
    paths: Sequence[str]
    newest: Sequence[Point | None]
    links: Sequence[Link]
    vector: Vector
    first: Sequence[Draft[RecoveryLine]]
    drafts: Sequence[Draft[RecoveryLine]]

    def point(self, job: int) -> Point:
        assert self.vector.points is not None
        return self.jobs[job].points[self.vector.points[job]]

    def fell(self, job: int) -> bool:
        """Whether a job restarts from an older point than it would alone."""
        newest = self.newest[job]
        return newest is not None and self.point(job).label != newest.label

    def effects(self, job: int) -> Iterator[tuple[Any, Effect]]:
        """Yield each output of a job, with what its restart does to it."""
        for output in self.jobs[job].outputs:
            written = self.point(job).written.get(output.name)
            effect = None if written is None else effect_of(output, written)
            if effect is not None:
                yield output, effect

    def unlinked(self) -> list[int]:
        """Return the jobs that nothing ties to any other."""
        tied = {job for link in self.links for job in (link.producer, link.consumer)}
        return [j for j in range(len(self.jobs)) if j not in tied]


def told(all_: Told) -> Draft[RecoveryLine]:
    """Make the whole answer, before its verdict."""
    findings = [*_own_findings(all_), *_findings(all_)]
    inputs = [replace(used, path=f"{job.job}/{used.path}") for job, used in _inputs(all_)]
    unknown = bool(all_.unlinked() or any(link.unknown for link in all_.links))
    if all_.vector.points is None:
        line = _nothing(all_)
        return Draft("recovery-line", line, findings, inputs, unrecoverable=True, indeterminate=unknown)
    turns = restart_order(len(all_.jobs), all_.links, all_.vector.points)
    runs = tuple(_run(all_, turn.job) for turn in turns)
    line = RecoveryLine(
        consistent=True,
        protocol="coordinated" if all(d.result.protocol == "coordinated" for d in all_.drafts) else "mixed",
        line=tuple(_entries(all_, turns)),
        channels=(),
        sources=tuple(_sources(all_, turns)),
        rolled_back=(),
        useless=(),
        steps=(),
        domino=len({fall.job for fall in all_.vector.falls}) > 1,
        notes=tuple(_fall_words(all_, fall) for fall in all_.vector.falls) + tuple(_order_notes(all_, turns)),
        details={
            "headline": _headline(all_, turns),
            "joint_order": [_order_row(all_, n, turn) for n, turn in enumerate(turns, 1)],
            "joint_links": [_link_row(all_, link) for link in all_.links],
            "joint_remove": {all_.jobs[turn.job].job: _removed(all_, turn.job) for turn in turns},
        },
        runs=runs,
    )
    return Draft(
        "recovery-line",
        line,
        findings,
        inputs,
        unrecoverable=any(all_.point(j).initial for j in range(len(all_.jobs))),
        indeterminate=unknown or any(draft.indeterminate for draft in all_.drafts),
    )


def _nothing(all_: Told) -> RecoveryLine:
    return RecoveryLine(
        consistent=False,
        protocol="mixed",
        line=(),
        channels=(),
        sources=(),
        rolled_back=(),
        useless=(),
        steps=(),
        domino=False,
        details={"headline": f"No points of these jobs fit together: {all_.vector.stuck}."},
        runs=tuple(_without_point(all_, j) for j in range(len(all_.jobs))),
    )


def _without_point(all_: Told, j: int) -> RunAction:
    """What there is to say of a job of which no point fits: what its own kind would have done about it first."""
    alone = _own_row(all_, all_.first, j)
    more = f"; alone: {alone.note}" if alone is not None and alone.action == "repair-first" and alone.note else ""
    note = f"no point of it fits those of the others{more}"
    return RunAction(all_.jobs[j].job, "start-over", path=all_.paths[j], note=note)


def _own_row(all_: Told, drafts: Sequence[Draft[RecoveryLine]], j: int) -> RunAction | None:
    own = all_.own[j]
    return next((run for run in drafts[j].result.runs if not own or run.run == own), None)


def _inputs(all_: Told) -> Iterator[tuple[Feeds, InputUsed]]:
    for path in dict.fromkeys(all_.paths):
        j = all_.paths.index(path)
        for used in all_.first[j].inputs:
            yield all_.jobs[j], used


_OF_INPUT = ("missing-input-file", "empty-input-file", "unchecked-input")


def _own_findings(all_: Told) -> Iterator[Finding]:
    """What each kind found about its own job, under the job's name."""
    for j, (draft, job) in enumerate(zip(all_.drafts, all_.jobs, strict=True)):
        gone = set() if all_.vector.points is None else set(_gone(all_, j))
        for finding in draft.findings:
            if finding.id in _OF_INPUT and finding.where and all(place.path in gone for place in finding.where):
                continue  # the job forgets these files, and lists what it reads instead
            where = tuple(replace(place, path=f"{job.job}/{place.path}") for place in finding.where)
            subject = f"{job.job}/{finding.subject}"
            yield replace(finding, subject=subject, where=where, message=f"{job.job}: {finding.message}")


def _findings(all_: Told) -> Iterator[Finding]:
    for link in all_.links:
        pair = _pair(all_, link)
        if link.unknown:
            told = f"whether {pair} fit together is not known: {link.unknown}"
            yield Finding("joint-undetermined", "error", pair, told, effect="unknown")
    for j in all_.unlinked():
        name = all_.jobs[j].job
        told = (
            f"nothing shows what {name} reads of the other jobs, or writes for them: name its outputs in its job.json, "
            "or give the folder that holds both its checkpoint and its sink"
        )
        yield Finding("joint-undetermined", "error", name, told, effect="unknown")
    if all_.vector.points is None:
        yield Finding(
            "no-joint-line", "error", "all jobs", f"no points fit together: {all_.vector.stuck}", effect="restart-fails"
        )
        return
    for j, i, why in all_.vector.refused:
        if i < all_.vector.points[j]:
            job = all_.jobs[j]
            yield Finding("sink-would-lose", "warning", f"{job.job}/{job.points[i].label}", why)
    for link in all_.links:
        pair, effect = _pair(all_, link), link.effects[all_.vector.points[link.producer]]
        lost = lost_of(link, all_.vector.points)
        if lost:
            told = f"{lost} of {link.output.name} that {all_.jobs[link.consumer].job} needs can no longer be read"
            yield Finding("joint-lost", "error", pair, told, effect="data-lost")
        if effect is not None and effect.doubled != 0:
            count = "an unknown number" if effect.doubled is None else str(effect.doubled)
            told = (
                f"{link.output.name} keeps what {all_.jobs[link.producer].job} wrote, and gets {count} of it again: "
                f"{all_.jobs[link.consumer].job} reads them twice unless it processes each once, by key"
            )
            yield Finding("joint-doubled", "warning", pair, told)
    for j, job in enumerate(all_.jobs):
        if job.more and all_.point(j).initial:
            told = f"{job.job} has older points than were looked at: one of them may fit"
            yield Finding("joint-undetermined", "error", job.job, told, effect="unknown")


def _run(all_: Told, j: int) -> RunAction:
    """What to do about one job: its own kind's row, and what goes because of the others."""
    job, point = all_.jobs[j], all_.point(j)
    alone = _own_row(all_, all_.first, j)
    row = _own_row(all_, all_.drafts, j) or RunAction(job.job, "undetermined")
    row = replace(row, run=job.job, path=all_.paths[j])
    if alone is not None:
        row = replace(row, newest=alone.newest, newest_time=alone.newest_time)
    doubled = [effect.doubled for _, effect in all_.effects(j)]
    row = replace(
        row,
        lost=None if row.lost is None else row.lost + sum(_lost(all_, j)),
        doubled=row.doubled if not any(doubled) and None not in doubled else _sum(doubled),
        read_again=row.read_again + _more_read(all_, j),
        reads_more=row.reads_more or (all_.fell(j) and any(given.files is not None for given in job.inputs)),
    )
    if any(link.unknown for link in all_.links if j in (link.producer, link.consumer)) or j in all_.unlinked():
        return replace(row, action="undetermined", note="whether it fits the other jobs is not known")
    if point.initial:
        return _anew(all_, j, row)
    if _gone(all_, j) or any(effect.cut is not None for _, effect in all_.effects(j)):
        row = replace(row, action=worst([row.action, "repair-first"]))
    removed = _removed(all_, j)
    if removed:
        listed = removal_command(tuple(removed))
        command = None if listed is None else f"(cd {shlex.quote(job.job)} && {listed})"
        what = "these files" if command else f"the {len(removed)} files of details.joint_remove"
        note = f"among copies of all folders, named as the jobs are: remove {what}; then start the query on its copy"
        row = replace(row, command=command, note=note)
    return replace(row, action=worst([row.action, "restart-older"])) if all_.fell(j) else row


def _anew(all_: Told, j: int, row: RunAction) -> RunAction:
    """A job that begins from nothing: with an empty checkpoint, and without what it wrote."""
    cuts = [output.name for output, effect in all_.effects(j) if effect.cut is not None]
    first = f"; first empty {first_few(cuts, 5)}, the log of it too" if cuts else ""
    note = f"begin anew, without any checkpoint{first}"
    return replace(row, action="start-over", chosen=None, chosen_time=None, age_ms=None, command=None, note=note)


def _removed(all_: Told, j: int) -> list[str]:
    """Return the files that a job's folder must lose before it restarts: for its own sake, and for the others'."""
    return sorted({*_gone(all_, j), *all_.drafts[j].result.details.get("remove", ())})


def _gone(all_: Told, j: int) -> list[str]:
    """Files that a job's folder must lose: what outputs are to forget, and what it listed of others that is gone."""
    found = []
    for output, effect in all_.effects(j):
        if effect.cut is not None:
            found += [path for n, paths in output.entries.items() if n >= effect.cut for path in paths]
    for link in all_.links:
        made = link.effects[_index(all_, link.producer)]
        if link.consumer == j and made is not None and (made.cut is not None or made.replaced is not None):
            read = all_.point(j).read.get(link.input.name)
            found += [
                path for n, paths in link.input.entries.items() if read is not None and n >= read for path in paths
            ]
    return found


def _index(all_: Told, job: int) -> int:
    assert all_.vector.points is not None
    return all_.vector.points[job]


def _lost(all_: Told, j: int) -> Iterator[int]:
    assert all_.vector.points is not None
    for link in all_.links:
        if link.consumer == j and link.output.unit == "record":
            yield lost_of(link, all_.vector.points)


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [*numbers]
    return None if None in known else sum(n for n in known if n is not None)


def _more_read(all_: Told, j: int) -> int:
    """Records of topics that a job reads again because it goes further back than it would alone."""
    newest, point = all_.newest[j], all_.point(j)
    total = 0
    for given in all_.jobs[j].inputs:
        before = None if newest is None else newest.read.get(given.name)
        now = point.read.get(given.name)
        if given.files is None and before is not None and now is not None:
            total += max(before - now, 0)
    return total


def _entries(all_: Told, turns: Sequence[Turn]) -> Iterator[LineEntry]:
    for turn in turns:
        job, own, point = all_.jobs[turn.job], all_.own[turn.job], all_.point(turn.job)
        for entry in all_.drafts[turn.job].result.line:
            if not own or entry.job == own:
                named = replace(entry, operator=f"{job.job}:{entry.operator}", job=job.job)
                named = replace(named, rolled_back=named.rolled_back or all_.fell(turn.job))
                yield replace(named, checkpoint=None, time=None, uri=None, state="initial") if point.initial else named


def _sources(all_: Told, turns: Sequence[Turn]) -> Iterator[SourceOffset]:
    for turn in turns:
        job, own, point = all_.jobs[turn.job], all_.own[turn.job], all_.point(turn.job)
        for source in all_.drafts[turn.job].result.sources:
            if not own or source.job == own:
                named = replace(source, job=job.job)
                yield replace(named, offset=None, replay_to=None) if point.initial else named


def _pair(all_: Told, link: Link) -> str:
    return f"{all_.jobs[link.producer].job} -> {all_.jobs[link.consumer].job}"


def _headline(all_: Told, turns: Sequence[Turn]) -> str:
    back = [all_.jobs[turn.job].job for turn in turns if all_.fell(turn.job)]
    unsure = sorted({_pair(all_, link) for link in all_.links if link.unknown})
    unsure += [all_.jobs[j].job for j in all_.unlinked()]
    lead = f"Undetermined between jobs ({first_few(unsure, 3)}). " if unsure else ""
    restarts = ", ".join(f"{all_.jobs[turn.job].job} from {all_.point(turn.job).label}" for turn in turns)
    because = f"{first_few(back, 5)} must go back because of another job" if back else "None must go back for another"
    sure = ", as far as is known" if unsure else ""
    return f"{lead}{len(turns)} jobs restart together: {restarts}. {because}{sure}."


def _order_row(all_: Told, number: int, turn: Turn) -> dict[str, Any]:
    newest = all_.newest[turn.job]
    return {
        "step": number,
        "job": all_.jobs[turn.job].job,
        "from": all_.point(turn.job).label,
        "alone": newest.label if newest is not None else None,
        "wait_for": ", ".join(all_.jobs[j].job for j in turn.after) or None,
        "together_with": ", ".join(all_.jobs[j].job for j in turn.cycle) or None,
    }


def _link_row(all_: Told, link: Link) -> dict[str, Any]:
    effect = link.effects[_index(all_, link.producer)]
    read = link.read[_index(all_, link.consumer)]
    stays = None if effect is None or effect.stays >= EVERYTHING else effect.stays
    return {
        "from": all_.jobs[link.producer].job,
        "to": all_.jobs[link.consumer].job,
        "output": [link.output.name],
        "what": link.output.unit,
        "fits": None if link.unknown else True,
        "read_to": read,
        "stays_to": stays,
        "cut_at": None if effect is None else effect.cut,
        "doubled": None if effect is None else effect.doubled,
        "lost": lost_of(link, all_.vector.points or ()),
        "why": [link.unknown] if link.unknown else [],
    }


def _fall_words(all_: Told, fall: Fall) -> str:
    """Say why a job goes back: which link, which range.

    As in "B goes back from batch 5 to batch 2: it had read batches 3 to 4 of A, which A will not have as they were".
    """
    job, points = all_.jobs[fall.job].job, all_.jobs[fall.job].points
    writer, what = all_.jobs[fall.link.producer].job, fall.link.output.unit
    last = fall.end - 1
    plural = f"{what}es" if what.endswith("h") else f"{what}s"
    which = f"{what} {fall.first}" if last == fall.first else f"{plural} {fall.first} to {last}"
    return (
        f"{job} goes back from {points[fall.from_].label} to {points[fall.to].label}: by then it had read {which} of "
        f"{writer}, which {writer} writes otherwise, or not at all, once it has restarted"
    )


def _order_notes(all_: Told, turns: Sequence[Turn]) -> Iterator[str]:
    cuts = [
        f"{output.name} loses {output.unit} {effect.cut} and later"
        for turn in turns
        for output, effect in all_.effects(turn.job)
        if effect.cut is not None
    ]
    if cuts:
        yield f"Before any job starts: {'; '.join(cuts)}."
    cycles = {tuple(sorted((turn.job, *turn.cycle))) for turn in turns if turn.cycle}
    for cycle in sorted(cycles):
        names = ", ".join(all_.jobs[j].job for j in cycle)
        yield f"{names} feed each other in a cycle: no order is right for all, start them together."

"""What to do after a crash, in order: each step with a command, its undo, and how to see that it worked."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from cklog.errors import CklogError
from cklog.lines.resume_offsets import planned_offsets
from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine
from cklog.report.model import ReportQuestion, Step

_MOST_RUNS = 20
_BEFORE = "before-restart"
_GROUPS = 'kafka-consumer-groups.sh --bootstrap-server "$BOOTSTRAP_SERVERS" --group "$GROUP"'
_OWN_OFFSETS = ("native", "checkmate")
"""Formats whose sources do not find their offsets in the checkpoint by themselves."""


def steps_of(line: RecoveryLine, form: str, asked: ReportQuestion) -> tuple[Step, ...]:
    """Return what to do about a run of a format, from the copy to the look at what came of it."""
    words = _Words(asked.path, asked.options)
    steps = [_keep_answer(words)]
    if "://" not in asked.path:
        steps.append(_copy(words, line))
    steps += _before(line, words)
    if line.action not in ("undetermined",) and form in _OWN_OFFSETS:
        steps += _offsets(line, words)
    steps += _restarts(line, form, words)
    return tuple(steps)


class _Words:
    """Commands about one run, with its path quoted for a shell."""

    def __init__(self, path: str, options: tuple[str, ...]) -> None:
        bare = path.rstrip("/") or path
        inside = bare in (".", "..") or bare.endswith(("/.", "/.."))
        self.path = shlex.quote(path)
        self.options = options
        self.source = shlex.quote(bare)
        after = shlex.quote(f"{bare}.after-restart")
        self.copy = shlex.quote(f"{bare}/../cklog-{_BEFORE}" if inside else f"{bare}.{_BEFORE}")
        put = f"cp -a -- {self.copy}/. {self.source}"
        self.put_back = put if inside else f"mv -- {self.source} {after} && cp -a -- {self.copy} {self.source}"

    def cklog(self, command: str, more: str = "") -> str:
        """Write a command of cklog about the run, with the options that chose the line."""
        given = f" {shlex.join(self.options)}" if self.options else ""
        return f"cklog {command} {self.path}{given}{f' {more}' if more else ''}"


def _keep_answer(words: _Words) -> Step:
    return Step(
        do="Keep the answer of now, to hold a later one against it.",
        command=words.cklog("recovery-line", "--json -o before.json"),
        undo="Nothing but that file is written.",
        undo_command="rm -- before.json",
        check="It is the answer of this report as long as they do not differ.",
        check_command=f"cklog diff before.json {words.path}",
    )


def _copy(words: _Words, line: RecoveryLine) -> Step:
    must = line.action == "salvage-first"
    why = "a restart destroys intact data in it" if must else "a restart writes to it, and a copy can be asked again"
    return Step(
        do=f"{'Copy the folder before anything else' if must else 'Copy the folder'}: {why}.",
        command=f"mkdir -- {words.copy} && cp -a -- {words.source}/. {words.copy}",
        undo="Delete the copy when it is no longer needed.",
        undo_command=f"rm -r -- {words.copy}",
        check="The copy is the same, byte for byte, if this prints nothing.",
        check_command=f"diff -r -- {words.source} {words.copy}",
    )


def _before(line: RecoveryLine, words: _Words) -> Iterator[Step]:
    """What stands before a restart: evidence to supply, or files to repair."""
    blocked = list(dict.fromkeys(text for run in line.runs for text in run.blocked_by))
    ids = sorted({text.partition(" ")[0] for text in blocked})
    again = words.cklog("recovery-line", "--brief")
    if line.action == "undetermined":
        what = f" The findings name it: {', '.join(ids)}." if ids else ""
        yield Step(
            do=f"Supply what is missing, then ask again: this answer is a bound.{what}",
            command=f"cklog explain {shlex.join(ids)}" if ids else None,
            undo="Nothing is changed.",
            undo_command=None,
            check="The action is no longer undetermined.",
            check_command=again,
        )
    elif line.action == "repair-first":
        repairs = [run for run in line.runs if run.action == "repair-first"]
        for run in repairs[:_MOST_RUNS]:
            if run.command is None:
                continue
            yield Step(
                do=f"Repair{_named(run)}: {(run.note or 'as the command says').replace('below PATH, ', '')}.",
                command=f"(cd {words.source} && {run.command})" if run.command.startswith("rm ") else run.command,
                undo="Put the copy back.",
                undo_command=words.put_back,
                check="The action is no longer repair-first.",
                check_command=again,
            )
        if any(run.command is None for run in repairs):
            yield Step(
                do=f"Repair what the findings name{': ' + ', '.join(ids) if ids else ''}.",
                command=f"cklog explain {shlex.join(ids)}" if ids else None,
                undo="Put the copy back.",
                undo_command=words.put_back,
                check="The action is no longer repair-first.",
                check_command=again,
            )


def _offsets(line: RecoveryLine, words: _Words) -> Iterator[Step]:
    """Set the offsets of sources that are partitions of Kafka, with a dry run first."""
    try:
        rows = planned_offsets(line, "", "")
    except CklogError:  # not Kafka's, or readers that disagree: the tables say where each goes on
        return
    if any(row.offset is None for row in rows):
        return
    current = f"{_GROUPS} --reset-offsets --all-topics --to-current"
    yield Step(
        do="If the sources are a consumer group of Kafka: stop it, and write down where it is now.",
        command=f"{current} --dry-run --export > offsets-before.csv",
        undo="Nothing is changed: the tool prints only.",
        undo_command=None,
        check="The file has a line for every partition.",
        check_command="cat offsets-before.csv",
    )
    yield Step(
        do="Set its offsets to those of the line: read what the dry run prints, then run it again with --execute.",
        command=f"{words.cklog('replay', '--format kafka-csv -o offsets.csv')}\n"
        f"{_GROUPS} --reset-offsets --from-file offsets.csv --dry-run",
        undo="Set them back to what was written down.",
        undo_command=f"{_GROUPS} --reset-offsets --from-file offsets-before.csv --execute",
        check="CURRENT-OFFSET is that of the file, for every partition.",
        check_command=f"{_GROUPS} --describe",
    )


def _restarts(line: RecoveryLine, form: str, words: _Words) -> Iterator[Step]:
    """Restart every run that can be, the newest command first; what cannot be restarted is said."""
    for run in line.runs[:_MOST_RUNS]:
        if run.action == "undetermined":
            continue
        undo, undo_command, check, check_command = _after_restart(form, words, run)
        command = None if run.action == "repair-first" else run.command
        yield Step(_restart_words(run), command, undo, undo_command, check, check_command)
    if len(line.runs) > _MOST_RUNS:
        more = len(line.runs) - _MOST_RUNS
        yield Step(f"Restart the other {more} runs: the table of runs has them.", None, "", None, "", None)


def _named(run: RunAction) -> str:
    return f" {run.run}" if run.run else ""


def _restart_words(run: RunAction) -> str:
    what = "Start over from the initial state" if run.action == "start-over" else "Restart"
    since = f" from {run.chosen}" if run.chosen and run.action != "start-over" else ""
    older = f", older than {run.newest}, the newest stored" if run.action == "restart-older" and run.newest else ""
    note = f": {run.note}" if run.note and run.action != "repair-first" else ""
    return f"{what}{_named(run)}{since}{older}{note}."


def _after_restart(form: str, words: _Words, run: RunAction) -> tuple[str, str | None, str, str | None]:
    """Return undo and check of a restart: each in words and as a command."""
    back = words.put_back
    if form == "flink":
        return (
            "Cancel the new job: restoring changes nothing in a snapshot that it does not own.",
            'flink cancel "$NEW_JOB"',
            "The job manager's log says which snapshot was restored; cklog says whether that was right.",
            f"cklog verify {words.path} --from-log jobmanager.log",
        )
    if form == "spark-checkpoint":
        return (
            "Stop the query and put the copy back; what its sink has taken by then stays there.",
            back,
            "The line is at a later batch than before.",
            f"cklog diff before.json {words.path}",
        )
    if form == "kafka":
        return (
            "Stop the broker and put the copy back.",
            back,
            "The partitions end where this report says.",
            f"cklog inspect {words.path}",
        )
    if form in ("kafka-streams", "quix-streams"):
        return (
            "Stop the instance and put the copy back.",
            back,
            "Its stores have caught up with their changelogs.",
            f"cklog recovery-line {words.path} --brief",
        )
    if form == "patent-store":
        return (
            "Restoring reads only.",
            None,
            "These are the pieces to read, in order.",
            f"cklog chain {words.path}",
        )
    return (
        "Stop the job; where it wrote to the folder, put the copy back.",
        back,
        'Write what it restored into restored.json ({"operator/0": checkpoint, …}); cklog says whether that was right.',
        f"cklog verify {words.path} --restored restored.json",
    )

"""What every runbook has: stop, copy, ask again; then the steps of the kind of run, where the action allows any."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cklog.model.actions import MEANINGS as ACTION_MEANINGS
from cklog.model.actions import Action, RunAction, worst
from cklog.model.lines import UNREAD_POSITION, RecoveryLine, SourceOffset, position_words
from cklog.model.verdict import Answer
from cklog.model.wording import first_few, many
from cklog.render.formats import plain
from cklog.render.shell import kv_text
from cklog.runbook.model import ARGUMENTS, EVERY, MEANINGS, VERBS, Runbook, Step, Variable
from cklog.runbook.shell import ANSWER, Again, commands, folder, from_anywhere, job

Steps = Callable[[RecoveryLine, RunAction, Again], Sequence[Step]]
"""From a line, one of its runs, and the options to ask with again, to the steps from the copy on."""


def runbook_answer(line: Answer[RecoveryLine], path: str, again: Again, steps: Steps) -> Answer[Runbook]:
    """Make a runbook of an answer about a line; its verdict, findings and exit code stay that answer's.

    Parameters
    ----------
    path : what is asked about, for a shell
    again : the options with which the line was asked for
    """
    remote = "://" in path and not path.startswith("file:")
    steps_found = [
        *_common(line, again, remote),
        *(
            replace(step, run="" if step.run == EVERY else run.run)
            for run in line.result.runs
            for step in _of_run(line.result, run, again, steps)
        ),
    ]
    numbered = tuple(replace(step, number=i) for i, step in enumerate(steps_found, 1))
    book = Runbook(
        action=line.result.action,
        path=path,
        runs=tuple(run.run for run in line.result.runs),
        headline=_headline(line.result),
        setup="\n".join(_setup(path, remote)),
        variables=_variables(numbered),
        steps=numbered,
        unchecked=tuple(row for run in line.result.runs for row in run.unchecked),
    )
    return Answer("runbook", line.verdict, line.exit_code, line.inputs, line.findings, book)


def _setup(path: str, remote: bool) -> list[str]:
    """Lines that find the folder, and make the one for copies and plans, which must not lie inside."""
    found = [] if remote else ['RUN=$(CDPATH="" cd -- "$RUN" && pwd -P)']
    made = ['mkdir -- "$SAVE"', 'SAVE=$(CDPATH="" cd -- "$SAVE" && pwd -P)', 'test "${SAVE#"$RUN"/}" = "$SAVE"']
    return [f"RUN={folder(from_anywhere(path))}", *found, *made]


def starting(title: str = "Start the job again", why: str = "", undo: str = "stop it, and put the copy back") -> Step:
    """Return the step that starts what $JOB knows."""
    return Step(
        title=title,
        why=why or "all that a restart needs is in place",
        worked="it runs, and tells of no errors",
        command=job("start"),
        check=job("running"),
        undo=undo,
        undo_command=commands(job("stop"), 'mv -- "$RUN" "$SAVE/after"', 'cp -RPp -- "$SAVE/run" "$RUN"'),
        stop_if="it does not come up, or tells of errors",
        dangerous=True,
    )


def checking_sources(again: Again, sources: Sequence[SourceOffset]) -> Step:
    """Return the step that compares the offsets of the line with what the sources still have."""
    unread = [source.source for source in sources if source.offset == UNREAD_POSITION]
    look_up = f"{position_words(UNREAD_POSITION)} of {first_few(unread, 3)}: look it up before the restart"
    file = '"$SAVE/sources.csv"'
    told = f"--fail-on=never --quiet --table=sources --format=csv --output={file}"
    return Step(
        title="See whether the sources still have what is read again",
        why="a source that begins after its offset silently leaves a gap" + (f"; {look_up}" if unread else ""),
        worked="every source still has the offset that it resumes at",
        command=f'cklog replay "$RUN"{again.whole} {told}',
        check=f'"$JOB" holds {file}',
        stop_if="a source begins after its offset: the data in between is lost",
    )


def asking_again(again: Again, actions: Iterable[Action], where: str = "$RUN") -> tuple[str, str]:
    """Return the command that asks once more, and the check that one of `actions` is the answer."""
    file = '"$SAVE/now.kv"'
    wanted = " ".join(f"-e action={action}" for action in actions)
    return (
        f'{ANSWER} "{where}"{again.whole} --fail-on=never --quiet --format=kv --output={file}',
        f"grep -q -x {wanted} -- {file}",
    )


def _common(line: Answer[RecoveryLine], again: Again, remote: bool) -> list[Step]:
    """Stop, copy, ask again; where nothing is known, the copy alone."""
    result = line.result
    copy = _copying(remote, live=any(entry.state == "current" for entry in result.line))
    if result.action == "undetermined":
        return [copy]
    salvage = [_salvaging()] if any(run.action == "salvage-first" for run in result.runs) else []
    return [_stopping(result), copy, _answer_holds(line, again), *salvage]


def _of_run(line: RecoveryLine, run: RunAction, again: Again, steps: Steps) -> Sequence[Step]:
    if run.action == "undetermined":
        return [_supplying(run)]
    found = steps(line, run, again)
    if any("changelog" in row for row in line.details.get("stores", ())):  # stores of Kafka Streams restore themselves
        return found
    begins = run.chosen is None and run.action != "restart" and (not found or any(step.dangerous for step in found))
    return [_giving_up(line, run), *found] if begins else found


def _stopping(line: RecoveryLine) -> Step:
    live = any(entry.state == "current" for entry in line.line)
    names = [f"{e.operator}/{e.subtask}" for e in line.line if e.state != "current"] if live else []
    return Step(
        title="Stop what still runs",
        why="an instance that comes back by itself writes to the folder while it is read, copied or repaired",
        worked="nothing of it runs",
        command=commands(job("stop", *names)),
        check=commands(job("stopped", *names)),
        undo="start it as it was",
        undo_command=job("start"),
        stop_if="something of it still runs",
        dangerous=True,
    )


def _copying(remote: bool, live: bool) -> Step:
    if remote:
        return Step(
            title="Copy the folder with the tool of its store",
            why="whatever comes after can be undone with the copy",
            worked="the copy has as many objects and bytes",
            check='test "${COPIED-}" = yes',
            stop_if="there is no copy: COPIED=yes says that there is one",
        )
    same = 'test -d "$SAVE/run"' if live else 'diff -r -- "$RUN" "$SAVE/run"'
    return Step(
        title="Copy the folder",
        why="whatever comes after can be undone with the copy",
        worked="$SAVE/run is there" if live else "the copy is the same, byte by byte: nothing writes any more",
        command='cp -RPp -- "$RUN" "$SAVE/run"',
        check=same,
        undo="remove the copy",
        undo_command='rm -r -- "$SAVE/run"',
        stop_if="they differ: something still writes, or cannot be read",
    )


def _answer_holds(line: Answer[RecoveryLine], again: Again) -> Step:
    chosen = {"action": line.result.action, "runs": plain(line.result.runs)}
    told = kv_text({"schema": "", "verdict": "", "result": chosen, "findings": [], "inputs": []}, 0).splitlines()
    kept = [row for row in told if row.startswith("action=") or re.match(r"runs\.\d+\.(action|chosen)=", row)]
    return Step(
        title="Ask once more",
        why="the folder may have changed since these steps were written",
        worked="the answer is the one that these steps are for",
        command=f'{ANSWER} "$RUN"{again.whole} --fail-on=never --quiet --format=kv --output="$SAVE/answer.kv"',
        check=commands(*(f'grep -q -x -F -e {shlex.quote(row)} -- "$SAVE/answer.kv"' for row in kept)),
        stop_if="the answer is another one: ask cklog runbook again, too",
    )


def _salvaging() -> Step:
    return Step(
        title="Salvage what a restart destroys",
        why="it is in the copy, and nowhere else afterwards; another replica may hold it, too",
        worked="somebody has what is wanted of it, or has said that nothing is: SALVAGED=yes",
        check='test "${SALVAGED-}" = yes',
        stop_if="nobody has looked",
    )


def _supplying(run: RunAction) -> Step:
    what = f": {first_few(run.blocked_by, 3)}" if run.blocked_by else ""
    return Step(
        title="Supply what is missing, and ask again",
        why=f"something that could change the action cannot be read, or was not given{what}",
        worked="the action is another one, with steps of its own",
        stop_if="the action is undetermined: start nothing",
    )


def repairing(run: RunAction, again: Again) -> Step:
    """Return the step at which a script ends: nothing here can repair what is found."""
    what = first_few(run.blocked_by, 5) if run.blocked_by else (run.note or "see the findings")
    ask, _ = asking_again(again, [])
    left = " ".join(rf"-e 'runs\.[0-9]*\.action={one}'" for one in (run.action, "undetermined"))
    return Step(
        title="Repair what the findings name, and ask again",
        why=f"{what}; cklog explain tells of each what to do",
        worked="the action is another one, with steps of its own",
        command=ask,
        check=f'test "$(grep -c -x {left} -- "$SAVE/now.kv")" = 0',
        stop_if="the findings are still there: a restart fails, or goes wrong",
    )


def _giving_up(line: RecoveryLine, run: RunAction) -> Step:
    """Return the step before a job starts without any of its state: nobody does that by the way."""
    mine = [source for source in line.sources if len(line.runs) == 1 or source.job == run.run]
    read = first_few([f"{one.source} from {position_words(one.offset)}" for one in mine], 3) or "all of its input"
    known = f", {many(run.read_again, 'record', grouped=True)} or more" if run.read_again else ""
    sinks = {None: "sinks may get results again that they have", 0: "no sink is known to get results again"}
    written = sinks.get(run.doubled, f"sinks get {many(run.doubled or 0, 'result', grouped=True)} again")
    return Step(
        title="Look for another copy of what the findings name",
        why=f"nothing here can be restored: all state is lost. The job reads again {read}{known}; {written}",
        worked="there is one: then ask again; or it is given up: LOST=yes",
        check='test "${LOST-}" = yes',
        stop_if="nobody has decided that all state is given up",
    )


def looking(title: str, why: str, worked: str) -> Step:
    """Return the last step, which is for a person's eyes."""
    return Step(title, why, worked, stop_if="it is otherwise: take the steps back, from the last to the first")


def _variables(steps: Sequence[Step]) -> tuple[Variable, ...]:
    """Every variable that the steps take, and SAVE, which the setup takes."""
    text = "\n".join(part for step in steps for part in (step.command, step.check, step.undo_command) if part)
    used = {"SAVE", *re.findall(r"\$\{?([A-Z_]+)", text), *(["CONFIRM"] if any(s.dangerous for s in steps) else [])}
    verbs = set(re.findall(r'"\$JOB" (\w+)', text))
    told = "; ".join(means for verb, means in VERBS.items() if verb in verbs)
    found = [Variable(name, f"{means} {told}" if name == "JOB" else means) for name, means in MEANINGS.items()]
    return tuple(one for one in found if one.name in used or (one.name == ARGUMENTS and '"$@"' in text))


def _headline(line: RecoveryLine) -> str:
    """Say what is to be done; where that is not the same for all runs, what for each of them."""
    if len({run.action for run in line.runs}) > 1:
        told = [f"{run.run} {run.action}{f' from {run.chosen}' if run.chosen else ''}" for run in line.runs]
        most = worst(run.action for run in line.runs)
        return f"{most} at worst ({ACTION_MEANINGS[most]}): {first_few(told, 4)}."
    known = [run.chosen for run in line.runs if run.chosen and run.action != "undetermined"]
    chosen = first_few(known, 2)
    onto = f"; from {chosen}" if chosen else ""
    return f"{line.action}: {ACTION_MEANINGS[line.action]}{onto}."

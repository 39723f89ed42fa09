"""Steps of a runbook for a job whose subtasks restart one by one: checkpoints or output queues, ranges, offsets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from cklog.model.actions import RunAction
from cklog.model.lines import RecoveryLine, ReplayRange
from cklog.model.wording import first_few
from cklog.runbook.frame import checking_sources, looking, repairing, starting
from cklog.runbook.model import Step
from cklog.runbook.shell import ANSWER, Again, commands, job

_GONE = "a range is not in the log any more: those messages are lost"


def record_steps(line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
    """Return what comes after the copy."""
    if run.action == "repair-first":
        return [repairing(run, again)]
    queues = [e for e in line.line if e.state == "eventual"]
    first = [_loads(line, again.reading)] if queues else _proof(line, again)
    restored = [e for e in line.line if e.state in ("stored", "initial")]
    steps = [*first, *([_restore(line)] if restored else []), *([_load(line)] if queues else [])]
    steps += [checking_sources(again, line.sources)] if line.sources else []
    steps += [step for step in (_cut(line), _truncate(line), _seek(line), _replay(line)) if step]
    return [*steps, starting(undo="stop it, put the copy back, and take the steps again"), _look(run)]


def _proof(line: RecoveryLine, again: Again) -> list[Step]:
    """Return the proof; where channels have no log here, with the step at which somebody says that they have one."""
    unlogged = [c for c in line.channels if c.retained is None and c.replay_to > c.replay_from]
    return [_verified(again, bool(unlogged)), *([_logged(unlogged)] if unlogged else [])]


def _verified(again: Again, unlogged: bool) -> Step:
    line, told = '"$SAVE/line.json"', "--fail-on=never --quiet --format"
    return Step(
        title="Prove the line by other means",
        why="verify shares no code with the search",
        worked="the line is proved, but for the logs of channels, which are not here"
        if unlogged
        else "the line is proved",
        command=commands(
            f'{ANSWER} "$RUN"{again.whole} {told}=json --output={line}',
            f'cklog verify "$RUN"{again.reading}{again.failed} --line={line} {told}=kv --output="$SAVE/proof.kv"',
        ),
        check=f'grep -q -e "^summary=\'Proved"{_ALL_BUT_LOGS if unlogged else ""} -- "$SAVE/proof.kv"',
        stop_if="it is refuted, or cannot be proved",
    )


_ALL_BUT_LOGS = " -e '^summary=.Neither proved nor refuted: replayable cannot be told'"


def _logged(channels: Sequence[ReplayRange]) -> Step:
    ranges = [f"{c.channel} from message {c.replay_from} to {c.replay_to - 1}" for c in channels]
    return Step(
        title="Find the logs of channels that are not here",
        why=f"receivers wait for what was in flight: {first_few(ranges, 3)}. Without a log those messages are lost",
        worked="each channel's log has its range, or these messages are given up: LOGGED=yes",
        check='test "${LOGGED-}" = yes',
        stop_if="nobody has seen that the logs have what is replayed; with them in PATH the proof needs nobody's word",
    )


def _restore(line: RecoveryLine) -> Step:
    told = [
        job("restore", f"{e.operator}/{e.subtask}", "initial" if e.checkpoint is None else e.checkpoint, e.uri or "")
        for e in line.line
        if e.state in ("stored", "initial")
    ]
    return Step(
        title="Restore each subtask from its checkpoint of the line",
        why="the newest checkpoint of each would not be consistent: a message would count twice, or not at all",
        worked="each of them has its state",
        command=commands(*told),
        undo="restore the copy",
        stop_if="one cannot be restored: ask again, with what it says",
        dangerous=True,
    )


def _loads(line: RecoveryLine, reading: str) -> Step:
    made = [
        f'cklog eventual-checkpoint "$RUN"{reading} --operator={shlex.quote(name)} --quiet --format=json '
        f'--output="$SAVE/eventual-{i}.json" || test $? -eq 3'
        for i, name in enumerate(_queues(line))
    ]
    return Step(
        title="Take the eventual checkpoints from the output queues",
        why="each has the state of its open windows, T, and the filter of every window that is replayed",
        worked="each is there, and none is called lost (exit 5)",
        command=commands(*made),
        check="\n".join(f'test -s "$SAVE/eventual-{i}.json"' for i in range(len(made))),
        undo="remove them",
        stop_if="a state is lost: exit 5",
    )


def _load(line: RecoveryLine) -> Step:
    told = [f'{job("load", name)} "$SAVE/eventual-{i}.json"' for i, name in enumerate(_queues(line))]
    return Step(
        title="Load the eventual checkpoints, upstream first",
        why="a window ignores what comes again up to and including its own t, or input: those listed and those closed",
        worked="each operator has its windows, and their filters",
        command=commands(*told),
        undo="load nothing, and restore the copy",
        stop_if="one cannot be loaded",
        dangerous=True,
    )


def _cut(line: RecoveryLine) -> Step | None:
    told = [
        job("cut", f"{row['operator']}/{row['subtask']}", channel, number)
        for row in line.details.get("eventual", [])
        for channel, number in (row["cut"] or {}).items()
    ]
    if not told:
        return None
    return Step(
        title="Cut output queues that are ahead of the line",
        why="they hold results of what an upstream will send anew, and perhaps otherwise",
        worked="each queue ends where the line has it",
        command=commands(*told),
        undo="the copy has the queues whole",
        undo_command='mv -- "$RUN" "$SAVE/after"\ncp -RPp -- "$SAVE/run" "$RUN"',
        stop_if="a queue cannot be cut",
        dangerous=True,
    )


def _truncate(line: RecoveryLine) -> Step | None:
    told = [
        job("truncate", c.channel, c.resent_from, c.resent_to)
        for c in line.channels
        if c.resent_from is not None and c.resent_to is not None and c.resent_to > c.resent_from
    ]
    if not told:
        return None
    return Step(
        title="Truncate the logs of what is sent again",
        why="senders reuse these numbers, and no restored receiver has processed them: receivers must not drop them",
        worked="each log ends at its number, or receivers process each number once",
        command=commands(*told),
        undo="the copy has the logs whole",
        stop_if="a reader outside of the job has taken them already: it gets them twice",
        dangerous=True,
    )


def _seek(line: RecoveryLine) -> Step | None:
    told = [job("seek", f"{s.operator}/{s.subtask}", s.source, _offset(s.offset)) for s in line.sources]
    if not told:
        return None
    return Step(
        title="Set the sources to the offsets of the line",
        why="they go on with what their restored state has not read",
        worked="each source resumes at its offset",
        command=commands(*told),
        undo="set them to where they stood",
        stop_if="an offset is refused",
        dangerous=True,
    )


def _replay(line: RecoveryLine) -> Step | None:
    busy = [c for c in line.channels if c.replay_to > c.replay_from]
    if not busy:
        return None
    gone = [c.channel for c in busy if c.retained is False]
    return Step(
        title="Replay what was in flight",
        why=f"{_GONE}: {', '.join(gone[:3])}" if gone else "restored receivers wait for what their senders had sent",
        worked="each receiver has got its range, once and in order",
        command=commands(*(job("replay", c.channel, c.replay_from, c.replay_to) for c in busy)),
        undo="restore the receivers once more",
        stop_if=_GONE,
        dangerous=True,
    )


def _look(run: RunAction) -> Step:
    doubled = "an unknown number of" if run.doubled is None else str(run.doubled)
    return looking(
        "Look at the results",
        f"{doubled} results may reach a sink once more; cklog impact tells which",
        "subtasks take new checkpoints, and no receiver tells of numbers that it has seen, or misses",
    )


def _queues(line: RecoveryLine) -> list[str]:
    """Operators with an eventual checkpoint, upstream first."""
    there = {(e.operator, e.subtask) for e in line.line if e.state == "eventual"}
    rows = line.details.get("eventual", [])
    return [f"{r['operator']}/{r['subtask']}" for r in rows if (r["operator"], r["subtask"]) in there]


def _offset(offset: object) -> object:
    if offset is None:
        return "start"
    return offset if isinstance(offset, int | str) else json.dumps(offset, sort_keys=True)

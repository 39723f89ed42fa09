"""A runbook as a value: typed steps, in the order in which they are taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cklog.model.actions import Action
from cklog.model.unchecked import Unchecked


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do, and how to know that it is done.

    Attributes
    ----------
    title, why : what is done, and what for
    worked : how to see that it worked
    command : for a POSIX shell, lines to paste; None: by hand, as `title` and `why` say
    check : commands that all succeed only if it worked; None: a person has to look
    undo : how it is taken back
    undo_command : the same for a shell; None: by hand, or there is nothing to take back
    stop_if : what is seen where nobody should go on
    dangerous : it changes, starts or deletes something: a script wants CONFIRM=yes first
    number, run : its place in the runbook, counted from 1, and the run or job that it is about; "": all of them
    """

    title: str
    why: str
    worked: str
    command: str | None = None
    check: str | None = None
    undo: str = "nothing was changed"
    undo_command: str | None = None
    stop_if: str = "the check fails"
    dangerous: bool = False
    number: int = 0
    run: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """What somebody sets before the first step: its name in a shell, and what it stands for."""

    name: str
    means: str


@dataclass(frozen=True, slots=True)
class Runbook:
    """What to do about what lies at a path.

    Attributes
    ----------
    action : as `recovery-line` has it
    path : the folder as it was named; a shell finds it as $RUN
    runs : the runs that the steps are about
    setup : what a shell runs before the first step
    variables : what is set by whoever takes the steps
    unchecked : what the action takes for granted
    """

    action: Action
    path: str
    runs: tuple[str, ...]
    headline: str
    setup: str
    variables: tuple[Variable, ...]
    steps: tuple[Step, ...]
    unchecked: tuple[Unchecked, ...]


EVERY = "*"
"""What a step names as its run that comes with the last of several runs, and is about all of them."""

ARGUMENTS = "@"
"""The variable that is the words after a script's name, and in a shell what `set --` sets."""

OPTIONAL = frozenset({"CONFIRM", "COPIED", "LOGGED", "LOST", "SALVAGED", ARGUMENTS})
"""Variables that only a step asks for, when it comes."""

MEANINGS: Mapping[str, str] = {
    "SAVE": "a folder that does not exist yet, on a disk with room for a copy, outside of the run",
    "JOB": "a program of yours that does to this job what its first argument says, and fails if it cannot:",
    ARGUMENTS: "the job's own options, program and arguments: after the script's name, or by set -- in a shell",
    "BOOTSTRAP_SERVERS": "the brokers, as host:port",
    "CHECKPOINT": "the checkpoint's folder as the cluster sees it",
    "CONNECT": "the REST interface of Kafka Connect, as http://host:8083",
    "CONFIRM": "yes, for the steps that start, change or delete something",
    "COPIED": "yes, as soon as the copy was made by hand",
    "LOGGED": "yes, as soon as somebody has seen that the logs of the channels have what is replayed",
    "LOST": "yes, as soon as somebody has decided that there is no other copy, and gives the state up",
    "SALVAGED": "yes, as soon as somebody has decided what of the copy is wanted, and has it",
}
"""Variables that steps may take, and what they stand for."""

VERBS: Mapping[str, str] = {
    "stop": "stop [SUBTASK…] (and come back when it stands still)",
    "stopped": "stopped [SUBTASK…] (nothing of it runs)",
    "start": "start",
    "running": "running (it runs, and has no errors)",
    "holds": "holds FILE.csv (the sources still have the offsets in FILE)",
    "restore": "restore SUBTASK CHECKPOINT URI",
    "load": "load SUBTASK FILE.json (an eventual checkpoint and its filters)",
    "replay": "replay CHANNEL FROM TO (TO is not among them)",
    "truncate": "truncate CHANNEL FROM TO (cut the log at FROM: messages FROM to TO are sent again)",
    "cut": "cut SUBTASK CHANNEL NUMBER (cut its output queue after that input)",
    "seek": "seek SUBTASK SOURCE OFFSET",
}
"""What $JOB can be told."""

"""What to do about a run that crashed: one action, and what it costs, equal in shape for every format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from cklog.model.findings import Effect
from cklog.model.unchecked import Unchecked

Action = Literal["restart", "restart-older", "repair-first", "salvage-first", "start-over", "undetermined"]

ACTIONS: tuple[Action, ...] = (
    "restart",
    "restart-older",
    "repair-first",
    "salvage-first",
    "start-over",
    "undetermined",
)
"""From the one that asks least of people to the one that nobody should take without a look.

restart : from the newest line that was ever complete
restart-older : damage, or files that are gone, leave an older line than was stored
repair-first : a restart fails, or goes wrong, before what the findings name is repaired
salvage-first : a restart destroys intact data: copy first
start-over : nothing is left but the initial state
undetermined : something that could change the action cannot be read, or was not given
"""

MEANINGS: dict[Action, str] = {
    "restart": "nothing found that stops it",
    "restart-older": "an older line than was stored: the findings say why",
    "repair-first": "a restart fails, or goes wrong, as the files are",
    "salvage-first": "a restart destroys intact data",
    "start-over": "nothing is left but the initial state",
    "undetermined": "evidence is missing",
}


@dataclass(frozen=True, slots=True)
class RunAction:
    """What to do about one run or job below PATH.

    Attributes
    ----------
    run : its name: a job's id, an application, "" where only PATH names it
    path : its folder below PATH, "." where that is PATH itself
    newest, newest_time : the newest that was stored, and when (ms); None: not known
    chosen, chosen_time : what the action restarts from; None: the initial state, or nothing
    age_ms : from `chosen_time` to the failure, or to the last moment that the logs tell of
    command : to paste; None: there is none
    note : what to do where there is no command, or what to mind about the one that there is
    read_again, read_again_bytes : messages and records that are known to be read again, at least
    reads_more : True: nothing here tells how many more are read again
    lost : messages or records that were taken or stored, and are gone; None: not known
    doubled : that reach a sink once more, if it does not drop them; None: not known
    blocked_by : findings of severity error that stand in the way, as "id subject"
    unchecked : what the action takes for granted: nothing was compared with it
    """

    run: str
    action: Action
    path: str = "."
    newest: str | None = None
    newest_time: int | None = None
    chosen: str | None = None
    chosen_time: int | None = None
    age_ms: int | None = None
    command: str | None = None
    note: str | None = None
    read_again: int = 0
    read_again_bytes: int = 0
    reads_more: bool = False
    lost: int | None = None
    doubled: int | None = None
    blocked_by: tuple[str, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()


@runtime_checkable
class Acted(Protocol):
    """A result that says what to do."""

    @property
    def action(self) -> Action:
        """The action that asks most of people, of all runs; a new start of some connectors counts for those alone."""
        ...


def action_of(
    undetermined: bool, nothing: bool = False, salvage: bool = False, repair: bool = False, older: bool = False
) -> Action:
    """Return the action that what is known of a run asks for.

    >>> action_of(undetermined=False, repair=True, older=True)
    'repair-first'
    """
    held = {
        "undetermined": undetermined,
        "start-over": nothing,
        "salvage-first": salvage,
        "repair-first": repair,
        "restart-older": older,
        "restart": True,
    }
    return next(action for action in reversed(ACTIONS) if held[action])


_BY_EFFECT: dict[Effect, Action] = {
    "none": "restart",
    "data-duplicated": "repair-first",
    "older-line": "restart-older",
    "data-lost": "repair-first",
    "restart-fails": "repair-first",
    "unknown": "undetermined",
}


def action_with(action: Action, effects: Iterable[Effect], possible: Iterable[Effect] = ()) -> Action:
    """Return the action once the effects of the errors about a run are known: the one that asks most of people.

    `possible` are the effects of findings that are no errors, because nothing proves them. No run with one is restarted
    as if nothing was found.

    >>> action_with("restart-older", ["older-line"]), action_with("restart-older", ["older-line", "restart-fails"])
    ('restart-older', 'repair-first')
    >>> action_with("start-over", ["unknown"]), action_with("start-over", ["restart-fails"])
    ('undetermined', 'start-over')
    >>> action_with("restart", [], ["older-line"]), action_with("restart", [], ["data-lost"])
    ('restart-older', 'undetermined')
    """
    asked = worst([action, *(_BY_EFFECT[effect] for effect in effects)])
    if asked != "restart":
        return asked
    return worst([asked, *("restart-older" if effect == "older-line" else "undetermined" for effect in possible)])


def worst(actions: Iterable[Action]) -> Action:
    """Return the action that asks most of people; without any, nothing is known.

    >>> worst(["restart", "start-over", "restart-older"])
    'start-over'
    """
    return max(actions, key=ACTIONS.index, default="undetermined")

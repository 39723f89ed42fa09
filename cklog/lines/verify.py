"""Is a given line consistent and restorable? Proved or refuted from the records, by code that the search does not use.

The watermarks are read off the records once more, record by record in plain Python, and judged by
`cklog.lines.proof`; only reading files is shared with `recovery-line`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cklog.budgets import budgets, check_json, check_nesting, reading
from cklog.destinations import note_named
from cklog.errors import NotFound, UsageError
from cklog.history.variables import NoVariables, variables_of
from cklog.lines.proof import ChannelMarks, Marks, newer_line, refute
from cklog.lines.proof_rows import Side
from cklog.model.checks import Check
from cklog.model.findings import Finding
from cklog.model.names import Subtask, parse_channel
from cklog.model.values import is_integer
from cklog.model.wording import many, numbered

_HINT = 'give the output of cklog recovery-line --json, or a map such as {"src/0": 4, "join/0": 7}'


def read_line(path: str, option: str = "--line") -> dict[str, int | None]:
    """Read a line from the file of an option: the JSON of `recovery-line`, or a plain {"op/sub": checkpoint} map.

    Returns
    -------
    checkpoint number by subtask : None for one that keeps running in its current state

    Raises
    ------
    NotFound : no such file
    UsageError : it holds no line
    """
    try:
        note_named(path)
        with open(path, encoding="utf-8") as file:
            text = file.read(budgets().file)
        with reading(f"{option} {path}"):
            check_json(text)
            check_nesting(text)
        found = json.loads(text)
    except FileNotFoundError:
        raise NotFound(f"{option} {path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{option} {path}: {error}", _HINT) from None
    return line_told(found, f"{option} {path}")


def line_told(found: Any, given: str) -> dict[str, int | None]:
    """Return the line that a JSON value tells, as `read_line` does; `given` is what errors call it.

    >>> line_told({"line": [{"operator": "src", "subtask": 0, "checkpoint": 4}]}, "--line")
    {'src/0': 4}

    Raises
    ------
    UsageError : it holds no line
    """
    if isinstance(found, dict) and isinstance(found.get("result"), dict):
        found = found["result"]
    if isinstance(found, dict) and isinstance(found.get("line"), list):
        found = {_entry_name(entry, given): entry.get("checkpoint") for entry in found["line"]}
    if not isinstance(found, dict) or not found:
        raise UsageError(f"{given}: holds no line", _HINT)
    for name, number in found.items():
        if number == "current":
            found[name] = None
        elif number is not None and not is_integer(number):
            raise UsageError(f"{given}: checkpoint of {name} is {json.dumps(number)[:40]}", _HINT)
    return found


def _entry_name(entry: Any, given: str) -> str:
    """Return the subtask that an entry of a line's JSON is of, as "op/sub"."""
    if not isinstance(entry, dict) or "operator" not in entry:
        raise UsageError(f"{given}: an entry of the line has no operator", _HINT)
    name = f"{entry['operator']}/{entry.get('subtask', 0)}"
    if entry.get("state") == "eventual":
        raise UsageError(
            f"{given}: {name} comes back from its output queue, and verify proves stored checkpoints",
            f"cklog eventual-checkpoint --operator {name} --forward proves that one from the whole queue",
        )
    return name


@dataclass(slots=True)
class NumberedCheckpoints:
    """The checkpoint numbers of one subtask in order, 0 first, and why some of them cannot be restored, by number."""

    numbers: list[int] = field(default_factory=lambda: [0])
    unusable: dict[int, str] = field(default_factory=dict)


def stored_and_marks(
    rows: Iterable[Mapping[str, Any]],
    subtasks: Iterable[Subtask],
    channels: Iterable[str],
    current: Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]],
    gone: Set[int] = frozenset(),
    before: Mapping[Side, int] = MappingProxyType({}),
) -> tuple[dict[str, NumberedCheckpoints], Marks]:
    """Collect the checkpoints of every subtask and the watermarks of every channel, record by record.

    Parameters
    ----------
    rows : checkpoint records, at most one per checkpoint
    current : survivors with the watermarks (sent, received) of their current state, by channel
    gone : places in `rows` of the checkpoints whose state file is not there
    before : watermarks of channels below all rows of their subtask (`cklog.lines.proof_rows`)
    """
    by_subtask: dict[str, list[Mapping[str, Any]]] = {str(s): [] for s in subtasks}
    for i, row in enumerate(rows):
        by_subtask[f"{row['operator']}/{row['subtask']}"].append({**row, "gone": i in gone})
    stored = {name: _numbered_checkpoints(records) for name, records in by_subtask.items()}
    marks: dict[str, ChannelMarks] = {}
    for name in channels:
        channel = parse_channel(name)
        if channel is not None:
            sender, receiver = str(channel.sender), str(channel.receiver)
            sent = _channel_watermarks(by_subtask[sender], stored[sender], "sent", name, before)
            received = _channel_watermarks(by_subtask[receiver], stored[receiver], "received", name, before)
            if sender in current:
                sent_now, _ = current[sender]
                sent.append(max(sent_now.get(name, 0), sent[-1]))
            if receiver in current:
                _, received_now = current[receiver]
                received.append(max(received_now.get(name, 0), received[-1]))
            marks[name] = ChannelMarks(sender, receiver, sent, received)
    return stored, marks


def _numbered_checkpoints(records: list[Mapping[str, Any]]) -> NumberedCheckpoints:
    """Order the records of one subtask, in place, and tell which of its checkpoints can be restored."""
    found = NumberedCheckpoints()
    records.sort(key=lambda row: row["checkpoint"])
    whole: dict[tuple[str, int | None], bool] = {}
    before: int | None = None
    for row in records:
        number = row["checkpoint"]
        why = _why_unusable(row, whole, before)
        before = number
        if why:
            found.unusable[number] = why
        if number != 0:
            found.numbers.append(number)
    return found


def _why_unusable(row: Mapping[str, Any], whole: dict[tuple[str, int | None], bool], before: int | None) -> str:
    """Say why a checkpoint cannot be restored, "" if it can; `before` is the number of the one before it.

    `whole` holds, by variable ("" for the state as a whole) and checkpoint number, whether those before can be
    restored; this checkpoint is added.
    """
    why = ""
    if row["kind"] == "volatile":
        why = "it is a volatile record, not a stored checkpoint"
    elif row["status"] == "incomplete":
        why = "its status is incomplete"
    elif row["gone"]:
        why = "its state file is not there"
    try:
        parts = [(v.name, v.form, v.parent) for v in variables_of(row["variables"] or "[]")]
    except NoVariables as reason:
        parts, why = [], why or f"it does not say what its variables are: {reason}"
    stored = not why
    for name, form, named in parts or [("", row["form"], row["parent"])]:
        parent = before if named is None else named
        good = stored and (form != "delta" or whole.get((name, parent), False))
        whole[name, row["checkpoint"]] = good
        if stored and not good:
            why = f"{f'its variable {name}' if name else 'it'} is a delta on {parent}, which cannot be restored"
    return why


def _channel_watermarks(
    records: list[Mapping[str, Any]],
    stored: NumberedCheckpoints,
    side: str,
    channel: str,
    before: Mapping[Side, int],
) -> list[int]:
    """Return the watermark at each of `stored.numbers`, taken from the one before where a record does not say."""
    said = {row["checkpoint"]: row[side].get(channel) for row in records}
    value = said.get(0) or 0
    values = [value]
    value = before.get((side, channel), value)
    for number in stored.numbers[1:]:
        seen = said.get(number)
        value = value if seen is None else seen
        values.append(value)
    return values


def judge(
    line: Mapping[str, int | None],
    stored: Mapping[str, NumberedCheckpoints],
    marks: Marks,
    survivors: Collection[str],
    maximal: bool,
    rounds: Mapping[int, Mapping[str, int]] | None = None,
) -> tuple[list[Check], list[Finding], dict[str, int]]:
    """Check whether a line is complete, restorable, consistent, and if asked for, `maximal`.

    Parameters
    ----------
    line : checkpoint number by subtask, None for a current state
    stored, marks : from `stored_and_marks`
    survivors : the subtasks that have a current state
    rounds : from `rounds_of_rows`, of a job that restarts from a round and from nothing between; None: of another

    Returns
    -------
    checks, findings, the line as indices : of each subtask the place in its `numbers`, their count for a current state

    Raises
    ------
    NotFound : the line names a subtask or a checkpoint that no record knows
    """
    checks, findings = [], []
    index = _line_indices(line, stored, survivors)
    absent = sorted(set(stored) - set(line))
    checks.append(Check("complete", not absent, f"{len(line)} of {len(stored)} subtasks have a checkpoint"))
    if absent:
        names = ", ".join(absent[:5])
        findings.append(
            Finding(
                "incomplete-line", "error", absent[0], f"the line says nothing about {names}", effect="restart-fails"
            )
        )
    broken = {f"{n}={x}": stored[n].unusable[x] for n, x in line.items() if x is not None and x in stored[n].unusable}
    whole = "every checkpoint is stored, complete, its chain whole"
    because = next((f"{name}: {why}" for name, why in broken.items()), whole)
    checks.append(Check("restorable", not broken, because))
    findings += [
        Finding("not-restorable", "error", name, f"{name} cannot be restored: {why}", effect="restart-fails")
        for name, why in broken.items()
    ]
    if absent:
        return [*checks, Check("consistent", None, "the line is not complete")], findings, index
    running = {name for name, number in line.items() if number is None}
    orphans = refute(marks, index, running)
    text = f"no orphan message on {many(len(marks), 'channel')}"
    if orphans:
        channel, first, last = orphans[0]
        text = f"{many(len(orphans), 'channel', 'have')} orphan messages; {channel}: {first} to {last - 1}"
    checks.append(Check("consistent", not orphans, text))
    findings += [
        Finding(
            "orphan-messages",
            "error",
            c,
            f"{c}: {numbered('message', a, b - 1, 'were')} received but never sent",
            effect="data-lost",
        )
        for c, a, b in orphans
    ]
    if maximal and not orphans:
        if rounds is None or survivors:
            check, more = _maximal_check(index, stored, marks, survivors)
        else:
            check, more = _newest_round_check(index, stored, marks, rounds)
        checks.append(check)
        findings += more
    return checks, findings, index


def _line_indices(
    line: Mapping[str, int | None], stored: Mapping[str, NumberedCheckpoints], survivors: Collection[str]
) -> dict[str, int]:
    """Return the line as places in the checkpoint numbers of its subtasks; their count for a current state."""
    index = {}
    for name, number in line.items():
        if name not in stored:
            raise NotFound(f"the line names {name}, which no record knows", f"known: {', '.join(sorted(stored)[:8])}")
        if number is None:
            if name not in survivors:
                raise NotFound(f"the line keeps {name} running, but it failed", "name what failed with --failed")
            index[name] = len(stored[name].numbers)
        elif number not in stored[name].numbers:
            last = ", ".join(map(str, stored[name].numbers[-8:]))
            raise NotFound(f"the line names {name}={number}, which is not stored", f"the last ones are {last}")
        else:
            index[name] = stored[name].numbers.index(number)
    return index


def _maximal_check(
    index: dict[str, int],
    stored: Mapping[str, NumberedCheckpoints],
    marks: Marks,
    survivors: Collection[str],
) -> tuple[Check, list[Finding]]:
    """Check whether no newer consistent line of checkpoints that can be restored exists; `index` as of the line."""
    usable: dict[str, list[int]] = {}  # by subtask, the places that can be restored
    for name, checkpoints in stored.items():
        places = [i for i, number in enumerate(checkpoints.numbers) if number not in checkpoints.unusable]
        usable[name] = [*places, len(checkpoints.numbers)] if name in survivors else places
    thinned = {
        channel: ChannelMarks(
            sender,
            receiver,
            sent=[sent[i] for i in usable[sender]],
            received=[received[i] for i in usable[receiver]],
        )
        for channel, (sender, receiver, sent, received) in marks.items()
    }
    at = {name: usable[name].index(i) for name, i in index.items() if i in usable[name]}
    if len(at) < len(index):
        return Check("maximal", None, "the line holds a checkpoint that cannot be restored"), []
    newer = newer_line(thinned, at, {name: len(places) - 1 for name, places in usable.items()}, survivors)
    if newer is None:
        return Check("maximal", True, "raising any subtask by one checkpoint needs messages that were lost"), []
    changed = sorted(name for name in newer if newer[name] > at[name])
    numbers = {name: [*stored[name].numbers, "current"][usable[name][newer[name]]] for name in changed}
    text = "a newer consistent line exists: " + ", ".join(f"{name}={number}" for name, number in numbers.items())
    return Check("maximal", False, text), [Finding("not-maximal", "error", changed[0], text, effect="older-line")]


def rounds_of_rows(rows: Iterable[Mapping[str, Any]], table: pa.Table) -> dict[int, dict[str, int]] | None:
    """Return the checkpoint that each subtask has first in each coordinated round that `rows` are of.

    None: not all records of the `table` that they are from are coordinated. A record that names no `round` is of the
    one with its own number.
    """
    if set(pc.unique(table["kind"].cast(pa.string())).to_pylist()) != {"coordinated"}:
        return None
    rounds: dict[int, dict[str, int]] = {}
    for row in rows:
        number = row["checkpoint"] if row["round"] is None else row["round"]
        members = rounds.setdefault(number, {})
        name = f"{row['operator']}/{row['subtask']}"
        members[name] = min(members.get(name, row["checkpoint"]), row["checkpoint"])
    return rounds or None


def _newest_round_check(
    index: Mapping[str, int],
    stored: Mapping[str, NumberedCheckpoints],
    marks: Marks,
    rounds: Mapping[int, Mapping[str, int]],
) -> tuple[Check, list[Finding]]:
    """Check whether no newer round can be restored as a whole and is consistent; `index` as of the line."""
    for number, members in sorted(rounds.items(), reverse=True):
        whole = members.keys() == stored.keys() and not any(n in stored[s].unusable for s, n in members.items())
        if not whole:
            continue
        places = {name: stored[name].numbers.index(label) for name, label in members.items()}
        newer = places != index and all(place >= index[name] for name, place in places.items())
        if newer and not refute(marks, places):
            text = f"a newer round is complete and consistent: {number}"
            return Check("maximal", False, text), [
                Finding("not-maximal", "error", f"round {number}", text, effect="older-line")
            ]
    return Check("maximal", True, "no newer round is complete and consistent, and restarts are from rounds"), []


def weakened(check: Check) -> Check:
    """Return a check that holds as one that nobody can tell, where what some survivors hold now is not known."""
    if check.holds is not True or check.check in ("complete", "restorable"):
        return check
    return replace(check, holds=None, because=f"{check.because}, as far as the records that are left tell")

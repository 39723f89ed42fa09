"""Is a given line consistent and restorable? Proved or refuted from the records, sharing nothing with the search.

The watermarks are read off the records again, record by record in plain Python, and judged by
`cklog.lines.proof`; only reading files is shared with `recovery-line`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from cklog.errors import NotFound, UsageError
from cklog.history.variables import NoVariables, variables_of
from cklog.lines.proof import Marks, newer_line, refute
from cklog.model.checks import Check
from cklog.model.findings import Finding
from cklog.model.names import Subtask, parse_channel


def read_line(path: str) -> dict[str, int | None]:
    """A line from a file: the JSON of `recovery-line`, or a plain {"op/sub": checkpoint} map; None = current state.

    Raises
    ------
    NotFound, UsageError : no such file; or it holds no line
    """
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        raise NotFound(f"--line {path}: no such file") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--line {path}: {error}", _HINT) from None
    if isinstance(found, dict) and isinstance(found.get("result"), dict):
        found = found["result"]
    if isinstance(found, dict) and isinstance(found.get("line"), list):
        found = {_name(entry, path): entry.get("checkpoint") for entry in found["line"]}
    if not isinstance(found, dict) or not found:
        raise UsageError(f"--line {path}: holds no line", _HINT)
    for name, number in found.items():
        if number == "current":
            found[name] = None
        elif number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise UsageError(f"--line {path}: checkpoint of {name} is {json.dumps(number)}", _HINT)
    return found


_HINT = 'give the output of cklog recovery-line --json, or a map such as {"src/0": 4, "join/0": 7}'


def _name(entry: Any, path: str) -> str:
    if not isinstance(entry, dict) or "operator" not in entry:
        raise UsageError(f"--line {path}: an entry of the line has no operator", _HINT)
    name = f"{entry['operator']}/{entry.get('subtask', 0)}"
    if entry.get("state") == "eventual":
        raise UsageError(
            f"--line {path}: {name} comes back from its output queue, and verify proves stored checkpoints",
            f"cklog eventual-checkpoint --operator {name} --forward proves that one from the whole queue",
        )
    return name


@dataclass(slots=True)
class NumberedCheckpoints:
    """What the records say of one subtask: its checkpoint numbers in order, and which can be restored."""

    numbers: list[int] = field(default_factory=lambda: [0])
    unusable: dict[int, str] = field(default_factory=dict)


def distinct_rows(batches: Iterable[Any], as_of: int | None) -> list[dict[str, Any]]:
    """Checkpoint records of Arrow batches, one per checkpoint, maps as dicts; none where records disagree.

    Records after `as_of` (ms), and those that speak of another subtask's channels, are left out.
    """
    found: dict[tuple[str, int, int], dict[str, Any] | None] = {}
    for row in (row for batch in batches for row in batch.to_pylist()):
        if as_of is not None and (row["time"] is None or row["time"] > as_of):
            continue
        row |= {side: dict(row[side] or ()) for side in ("sent", "received", "sources")}
        row |= {"subtask": row["subtask"] or 0, "_path": None, "_offset": None}
        key = (row["operator"], row["subtask"], row["checkpoint"])
        found[key] = row if found.get(key, row) == row else None
    return [row for row in found.values() if row is not None and _speaks_of_itself(row)]


def _speaks_of_itself(row: Mapping[str, Any]) -> bool:
    me = Subtask(row["operator"], row["subtask"])
    ends = [(parse_channel(name), 0) for name in row["sent"]] + [(parse_channel(name), 1) for name in row["received"]]
    return all(channel is not None and channel[side] == me for channel, side in ends)


def stored_and_marks(
    rows: Iterable[Mapping[str, Any]],
    subtasks: Iterable[Subtask],
    channels: Iterable[str],
    current: Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]],
    gone: Set[int] = frozenset(),
) -> tuple[dict[str, NumberedCheckpoints], Marks]:
    """Checkpoints per subtask and watermarks per channel, record by record.

    Parameters
    ----------
    rows : checkpoint records, at most one per checkpoint (`distinct_rows`)
    current : survivors with the watermarks (sent, received) of their current state
    gone : rows, by number, whose state file is not there
    """
    by_subtask: dict[str, list[Mapping[str, Any]]] = {str(s): [] for s in subtasks}
    for i, row in enumerate(rows):
        by_subtask[f"{row['operator']}/{row['subtask']}"].append({**row, "gone": i in gone})
    stored = {name: _stored(records) for name, records in by_subtask.items()}
    marks = {}
    for name in channels:
        channel = parse_channel(name)
        if channel is not None:
            sender, receiver = str(channel.sender), str(channel.receiver)
            sent = _marks(by_subtask[sender], stored[sender], "sent", name)
            received = _marks(by_subtask[receiver], stored[receiver], "received", name)
            if sender in current:
                sent.append(max(current[sender][0].get(name, 0), sent[-1]))
            if receiver in current:
                received.append(max(current[receiver][1].get(name, 0), received[-1]))
            marks[name] = (sender, receiver, sent, received)
    return stored, marks


def _stored(records: list[Mapping[str, Any]]) -> NumberedCheckpoints:
    found = NumberedCheckpoints()
    records.sort(key=lambda row: row["checkpoint"])
    whole: dict[tuple[str, int | None], bool] = {}
    before: int | None = None
    for row in records:
        number = row["checkpoint"]
        why = _unusable(row, whole, before)
        before = number
        if why:
            found.unusable[number] = why
        if number != 0:
            found.numbers.append(number)
    return found


def _unusable(row: Mapping[str, Any], whole: dict[tuple[str, int | None], bool], before: int | None) -> str:
    """Why a checkpoint cannot be restored, "" if it can; `before` is the number of the one before it.

    `whole` tells whether each variable ("": the state as one) of the checkpoints before can be, and learns of this one.
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


def _marks(records: list[Mapping[str, Any]], stored: NumberedCheckpoints, side: str, channel: str) -> list[int]:
    """The watermark at each checkpoint of `stored.numbers`, kept from the one before where not mentioned."""
    said = {row["checkpoint"]: row[side].get(channel) for row in records}
    value, values = 0, []
    for number in stored.numbers:
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
) -> tuple[list[Check], list[Finding], dict[str, int]]:
    """Complete? restorable? consistent? (and maximal?) — checks, findings, and the line as indices.

    Raises
    ------
    NotFound : the line names a subtask or a checkpoint that no record knows
    """
    checks, findings = [], []
    index = _indices(line, stored, survivors)
    absent = sorted(set(stored) - set(line))
    checks.append(Check("complete", not absent, f"{len(line)} of {len(stored)} subtasks have a checkpoint"))
    if absent:
        names = ", ".join(absent[:5])
        findings.append(Finding("incomplete-line", "error", absent[0], f"the line says nothing about {names}"))
    broken = [(n, x) for n, x in line.items() if x is not None and x in stored[n].unusable]
    told = f"{broken[0][0]}={broken[0][1]}: {stored[broken[0][0]].unusable[broken[0][1] or 0]}" if broken else ""
    checks.append(Check("restorable", not broken, told or "every checkpoint is stored, complete, its chain whole"))
    findings += [
        Finding("not-restorable", "error", f"{n}={x}", f"{n}={x} cannot be restored: {stored[n].unusable[x or 0]}")
        for n, x in broken
    ]
    if absent:
        return [*checks, Check("consistent", None, "the line is not complete")], findings, index
    running = {name for name, number in line.items() if number is None}
    orphans = refute(marks, index, running)
    text = f"no orphan message on {len(marks)} channels"
    if orphans:
        channel, first, last = orphans[0]
        text = f"{len(orphans)} channels have orphan messages; {channel}: {first} to {last - 1}"
    checks.append(Check("consistent", not orphans, text))
    findings += [
        Finding("orphan-messages", "error", c, f"{c}: messages {a} to {b - 1} were received but never sent")
        for c, a, b in orphans
    ]
    if maximal and not orphans:
        checks.append(_maximal(index, stored, marks, survivors, findings))
    return checks, findings, index


def _indices(
    line: Mapping[str, int | None], stored: Mapping[str, NumberedCheckpoints], survivors: Collection[str]
) -> dict[str, int]:
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


def _maximal(
    index: dict[str, int],
    stored: Mapping[str, NumberedCheckpoints],
    marks: Marks,
    survivors: Collection[str],
    findings: list[Finding],
) -> Check:
    newest = {n: len(s.numbers) - (n not in survivors) for n, s in stored.items()}
    usable = {
        n: [i for i, x in enumerate([*s.numbers, None][: newest[n] + 1]) if x not in s.unusable]
        for n, s in stored.items()
    }
    thinned = {
        c: (a, b, [sent[i] for i in usable[a]], [received[i] for i in usable[b]])
        for c, (a, b, sent, received) in marks.items()
    }
    at = {n: usable[n].index(i) for n, i in index.items() if i in usable[n]}
    if len(at) < len(index):
        return Check("maximal", None, "the line holds a checkpoint that cannot be restored")
    newer = newer_line(thinned, at, {n: len(u) - 1 for n, u in usable.items()}, survivors)
    if newer is None:
        return Check("maximal", True, "raising any subtask by one checkpoint needs messages that were lost")
    changed = sorted(n for n in newer if newer[n] > at[n])
    numbers = {n: [*stored[n].numbers, "current"][usable[n][newer[n]]] for n in changed}
    text = "a newer consistent line exists: " + ", ".join(f"{n}={x}" for n, x in numbers.items())
    findings.append(Finding("not-maximal", "error", changed[0], text))
    return Check("maximal", False, text)


def untold(check: Check, bound: bool) -> Check:
    """A check that holds only as far as the evidence goes."""
    if check.check != "maximal" and not bound:
        return check
    if check.holds is not True or check.check in ("complete", "restorable"):
        return check
    return replace(check, holds=None, because=f"{check.because}, as far as the records that are left tell")

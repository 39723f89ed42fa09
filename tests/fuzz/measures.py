"""What of an answer can be too new, too short, or too much: each a number by a key that damage does not change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cklog.model.actions import ACTIONS

Answer = Mapping[str, Any]
Key = tuple[str, ...]
Measured = dict[Key, float]

_PLACE = re.compile(r":\d+$")
"""The byte of a file, behind its name."""

_GUARANTEES = ("none", "at-most-once", "at-least-once", "exactly-once")

_SIZES = ("bytes", "store_bytes", "state_bytes", "obsolete_bytes", "logged_bytes", "log_bytes", "kept_bytes")
"""Sums of files' sizes: those of files that nothing names among them."""

_BY_SIZES = ("lost", "turns")
"""What `advise protocol` works out from the sizes of log files."""

_OF_A_SWEEP = ("files", "errors", "warnings", "infos", "worst")
"""Of a row of `scan`: how many files lie there, and its findings, which `findings` holds."""

_OF_A_REPORT = ("evidence", "not_hashed", "damage")
"""Of a report: what decided, by its bytes, and the findings once more."""


def _result(answer: Answer) -> Mapping[str, Any]:
    """The result; of an answer that has none, such as that no crash is known of, an empty one."""
    return answer["result"] or {}


def _answers(answer: Answer) -> list[Answer]:
    """The answer, and of a report those that it is made of."""
    result = _result(answer)
    names = [part["name"].replace("-", "_") for part in result.get("parts") or () if "command" in part]
    return [answer, *({"result": result[name]} for name in names if isinstance(result.get(name), Mapping))]


def failed(answer: Answer) -> list[str]:
    """The parts of a report that ended as a bug does."""
    parts = _result(answer).get("parts") or ()
    return [f"{part['name']}: {part['why']}" for part in parts if part.get("exit_code") == 70]


def runs(answer: Answer) -> list[Mapping[str, Any]]:
    """The rows that say of each run what is to be done, those of a report's parts among them."""
    return [
        run
        for part in _answers(answer)
        for run in _result(part).get("runs") or ()
        if isinstance(run, Mapping) and "blocked_by" in run
    ]


def positions(answer: Answer) -> Measured:
    """How new, and how sure: the checkpoint of each subtask of a line, what a chain can be restored to, the action."""
    return {key: number for part in _answers(answer) for key, number in _positions(part).items()}


def _positions(answer: Answer) -> Measured:
    result = _result(answer)
    found: Measured = {}
    for entry in result.get("line") or ():
        if "operator" not in entry:  # of an audit: what was restored is given, and what is right is the line
            if isinstance(entry["right"], int):
                found["right", entry["subject"]] = entry["right"]
            continue
        key = (str(entry["operator"]), str(entry.get("subtask")))
        if entry.get("checkpoint") is not None:
            found["checkpoint", *key] = entry["checkpoint"]
        elif entry.get("state") == "eventual" and entry.get("time") is not None:
            found["eventual", *key] = entry["time"]
    for chain in result.get("chains") or ():
        if isinstance(chain, Mapping) and chain.get("restorable") is not None:
            found["chain", str(chain["operator"]), str(chain["subtask"]), chain["store"]] = chain["restorable"]
    for row in result.get("checks") or ():
        if isinstance(row.get("holds"), bool):
            found["holds", row["check"]] = row["holds"]
    for row in result.get("domains") or ():
        if isinstance(row.get("round"), int):
            found["round", row["domain"]] = row["round"]
    for row in result.get("guarantees") or ():
        if row.get("guarantee") in _GUARANTEES:
            found["guarantee", row["sink"], row["readers"]] = _GUARANTEES.index(row["guarantee"])
    if "stores" not in result.get("details", {}):
        # a store whose offset is gone is restored from the beginning: less is to be done than with a wrong offset
        found |= _actions(result)
    for name in ("round", "t_c", "to"):
        if isinstance(result.get(name), int) and not isinstance(result.get(name), bool):
            found[name,] = result[name]
    return found


def _actions(result: Mapping[str, Any]) -> Measured:
    """What is to be done, of several runs of each: one that is gone altogether is not missed."""
    if result.get("action") not in ACTIONS:
        return {}
    named = result.get("runs") or ()
    runs = [run for run in named if isinstance(run, Mapping)]
    if any(run.get("format") == "kafka-streams" for run in runs):
        return {}
    if not runs and len(named) > 1:  # of a runbook, which names them only
        return {}
    if len(runs) < 2:
        return {("action",): -ACTIONS.index(result["action"])}
    return {("action", str(run["run"])): -ACTIONS.index(run["action"]) for run in runs if run["action"] in ACTIONS}


def starts(answer: Answer) -> Measured:
    """Where what is read again begins: of channels, sources, queues."""
    return {key: number for part in _answers(answer) for key, number in _starts(part).items()}


def _starts(answer: Answer) -> Measured:
    result = _result(answer)
    found: Measured = {}
    for row in result.get("channels") or ():
        if isinstance(row, Mapping) and row.get("replay_from") is not None:
            found["channel", row["channel"]] = row["replay_from"]
    for row in result.get("sources") or ():
        if isinstance(row, Mapping) and "offset" in row:
            reader = (str(row.get("operator")), str(row.get("subtask")))
            for where, number in _numbers(row["offset"]):
                found["source", row["source"], *reader, where] = number
    for row in result.get("again") or ():
        for where, number in _numbers(row.get("from")):
            found["again", str(row["source"]), str(row["reader"]), where] = number
    for name in ("T", "T_input"):
        if isinstance(result.get(name), int):
            found[name,] = result[name]
    return found


def ends(answer: Answer) -> Measured:
    """Where what is read again ends."""
    rows = [row for part in _answers(answer) for row in _result(part).get("channels") or ()]
    return {
        ("channel", row["channel"]): row["replay_to"]
        for row in rows
        if isinstance(row, Mapping) and row.get("replay_to") is not None
    }


def deletable(answer: Answer) -> Measured:
    """What may go: rows of a plan, and how far message logs may be cut."""
    return {key: number for part in _answers(answer) for key, number in _deletable(part).items()}


def _deletable(answer: Answer) -> Measured:
    result = _result(answer)
    found: Measured = {("row", row["path"]): 1 for row in result.get("rows") or () if row.get("fate") == "OBSOLETE"}
    found |= {
        ("trim", row["channel"]): row["below"] for row in result.get("trimming") or () if row["below"] is not None
    }
    return found


def stays(answer: Answer) -> set[str]:
    """The rows of a plan that stay."""
    rows = [row for part in _answers(answer) for row in _result(part).get("rows") or ()]
    return {row["path"] for row in rows if row.get("fate") != "OBSOLETE"}


def findings(answer: Answer) -> set[tuple[str, str, str]]:
    """What was told; of a sweep how it is with each run, of a report with each part."""
    told = [part.get("findings") or () for part in _result(answer).get("parts") or ()]
    found = {(f["id"], f["subject"], f["message"]) for some in (answer["findings"], *told) for f in some}
    for row in _result(answer).get("runs") or ():
        if "worst" in row:
            numbers = (row["exit"], row["errors"], row["warnings"], row["infos"])
            about = row["chosen"] if row["exit"] else ""  # a row that sends one to the answer has no room for details
            found.add(("run", row["path"], f"{numbers} {row['worst']} {row['message']} {about}"))
    return found


def said(value: Any) -> Any:
    """A result without places and sizes of files: these are as they are, wherever damage has moved them."""
    if isinstance(value, Mapping):
        by_sizes = _BY_SIZES if "rollback" in value or "best_intervals" in value else ()
        left_out = {*_SIZES, *by_sizes, *(("offset", "at") if "path" in value else ())}
        left_out |= {*(_OF_A_SWEEP if "worst" in value else ()), *(_OF_A_REPORT if "evidence" in value else ())}
        return {key: said(below) for key, below in value.items() if key not in left_out}
    if isinstance(value, list):
        return [said(below) for below in value]
    return _PLACE.sub("", value) if isinstance(value, str) else value


def _numbers(value: Any, where: str = "") -> list[tuple[str, float]]:
    """The integers of an offset, which may be JSON of any shape, by where they are."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [(where, value)]
    if isinstance(value, Mapping):
        if "file" in value or "ord" in value:  # places of a source's log, of which no number counts by itself
            return []
        return [pair for key, below in value.items() for pair in _numbers(below, f"{where}.{key}")]
    return []

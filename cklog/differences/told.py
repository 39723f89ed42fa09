"""An answer as its JSON tells it: read from a file or from stdin, which may hold anything, or just given."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NoReturn, TypeGuard, get_args

from cklog.budgets import budgets, check_json, check_nesting, over, reading
from cklog.destinations import note_named
from cklog.errors import CorruptInput, NotFound, OverBudget, Unreadable
from cklog.local_files import reason
from cklog.model.unchecked import Unchecked, UncheckedKind
from cklog.model.values import is_integer
from cklog.model.verdict import Answer
from cklog.render.formats import envelope, error_object

STDIN = "-"
_SCHEMA = re.compile(r"cklog\.([a-z]+(?:-[a-z]+)*)/(\d{1,9})")
_EXITS = {"ok": 0, "unrecoverable": 4, "indeterminate": 5}
_SEVERITIES = ("info", "warning", "error")
_HINT = "what a command prints under --json, or a run folder"


@dataclass(frozen=True, slots=True)
class Told:
    """What a command told.

    `command` : as in its schema, "" of an error, which names none
    `verdict` : None of an error that stood in place of an answer, and that `error` names
    """

    name: str
    command: str
    version: str
    verdict: str | None
    exit: int
    error: str | None
    findings: list[dict[str, Any]]
    inputs: Any
    result: Any

    def unchecked(self) -> tuple[Unchecked, ...]:
        """Return what the actions of the answer take for granted."""
        runs = self.result.get("runs") if isinstance(self.result, dict) else None
        listed = [run.get("unchecked") for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []
        rows = [row for one in listed if isinstance(one, list) for row in one if isinstance(row, dict)]
        kinds = get_args(UncheckedKind)
        return tuple(
            Unchecked(row["kind"], str(row.get("subject")), str(row.get("claim")), row.get("option") or None)
            for row in rows
            if row.get("kind") in kinds
        )


def read_told(path: str) -> Told:
    """Read an answer from a file of JSON, `STDIN` from there.

    Raises
    ------
    NotFound : no such file, or stdin is closed
    Unreadable : it may not be read
    CorruptInput : it holds no answer of cklog, or one of another version
    OverBudget : it is longer, or nests deeper, than any answer that is read
    """
    name = "stdin" if path == STDIN else path
    most = budgets().file
    try:
        if path == STDIN:
            if sys.stdin is None:
                raise NotFound("stdin is closed", _HINT)
            note_named("/dev/stdin")
            data = sys.stdin.buffer.read(most + 1)
        else:
            note_named(path)
            with open(path, "rb") as file:
                data = file.read(most + 1)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file or folder", _HINT) from None
    except OSError as error:
        raise Unreadable(f"{path}: {reason(error)}", "ask again as a user who may read it") from None
    with reading(name):
        if len(data) > most:
            raise over("the file", most)
        check_json(data)
    try:
        text = data.decode("utf-8-sig")
        with reading(name):
            check_nesting(text)
        found = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise CorruptInput(f"{name}: no JSON: {error}", _HINT) from None
    return _as_told(name, found)


def just_told(name: str, ask: Callable[[], Answer[Any]]) -> Told:
    """Return what a question is answered now; damage beyond an answer, and what may not be read, are told as well."""
    try:
        answer = ask()
    except (CorruptInput, OverBudget, Unreadable) as error:
        return _as_told(name, error_object(error))
    found = envelope(answer)
    return Told(
        name=name,
        command=answer.command,
        version=found["tool"]["version"],
        verdict=answer.verdict,
        exit=answer.exit_code,
        error=None,
        findings=found["findings"],
        inputs=found["inputs"],
        result=found["result"],
    )


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _as_told(name: str, found: Any) -> Told:
    """Return an answer, or an error, that a text held; refuse anything else."""
    if not isinstance(found, dict):
        raise CorruptInput(f"{name}: no answer of cklog, but {_kind(found)}", _HINT)
    error = found.get("error")
    if isinstance(error, dict) and isinstance(error.get("id"), str) and is_integer(error.get("exit")):
        return Told(name, "", "", None, error["exit"], error["id"], [], [], error)
    schema = found.get("schema")
    named = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if not named:
        raise CorruptInput(f"{name}: no answer of cklog: its schema is not cklog.COMMAND/1", _HINT)
    if named[2] != "1" or not (files("cklog.schemas") / f"{named[1]}.json").is_file():
        raise CorruptInput(f"{name}: {named[0]} is a schema of another version of cklog", "ask again with this version")
    tool, verdict, findings = found.get("tool"), found.get("verdict"), found.get("findings")
    if verdict not in (*_EXITS, "findings") or "result" not in found or not _are_findings(findings):
        raise CorruptInput(f"{name}: an answer that is not whole: its verdict, findings or result are none", _HINT)
    version = tool.get("version") if isinstance(tool, dict) else ""
    severe = 3 if any(one["severity"] == "error" for one in findings) else 0
    return Told(
        name=name,
        command=named[1],
        version=version if isinstance(version, str) else "",
        verdict=verdict,
        exit=_EXITS.get(verdict, severe),
        error=None,
        findings=findings,
        inputs=found.get("inputs", []),
        result=found["result"],
    )


def _are_findings(found: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(found, list) and all(
        isinstance(one, dict)
        and one.get("severity") in _SEVERITIES
        and all(isinstance(one.get(name), str) for name in ("id", "subject", "message"))
        for one in found
    )


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "true or false"}.get(
        type(value), "null" if value is None else "a number"
    )

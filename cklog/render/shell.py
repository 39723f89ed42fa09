"""An answer as `key=value` lines for shells: quoted so that nothing in a log is ever run, one line a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from cklog.render.tables import typed
from cklog.render.text import visible

Told = Mapping[str, Any]
"""An answer in its envelope."""

Path = tuple[str, ...]
"""The names that lead to a value."""

_UNQUOTED = re.compile(r"[A-Za-z0-9_@%+:,./-]*")
"""Values of these need no quotes; `=` is not among them, for `IFS== read` drops one at the end of a line."""

_ENVELOPE = frozenset({"schema", "verdict", "exit", "findings", "inputs"})


def kv_text(told: Told, exit_code: int) -> str:
    """Write `key=value` lines with keys such as `runs.0.chosen`, for `while IFS== read -r key value`."""
    return "".join(f"{_key(path)}={_quoted(value)}\n" for path, value in _members(told, exit_code))


def env_text(told: Told, exit_code: int) -> str:
    """Write assignments of variables such as `CKLOG_RUNS_0_CHOSEN`, for `eval`."""
    lines: dict[str, str] = {}
    for path, value in _members(told, exit_code):
        lines.setdefault(_variable(path), _quoted(value))
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def _members(told: Told, exit_code: int) -> Iterator[tuple[Path, Any]]:
    """Every value of an answer with the names that lead to it: members of the result stand beside the verdict."""
    yield ("schema",), told["schema"]
    yield ("verdict",), told["verdict"]
    yield ("exit",), exit_code
    result = told["result"] if isinstance(told["result"], dict) else {"result": told["result"]}
    for name, value in result.items():
        yield from _flattened(("result", name) if name in _ENVELOPE else (name,), value)
    for name in ("findings", "inputs"):
        yield from _flattened((name,), told[name])


def _flattened(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """Values in members of members; of a list its length, too, as `count`."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flattened((*path, str(name)), inner)
    elif isinstance(value, list):
        yield (*path, "count"), len(value)
        for i, inner in enumerate(value):
            yield from _flattened((*path, str(i)), inner)
    else:
        yield path, typed(".".join(path), value)


def _key(path: Path) -> str:
    """Names with dots between; what is no letter, digit, `_` or `-` in a name is written as in a URI.

    >>> _key(("totals", "a b=$(x)", "bytes"))
    'totals.a%20b%3D%24%28x%29.bytes'
    """
    return ".".join(
        quote(name, safe="", errors="surrogatepass").replace(".", "%2E").replace("~", "%7E") for name in path
    )


def _variable(path: Path) -> str:
    """A variable's name.

    >>> _variable(("line", "0", "rolled_back"))
    'CKLOG_LINE_0_ROLLED_BACK'
    """
    return f"CKLOG_{re.sub('[^A-Za-z0-9]', '_', '_'.join(path)).upper()}"


def _quoted(value: Any) -> str:
    """A value as a shell takes it for a word; nothing where there is none.

    >>> _quoted("a b"), _quoted(None), _quoted(True), _quoted("x=")
    ("'a b'", '', 'true', "'x='")
    """
    if value is None:
        return ""
    text = visible(value) if isinstance(value, str) else json.dumps(value)
    if _UNQUOTED.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"

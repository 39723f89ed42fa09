"""Answers as table, JSON, JSON lines, CSV or Markdown."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from cklog.errors import CklogError
from cklog.model.findings import Finding
from cklog.model.verdict import UNREAD, Answer
from cklog.render.text import visible, visible_cell, visible_json
from cklog.render.view import Section, View, view
from cklog.version import __version__

FORMATS = ("table", "json", "jsonl", "csv", "md")


def render(answer: Answer[object], form: str, width: int | None = None, color: bool = False) -> str:
    """Write an answer as text in one of `FORMATS`, ending in a newline.

    Parameters
    ----------
    width : the terminal's number of columns, None when the output is no terminal: then nothing wraps
    color : a table has colors
    """
    if form == "json":
        return visible_json(_json_text(envelope(answer))) + "\n"
    shown = view(answer)
    if form == "jsonl":
        return visible_json("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _data_rows(shown)))
    if form == "csv":
        return _csv_text(shown)
    if form == "md":
        return _markdown_text(shown, answer.findings)
    return _table_text(shown, answer.findings, width, color)


def envelope(answer: Answer[object]) -> dict[str, Any]:
    """Return an answer in its JSON envelope (docs/json.md), to which members are added but never changed."""
    return {
        "schema": f"cklog.{answer.command}/1",
        "tool": {"name": "cklog", "version": __version__},
        "inputs": plain(answer.inputs),
        "verdict": answer.verdict,
        "findings": plain(answer.findings),
        "result": plain(answer.result),
    }


def error_object(error: CklogError) -> dict[str, Any]:
    """Return what stderr's last line is under --json when there is no answer."""
    shown = {"id": error.id, "message": error.message, "hint": error.hint, "exit": error.exit_code}
    return {"error": shown}


def plain(value: Any) -> Any:
    """Turn dataclasses into dicts; a field `from_` is called `from`, `LEFT_OUT_IF_EMPTY` names those that may lack.

    >>> from cklog.model.findings import Where
    >>> plain((Where("a.jsonl", 7),))
    [{'path': 'a.jsonl', 'offset': 7}]
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if is_dataclass(kind):
        pairs = ((name, getattr(value, name)) for name in _field_names(kind))
        return {
            name.rstrip("_"): found if type(found) in _SCALARS else plain(found)
            for name, found in pairs
            if found or name not in LEFT_OUT_IF_EMPTY
        }
    if isinstance(value, dict):
        return {key: plain(found) for key, found in value.items()}
    if isinstance(value, list | tuple):
        return [plain(found) for found in value]
    return value


LEFT_OUT_IF_EMPTY = ("details", "notes", "rollback")
"""Members of results that JSON has only where they hold anything."""

_SCALARS = frozenset({type(None), bool, int, float, str})


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


_EXPANDED = 3
"""Levels of the envelope that are laid out over lines: envelope, result, and the lists in it."""


def _json_text(value: Any, depth: int = 0) -> str:
    """JSON with every row of a list on a line of its own: short to read, and lines that tools can compare."""
    if isinstance(value, dict) and value and depth < _EXPANDED - 1:
        inner = (
            f"{json.dumps(key, ensure_ascii=False)}: {_json_text(found, depth + 1)}" for key, found in value.items()
        )
        return "{" + _indented_lines(inner, depth) + "}"
    if isinstance(value, list) and value and depth < _EXPANDED:
        return "[" + _indented_lines((json.dumps(row, ensure_ascii=False) for row in value), depth) + "]"
    return json.dumps(value, ensure_ascii=False)


def _indented_lines(items: Iterable[str], depth: int) -> str:
    indent = "  " * (depth + 1)
    return "\n" + ",\n".join(indent + item for item in items) + "\n" + "  " * depth


def _data_rows(shown: View) -> list[dict[str, Any]]:
    data = _data_of(shown)
    return [dict(zip(data.columns, row, strict=True)) for row in data.rows]


def _csv_text(shown: View) -> str:
    data = _data_of(shown)
    rows = [data.columns, *([_harmless_cell(cell) for cell in row] for row in data.rows)] if data.columns else []
    return "".join(map(_csv_row, rows))


def _csv_row(cells: Iterable[Any]) -> str:
    """Write one row; cells with a line feed or a carriage return are quoted, which Python does for its line ends."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n") + "\n"


def _data_of(shown: View) -> Section:
    """The rows of CSV and JSON lines."""
    if shown.data is not None:
        return shown.data
    return shown.sections[0] if shown.sections else Section("", (), ())


def _harmless_cell(cell: Any) -> Any:
    """A cell with an apostrophe before a text that begins like a formula, which a spreadsheet would run."""
    if not isinstance(cell, str):
        return cell
    risky = cell[:1] in "=+-@\t\r" and cell != "-"
    return visible_cell(f"'{cell}" if risky else cell)


def headline_of(shown: View, findings: tuple[Finding, ...]) -> str:
    """Return the first sentence, after a word of warning where something could not be read."""
    unread = any(finding.id == UNREAD for finding in findings)
    return f"Undetermined, for not everything could be read. {shown.headline}" if unread else shown.headline


def _markdown_text(shown: View, findings: tuple[Finding, ...]) -> str:
    lines = [_escaped_markdown(headline_of(shown, findings)), ""]
    for figure in shown.figures:
        lines += ["```text", figure, "```", ""]
    for section in shown.sections:
        lines += [f"## {section.title}", ""]
        lines += [section.note, ""] if section.note else []
        lines += ["| " + " | ".join(section.columns) + " |", "|" + " --- |" * len(section.columns)]
        lines += ["| " + " | ".join(_escaped_markdown(str(c)) for c in row) + " |" for row in section.rows]
        lines.append("")
    if shown.notes:
        lines += ["## Why", "", *(f"{i}. {_escaped_markdown(note)}" for i, note in enumerate(shown.notes, 1)), ""]
    if findings:
        lines += [
            "## Findings",
            "",
            *(f"- **{f.severity}** `{f.id}`: {_escaped_markdown(f.message)}" for f in findings),
            "",
        ]
    return "\n".join(lines)


def _escaped_markdown(text: str) -> str:
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, "\\" + mark)
    return visible(text)


def _table_text(shown: View, findings: tuple[Finding, ...], width: int | None, color: bool) -> str:
    """Plain text by rich, which is imported here because only people need it."""
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out,
        width=width or 10_000,
        no_color=not color,
        force_terminal=color,
        highlight=False,
        soft_wrap=width is None,
    )
    console.print(Text(visible(headline_of(shown, findings)), style="bold"))
    for figure in shown.figures:
        console.print()
        console.print(Text(figure), soft_wrap=True)
    for section in shown.sections:
        console.print()
        console.print(Text(section.title, style="bold"))
        console.print(_fitting_table(section, width), soft_wrap=width is None)
        if section.note:
            console.print(Text(visible(section.note)))
    if shown.notes:
        console.print()
        for note in shown.notes:
            console.print(Text(visible(f"- {note}")))
    if findings:
        console.print()
        for f in findings:
            style = {"error": "red", "warning": "yellow"}.get(f.severity, "")
            console.print(Text(f"{f.severity} ", style=style) + Text(visible(f"[{f.id}] {f.message}")))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


_FOLDED = (24, 16, 12)
"""Longer words, such as URIs, may be cut to fit a terminal: those of so many characters first."""

_GAP, _NARROW_GAP = 3, 2


def _fitting_table(section: Section, width: int | None) -> Any:
    """A table that fits a terminal of `width` columns.

    Where it is too wide, columns wrap between words, and where they cannot, each cell takes a line. Where it fits it is
    laid out here: rich takes seconds for ten thousand rows.
    """
    rows = [[visible(str(cell)) for cell in row] for row in section.rows]
    columns = list(zip(section.columns, *rows, strict=True))
    natural = [max(map(_text_width, cells)) for cells in columns]
    numeric = [
        all(isinstance(cell, int) or str(cell).isdigit() or cell == "-" for cell in column)
        for column in zip(*section.rows, strict=True)
    ]
    if width is None or sum(natural) + _GAP * (len(natural) - 1) <= width:
        return _unwrapped_table(section.columns, rows, natural, numeric)
    widths = _narrow_widths(columns, natural, width)
    if widths:
        return _wrapping_table(section.columns, rows, widths, numeric)
    return _stacked_cells(section.columns, rows)


def _text_width(text: str) -> int:
    """How wide a text is on a terminal."""
    from rich.cells import cell_len

    return len(text) if text.isascii() else cell_len(text)


def _unwrapped_table(names: tuple[str, ...], rows: list[list[str]], widths: list[int], numeric: list[bool]) -> Any:
    """Columns side by side under a rule, none of them wrapped."""
    from rich.text import Text

    def line(cells: Iterable[str]) -> str:
        padded = []
        for cell, width, right in zip(cells, widths, numeric, strict=True):
            space = " " * (width - _text_width(cell))
            padded.append(space + cell if right else cell + space)
        return (" " * _GAP).join(padded)

    rule = "─" * (sum(widths) + _GAP * (len(widths) - 1))
    return Text(line(names), style="bold", end="\n").append(
        f"\n{rule}\n" + "\n".join(map(line, rows)), style="not bold"
    )


def _wrapping_table(names: tuple[str, ...], rows: list[list[str]], widths: list[int], numeric: list[bool]) -> Any:
    """Columns that wrap between words."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name, width, right in zip(names, widths, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold", width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _narrow_widths(columns: list[tuple[str, ...]], natural: list[int], width: int) -> list[int]:
    """Widths of columns of text that wrap between words, within `width`; none if words do not fit.

    What is left goes to the columns that need least not to wrap.

    >>> _narrow_widths([("name", "a/0"), ("missing", "b/0, b/1 and c/0")], [4, 16], 20)
    [4, 14]
    """
    words = [" ".join(cells).split() for cells in columns]
    for most in _FOLDED:
        found = [min(max(map(len, column), default=0), most) for column in words]
        spare = width - sum(found) - _NARROW_GAP * (len(found) - 1)
        if spare >= 0:
            for i in sorted(range(len(found)), key=lambda i: natural[i] - found[i]):
                more = min(spare, natural[i] - found[i])
                found[i], spare = found[i] + more, spare - more
            return found
    return []


def _stacked_cells(names: tuple[str, ...], rows: list[list[str]]) -> Any:
    """Each cell on a line of its own, with the name of its column."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for i, row in enumerate(rows):
        if i:
            table.add_row("", "")
        for pair in zip(names, row, strict=True):
            table.add_row(*map(Text, pair))
    return table

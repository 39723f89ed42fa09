"""Answers as table, JSON, JSON lines, CSV or Markdown."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from cklog.errors import CklogError, UsageError
from cklog.model.findings import Finding
from cklog.model.verdict import Answer
from cklog.render.brief import brief_text, verdict_again
from cklog.render.markdown import markdown_text
from cklog.render.short_ids import with_short_ids
from cklog.render.text import visible, visible_cell, visible_json, visible_lines, wrapped_lines
from cklog.render.view import MOST_ROWS, Section, View, headline_of, view
from cklog.version import __version__

FORMATS = ("table", "json", "jsonl", "csv", "md", "kv", "env")
TABLE_FORMATS = ("table", "jsonl", "csv", "md")
"""Formats that print one table of an answer."""


def render(
    answer: Answer[object],
    form: str,
    width: int | None = None,
    color: bool = False,
    *,
    height: int | None = None,
    brief: bool = False,
    table: str = "",
) -> str:
    """Write an answer as text in one of `FORMATS`, ending in a newline.

    Parameters
    ----------
    width : the terminal's number of columns, None when the output is no terminal: then nothing wraps
    color : a table has colors
    height : the terminal's number of lines: a table that is longer ends in its verdict again; None: it does not
    brief : of a table the verdict alone, and what to do
    table : the list of the answer that alone is written, "" for the answer as people read it

    Raises
    ------
    UsageError : the answer has no such list, or the format holds more than one
    """
    if form in ("kv", "env") and not table:
        from cklog.render.shell import env_text, kv_text  # here, as below, because few need it

        return (kv_text if form == "kv" else env_text)(envelope(answer), answer.exit_code)
    if table:
        return _one_table(answer, table, form, width, color)
    if form == "json":
        return visible_json(_json_text(envelope(answer))) + "\n"
    shown = view(answer)
    if form == "jsonl":
        return _json_lines(_data_of(shown))
    if form == "csv":
        return _csv_text(shown)
    if form == "md":
        return markdown_text(headline_of(shown, answer.findings), shown, answer.findings)
    findings = answer.findings
    if width is not None:
        shown, findings = with_short_ids(shown, findings)
    headline = visible(headline_of(shown, findings))
    if brief:
        return brief_text(headline, shown, findings, width, height, color)
    text = _table_text(shown, findings, width, color)
    too_long = height is not None and text.count("\n") >= height
    return text + verdict_again(headline, shown, width, color) if too_long else text


def require_table_format(table: str, form: str) -> None:
    """Raise `UsageError` if one table is asked for in a format that holds all of an answer, or something else of it."""
    if table and form not in TABLE_FORMATS:
        raise UsageError(f"--table {table} with --format {form}", f"it goes with {', '.join(TABLE_FORMATS)}")


def _one_table(answer: Answer[object], name: str, form: str, width: int | None, color: bool) -> str:
    """One list of an answer; times and types as programs take them."""
    from cklog.render.tables import as_text, table_of

    require_table_format(name, form)
    rows = table_of(envelope(answer), type(answer.result), name)
    if form == "jsonl":
        return _json_lines(rows)
    if form == "csv":
        return _csv_text(View("", (as_text(rows),)))
    shown = View(headline_of(view(answer), answer.findings), (as_text(rows),))
    return markdown_text(shown.headline, shown, ()) if form == "md" else _table_text(shown, (), width, color)


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
    """JSON with every row of a list on a line of its own: short to read, and lines that tools can compare.

    Members deeper down are laid out as well, if they have rows.
    """
    if isinstance(value, dict) and value and (depth < _EXPANDED - 1 or any(map(_is_rows, value.values()))):
        inner = (
            f"{json.dumps(key, ensure_ascii=False)}: {_json_text(found, depth + 1)}" for key, found in value.items()
        )
        return "{" + _indented_lines(inner, depth) + "}"
    if isinstance(value, list) and value and (depth < _EXPANDED or _is_rows(value)):
        return "[" + _indented_lines((json.dumps(row, ensure_ascii=False) for row in value), depth) + "]"
    return json.dumps(value, ensure_ascii=False)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _indented_lines(items: Iterable[str], depth: int) -> str:
    indent = "  " * (depth + 1)
    return "\n" + ",\n".join(indent + item for item in items) + "\n" + "  " * depth


def _json_lines(data: Section) -> str:
    rows = (dict(zip(data.columns, row, strict=True)) for row in data.rows)
    return visible_json("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _csv_text(shown: View) -> str:
    data = _data_of(shown)
    rows = [data.columns, *data.rows] if data.columns else []
    return "".join(_csv_row(map(_harmless_cell, row)) for row in rows)


def _csv_row(cells: Iterable[Any]) -> str:
    """Write one row; cells with a line feed or a carriage return are quoted, which Python does for its line ends."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n") + "\n"


def _data_of(shown: View) -> Section:
    """The rows of CSV and JSON lines."""
    if shown.data is not None:
        return shown.data if isinstance(shown.data, Section) else shown.data()
    return shown.sections[0] if shown.sections else Section("", (), ())


def _harmless_cell(cell: Any) -> Any:
    """A cell with an apostrophe before a text that begins like a formula, which a spreadsheet would run."""
    if not isinstance(cell, str):
        return cell
    risky = cell[:1] in tuple("=+-@\t\r") and cell != "-"
    return visible_cell(f"'{cell}" if risky else cell)


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
    for sentence in shown.lead:
        console.print(Text(visible(sentence)))
    sentences = set(map(visible, shown.sentences))
    for figure in shown.figures:
        console.print()
        for line in visible_lines(figure).split("\n"):
            lines = wrapped_lines(line, width if line in sentences else None)
            console.print(Text("\n".join(lines)), soft_wrap=True)
    for section in shown.sections:
        console.print()
        console.print(Text(visible(section.title), style="bold"))
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

_PIECES = 3
"""A word that is cut into more pieces is not read any more."""

_GAP, _NARROW_GAP = 3, 2


def _fitting_table(section: Section, width: int | None) -> Any:
    """A table that fits a terminal of `width` columns.

    Where it is too wide, columns wrap between words; where they cannot, or take more lines so, each row becomes a
    record. Where it fits it is laid out here: rich takes seconds for ten thousand rows.
    """
    names = tuple(map(visible, section.columns))
    rows = [[visible(str(cell)) for cell in row] for row in section.rows]
    columns = list(zip(names, *rows, strict=True))
    natural = [max(map(_text_width, cells)) for cells in columns]
    numeric = [
        all(isinstance(cell, int) or str(cell).isdigit() or cell == "-" for cell in column)
        for column in zip(*section.rows, strict=True)
    ]
    if width is None or sum(natural) + _GAP * (len(natural) - 1) <= width:
        return _unwrapped_table(names, rows, natural, numeric)
    widths = _narrow_widths(columns, natural, width)
    records = _records(names, rows, width)
    if not widths:
        return records
    some = rows[:MOST_ROWS]
    taken = _height(_wrapping_table(names, some, widths, numeric), width)
    higher = taken > _height(_records(names, some, width), width)
    return records if higher else _wrapping_table(names, rows, widths, numeric)


def _height(shown: Any, width: int) -> int:
    """How many lines of a terminal something takes."""
    from rich.console import Console

    return len(Console(width=width).render_lines(shown))


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
    """Widths of columns of text that wrap between words, within `width`; none if words do not fit, or in shreds.

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
            longest = (max(map(len, column), default=0) for column in words)
            return found if all(word <= _PIECES * most for word, most in zip(longest, found, strict=True)) else []
    return []


def _records(names: tuple[str, ...], rows: list[list[str]], width: int) -> Any:
    """Each row as a record: its first cell, and below it the others with the names of their columns.

    As many stand on a line as fit; those that are empty are left out.
    """
    from rich.text import Text

    shown = Text()
    for row in rows:
        shown.append(f"{row[0]}\n", style="bold")
        line = ""
        for name, cell in zip(names[1:], row[1:], strict=True):
            if cell == "-":
                continue
            pair = f"{name}: {cell}"
            if line and _text_width(f"{line}; {pair};") > width - _INDENT:
                shown.append(_indented(f"{line};", width))
                line = pair
            else:
                line = f"{line}; {pair}" if line else pair
        shown.append(_indented(line, width) if line else "")
    shown.right_crop(1)
    return shown


_INDENT = 2


def _indented(text: str, width: int) -> str:
    """A text in lines that fit, between words where there are any."""
    return "".join(f"{' ' * _INDENT}{line}\n" for line in wrapped_lines(text, width - _INDENT))

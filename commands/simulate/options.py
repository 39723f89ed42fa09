"""What every simulation takes, and how what it made is shown."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any

import typer

from cklog.commands.terminal import completion
from cklog.commands.terminal.printing import Printing
from cklog.errors import UsageError
from cklog.model.verdict import Answer
from cklog.render.formats import FORMATS


class EncodingName(StrEnum):
    """`--encoding`."""

    jsonl = "jsonl"
    gzip = "jsonl.gz"
    zstd = "jsonl.zst"
    parquet = "parquet"


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """How the figures are printed; each field is a parameter of the command line."""

    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            autocompletion=completion.formats,
            help=f"How to print the figures: {', '.join(FORMATS)}.",
        ),
    ] = "table"
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False
    table: Annotated[str, typer.Option("--table", metavar="LIST", help="Only this list, for programs.")] = ""
    brief: Annotated[bool, typer.Option("--brief", help="The verdict alone: one screen.")] = False
    pager: Annotated[bool, typer.Option("--pager", help="On a terminal: page by page, by $PAGER.")] = False
    no_color: Annotated[bool, typer.Option("--no-color", help="No color, as with NO_COLOR set.")] = False

    def chosen(self) -> str:
        """Return the format; to be asked before a long run rather than after it."""
        form = "json" if self.as_json else self.form
        if form not in FORMATS:
            raise UsageError(f"--format {form}: not one of {', '.join(FORMATS)}")
        self._printing.require(form)
        return form

    def show(self, answer: Answer[Any]) -> None:
        """To stdout."""
        form = self.chosen()
        self._printing.put(self._printing.rendered(answer, form), form)

    @property
    def _printing(self) -> Printing:
        return Printing(no_color=self.no_color, brief=self.brief, pager=self.pager, table=self.table)


def flattened(function: Callable[..., None]) -> Callable[..., None]:
    """Give Typer the fields of each dataclass that `function` takes, as parameters of their own."""
    groups = {name: kind for name, kind in typing.get_type_hints(function).items() if name != "return"}
    names = {name: [f.name for f in fields(kind)] for name, kind in groups.items()}
    parameters = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hint)
        for kind in groups.values()
        for f, hint in zip(fields(kind), typing.get_type_hints(kind, include_extras=True).values(), strict=True)
    ]

    @functools.wraps(function)
    def wrapped(**given: Any) -> None:
        function(**{name: kind(**{field: given[field] for field in names[name]}) for name, kind in groups.items()})

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped

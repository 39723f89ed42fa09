"""What every command takes, and how its answer gets out: declared once, added to each command's signature."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import typer

from cklog.budgets import LEAST_MEMORY, Budgets
from cklog.commands.options import assignment, size
from cklog.commands.terminal import completion
from cklog.commands.terminal.output_file import require_place, write_file
from cklog.commands.terminal.printing import Printing
from cklog.commands.terminal.stages import told_on_stderr
from cklog.destinations import keep_input_from, note_named, require_unread
from cklog.errors import NothingToWrite, OutputError, UsageError
from cklog.local_files import is_local, os_name, parse_map, text_name, without_file_scheme
from cklog.model.actions import Acted
from cklog.model.options import IO_THREADS, SPLIT_BYTES, Options
from cklog.model.unchecked import Unchecked, unchecked_by, unchecked_sentence
from cklog.model.verdict import Answer
from cklog.render.formats import FORMATS
from cklog.render.text import visible
from cklog.run import Run, open_run
from cklog.sweep.model import ScanAnswer

R = TypeVar("R")


class FailOn(StrEnum):
    """`--fail-on`: from which finding on a command ends with another exit code than 0."""

    error = "error"
    warning = "warning"
    older = "older"
    unchecked = "unchecked"
    never = "never"


class EngineName(StrEnum):
    """`--engine`."""

    auto = "auto"
    local = "local"
    spark = "spark"


def path_argument(name: str, help: str) -> Any:
    """Make the argument that says what is read, by the name that a command has for it."""
    return typer.Argument(envvar="CKLOG_PATH", metavar=name, help=help)


@dataclass(frozen=True, slots=True)
class Common:
    """The options of every command; each field is a parameter of the command line."""

    path: Annotated[str, path_argument("PATH", "Run folder, checkpoint folder or URI.")] = "."
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            autocompletion=completion.formats,
            help=f"How to print the answer: {', '.join(FORMATS)}.",
        ),
    ] = "table"
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False
    table: Annotated[
        str,
        typer.Option("--table", metavar="LIST", help="Only this list, for programs: findings, line, sources, …"),
    ] = ""
    brief: Annotated[bool, typer.Option("--brief", help="The verdict alone, and what to do: one screen.")] = False
    pager: Annotated[bool, typer.Option("--pager", help="On a terminal: page by page, by $PAGER.")] = False
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Write the answer to FILE, which is outside PATH.")
    ] = ""
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Let -o write inside PATH, and replace files that were read.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="More on stderr, Spark's log too.")] = False
    no_color: Annotated[bool, typer.Option("--no-color", help="No color, as with NO_COLOR set.")] = False
    strict: Annotated[bool, typer.Option("--strict", help="Any damage ends in exit 65.")] = False
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on",
            help="When to exit 3: on errors; on warnings too; on errors or any action other than restart; or never "
            "(exit 0 for every answer). With unchecked: exit 5 if the answer depends on something not checked.",
        ),
    ] = FailOn.error
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="FORMAT", autocompletion=completion.sources, help="The input's format, if not recognised."
        ),
    ] = ""
    chosen: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="NAME",
            autocompletion=completion.runs,
            help="Which run, where several lie below PATH: its folder.",
        ),
    ] = ""
    maps: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OLD=NEW", help="Rewrite a stored path prefix; repeatable."),
    ] = None
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow links that lead out of PATH, which are left alone otherwise.")
    ] = False
    store: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="K=V", help="How an object store is reached: endpoint, region, …; repeatable."),
    ] = None
    io_threads: Annotated[
        int, typer.Option("--io-threads", metavar="N", min=1, max=256, help="Requests to an object store at a time.")
    ] = IO_THREADS
    engine: Annotated[
        EngineName, typer.Option("--engine", help="What scans the logs; auto takes what is expected to finish first.")
    ] = EngineName.auto
    spark_above: Annotated[
        str,
        typer.Option("--spark-above", metavar="SIZE", help="auto takes Spark above this size, whatever it expects."),
    ] = ""
    master: Annotated[str, typer.Option("--master", metavar="URL", help="Spark master.")] = ""
    remote: Annotated[str, typer.Option("--remote", metavar="URL", help="Spark Connect server, sc://…")] = ""
    spark_conf: Annotated[
        list[str] | None, typer.Option("--spark-conf", metavar="K=V", help="Spark setting; repeatable.")
    ] = None
    engine_timeout: Annotated[
        float, typer.Option("--engine-timeout", metavar="S", min=1, help="How long Spark may do nothing at all.")
    ] = Options().engine_timeout
    ship: Annotated[bool, typer.Option("--ship", help="Spark's executors get this cklog: nothing to install.")] = False
    split_size: Annotated[str, typer.Option("--split-size", metavar="SIZE", help="Bytes of a log per task.")] = (
        f"{SPLIT_BYTES >> 20}MiB"
    )
    max_memory: Annotated[
        str, typer.Option("--max-memory", metavar="SIZE", help="What reading may take; more is exit 65.")
    ] = f"{Budgets().memory >> 30}GiB"

    def run(self) -> Run:
        """Return the run at PATH; close it."""
        if size(self.split_size) < 1:
            raise UsageError(f"--split-size {self.split_size}: at least one byte")
        if size(self.max_memory) < LEAST_MEMORY:
            raise UsageError(f"--max-memory {self.max_memory}: at least {LEAST_MEMORY >> 20}MiB")
        options = Options(
            engine=self.engine.value,
            spark_above=size(self.spark_above) if self.spark_above else None,
            master=self.master,
            remote=self.remote,
            spark_conf=tuple(assignment("--spark-conf", text) for text in self.spark_conf or ()),
            split_bytes=size(self.split_size),
            maps=tuple(parse_map(text) for text in self.maps or ()),
            store=tuple(_store_option(text) for text in self.store or ()),
            io_threads=self.io_threads,
            source=self.source,
            run=text_name(self.chosen),
            strict=self.strict,
            follow_links=self.follow_links,
            verbose=self.verbose,
            max_memory=size(self.max_memory),
            engine_timeout=self.engine_timeout,
            ship=self.ship,
        )
        for place in (self.path, *(new for _, new in options.maps)):
            if is_local(place):
                note_named(without_file_scheme(os_name(place)))
        return open_run(self.path, options)

    def answer(
        self,
        ask: Callable[[Run], Answer[R]],
        exports: Mapping[str, Callable[[Answer[R]], str | bytes]] | None = None,
        steps: Callable[[str], tuple[str, ...]] = lambda form: (),
        complete: bool = False,
        unchecked: Callable[[Run], tuple[Unchecked, ...]] = Run.unchecked,
    ) -> None:
        """Ask the run, print the answer, and leave with its exit code.

        `exports` are formats of this command, `steps` what to do with what they print, told on stderr; `complete`: they
        hold the findings themselves. `unchecked` returns what the answer takes for granted and does not say itself.
        """
        form = "json" if self.as_json else self.form
        own = exports or {}
        if form not in (*FORMATS, *own):
            raise UsageError(f"--format {form}: not one of {', '.join(dict.fromkeys([*FORMATS, *own]))}")
        self._printing.require(form)
        if self.output:
            require_place(self.output)
        color = not self.no_color and not os.environ.get("NO_COLOR")
        with told_on_stderr(self.quiet, self.verbose, color), self.run() as run:
            found = ask(run)
            told = [] if self.quiet else [*run.notes(), *(_notes_on_speed() if self.verbose else [])]
            asks = self.fail_on == FailOn.unchecked and found.exit_code == 0 and not actions_rest_on_unchecked(found)
            granted = (*unchecked(run), *unchecked_by(found.findings)) if asks else ()
        for line in told:
            print(visible(line), file=sys.stderr)
        following = steps(form)
        try:
            text = own[form](found) if form in own and not self.table else self._printing.rendered(found, form)
            self._write(text, form)
        except NothingToWrite as nothing:  # as the findings say; no file is made, which a tool might take
            following = ()
            if not self.quiet:
                print(f"nothing is written: {visible(nothing.message)}", file=sys.stderr)
        if ((form in own and not complete) or form in ("csv", "jsonl")) and not self.quiet:
            for finding in found.findings:
                print(f"{finding.severity}: [{finding.id}] {visible(finding.message)}", file=sys.stderr)
            for number, step in enumerate(following, 1):
                print(f"{number}. {visible(step)}", file=sys.stderr)
        if granted and not self.quiet:
            print(visible(unchecked_sentence(granted)), file=sys.stderr)
        raise typer.Exit(5 if granted else exit_code(found, self.fail_on))

    @property
    def _printing(self) -> Printing:
        return Printing(bool(self.output), self.no_color, self.brief, self.pager, self.table)

    def _write(self, text: str | bytes, form: str) -> None:
        """To stdout or the file of -o."""
        try:
            if self.output:
                require_unread()
                write_file(self.output, text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
            elif isinstance(text, bytes):
                sys.stdout.buffer.write(text)
                sys.stdout.flush()
            else:
                self._printing.put(text, form)
        except OSError as error:
            raise OutputError(f"{self.output}: {error.strerror}") from None


def _notes_on_speed() -> list[str]:
    """Say why loops over rows run without machine code, if they do."""
    from cklog.arrays.loops import why_not_compiled  # most answers need no arrays, which take long to load

    why = why_not_compiled()
    return [f"loops over rows run without machine code: {why}"] if why else []


def _store_option(text: str) -> tuple[str, str]:
    """Return both sides of K=V of `--store`; what is wrong is said without the value, which may be a secret."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError("--store: expected K=V", "such as --store endpoint=http://minio:9000")
    return key, value


def exit_code(found: Answer[object], fail_on: FailOn) -> int:
    """Return the exit code of an answer, as `--fail-on` asks for it."""
    if fail_on == FailOn.never:
        return 0
    result = found.result
    many = result if isinstance(result, ScanAnswer) else None
    warned = any(f.severity == "warning" for f in found.findings) or (many and any(row.warnings for row in many.runs))
    doubtful = fail_on == FailOn.warning and warned
    older = fail_on == FailOn.older and isinstance(result, Acted) and result.action != "restart"
    if fail_on == FailOn.unchecked and found.exit_code == 0 and actions_rest_on_unchecked(found):
        return 5
    return 3 if found.exit_code == 0 and (doubtful or older) else found.exit_code


def actions_rest_on_unchecked(found: Answer[object]) -> bool:
    """Return whether an action in an answer takes something for granted that nothing was compared with."""
    return any(getattr(one, "unchecked", ()) for one in (found.result, *getattr(found.result, "runs", ())))


def command(function: Callable[..., None], path: Any = None) -> Callable[..., None]:
    """Give `function(common, …)` the parameters of `Common` beside its own, so that Typer sees them all.

    `path` is the argument, as `path_argument` makes it, of a command to which PATH is something of another name.
    Each of its own that is annotated with a dataclass stands for the fields of that: options that several commands have
    in common.
    """
    own = inspect.signature(function, eval_str=True).parameters.values()
    types: dict[str, Any] = {p.name: p.annotation for p in own}
    grouped = {name: kind for name, kind in types.items() if isinstance(kind, type) and is_dataclass(kind)}
    members = {name: [f.name for f in fields(group)] for name, group in grouped.items()}
    listed = [part for p in own for part in (_parameters(grouped[p.name]) if p.name in grouped else [p])]

    @functools.wraps(function)
    def wrapped(**given: Any) -> None:
        groups = {name: grouped[name](**{one: given.pop(one) for one in members[name]}) for name in grouped}
        common = typing.cast("Common", groups["common"])
        with keep_input_from("-o", "" if common.overwrite else common.output):
            function(**groups, **given)

    # PATH comes first in a command's usage, and what every command takes last
    common = members["common"]
    order = sorted(listed, key=lambda p: (p.name != common[0], p.name in common))
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in order]
    if path is not None:
        parameters[0] = parameters[0].replace(annotation=Annotated[str, path])
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    """Return the fields of a dataclass of options as parameters."""
    hints = typing.get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if f.default is MISSING else f.default,
            annotation=hints[f.name],
        )
        for f in fields(group)
    ]

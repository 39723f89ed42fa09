"""The `cklog` program: its commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import gc
import json
import sys
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.abc import MetaPathFinder
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import typer
from typer.main import get_command

from cklog.commands.lazy import SETTINGS, LazyCommands
from cklog.commands.terminal.streams import encodable_json, prepare_streams, write_out
from cklog.errors import CklogError, OutputError, UsageError
from cklog.local_files import told_error
from cklog.masking import masked_options
from cklog.render.formats import error_object
from cklog.render.text import visible, visible_json
from cklog.version import __version__


class Commands(LazyCommands):
    """The commands of `cklog`."""

    places: ClassVar[Mapping[str, str]] = {
        "recovery-line": "cklog.commands.recovery_line:recovery_line",
        "verify": "cklog.commands.verify:verify",
        "replay": "cklog.commands.replay:replay",
        "runbook": "cklog.commands.answers.runbook:runbook",
        "inspect": "cklog.commands.inspect:inspect",
        "graph": "cklog.commands.graph:graph",
        "z-cycles": "cklog.commands.z_cycles:z_cycles",
        "compare": "cklog.commands.compare:compare",
        "chain": "cklog.commands.chain:chain",
        "retention": "cklog.commands.retention:retention",
        "rounds": "cklog.commands.rounds:rounds",
        "extent": "cklog.commands.extent:extent",
        "eventual-checkpoint": "cklog.commands.eventual_checkpoint:eventual_checkpoint",
        "impact": "cklog.commands.impact:impact",
        "latency": "cklog.commands.latency:latency",
        "scan": "cklog.commands.answers.scan:scan",
        "report": "cklog.commands.answers.report:report",
        "diff": "cklog.commands.answers.diff:diff",
        "explain": "cklog.commands.answers.explain:explain",
        "advise": "cklog.commands.advise:advise",
        "simulate": "cklog.commands.simulate.group:simulate",
    }
    questions: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Where to restart": (
            "recovery-line",
            "report",
            "runbook",
            "scan",
            "replay",
            "verify",
            "rounds",
            "eventual-checkpoint",
            "extent",
        ),
        "Why, and what it did": ("inspect", "impact", "latency", "graph", "z-cycles", "compare", "diff", "explain"),
        "What may be deleted": ("retention", "chain"),
        "What to set": ("advise",),
        "What if": ("simulate",),
    }


app = typer.Typer(
    name="cklog",
    cls=Commands,
    help="Where can a crashed stream-processing job restart? Reads logs and checkpoints; changes nothing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)


def _version(asked: bool) -> None:
    if asked:
        print(f"cklog {__version__}")
        raise typer.Exit


@app.callback()
def _cklog(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Where can a crashed stream-processing job restart? Reads logs and checkpoints; changes nothing."""


_WrongCommandLine: Any = typer.BadParameter.__base__
"""What typer's own copy of click raises for a command line that it cannot read; it has no public name."""


@cache
def _program() -> Any:
    """The program's commands, built once in a process."""
    return get_command(app)


def main() -> None:
    """Run the program; the only place that catches `CklogError`."""
    prepare_streams()
    _leave_pandas_out()
    gc.disable()  # one answer, then the process ends; large ones are a million small objects without a cycle
    try:
        try:
            code = _program()(prog_name="cklog", standalone_mode=False)
        finally:
            sys.stdout.flush()  # here, where it is told that there is no room for what is left
        sys.exit(code if isinstance(code, int) else 0)
    except _WrongCommandLine as error:
        sys.exit(_tell_usage(error))
    except Exception as error:
        if not isinstance(error, CklogError | MemoryError) and ("-v" in sys.argv or "--verbose" in sys.argv):
            print(masked_options(traceback.format_exc()), end="", file=sys.stderr)
        told = told_error(error)
        _tell(told)
        sys.exit(told.exit_code)


def _leave_pandas_out() -> None:
    """Let pyarrow find no pandas when it first looks, and remember that: importing it is a third of a cold start.

    pyarrow looks whenever it makes an array. Spark, which needs pandas itself, imports it later all the same.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas())
        pa.array([0])
        del sys.meta_path[0]


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("left out for a fast start", name=name)


def _tell_usage(error: Any) -> int:
    """Tell of a command line that cannot be read, as of every other error; of one that says nothing print the help."""
    context, message = error.ctx, masked_options(error.format_message())
    if context is not None and message == context.get_help():
        print(message, file=sys.stderr)
        return UsageError.exit_code
    asked = "cklog" if context is None else context.command_path
    usage = "" if context is None else f"{' '.join(context.get_usage().split())}; "
    _tell(UsageError(message.rstrip(".").replace(": Value error, ", ": "), f"{usage}{asked} -h says what it takes"))
    return UsageError.exit_code


def _tell_in_words(error: CklogError) -> None:
    print(f"cklog: {visible(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {visible(error.hint)}", file=sys.stderr)


def _tell(error: CklogError) -> None:
    """One line and a hint on stderr, and under --json one object on stdout, in place of the answer."""
    _tell_in_words(error)
    given = {*sys.argv, *(f"{a}={b}" for a, b in zip(sys.argv, sys.argv[1:], strict=False))}
    if not given.isdisjoint(("--json", "--format=json")):
        text = visible_json(json.dumps(error_object(error), ensure_ascii=False))
        try:
            write_out(encodable_json(f"{text}\n"))
        except OutputError as full:  # the process ends with the code of what went wrong first
            _tell_in_words(full)

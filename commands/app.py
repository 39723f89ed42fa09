"""The `cklog` program: its commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import gc
import importlib
import json
import sys
import traceback
from collections.abc import Mapping
from importlib.abc import MetaPathFinder
from typing import Annotated, Any

import pyarrow as pa
import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from cklog.commands import INTERRUPTED
from cklog.errors import CklogError, SelfCheckFailed
from cklog.render.formats import error_object
from cklog.render.text import visible
from cklog.version import __version__

_SETTINGS = {"help_option_names": ["-h", "--help"]}


class LazyCommands(TyperGroup):
    """Commands that are loaded when they are called, or listed: a start pays for one of them.

    Contexts and commands are of typer's own copy of click, whose types have no public names.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Name every command, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load a command; None: there is no such one."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found = getattr(importlib.import_module(module), name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=_SETTINGS)
            alone.command(cmd_name)(found)
            return get_command(alone)
        group = get_group(found)
        group.name = cmd_name
        return group


COMMANDS: Mapping[str, str] = {
    "recovery-line": "cklog.commands.recovery_line:recovery_line",
    "verify": "cklog.commands.verify:verify",
    "replay": "cklog.commands.replay:replay",
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
    "advise": "cklog.commands.advise:advise",
    "simulate": "cklog.commands.simulate.group:simulate",
}
"""The function, or group of them, of each command, as module:name."""

app = typer.Typer(
    name="cklog",
    cls=LazyCommands,
    help="Where can a crashed stream-processing job restart? Reads logs and checkpoints; changes nothing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=_SETTINGS,
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


def main() -> None:
    """Run the program; the only place that catches `CklogError`."""
    _leave_pandas_out()
    gc.disable()  # one answer, then the process ends; large ones are a million small objects without a cycle
    try:
        app(standalone_mode=True)
    except CklogError as error:
        _tell(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # a bug: one line for the person, the traceback for -v
        if "-v" in sys.argv or "--verbose" in sys.argv:
            traceback.print_exc()
        _tell(SelfCheckFailed(f"a bug: {type(error).__name__}: {error}", "run again with -v and report what it prints"))
        sys.exit(SelfCheckFailed.exit_code)


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


def _tell(error: CklogError) -> None:
    """One line, a hint, and under --json one object as the last line."""
    print(f"cklog: {visible(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {visible(error.hint)}", file=sys.stderr)
    if "--json" in sys.argv or "json" in [b for a, b in zip(sys.argv, sys.argv[1:], strict=False) if a == "--format"]:
        print(json.dumps(error_object(error), ensure_ascii=False), file=sys.stderr)

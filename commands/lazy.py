"""Commands that are loaded when they are called, or listed: a start pays for one of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import typer
from typer.main import get_command, get_group

from cklog.commands.terminal.help import HelpfulCommand, HelpfulGroup

SETTINGS = {"help_option_names": ["-h", "--help"]}


class LazyCommands(HelpfulGroup):
    """A group whose commands are named by `places`: the function, or group of them, of each as module:name.

    Contexts and commands are of typer's own copy of click, whose types have no public names.
    """

    places: ClassVar[Mapping[str, str]]

    def list_commands(self, ctx: Any) -> list[str]:
        """Name every command, in the order of the help."""
        return list(self.places)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load a command; None: there is no such one."""
        return _loaded(self.places[cmd_name], cmd_name) if cmd_name in self.places else None


@cache
def _loaded(place: str, name: str) -> Any:
    """The command or group at a place: built once, for a program that is asked again in the same process."""
    module, _, attribute = place.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=SETTINGS)
    alone.command(name, cls=HelpfulCommand)(found)
    return get_command(alone)

"""The commands of `cklog simulate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from cklog.commands.lazy import LazyCommands


class Simulations(LazyCommands):
    """One for each protocol or system that can be simulated."""

    places: ClassVar[Mapping[str, str]] = {
        "cec": "cklog.commands.simulate.cec:cec",
        "nexmark": "cklog.commands.simulate.dataflow:nexmark",
        "cyclic": "cklog.commands.simulate.dataflow:cyclic",
        "odysseus": "cklog.commands.simulate.odysseus:odysseus",
    }


simulate = typer.Typer(name="simulate", cls=Simulations, no_args_is_help=True, rich_markup_mode=None)


@simulate.callback()
def _simulate() -> None:
    """A history by a named protocol and workload, of any size."""

"""The commands of `cklog simulate`."""

from __future__ import annotations

import typer

from cklog.commands.simulate.cec import cec
from cklog.commands.simulate.dataflow import cyclic, nexmark
from cklog.commands.simulate.odysseus import odysseus

simulate = typer.Typer(name="simulate", no_args_is_help=True, rich_markup_mode=None)


@simulate.callback()
def _simulate() -> None:
    """A history by a named protocol and workload, of any size."""


simulate.command("cec")(cec)
simulate.command("nexmark")(nexmark)
simulate.command("cyclic")(cyclic)
simulate.command("odysseus")(odysseus)

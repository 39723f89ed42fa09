"""cklog explain [ID…]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from cklog.commands.simulate.options import PrintOptions, flattened


def ids_beginning(incomplete: str) -> list[str]:
    """Complete an id in a shell."""
    from cklog.explanations.answer import known_ids

    return [name for name in known_ids() if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be explained."""

    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            autocompletion=ids_beginning,
            help="Of findings, actions, errors, exit codes; none: list them all.",
        ),
    ] = None


@flattened
def explain(asked: Asked, printed: PrintOptions) -> None:
    """What a finding, an action, an error or an exit code means.

    For the answer, too, and what to do now.
    """
    from cklog.explanations.answer import explain as explained

    printed.chosen()
    printed.show(explained(asked.ids or []))

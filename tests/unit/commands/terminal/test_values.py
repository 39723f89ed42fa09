"""What a command gets for its options, beside what Typer alone gives it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import pytest
import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from cklog.commands.terminal.help import HelpfulCommand


class Color(StrEnum):
    red = "red"
    blue = "blue"


def _shout(text: str) -> str:
    return text.upper()


def given(cls: type[TyperCommand], words: list[str], environment: dict[str, str]) -> Any:
    """What a command of many kinds of parameters gets, or how it is refused."""
    got: list[Any] = []

    def command(
        needed: str,
        path: Annotated[str, typer.Argument(envvar="PLACE")] = ".",
        name: str = "",
        loud: Annotated[str, typer.Option(callback=_shout)] = "quiet",
        several: list[str] | None = None,
        color: Color = Color.red,
        count: Annotated[int, typer.Option(min=1, max=9)] = 4,
        share: float = 0.5,
        flag: bool = False,
        maybe: bool | None = None,
    ) -> None:
        got.append([needed, path, name, loud, several or None, color, type(color), count, share, flag, maybe])

    app = typer.Typer(add_completion=False)
    app.command(cls=cls)(command)
    ran = CliRunner().invoke(app, words, env=environment)
    return got, ran.exit_code, ran.output.split("Error")[-1]


@pytest.mark.parametrize(
    "words",
    [
        "x",
        "x y",
        "x --name z --loud z --several a --several b --color blue --count 7 --share 1e-3 --flag --maybe",
        "x --no-flag --no-maybe --count 4",
        "x --count 10",
        "x --count z",
        "x --share z",
        "x --color green",
        "x --name",
        "",
    ],
)
@pytest.mark.parametrize("environment", [{}, {"PLACE": "there"}])
def test_a_command_gets_what_typer_gives(words: str, environment: dict[str, str]) -> None:
    assert given(HelpfulCommand, words.split(), environment) == given(TyperCommand, words.split(), environment)

"""What `-h` prints: commands by question, options in groups, and below them examples and exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup

from cklog.commands.terminal.values import taken_as_given

_OTHERS = "Options"
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Which line": (
        *("--failed", "--as-of", "--at", "--earliest", "--explain", "--algorithm", "--failed-at", "--against"),
        *("--line", "--restored", "--from-log", "--maximal"),
    ),
    "What to read": (
        *(
            "--from",
            "--run",
            "--map",
            "--follow-links",
            "--store",
            "--io-threads",
            "--strict",
            "--no-check-files",
            "--check-contents",
        ),
        *(
            "--with",
            "--kafka",
            "--channel",
            "--group",
            "--sink",
            "--source-from",
            "--taken",
            "--job-log",
            "--max-memory",
        ),
    ),
    "Time to recover": ("--read-rate", "--replay-rate", "--input-rate", "--max-recovery-time"),
    "How to print": (
        *(
            "--format",
            "--fail-on",
            "--json",
            "--table",
            "--brief",
            "--pager",
            "--output",
            "--overwrite",
            "--quiet",
            "--verbose",
            "--no-color",
        ),
        "--help",
    ),
    "Engine": (
        *("--engine", "--spark-above", "--split-size", "--master", "--remote", "--spark-conf", "--engine-timeout"),
        "--ship",
    ),
}
"""Options that several commands have, by what they are about; all others are a command's own. One that means something
else in a command says where it belongs by its `rich_help_panel`."""

# Contexts, formatters and parameters are of typer's own copy of click, whose types have no public names.


class HelpfulCommand(TyperCommand):
    """A command whose help is in groups, with examples, and whose options complete with what was typed before them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters, `--help` among them."""
        return taken_as_given(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; for a shell that completes an option's value, all of it before that option.

        The parser gives everything up where a value is missing: PATH, too, which values are looked for in.
        """
        unfinished = ctx.resilient_parsing and args and args[-1].startswith("-")
        return super().parse_args(ctx, args[:-1] if unfinished else args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by what they are about."""
        _write_parameters(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write examples, and exit codes with what they mean here."""
        _write_examples(ctx, formatter)


class HelpfulGroup(TyperGroup):
    """A group of commands, listed by the questions that they answer; those in `questions` under no title come last."""

    questions: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters, `--help` among them."""
        return taken_as_given(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands first, which is what somebody looks for; then options."""
        self.format_commands(ctx, formatter)
        rows = filter(None, (parameter.get_help_record(ctx) for parameter in self.get_params(ctx)))
        with formatter.section(_OTHERS):
            formatter.write_dl(list(rows))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write every command with its whole summary, however many lines that takes."""
        names = self.list_commands(ctx)
        listed = {name for those in self.questions.values() for name in those}
        more = tuple(name for name in names if name not in listed)
        width = max(map(len, names))
        for title, those in {**self.questions, "More" if self.questions else "Commands": more}.items():
            rows = [(name.ljust(width), _summary(self.get_command(ctx, name))) for name in those if name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write examples, and exit codes with what they mean here."""
        _write_examples(ctx, formatter)


def _summary(command: Any) -> str:
    """The first sentence of a command's help, whole."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _write_parameters(parameters: list[Any], ctx: Any, formatter: Any) -> None:
    written: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Arguments", _OTHERS, *_GROUPS)}
    for parameter in parameters:
        row = parameter.get_help_record(ctx)
        if row is not None:
            written[_group_of(parameter)].append(row)
    for title, rows in written.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def _group_of(parameter: Any) -> str:
    """Under which title a parameter is listed: one of those of `_write_parameters`."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    chosen = getattr(parameter, "rich_help_panel", None)  # `-h` itself has none
    return chosen or next((title for title, names in _GROUPS.items() if set(names) & set(parameter.opts)), _OTHERS)


def _write_examples(ctx: Any, formatter: Any) -> None:
    """Write the examples of a command, and its exit codes."""
    from cklog.commands.terminal.examples import examples_of, exits_of  # here, because few starts print help

    name = _command_name(ctx)
    examples = examples_of(name)
    if examples:
        with formatter.section("Examples, in a clone of cklog"):
            for example in examples:
                formatter.write(f"  {_folded(example, formatter.width - 2)}\n")
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), meaning) for code, meaning in exits_of(name).items()])


def _folded(command: str, width: int) -> str:
    """A command over as many lines as it takes, as a shell reads them.

    >>> print(_folded("cklog verify runs --maximal", 22))
    cklog verify runs \\
        --maximal
    """
    if len(command) <= width:
        return command
    cut = max(command.rfind(" --", 0, width - 1), command.rfind(" ", 0, width // 2))
    return command if cut < 0 else f"{command[:cut]} \\\n    {_folded(command[cut + 1 :], width - 4)}"


def _command_name(ctx: Any) -> str:
    """The words after `cklog` that name a command, as in `advise delta`."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(names)

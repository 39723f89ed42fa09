"""A runbook for people: Markdown with a block to paste for each step, and rows for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cklog.model.unchecked import unchecked_sentence
from cklog.model.verdict import Answer
from cklog.model.wording import many
from cklog.render.markdown import fenced
from cklog.render.text import escaped_markdown, visible
from cklog.render.view import Section, View
from cklog.runbook.model import OPTIONAL, Runbook, Step

_COLUMNS = ("step", "run", "title", "command", "worked", "check", "undo", "stop_if")


def runbook_view(answer: Answer[Runbook]) -> View:
    """Show the steps, each with its commands; rows are for CSV and JSON lines."""
    book = answer.result
    data = Section("Steps", _COLUMNS, tuple(_row(step) for step in book.steps))
    figures = step_figures(book)
    unchecked = unchecked_sentence(book.unchecked)
    lead = (unchecked,) if unchecked else ()
    sentences = step_sentences(figures).union(lead)
    return View(_headline(book), (), figures=figures, data=data, lead=lead, steps=lead, sentences=sentences)


def step_figures(book: Runbook) -> tuple[str, ...]:
    """Return what is set before the first step, and every step, as blocks of lines."""
    return _before(book), *(_step_text(book, step) for step in book.steps)


def step_sentences(figures: tuple[str, ...]) -> frozenset[str]:
    """Return the lines of such blocks that are read, not pasted."""
    return frozenset(line for block in figures for line in block.splitlines() if not line.startswith(_PASTED))


_PASTED = " " * 7
"""What a line that is pasted begins with."""


def _before(book: Runbook) -> str:
    """What is set before the first step."""
    told = [f"   {_name(one.name)}: {visible(one.means)}" for one in book.variables]
    return "\n".join(["Set before the first step:", *told, _indented(book.setup)])


def as_markdown(answer: Answer[Runbook]) -> str:
    """Write a page with a heading and blocks to paste for each step."""
    book = answer.result
    lead = [escaped_markdown(book.headline), escaped_markdown(unchecked_sentence(book.unchecked))]
    lines = ["# Runbook", "", *(line for part in lead if part for line in (part, "")), *markdown_steps(book)]
    return "\n".join(lines).rstrip() + "\n"


def markdown_steps(
    book: Runbook, level: int = 2, shown: Callable[[str], tuple[str, str]] = lambda command: (command, "")
) -> Iterator[str]:
    """Yield what is set before the first step, and every step under a heading of some level.

    `shown` gives of a command what is printed, and what is said of the rest.
    """

    def block(command: str) -> Iterator[str]:
        text, left = shown(command)
        yield from _block(text)
        yield from (escaped_markdown(left), "") if left else ()

    heading = "#" * level
    yield from (f"{heading} Before the first step", "")
    yield from (f"- `{_name(one.name)}`: {escaped_markdown(one.means)}" for one in book.variables)
    yield from ("", *_block(before_steps(book)))
    for step in book.steps:
        yield from (f"{heading} {step.number}. {escaped_markdown(step_title(book, step))}", "")
        yield from (f"{_sentence(step.why)}{' **Needs care: CONFIRM.**' if step.dangerous else ''}", "")
        yield from block(step.command) if step.command else ["By hand.", ""]
        yield from (f"It worked, if {_sentence(step.worked, first=False)}", "")
        yield from block(step.check) if step.check else []
        yield from (f"Stop if {_sentence(step.stop_if, first=False)} To undo: {_sentence(step.undo, first=False)}", "")
        yield from block(step.undo_command) if step.undo_command else []


def before_steps(book: Runbook) -> str:
    """Return what a shell runs before the first step: it goes no further where a variable is not set."""
    return "\n".join([*_required(book), book.setup])


def step_title(book: Runbook, step: Step) -> str:
    """Return what a step is called; of several runs with the one that it is about."""
    return f"{step.title} ({step.run})" if step.run and len(book.runs) > 1 else step.title


def _required(book: Runbook) -> list[str]:
    """Lines that a shell refuses to go on from where a variable is not set."""
    names = [one.name for one in book.variables if one.name not in OPTIONAL]
    return [f': "${{{name}:?}}"' for name in names]


def _headline(book: Runbook) -> str:
    return f"{book.headline[:1].upper()}{book.headline[1:]} {many(len(book.steps), 'step')}."


def _name(name: str) -> str:
    return f"${name}"


def _sentence(text: str, first: bool = True) -> str:
    """A sentence of a fact, with a capital letter where it stands first."""
    begun = f"{text[:1].upper()}{text[1:]}" if first else text
    return f"{escaped_markdown(begun)}."


def _block(command: str) -> tuple[str, ...]:
    return *fenced(command, "sh"), ""


def _row(step: Step) -> tuple[object, ...]:
    return step.number, step.run, step.title, step.command, step.worked, step.check, step.undo, step.stop_if


def _step_text(book: Runbook, step: Step) -> str:
    """A step as lines for a terminal: what, the command, how to see that it worked, how to undo it."""
    care = ", with care" if step.dangerous else ""
    lines = [f"{step.number}. {visible(step_title(book, step))}{care}: {visible(step.why)}"]
    lines += [_indented(step.command)] if step.command else ["   (by hand)"]
    lines += [f"   worked, if {visible(step.worked)}", *([_indented(step.check)] if step.check else [])]
    lines += [f"   stop, if {visible(step.stop_if)}", f"   undo: {visible(step.undo)}"]
    lines += [_indented(step.undo_command)] if step.undo_command else []
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join(f"{_PASTED}{line}" for line in text.splitlines())

"""Commands for a POSIX shell, of words that come from a log: quoted, or refused."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from cklog.errors import UsageError
from cklog.local_files import without_file_scheme
from cklog.model.question import KafkaLogs, Question
from cklog.render.text import is_plain, visible

ANSWER = "cklog recovery-line"


def commands(*lines: str) -> str | None:
    """Join command lines; None if a name in one holds what nobody should paste: a line end, a control character.

    >>> commands("echo 'a'", "echo 'b'")
    "echo 'a'\\necho 'b'"
    >>> commands("echo 'a\\nrm -r b'") is None
    True
    """
    return None if not all(map(is_plain, lines)) else "\n".join(lines) or None


def job(verb: str, *words: object) -> str:
    """Return what $JOB is told.

    >>> job("restore", "a b/0", 4)
    '"$JOB" restore \\'a b/0\\' 4'
    """
    return " ".join(['"$JOB"', verb, *(shlex.quote(str(word)) for word in words)])


def below_run(command: str) -> str:
    """Return a command that is run in the folder."""
    return f'(cd -- "$RUN" && {command})'


@dataclass(frozen=True, slots=True)
class Again:
    """The options with which the same is asked again, each quoted, with a space before it.

    `reading` : those that every command takes; `failed` : which subtasks failed, and when; `line` : the others about
    the line
    """

    reading: str = ""
    failed: str = ""
    line: str = ""

    @property
    def whole(self) -> str:
        """Return all of them, for a command about the line."""
        return f"{self.reading}{self.failed}{self.line}"


def asked_again(question: Question, kafka: KafkaLogs, reading: Iterable[tuple[str, str]]) -> Again:
    """Return the options with which the same is asked again; in `reading` a name without a value is a flag.

    >>> asked_again(Question(failed=("join/1",)), KafkaLogs("/a b"), (("--map", "a=/b"), ("--follow-links", ""))).whole
    " --map=a=/b --follow-links --failed=join/1 --kafka='/a b'"
    """
    line = [
        *(("--at", f"{name}={number}") for name, number in question.at),
        *([] if question.check_files else [("--no-check-files", "")]),
        *([("--check-contents", "")] if question.check_contents else []),
        *([("--kafka", from_anywhere(kafka.folder))] if kafka.folder else []),
        *(("--channel", channel) for channel in kafka.channels),
        *([("--group", kafka.group)] if kafka.group else []),
        *(("--source-from", told) for told in question.source_from),
        *(("--taken", _taken(text)) for text in question.taken),
        *(("--sink", _sink(text)) for text in question.sinks),
    ]
    failed = [
        *(("--failed", name) for name in question.failed),
        *([] if question.as_of is None else [("--as-of", str(question.as_of))]),
    ]
    read = [(name, _mapped(value) if name == "--map" else value) for name, value in reading]
    return Again(_words(read), _words(failed), _words(line))


def from_anywhere(path: str) -> str:
    """Return a path that means the same in every working directory; an address of a store is one.

    >>> [from_anywhere(path) for path in ("file:///a/../b", "s3://bucket/run", "catalog:a/b.c")]
    ['/b', 's3://bucket/run', 'catalog:a/b.c']
    """
    local = without_file_scheme(path)
    return local if "://" in local or local.startswith("catalog:") else os.path.abspath(local)


def _mapped(pair: str) -> str:
    old, _, new = pair.partition("=")
    return f"{old}={from_anywhere(new)}"


def _taken(text: str) -> str:
    name, _, place = text.partition("=")
    return f"{name}={from_anywhere(place)}" if os.path.isfile(without_file_scheme(place)) else text  # or a topic


def _sink(text: str) -> str:
    name, equals, uri = text.partition("=")
    if equals and not any(mark in name for mark in "/\\:"):
        return f"{name}={from_anywhere(uri)}"
    return from_anywhere(text)


def _words(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f" {name}={shlex.quote(_sayable(value))}" if value else f" {name}" for name, value in pairs)


def folder(path: str) -> str:
    """Return a path, quoted, that no program takes for an option.

    >>> folder("-x y")
    "'./-x y'"

    Raises
    ------
    UsageError : it holds a line end or another character that cannot be pasted
    """
    return shlex.quote(_sayable(f"./{path}" if path.startswith("-") else path))


def _sayable(word: str) -> str:
    if not is_plain(word):
        hint = "rename the folder, or make a link to it with a plain name"
        raise UsageError(f"{visible(word)}: a runbook cannot name it, for it holds control characters", hint)
    return word

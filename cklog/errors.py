"""Errors for the cases without an answer, each with its exit code (`docs/json.md`).

Damage inside the input is a finding and is returned, never raised.
"""

from __future__ import annotations

from cklog.masking import masked_options

TYPE_CHECKING = False  # as `typing` has it, whose import would take longer than all of this
if TYPE_CHECKING:
    from typing import Any


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says; its kind, where it says nothing.

    >>> first_line(ValueError("no number\\nat 7")), first_line(KeyboardInterrupt())
    ('no number', 'KeyboardInterrupt')
    """
    return next(iter(str(error).splitlines()), "") or type(error).__name__


class Picklable:
    """A base for exceptions whose `__init__` takes other arguments than it hands on, so that pickles restore them.

    Python restores an exception by calling its class with `args`, which are what the built-in base was given.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Restore the exception by its built-in base, and then its attributes."""
        reduced: Any = super().__reduce__()
        _, args, *attributes = reduced
        return (_restore, (type(self), args), *attributes)


def _restore(cls: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Return an exception of a class as its built-in base makes it of `args`."""
    error = cls.__new__(cls, *args)
    base = next(base for base in cls.__mro__ if base.__module__ == "builtins" and issubclass(base, BaseException))
    base.__init__(error, *args)
    return error


class CklogError(Picklable, Exception):
    """The base of all errors that a user sees: one line for stderr, a hint if there is one, and the exit code."""

    id = "error"
    exit_code = 70

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CklogError):
    """An option's value cannot be understood, or options contradict each other."""

    id = "usage"
    exit_code = 2


class NothingToWrite(UsageError):
    """A format has nothing to hold for a reason that lies in the run: the answer stands, with its own exit code."""


class CorruptInput(CklogError):
    """So much of the input is unreadable that no answer can be given."""

    id = "corrupt-input"
    exit_code = 65


class OverBudget(CklogError):
    """Reading would cost more than it may (`cklog.budgets`): `path` is read no further, and no answer is given."""

    id = "over-budget"
    exit_code = 65

    def __init__(self, what: str, path: str = "", offset: int | None = None) -> None:
        place = path if offset is None else f"{path} at byte {offset}"
        super().__init__(
            f"{place}: {what}" if path else what,
            "if the file is what it should be, give more with --max-memory; else find another copy, or leave it out",
        )
        self.what, self.path = what, path

    def of(self, path: str, offset: int | None = None) -> OverBudget:
        """Return the same error with its place, unless it has one."""
        return self if self.path else OverBudget(self.what, path, offset)


class NotFound(CklogError):
    """No such path, operator, subtask, channel or checkpoint."""

    id = "not-found"
    exit_code = 66


class Unreadable(CklogError):
    """What an answer rests on may not be read, or is gone: nothing can be said of it, not that it is damaged either."""

    id = "unreadable-file"
    exit_code = 5


class UnknownInput(Unreadable):
    """What an answer rests on is of a version that cklog does not know: nothing says that it is damaged."""

    id = "unknown-version"


class NotFinished(CklogError):
    """One of many runs took longer than it may: nothing is known of it."""

    id = "not-finished"
    exit_code = 5


class SelfCheckFailed(CklogError):
    """An answer that cklog itself refuted: a bug in cklog."""

    id = "self-check-failed"
    exit_code = 70


class OutputError(CklogError):
    """The answer cannot be written where it was asked for."""

    id = "output-error"
    exit_code = 73


class EngineError(CklogError):
    """The engine that was asked for cannot be started (no Java, no cluster), or was lost before it had answered."""

    id = "engine-unavailable"
    exit_code = 69

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(masked_options(message), hint)  # engines quote their settings

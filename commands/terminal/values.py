"""Values of a command line that are taken as they are: what need not be converted costs no library that converts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def taken_as_given(parameters: list[Any]) -> list[Any]:
    """Let parameters of a command take values that no conversion would change, and return them.

    Typer converts by Pydantic, which takes a seventh of a cold start to load. A default is of the right type already,
    and so is text where the default is text. Older Typers, on a Click that is not their own, do without Pydantic, and
    are left alone: to them none of several values is an empty list.
    """
    for parameter in parameters:
        own = any(base.__module__.startswith("typer._click") for base in type(parameter).__mro__)
        if own and not isinstance(parameter.process_value, partial):
            parameter.process_value = partial(_taken, parameter, parameter.process_value)
    return parameters


def _taken(parameter: Any, convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    """Do what `convert`, a parameter's own `process_value`, would do, or leave it to that."""
    default = parameter.default
    as_is = value is default or (type(value) is str and type(default) is str)
    if not as_is or not isinstance(value, str | int | float | None) or (value is None and parameter.required):
        return convert(ctx, value)
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

"""Plain loops over arrays: run as they stand on few rows, and compiled on many, from one and the same source.

Where every row depends on the one before it, a loop says best what is meant, and compiled it is faster than any number
of vectorised passes. The compiler (Numba) takes a fifth of a second to load, as long as the loop takes for some hundred
thousand rows; so it is loaded when as many have been seen. What it makes is kept in a folder of the user's own, needs
no compiler there and lets go of the interpreter lock. Where Numba is not installed, or cannot be used
(`why_not_compiled`), every row goes the slow way, to the same numbers: integers have 64 bits in either, and sums that
need more wrap.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cklog.errors import first_line

FEW_ROWS = 1 << 17
"""Rows that a process handles without the compiler, in any one loop."""

_FEWER = 128
"""So many times fewer rows of one call are worth machine code where another loop has loaded the compiler already."""

A = TypeVar("A", bound=np.generic)

_CACHE = "NUMBA_CACHE_DIR"


class Loop:
    """A function of arrays and numbers that returns an integer, in the part of Python that Numba compiles.

    It may read and fill arrays of integers, and do nothing else: arrays that may be written come back filled. A sum may
    wrap only where it is stored at once and not read again but to be added to. Functions that it calls are its `parts`,
    of the same kind, though they may return several numbers, and in the same file: what is kept of machine code is made
    anew when that file changes. A loop of another file is given to it as machine code, among its arguments; these may
    stand in tuples.

    >>> def double(numbers, found):
    ...     for i in range(len(numbers)):
    ...         found[i] = 2 * numbers[i]
    ...     return len(numbers)
    >>> found = np.zeros(2, np.int64)
    >>> Loop(double)(2, np.array([3, 4]), found), found.tolist()
    (2, [6, 8])
    """

    def __init__(self, function: Callable[..., int], parts: Sequence[Callable[..., object]] = ()) -> None:
        assert {part.__module__ for part in parts} <= {function.__module__}
        self.plain = function
        self._parts = parts
        self._rows = 0
        self._machine: dict[tuple[object, ...], Callable[..., int]] = {}
        self._making = threading.Lock()

    def __call__(self, rows: int, *given: Any) -> int:
        """Run the loop over so many rows."""
        self._rows += rows
        if self._rows > FEW_ROWS or (rows > FEW_ROWS // _FEWER and _is_loaded()):
            found = self.compiled(given)
            if found is not None:
                return int(found(*given))
        return self.interpreted(given)

    def is_worth(self, rows: int) -> bool:
        """Say whether so many rows more would be handled by machine code, for who has another way for few of them."""
        if self._rows + rows <= FEW_ROWS and not (rows > FEW_ROWS // _FEWER and _is_loaded()):
            self._rows += rows
            return False
        return _numba() is not None

    def interpreted(self, given: Sequence[Any]) -> int:
        """Run the loop as it stands, on lists: Python reads these several times faster than arrays."""
        lists = [one.tolist() if isinstance(one, np.ndarray) else one for one in given]
        found = self.plain(*lists)
        for one, filled in zip(given, lists, strict=True):
            if isinstance(one, np.ndarray) and one.flags.writeable:
                _fill(one, filled)
        return found

    def compiled(self, given: Sequence[Any]) -> Callable[..., int] | None:
        """Return the loop as machine code for such arrays and numbers; None where there is no compiler."""
        kinds = tuple([_kind(one) for one in given])
        made = self._machine.get(kinds)
        if made is not None:
            return made
        with self._making:
            if kinds not in self._machine and (made := _compile(self.plain, self._parts, given)) is not None:
                self._machine[kinds] = made
        return self._machine.get(kinds)


def _kind(one: Any) -> object:
    """Return what machine code depends on of an argument: an array, a number, machine code itself, a tuple of these."""
    if isinstance(one, np.ndarray):
        return one.dtype.num, one.ndim, one.flags.writeable, one.flags.contiguous
    if isinstance(one, tuple):
        return tuple([_kind(each) for each in one])
    return one if callable(one) else type(one)


def only_read(values: NDArray[A]) -> NDArray[A]:
    """Return the same values, marked as such that a loop does not write to; Arrow's are so in any case."""
    found = values.view()
    found.flags.writeable = False
    return found


def _fill(array: NDArray[np.integer[Any]], values: list[int]) -> None:
    """Put Python's integers into an array of 64 bits; what is greater wraps, as it does in machine code."""
    try:
        array[:] = values
    except OverflowError:
        array[:] = [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in values]


def _compile(
    function: Callable[..., int], parts: Sequence[Callable[..., object]], given: Sequence[Any]
) -> Callable[..., int] | None:
    """Return machine code of a function for arguments of these types, from the cache if it can be had there."""
    numba = _numba()
    if numba is None:
        return None
    for part in parts:
        _let_be_called(part)
    for cache in (True, False) if numba.config.CACHE_DIR else (False,):
        try:
            made = numba.njit(function, nogil=True, cache=cache)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", numba.NumbaExperimentalFeatureWarning)  # machine code is given
                made.compile(tuple(_machine_type(numba, one) for one in given))
            made.disable_compile()  # it is for these types: so it can be given itself
        except Exception as error:  # a full disk, a cache that somebody damaged: numba lets all of it through
            if not cache:
                _reasons.append(first_line(error))
        else:
            return _found_at_once(made) if any(map(callable, given)) else made  # type: ignore[no-any-return]
    return None


def _found_at_once(made: Any) -> Any:
    """Return machine code of one kind as it is called without a look at arguments: at functions that takes long."""
    (signature,) = made.nopython_signatures
    return made.get_compile_result(signature).entry_point


def _machine_type(numba: Any, one: Any) -> Any:
    """Return the type of an argument as machine code sees it; of machine code that it calls by its type alone."""
    if isinstance(one, tuple):
        return numba.types.Tuple(tuple(_machine_type(numba, each) for each in one))
    return one.get_function_type() if callable(one) else numba.typeof(one)


@functools.cache
def _let_be_called(part: Callable[..., object]) -> None:
    """Let machine code call a function, which stays as it is for everybody else."""
    from numba.extending import register_jitable

    register_jitable(part)


def _is_loaded() -> bool:
    """Say whether the compiler is there, or known not to be."""
    return _numba.cache_info().currsize > 0


@functools.cache
def _numba() -> Any:
    """Import the compiler; None where it is not installed, does not fit the numpy that is, or is switched off."""
    try:
        numba = _import_numba()
    except Exception as error:  # whatever a setting of the environment makes it raise, such as NUMBA_NUM_THREADS=0
        _reasons.append(first_line(error))
        return None
    if numba.config.DISABLE_JIT:
        _reasons.append("NUMBA_DISABLE_JIT is set")
        return None
    if not os.path.isabs(os.environ.get(_CACHE, "")):  # machine code of the working directory is not trusted
        numba.config.CACHE_DIR = _cache_folder()
    _keep_arrays()
    return numba


def _import_numba() -> Any:
    """Import Numba such that it never reads `.numba_config.yaml` of the working directory.

    It reads that file when it is imported, and again whenever it compiles.
    """
    absent = object()
    yaml = sys.modules.get("yaml", absent)
    sys.modules["yaml"] = None  # type: ignore[assignment]  # Numba skips the file if it cannot import a parser for it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about that file, and about settings that it cannot parse
            import numba
    finally:
        if yaml is absent:
            del sys.modules["yaml"]
        else:
            sys.modules["yaml"] = yaml  # type: ignore[assignment]
    numba.core.config._config_fname = ""
    return numba


_reasons: list[str] = []


def why_not_compiled() -> str:
    """Say why loops over many rows run without machine code, as a user may want to know; "" where they do not."""
    return next(iter(_reasons), "")


def _keep_arrays() -> None:
    """Have malloc keep the memory of arrays that are freed: where rows are many, the next batch has arrays as large.

    So it does by itself once an array of 32 MB was freed; until then each is faulted in page by page.
    """
    import ctypes

    with suppress(AttributeError, OSError):  # a C library that is not GNU's
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, 2 * _LARGEST)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers that `mallopt` has for them."""

_LARGEST = 32 << 20


def _cache_folder() -> str:
    """Return a folder for machine code that only this user can write to: whoever can decides what runs here. Or ""."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    above = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(above):  # no home directory
        return ""
    folder = os.path.join(above, "cklog", "loops")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        about = os.stat(folder)
    except OSError:
        return ""
    own = os.name != "posix" or (about.st_uid == os.geteuid() and not stat.S_IMODE(about.st_mode) & 0o022)
    return folder if own else ""

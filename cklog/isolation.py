"""Keep the working directory out of this process and out of every process that it starts.

cklog runs in directories that somebody else wrote. Python looks for modules in the working directory when it is started
with `-m`, or when `PYTHONPATH` has an empty or relative entry. Libraries read settings from there, and Arrow loads
`./libhdfs.so`. Nothing of that is trusted: modules, settings and programs come from absolute places only.

Every child process is started here (a test forbids `subprocess` elsewhere), with a safe import path and in a directory
that only an administrator can write to.
"""

import errno
import os
import sys

TYPE_CHECKING = False  # as `typing` has it; nothing is imported here that Python has not loaded, not even `__future__`
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from subprocess import CompletedProcess, Popen
    from typing import Any

PIPE, DEVNULL = -1, -3
"""`subprocess.PIPE` and `subprocess.DEVNULL`, which need not be imported for a process that is never started."""

NEUTRAL_DIRECTORY = os.path.abspath(os.sep)
"""The working directory of child processes: the root of the file system."""

_CODE_DIRECTORIES = ("PYTHONPYCACHEPREFIX", "NUMBA_CACHE_DIR")
"""Variables that name one directory from which Python or Numba loads code."""


def remove_working_directory() -> None:
    """Remove the working directory from the import path of this process, if `-m` or `PYTHONPATH` put it there.

    A directory that `PYTHONPATH` names with a relative path is removed, too: what it means depends on where cklog is
    started. A relative `PYTHONPYCACHEPREFIX` is not used from here on.
    """
    if sys.pycache_prefix and not os.path.isabs(sys.pycache_prefix):
        sys.pycache_prefix = None
    relative = [path for path in _entries("PYTHONPATH") if not os.path.isabs(path)]
    try:
        untrusted = {"", *map(os.path.abspath, relative)}
    except FileNotFoundError:  # the working directory was deleted: no module can be found there
        untrusted = {""}
    sys.path[:] = [path for path in sys.path if path not in untrusted]


def remove_directory_of_module_run() -> None:
    """Remove the working directory that `python -m cklog` puts first on the import path."""
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", _working_directory()):
        del sys.path[0]


def remove_relative_entries(variable: str) -> None:
    """Remove from a path variable what depends on the working directory; an empty entry stands for that directory."""
    found = os.pathsep.join(entry for entry in _entries(variable) if os.path.isabs(entry))
    os.environ.pop(variable, None)
    if found:
        os.environ[variable] = found


def child_environment(import_path: "Iterable[str] | None" = None) -> dict[str, str]:
    """Return the environment for a child process: this process's, without paths that depend on where it was started.

    `import_path`: directories for `PYTHONPATH`; by default the absolute ones that are in it.
    """
    given = _entries("PYTHONPATH") if import_path is None else import_path
    absolute = [path for path in given if os.path.isabs(path)]
    found = {**os.environ, "PYTHONSAFEPATH": "1"}
    for name in ("PYTHONPATH", *(name for name in _CODE_DIRECTORIES if not os.path.isabs(found.get(name, "/")))):
        found.pop(name, None)
    return {**found, "PYTHONPATH": os.pathsep.join(absolute)} if absolute else found


def own_import_path() -> list[str]:
    """Return where this process finds modules, for a child that is to find the same ones; the package's own place last.

    Absolute directories only. Without an installation, `python -m cklog` finds the package in the working directory,
    which is then the last place where anything is looked for.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [*dict.fromkeys([path for path in sys.path if os.path.isabs(path)] + [package])]


def start_process(
    command: "Sequence[str]", import_path: "Iterable[str] | None" = None, **options: "Any"
) -> "Popen[bytes]":
    """Start a child process outside the working directory; `options` are those of `subprocess.Popen`.

    Raises
    ------
    OSError : it cannot be started
    """
    import subprocess

    return subprocess.Popen(command, cwd=NEUTRAL_DIRECTORY, env=child_environment(import_path), **options)


def start_python(
    arguments: "Sequence[str]", import_path: "Iterable[str] | None" = None, **options: "Any"
) -> "Popen[bytes]":
    """Start a Python process that looks for modules in installed places only; see `start_process`."""
    return start_process([sys.executable, "-P", *arguments], import_path, **options)


def run_process(command: "Sequence[str]", seconds: float | None = None) -> "CompletedProcess[str]":
    """Run a program to its end outside the working directory, and capture what it prints.

    `seconds`: how long it may take; None: as long as it takes.

    Raises
    ------
    OSError : it cannot be started, or takes longer (`TimeoutError`)
    """
    import subprocess

    options: Mapping[str, Any] = {"cwd": NEUTRAL_DIRECTORY, "env": child_environment(), "stdin": DEVNULL}
    program = _require_program(command)
    try:
        return subprocess.run(
            program, capture_output=True, text=True, errors="replace", check=False, timeout=seconds, **options
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), program[0]) from None


def run_on_terminal(command: "Sequence[str]", text: bytes, defaults: "Mapping[str, str]") -> None:
    """Run a program of the user's, such as a pager, in the user's directory; `defaults` are variables not set yet.

    Raises
    ------
    OSError : it cannot be started
    """
    import subprocess

    subprocess.run(_require_program(command), input=text, env={**defaults, **os.environ}, check=False)


def _require_program(command: "Sequence[str]") -> list[str]:
    """Return a command with the absolute path of its program; raise `FileNotFoundError` if there is no such program."""
    program = find_program(command[0]) if command else None
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), *command[:1])
    return [program, *command[1:]]


def find_program(name: str) -> str | None:
    """Return the absolute path of a program, searched in the absolute directories of `PATH`; None if it is in none.

    A name with a directory in it is returned as it is.
    """
    from shutil import which

    if os.path.dirname(name):
        return name
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return which(name, path=os.pathsep.join(place for place in places if os.path.isabs(place)))


def _entries(variable: str) -> list[str]:
    """Return the entries of a path variable; none if it is not set or empty, as Python reads it."""
    text = os.environ.get(variable, "")
    return text.split(os.pathsep) if text else []


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""

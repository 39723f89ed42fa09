"""What Spark raises, as one line: the last of a chain of causes, and what to do about those that are well known."""

from __future__ import annotations

import re

from cklog.errors import EngineError

_LONGEST = 300
"""Characters of a cause that is told."""

_RAISED = re.compile(r"[A-Za-z_.]*(Error|Exception): ")
_JVM_GONE = re.compile(
    r"Py4JNetworkError|Answer from Java side is empty|Connection(Refused|Reset)Error"
    r"|\APy4JError: An error occurred while calling \S+\Z"  # a call that began, and of which Java said nothing more
)
_WARNING = re.compile(r"\s*WARNING: |\S+ \S+ WARN ")
_NO_MODULE = re.compile(r"No module named '?([A-Za-z0-9_.]+)")
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH.*?(\d+\.\d+).*?(\d+\.\d+)", flags=re.DOTALL)


def job_failed(error: Exception, where: str) -> EngineError:
    """Say why a job failed at a master or server: with what executors lack first, which can be cured."""
    told = str(error)
    missing = _NO_MODULE.search(told)
    if missing:
        name = missing[1]
        lacks = f"{where}: executors have no Python module {name}"
        if name == "cklog":
            return EngineError(lacks, "--ship puts it there; or install cklog on every worker")
        if name.partition(".")[0] != "cklog":
            return EngineError(lacks, "install it on every worker: --ship brings cklog and parsers, no libraries")
    versions = _OTHER_PYTHON.search(told)
    if versions:
        what = f"{where}: executors have Python {versions[1]}, and this is {versions[2]}"
        return EngineError(what, "set PYSPARK_PYTHON to a Python of this version that every worker has")
    if "RETRIES_EXCEEDED" in told or "StatusCode.UNAVAILABLE" in told:
        return EngineError(f"{where}: the Connect server does not answer any more", "is it still up?")
    return EngineError(f"the Spark job failed: {cause_of(error)}", "-v shows Spark's log")


def cause_of(error: Exception) -> str:
    """Say in a line why something failed: of a chain of causes the last, and what a Python traceback ends with.

    >>> cause_of(ValueError("An error occurred while calling o1.x.\\n: a.SparkException: stop\\nCaused by: b.C: full"))
    'b.C: full'
    >>> cause_of(ConnectionResetError(104, "Connection reset by peer"))
    "the JVM of Spark's driver has ended: it was killed, or ran out of memory"
    >>> class Py4JError(Exception): ...
    >>> cause_of(Py4JError("An error occurred while calling None.a.JavaSparkContext"))
    "the JVM of Spark's driver has ended: it was killed, or ran out of memory"
    """
    if _JVM_GONE.search(f"{type(error).__name__}: {error}"):
        return "the JVM of Spark's driver has ended: it was killed, or ran out of memory"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    python = [line for line in lines[1:] if _RAISED.match(line)]
    chain = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    if python:
        return f"{lines[0]} {python[-1]}"[:_LONGEST]
    return (chain or java or [f"{type(error).__name__}: {lines[0]}"])[-1][:_LONGEST]


def cause_in_log(lines: list[str]) -> str:
    """Say in a line why a JVM has ended, by what it said last: the end of a chain of causes, or its own complaint.

    >>> cause_in_log(["warn", 'Exception in thread "main" java.io.IOException: No space left on device', " at a.B"])
    'java.io.IOException: No space left on device'
    >>> cause_in_log(["WARNING: Using incubator modules: jdk.incubator.vector"])  # of one that was killed
    ''
    """
    told = [line.strip() for line in lines if line.strip() and not _WARNING.match(line)]
    chain = [line.removeprefix("Caused by: ") for line in told if line.startswith("Caused by: ")]
    thrown = [re.sub(r'^Exception in thread "[^"]*" ', "", line) for line in told if line.startswith("Exception in ")]
    errors = [line for line in told if line.lower().startswith("error") or "No space left" in line]
    if errors and errors[-1].startswith("Error occurred during initialization of VM"):
        errors += told[told.index(errors[-1]) + 1 :][:1]  # it says there why
    return (chain or thrown or errors or told or [""])[-1][:_LONGEST]

"""No room and no memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.faults.cases import Asked, Outcome
from tests.faults.process import run

_NO_OUTPUT = frozenset({73})
_OUT_OF_MEMORY = frozenset({65})


def full(asked: Asked) -> Outcome:
    """The disk that takes the answer is full, behind a pipe's `>` or behind `-o`."""
    if asked.dice.random() < 0.5:
        with open("/dev/full", "wb") as nowhere:
            left = run(asked.words(), stdout=nowhere.fileno())
        return Outcome("stdout on a full disk", left, _NO_OUTPUT)
    return Outcome("-o on a full disk", run([*asked.words(), "-o", "/dev/full"]), _NO_OUTPUT)


def read_only(asked: Asked) -> Outcome:
    """The answer is to be written where nobody may write; what lies there stays."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "gone" / "answer.json"
        left = run([*asked.words(), "-o", str(place)])
    return Outcome("-o into a folder that is not there", left, _NO_OUTPUT)


def no_temporary_folder(asked: Asked) -> Outcome:
    """Nothing can be written beside: TMPDIR names no folder."""
    left = run(asked.words(), environment={"TMPDIR": "/proc/nowhere"})
    return Outcome("no TMPDIR", left, alike=asked.engine == "local")


def no_memory(asked: Asked) -> Outcome:
    """Addresses run out at any moment. With fewer than these the libraries themselves end the process."""
    most = asked.dice.randrange(500 << 20, 1500 << 20)
    first = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))"
    left = run(asked.words(), first, environment={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})
    return Outcome(f"{most >> 20} MiB of addresses", left, _OUT_OF_MEMORY, alike=True)


def few_files(asked: Asked) -> Outcome:
    """Few files may be open at a time."""
    most = asked.dice.randrange(12, 40)
    first = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))"
    return Outcome(f"{most} open files", run(asked.words(), first))

"""No answer is made of memory that nobody set: it is the same whatever byte that memory holds."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from cklog.arrays import buffers
from tests.builders.compressed.short_pages import CODECS
from tests.conftest import REPOSITORY
from tests.fuzz.fill_bytes import SIZES, environment, fill_arrays

FILLS = 0xA5, 0x5A


def test_arrays_to_be_filled_hold_the_byte_that_a_test_puts_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for fill in FILLS:
        fill_arrays(monkeypatch, fill)
        for array in (buffers.unfilled((2, 3), np.int64), buffers.pooled(5, np.int32)):
            assert {*array.tobytes()} == {fill}


def both(first: int, step: int, variants: range) -> tuple[list[str], list[str]]:
    """What two processes say, whose memory holds one byte and the other."""
    command = [sys.executable, "-m", "tests.fuzz.fill_bytes"]
    running = [
        subprocess.Popen(
            [*command, *map(str, (fill, first, step, variants.start, variants.stop))],
            cwd=REPOSITORY,
            env=environment(fill),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for fill in FILLS
    ]
    found = []
    for process in running:
        out, err = process.communicate()
        assert process.returncode == 0, err[-2000:]
        filled, *lines = [json.loads(line) for line in out.splitlines()]
        assert filled or sys.platform != "linux"  # elsewhere the arrays that decoders fill hold the byte
        found.append(lines)
    return found[0], found[1]


def test_answers_do_not_depend_on_memory_that_nobody_set() -> None:
    """A third of the subjects, damaged; pages of other sizes than stated among them."""
    one, other = both(0, 3, range(1, 2))
    assert one == other
    assert sum(line.startswith(CODECS) for line in one) == 2 * len(CODECS) * len(SIZES)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_answers_to_much_damage_do_not_depend_on_memory_that_nobody_set(part: int) -> None:
    one, other = both(part, 8, range(200))
    assert one == other

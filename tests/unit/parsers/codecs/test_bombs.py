"""Tables of RocksDB whose index asks for much: in a compressed block, in keys that repeat, in the number of blocks."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bombs import MIB, sst, sst_block
from tests.measured import measured_code

_CHECK = """
import sys
from cklog import budgets
from cklog.errors import OverBudget
from cklog.parsers.codecs.sst import check_sst
data = open(sys.argv[1], "rb").read()
budgets.use(budgets.Budgets(int(sys.argv[2])))
try:
    print(check_sst(lambda at, count: data[at : at + count], len(data), True))
except OverBudget as error:
    print("over:", error)
"""


def _deflated(size: int) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(bytes(size)) + packer.flush()


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "a block": (lambda: sst(_deflated(400 * MIB), 400 * MIB), "what a block of "),
    "keys": (
        lambda: sst(sst_block([(0, b"k" * 500_000, b"\0\0"), *[(500_000, b"", b"\0\0")] * 100_000])),
        "what the keys of a block become",
    ),
    "blocks": (lambda: sst(sst_block([(0, b"", b"\0\0")] * 300_000)), "the number of blocks that its index names"),
}


@pytest.mark.quarter
@pytest.mark.parametrize("case", BOMBS)
def test_an_index_that_asks_for_much_is_refused(tmp_path: Path, case: str) -> None:
    made, why = BOMBS[case]
    (tmp_path / "t.sst").write_bytes(made())
    assert (tmp_path / "t.sst").stat().st_size < 2 * MIB
    ended = measured_code(_CHECK, tmp_path / "t.sst", str(256 << 20))
    assert ended.out.startswith(f"over: {why}"), ended
    assert ended.peak < 200

"""CheckMate's snapshots and logs with pickles that ask for much: by depth, by shared references, by endless hashing."""

from __future__ import annotations

import pickle
import shutil
import struct
from pathlib import Path

import pytest

from cklog.errors import OverBudget
from cklog.parsers.pickles.restricted import load
from tests.bombs import tuples_of_one_hash
from tests.conftest import SAMPLES
from tests.measured import measured

_DOUBLED = b"K\x01K\x02\x86\x94" + b"".join(b"h%ch%c\x86\x94" % (i, i) for i in range(60))

BOMBS: dict[str, tuple[bytes, str]] = {
    "marks": (b"\x80\x04" + b"(" * 200_000 + b"N.", "how deep the pickle nests"),
    "lists": (b"\x80\x04" + b"](" * 100_000 + b"N.", "how deep the pickle nests"),
    "tuples": (b"\x80\x04N" + b"\x85" * 200_000 + b".", "how deep tuples nest in the pickle"),
    "shared": (b"\x80\x04" + _DOUBLED + b".", "the work of hashing a tuple in the pickle"),
    "shared keys": (b"\x80\x04}(" + _DOUBLED + b"K\x01u.", "the work of hashing a tuple in the pickle"),
    "one key, many dicts": (
        b"\x80\x04](" + b"(" + b"N" * 90_000 + b"t\x94" + b"}h\x00K\x01s" * 9_000 + b"e.",
        "the work of hashing keys in the pickle",
    ),
    "one tuple, many keys": (
        b"\x80\x04}("
        + b"("
        + b"N" * 90_000
        + b"t\x940"
        + b"".join(b"h\0M%c%c\x86N" % (i % 256, i >> 8) for i in range(9_000))
        + b"u.",
        "the work of hashing keys in the pickle",
    ),
    "long numbers, one tuple": (
        b"\x80\x04]("
        + b"(\x8b\x00\x10\0\0"
        + b"\x01" * 4096
        + b"\x94"
        + b"h\x00" * 9_000
        + b"t\x94"
        + b"}h\x01Ns" * 9_000
        + b"e.",
        "the work of hashing keys in the pickle",
    ),
    "one hash, long numbers": (
        b"\x80\x04}(" + b"".join(pickle.dumps(i * (2**61 - 1), 2)[2:-1] + b"N" for i in range(9, 2_000)) + b"u.",
        "the number of keys with one hash",
    ),
    "one hash": (pickle.dumps(dict.fromkeys(tuples_of_one_hash(2_000))), "the number of keys with one hash"),
    "a number": (b"\x80\x04\x8b" + struct.pack("<I", 1 << 20) + b"\x01" * (1 << 20) + b".", "the length of a number"),
}


@pytest.mark.quarter
@pytest.mark.parametrize("case", BOMBS)
def test_a_snapshot_that_asks_for_much(tmp_path: Path, case: str) -> None:
    data, what = BOMBS[case]
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "checkmate-uncoordinated", run)
    first = min((run / "universalis-snapshots").iterdir())
    first.write_bytes(data)
    ended = measured("recovery-line", run)
    assert (ended.code, ended.out) == (65, "")
    assert ended.err.startswith(f"cklog: universalis-snapshots/{first.name}: {what}")
    assert ended.peak < 250


@pytest.mark.quarter
@pytest.mark.parametrize("case", BOMBS)
def test_a_logged_message_that_asks_for_much(tmp_path: Path, case: str) -> None:
    """Behind the whole ones, whose end is where the message begins."""
    data, what = BOMBS[case]
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "checkmate-uncoordinated", run)
    first = min((run / "worker-1-logs").iterdir())
    whole = first.read_bytes()
    first.write_bytes(whole + whole[:2] + data)
    ended = measured("recovery-line", run)
    assert (ended.code, ended.out) == (65, "")
    assert ended.err.startswith(f"cklog: worker-1-logs/{first.name} at byte {len(whole)}: {what}")
    assert ended.peak < 250


def test_keys_of_one_hash_have_one_hash() -> None:
    """So that the bomb is one; and a few of them are no bomb, in several dicts neither."""
    few = list(tuples_of_one_hash(90))
    assert len({hash(key) for key in few}) == 1
    assert load(pickle.dumps([dict.fromkeys(few), set(few)])) == [dict.fromkeys(few), set(few)]
    for made in (set, frozenset):
        with pytest.raises(OverBudget):
            load(pickle.dumps(made(tuples_of_one_hash(200))))

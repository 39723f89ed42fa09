"""Real restarts with logs of offsets, commits and sources changed: they fail where they were said to, only there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.codecs.hadoop_crc import encode, sidecar_of
from tests.builders.spark_restarts import Restarts

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Change a file, its checksum with it."""

    def damage(path: Path) -> None:
        data = change(path.read_bytes())
        path.write_bytes(data)
        Path(sidecar_of(str(path))).write_bytes(encode(data))

    return damage


def wrong_sum(path: Path) -> None:
    """The last bit of the checksum is flipped."""
    side = Path(sidecar_of(str(path)))
    data = side.read_bytes()
    side.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def another_key(data: bytes) -> bytes:
    return data.replace(b"{", b'{"unknown":[1],', 1)


def no_key(data: bytes) -> bytes:
    return data.split(b"\n")[0] + b"\n{}"


def later_version(data: bytes) -> bytes:
    return b"v99" + data[2:]


COMMIT, PLAN, BEFORE = "ck/commits/6", "ck/offsets/7", "ck/offsets/6"
TRIALS: list[tuple[str, Callable[[Path], None]]] = [
    *((path, wrong_sum) for path in (COMMIT, PLAN, BEFORE, "ck/metadata")),
    (COMMIT, rewritten(another_key)),
    (COMMIT, rewritten(no_key)),
    (COMMIT, rewritten(later_version)),
    (COMMIT, rewritten(cut)),
    ("ck/commits/5", rewritten(cut)),
    (PLAN, rewritten(cut)),
    (PLAN, rewritten(later_version)),
    (BEFORE, rewritten(cut)),
    ("ck/metadata", rewritten(cut)),
    ("ck/metadata", rewritten(another_key)),
]


def test_with_a_log_changed_a_restart_does_what_was_said(restarting: Any, tmp_path: Path) -> None:
    restarts = Restarts(restarting, "hdfs", tmp_path)
    said = [(path, damage.__name__, restarts.disproved([path], damage)) for path, damage in TRIALS]
    wrong = [one for one in said if one[2]]
    assert not wrong, "\n".join(map(str, wrong))

"""The file of `-o` is there as a whole, or as it was."""

import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cklog.commands.terminal.output_file import write_file
from tests.conftest import SAMPLES
from tests.program import cklog

_CHILD = """
import os, resource, signal, sys
from cklog.commands.terminal.output_file import write_file
{before}
write_file(sys.argv[1], b"new" * 100_000)
"""


def _write_in_child(place: Path, before: str) -> int:
    return subprocess.run([sys.executable, "-c", _CHILD.format(before=before), place], capture_output=True).returncode


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file that holds an answer, alone in its folder."""
    found = tmp_path / "answer"
    found.write_bytes(b"old")
    return found


def test_a_full_disk_leaves_the_old_file(place: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    assert _write_in_child(place, limit) == 1  # an OSError that the program tells
    assert place.read_bytes() == b"old"
    assert os.listdir(place.parent) == [place.name]


def test_a_kill_when_all_is_written_and_nothing_is_in_place_leaves_the_old_file(place: Path) -> None:
    killed = "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)"
    assert _write_in_child(place, killed) == -signal.SIGKILL
    assert place.read_bytes() == b"old"


def test_without_a_fault_the_same_child_writes(place: Path) -> None:
    assert _write_in_child(place, f"assert resource and {resource.RLIMIT_FSIZE} >= 0") == 0
    assert place.read_bytes() == b"new" * 100_000
    assert os.listdir(place.parent) == [place.name]


def test_permissions_stay_and_a_new_file_gets_the_usual_ones(place: Path) -> None:
    place.chmod(0o640)
    write_file(str(place), b"new")
    write_file(str(place.with_name("fresh")), b"new")
    plain = place.with_name("plain")
    plain.touch()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.parent.iterdir()}
    assert modes["answer"] == 0o640
    assert modes["fresh"] == modes["plain"]


def test_a_link_stays_a_link(place: Path) -> None:
    link = place.with_name("latest")
    link.symlink_to(place.name)
    write_file(str(link), b"new")
    assert link.is_symlink()
    assert place.read_bytes() == b"new"


def test_what_is_no_regular_file_is_written_to() -> None:
    ended = cklog("recovery-line", SAMPLES / "domino-cycle", "-o", "/dev/null")
    assert ended.code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)

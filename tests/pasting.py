"""Blocks of pages, pasted into a shell: what a cluster would give is given by stand-ins on PATH.

They hand out copies of samples, and write down how they were called.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.conftest import SAMPLES


def blocks(page: Path) -> list[str]:
    """The blocks of commands on a page, in order."""
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def copies(sample: str, word: int) -> str:
    """A stand-in that copies a sample to where one of its words says."""
    return f'cp -r {SAMPLES}/{sample} "${word}"\n'


def pasted(page: Path, stand_ins: Mapping[str, str], place: Path, installed: Path | None = None) -> str:
    """Paste the blocks of a page into a shell that ends with the first command that fails; what it printed.

    With `installed`, a folder of wheels, cklog is installed from there as the page says.
    """
    tools = place / "tools"
    tools.mkdir()
    for name, does in stand_ins.items():
        tool = tools / name
        tool.write_text(f'#!/bin/sh\necho "{name} $*" >> {place}/called\n{does}')
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    text = "\n".join(blocks(page))
    lines = [line for line in text.splitlines() if installed or "pip install" not in line]
    program = Path(sys.executable).parent
    env = os.environ | {"PATH": f"{tools}:{program}:{os.environ['PATH']}"}
    if installed:
        env |= {"PIP_FIND_LINKS": str(installed), "PATH": f"{tools}:{os.environ['PATH']}"}
        env.pop("PYTHONPATH", None)
        # what is installed there, as Spark's own programs are, comes behind the stand-ins all the same
        lines = [f"{line}\nPATH={tools}:$PATH" if "bin/activate" in line else line for line in lines]
    work = place / "work"
    work.mkdir(exist_ok=True)
    ended = subprocess.run(
        ["bash", "-c", "set -e\n" + "\n".join(lines)], cwd=work, env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    called = place / "called"
    return ended.stdout + (called.read_text() if called.exists() else "")

"""The tutorials by copy and paste: every block runs, in order, in one shell, and ends as its page says.

What a cluster would give is given by stand-ins on PATH: they hand out copies of samples, and write down how they were
called. The blocks that install cklog are run by the slow test, from a wheel, in an environment of their own.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, SAMPLES

FOLDER = REPOSITORY / "docs" / "tutorials"
PAGES = sorted(page.name for page in FOLDER.glob("*.md"))
JOB = "125c88b9401f9252baa1b39e412cc4b8"

STAND_INS = {
    "kubectl": f"""case "$1" in
  cp) cp -r {SAMPLES}/flink-orders "$3" ;;
  logs) echo "INFO Restoring job {JOB} from Checkpoint 13 @ 1795226310693 for {JOB} located at file:/srv/chk-13." ;;
esac
""",
    "hdfs": f'cp -r {SAMPLES}/spark-wordcount "$4"\n',
    "aws": f'cp -r {SAMPLES}/uncoordinated-join "$5"\n',
    "flink": "",
    "spark-submit": "",
}

SAID = {
    "flink.md": (
        "Restore 125c88b9401f9252baa1b39e412cc4b8/chk-13.",
        "Action: restart (nothing is in the way)",
        "orders-0,2088,",
        "What was restored",
    ),
    "spark.md": ("Action: restart (", "Action: repair-first (", "exit 3", "Different: "),
    "uncoordinated.md": ("Action: restart (", "is not consistent", "exit 3"),
}
"""What must be among what a page's blocks print."""

CALLED = {
    "flink.md": f"flink run -s file:/srv/cklog-sample/flink-orders/{JOB}/chk-13 orders.jar",
    "spark.md": "spark-submit wordcount.py --checkpoint repaired/ck",
    "uncoordinated.md": "aws s3 cp --recursive s3://checkpoints/join join",
}


def blocks(page: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", (FOLDER / page).read_text(encoding="utf-8"), flags=re.M | re.S)


def pasted(page: str, place: Path, installed: Path | None = None) -> str:
    """Paste the blocks of a page into a shell that ends with the first one that fails; what it printed."""
    tools = place / "tools"
    tools.mkdir()
    for name, does in STAND_INS.items():
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
    work = place / "work"
    work.mkdir()
    ended = subprocess.run(
        ["bash", "-c", "set -e\n" + "\n".join(lines)], cwd=work, env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + (place / "called").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_ends_as_it_says(page: str, tmp_path: Path) -> None:
    told = pasted(page, tmp_path)
    for sentence in (*SAID[page], CALLED[page]):
        assert sentence in told, told


def test_every_tutorial_begins_with_the_installation() -> None:
    assert PAGES
    for page in PAGES:
        assert "python3 -m venv cklog-env && . cklog-env/bin/activate && pip install cklog" in blocks(page)[0]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_begins_in_a_fresh_environment(page: str, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    source = tmp_path / "source"
    left_out = shutil.ignore_patterns(".git", "build", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(REPOSITORY, source, symlinks=True, ignore=left_out)
    subprocess.run([sys.executable, "-m", "build", "-q", "--wheel", "--outdir", wheels, source], check=True)
    told = pasted(page, tmp_path, wheels)
    assert all(sentence in told for sentence in (*SAID[page], CALLED[page])), told

"""The tutorials by copy and paste: every block runs, in order, in one shell, and ends as its page says.

What a cluster would give is given by stand-ins on PATH (`tests/pasting.py`). The blocks that install cklog are run by
the slow test, from a wheel, in an environment of their own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, SAMPLES
from tests.pasting import blocks, copies, pasted

FOLDER = REPOSITORY / "docs" / "tutorials"
PAGES = sorted(page.name for page in FOLDER.glob("*.md"))
JOB = "125c88b9401f9252baa1b39e412cc4b8"

STAND_INS = {
    "kubectl": f"""case "$1" in
  cp) cp -r {SAMPLES}/flink-orders "$3" ;;
  logs) echo "INFO Restoring job {JOB} from Checkpoint 13 @ 1795226310693 for {JOB} located at file:/srv/chk-13." ;;
esac
""",
    "hdfs": copies("spark-wordcount", 4),
    "aws": copies("uncoordinated-join", 5),
    "flink": "",
    "spark-submit": "",
}

SAID = {
    "flink.md": (
        "Restore 125c88b9401f9252baa1b39e412cc4b8/chk-13.",
        "Action: restart (nothing found that stops it)",
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


@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_ends_as_it_says(page: str, tmp_path: Path) -> None:
    told = pasted(FOLDER / page, STAND_INS, tmp_path)
    for sentence in (*SAID[page], CALLED[page]):
        assert sentence in told, told


def test_every_tutorial_begins_with_the_installation() -> None:
    assert PAGES
    for page in PAGES:
        assert "python3 -m venv cklog-env && . cklog-env/bin/activate && pip install cklog" in blocks(FOLDER / page)[0]


@pytest.mark.parametrize(
    ("page", "sample", "folder"),
    [
        ("flink.md", "flink-orders", "orders"),
        ("spark.md", "spark-wordcount", "wordcount"),
        ("uncoordinated.md", "uncoordinated-join", "join"),
    ],
)
def test_a_tutorial_says_what_stands_for_the_cluster(page: str, sample: str, folder: str) -> None:
    """What the stand-ins hand out can be had by a reader, too, under the name that the next blocks use."""
    text = (FOLDER / page).read_text(encoding="utf-8")
    assert f"`cp -r sample_logs/{sample} {folder}`" in text
    assert any(f"{SAMPLES}/{sample} " in tool for tool in STAND_INS.values())
    assert re.search(rf"^cklog recovery-line {folder} ", text, flags=re.M)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_begins_in_a_fresh_environment(page: str, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    source = tmp_path / "source"
    left_out = shutil.ignore_patterns(".git", "build", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(REPOSITORY, source, symlinks=True, ignore=left_out)
    subprocess.run([sys.executable, "-m", "build", "-q", "--wheel", "--outdir", wheels, source], check=True)
    told = pasted(FOLDER / page, STAND_INS, tmp_path, wheels)
    assert all(sentence in told for sentence in (*SAID[page], CALLED[page])), told

"""The report of 500 subtasks with 1,000 checkpoints each: small, soon painted, and nothing that matters is dropped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from tests.conftest import REPOSITORY
from tests.program import cklog

MOST_BYTES = 5_000_000
MOST_MS = 2_000
"""The numbers that the report has to reach; the second is the only time that any test holds."""


@pytest.fixture(scope="module", params=["acyclic", "cyclic"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run and its page; the cyclic one falls back to where it began, past every checkpoint."""
    folder = tmp_path_factory.mktemp(request.param)
    more = ["--cyclic"] if request.param == "cyclic" else []
    made = [sys.executable, str(REPOSITORY / "benchmarks" / "make_history.py"), str(folder / "run"), *more]
    subprocess.run(made, check=True)
    page = folder / "report.html"
    cklog("report", folder / "run", "--format", "html", "-o", page, "--engine", "local")
    return folder / "run", page


@pytest.mark.slow
def test_the_page_is_small_and_names_what_it_leaves_out(large: tuple[Path, Path]) -> None:
    run, page = large
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    line = json.loads(cklog("recovery-line", run, "--json", "--engine", "local").out)["result"]
    for entry in line["line"]:
        assert f"<td>{entry['operator']}/{entry['subtask']}</td>" in text or f">{entry['operator']}<" in text
    busy = [row["channel"] for row in line["channels"] if row["replay_from"] < row["replay_to"]]
    shown = sum(f"<td>{channel.replace('>', '&gt;')}</td>" in text for channel in busy)
    assert shown == len(busy) or f"of {len(busy):,} rows" in text
    rolled = len(line["rolled_back"])
    assert f"{rolled:,}" in text
    if rolled > 10_000:
        assert "was not proved" in text
    assert "cklog recovery-line" in text
    assert "--format script" in text


@pytest.mark.slow
def test_it_is_painted_soon(browser: webdriver.Chrome, large: tuple[Path, Path]) -> None:
    _, page = large
    browser.get(page.as_uri())
    ask = "return performance.getEntriesByType('paint').map((one) => [one.name, one.startTime])"
    painted = dict(WebDriverWait(browser, 60).until(lambda found: found.execute_script(ask)))
    assert painted["first-contentful-paint"] < MOST_MS

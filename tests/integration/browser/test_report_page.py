"""The report in a browser: nothing is loaded, nothing fails, zoom, hover, click and slider work, names stay text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog
from tests.reading.renamed import rename_operators

HOSTILE = (
    "<script>window.hit=1<∕script>",
    "<img src=x onerror=window.hit=2>",
    '" onmouseover=window.hit=3 x="',
)


MIDDLE = "const r = arguments[0].getBoundingClientRect(); return [r.x + r.width/2, r.y + r.height/2]"
ROWS = """return [...document.querySelectorAll("#replay tbody tr")]
    .filter((row) => row.textContent.includes("->")).length"""
KINDS = ("uncoordinated-join", "flink-orders", "spark-wordcount", "kafka-broker", "kafka-streams-state", "cec-crashed")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def opened(browser: webdriver.Chrome, folder: Path, path: str | Path, *more: str) -> None:
    """Make a report of a run and open it; scripts have done their work when this returns."""
    page = folder / "report.html"
    cklog("report", path, "--format", "html", "-o", page, *more)
    browser.get(page.as_uri())
    WebDriverWait(browser, 60).until(
        lambda found: found.execute_script("return document.documentElement.dataset.ready") == "yes"
    )


def logged(browser: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    """The rows of one of the browser's logs since it was last asked for."""
    found: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return found


def requests(browser: webdriver.Chrome) -> list[str]:
    """Every address that was asked for."""
    told = [json.loads(row["message"])["message"] for row in logged(browser, "performance")]
    sent = [row["params"]["request"]["url"] for row in told if row["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("data:", "chrome://"))]  # its first tab


def one(browser: webdriver.Chrome, selector: str) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, selector)


def script(browser: webdriver.Chrome, code: str, *given: Any) -> Any:
    return browser.execute_script(code, *given)


def click_at(browser: webdriver.Chrome, element: WebElement) -> None:
    """Press and release the mouse on the middle of an element, as a hand does."""
    script(browser, "arguments[0].scrollIntoView({block: 'center'})", element)
    place = script(
        browser, "const r = arguments[0].getBoundingClientRect(); return [r.x + r.width/2, r.y + r.height/2]", element
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        event = {"type": kind, "x": place[0], "y": place[1], **pressed}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)


@pytest.mark.parametrize("name", KINDS)
def test_it_opens_offline_and_without_an_error(browser: webdriver.Chrome, tmp_path: Path, name: str) -> None:
    opened(browser, tmp_path, f"sample_logs/{name}")
    assert requests(browser) == [(tmp_path / "report.html").as_uri()]
    assert logged(browser, "browser") == []
    action = json.loads(cklog("report", f"sample_logs/{name}", "--json").out)["result"]["action"]
    assert one(browser, ".action").text == action
    assert one(browser, "h1").text.startswith(f"Action: {action} (")
    assert script(browser, "return document.documentElement.scrollWidth <= innerWidth") is True


def test_on_a_phone_cells_keep_their_words_and_tables_scroll(browser: webdriver.Chrome, tmp_path: Path) -> None:
    browser.set_window_size(500, 900)
    opened(browser, tmp_path, "sample_logs/spark-wordcount")
    lines = "const cell = arguments[0]; return (cell.clientHeight - 8) / parseFloat(getComputedStyle(cell).lineHeight)"
    assert script(browser, lines, one(browser, "td")) < 5  # a UUID, which may break at its hyphens
    assert script(browser, "return document.documentElement.scrollWidth <= innerWidth") is True


def test_zoom_hover_click_slider_and_filter(browser: webdriver.Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, "sample_logs/uncoordinated-join")
    width = "return document.querySelector('#stage svg').getBoundingClientRect().width"
    before = script(browser, width)
    click_at(browser, one(browser, "#zoom-in"))
    WebDriverWait(browser, 10).until(lambda found: script(found, width) > before * 1.2)
    click_at(browser, one(browser, "#zoom-reset"))
    WebDriverWait(browser, 10).until(lambda found: script(found, width) == pytest.approx(before, rel=0.01))

    tips = script(browser, "return [...document.querySelectorAll('[data-tip]')].map((one) => one.dataset.tip)")
    assert any("payments/0->join/0: m" in tip for tip in tips)
    box = one(browser, "[data-checkpoint='join/0=5']")
    click_at(browser, box)
    assert one(browser, "#tip").text.startswith("join/0=5")
    line = json.loads(cklog("recovery-line", "sample_logs/uncoordinated-join", "--json", "--explain").out)["result"]
    first = next(step for step in line["steps"] if (step["operator"], step["subtask"]) == ("join", 0))
    shown = one(browser, "#chain-steps").text
    assert first["because"]["channel"] in shown
    assert "join/0 falls from 5 to 4" in shown

    told = one(browser, "#told").text
    script(browser, "const s = arguments[0]; s.value = 0; s.dispatchEvent(new Event('input'))", one(browser, "#moment"))
    assert one(browser, "#told").text != told
    moments = json.loads(cklog("recovery-line", "sample_logs/uncoordinated-join", "--failed-at", "all", "--json").out)
    assert f"of {moments['result']['moments'][0]['stored']} stored" in one(browser, "#told").text

    whole = script(browser, ROWS)
    field = one(browser, "#replay .dt-search input")
    field.send_keys("payments")
    assert 0 < script(browser, ROWS) < whole


def test_a_chain_goes_on_to_the_sender_that_fell_before(browser: webdriver.Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, "sample_logs/uncoordinated-join")
    click_at(browser, one(browser, "[data-checkpoint='sink/0=4']"))
    steps = [item.text for item in browser.find_elements(By.CSS_SELECTOR, "#chain-steps li")]
    assert [text.partition(" falls")[0] for text in steps] == ["sink/0", "join/0"]


def test_hostile_names_stay_text(browser: webdriver.Chrome, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "domino-cycle", run)
    rename_operators(run, dict(zip(("op1", "op2", "op3"), HOSTILE, strict=True)))
    opened(browser, tmp_path, run)
    assert script(browser, "return window.hit") is None
    assert logged(browser, "browser") == []
    assert browser.find_elements(By.CSS_SELECTOR, "img, [onerror], [onload], [onmouseover]") == []
    assert script(browser, "return document.scripts.length") == 4
    assert "onerror=window.hit=2" in one(browser, "#recovery-line").text
    box = script(browser, "return document.querySelector('[data-checkpoint].past')")
    click_at(browser, box)
    assert one(browser, "#chain-steps").text
    assert script(browser, "return window.hit") is None


def test_without_scripts_the_answer_is_there(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    cklog("report", "sample_logs/uncoordinated-join", "--format", "html", "-o", page)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(page.as_uri())
    assert one(browser, "h1").text.startswith("Action: restart")
    assert "payments/0->join/1" in one(browser, "#replay").text
    assert one(browser, "#stage svg").size["width"] > 100

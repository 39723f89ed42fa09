"""Pictures of runs with many subtasks and checkpoints: windows, folded lanes, page widths, PDF and PNG.

What a picture must show is counted here from the rows that `graph --json` prints, or from how the run was made.
"""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from cklog.render import pictures
from cklog.render.pdf import in_order
from tests.conftest import SAMPLES
from tests.program import Ended, cklog

SVG = "{http://www.w3.org/2000/svg}"
REACHABILITY = SAMPLES / "reachability-uncoordinated"


def drawn(folder: Path, *args: str) -> tuple[ET.Element, Ended]:
    ended = cklog("graph", folder, "--format", "svg", *args)
    assert ended.code in (0, 3, 4), ended.err
    return ET.fromstring(ended.out), ended


def titles(root: ET.Element) -> list[str]:
    """What boxes and arrows say where they are pointed at."""
    return [e.text or "" for group in ("g", "path") for p in root.iter(SVG + group) for e in p.findall(SVG + "title")]


def words(root: ET.Element) -> str:
    return " ".join("".join(e.itertext()) for e in root.iter(SVG + "text"))


def size(root: ET.Element) -> tuple[float, float]:
    return float(root.attrib["width"]), float(root.attrib["height"])


def run_of(folder: Path, subtasks: int, checkpoints: int, name: str = "op") -> Path:
    """A run of two operators, each with so many subtasks and checkpoints.

    Subtask i of the second has received from subtask i of the first one message that is sent only after its newest
    checkpoint: its own newest checkpoint cannot be restored, the one before can.
    """
    rows = []
    for i in range(subtasks):
        channel = f"{name}a/{i}->{name}b/{i}"
        for k in range(1, checkpoints + 1):
            late = 1 if k == checkpoints else 0
            row = {"subtask": i, "checkpoint": k, "time": 1_000_000 + 10_000 * k + i}
            rows.append({**row, "operator": f"{name}a", "sent": {channel: 2 * k}})
            rows.append({**row, "operator": f"{name}b", "received": {channel: 2 * k + late}})
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_long_run_is_drawn_around_its_line(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", subtasks=2, checkpoints=300)
    root, ended = drawn(run)
    found = titles(root)
    assert sum("on the line" in t for t in found) == 4
    assert sum("rolled past" in t for t in found) == 2
    shown = sum("=" in t.split(",")[0] for t in found)
    assert shown < 4 * 60
    assert size(root)[0] <= 2_400
    left = 4 * 301 - shown  # checkpoint 0 of each, too
    for said in (words(root), ended.err):
        assert f"Left out of the subtasks shown are {left} older checkpoints" in said
        assert "--all" in said
    whole, ended = drawn(run, "--all")
    assert sum("=" in t.split(",")[0] for t in titles(whole)) == 4 * 301
    assert "Left out" not in words(whole) + ended.err


def test_a_short_run_is_drawn_whole_without_a_word() -> None:
    root, ended = drawn(SAMPLES / "uncoordinated-join")
    assert "Left out" not in words(root) + ended.err
    assert "picture:" not in ended.err


def test_selections_are_drawn_as_they_are_asked_for(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", subtasks=2, checkpoints=300)
    assert sum("=" in t.split(",")[0] for t in titles(drawn(run, "--last", "70")[0])) == 4 * 70


def test_a_folded_lane_stands_for_all_subtasks_of_its_operator() -> None:
    result: dict[str, Any] = json.loads(cklog("graph", REACHABILITY, "--json").out)["result"]
    subtasks = Counter(s["operator"] for s in result["subtasks"])
    root, ended = drawn(REACHABILITY, "--fold")
    for operator, count in subtasks.items():
        assert f"{operator} ×{count}" in words(root)
    assert f"{len(subtasks)} lanes stand for {sum(subtasks.values())} subtasks" in ended.err
    columns: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for node in result["nodes"]:
        told = columns[node["operator"], node["checkpoint"]]
        told.update({"checkpoint": 1, **{flag: 1 for flag in ("on_line", "rolled_past", "useless") if node[flag]}})
    flags = {"on the line": "on_line", "rolled past": "rolled_past", "useless": "useless"}
    seen = 0
    for title in titles(root):
        box = re.match(r"(\w+)=(\d+): (\d+) checkpoints?", title)
        if not box:
            continue
        seen += 1
        told = columns[box[1], int(box[2])]
        assert told["checkpoint"] == int(box[3])
        said = {what: int(n) for n, what in re.findall(r"(\d+) subtasks? ([a-z ]+)", title)}
        assert said == {what: told[flag] for what, flag in flags.items() if told[flag]}
        if 0 < told["on_line"] < subtasks[box[1]]:
            assert f"{told['on_line']}/{subtasks[box[1]]}" in words(root)
    assert seen == len(columns)


def test_folded_arrows_hold_every_message_once(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", subtasks=7, checkpoints=5)
    root, _ = drawn(run, "--fold")
    found = [re.match(r"opa->opb: (\d+) messages on (\d+) channels?, (\w+)", t) for t in titles(root)]
    arrows = [(int(t[1]), int(t[2]), t[3]) for t in found if t]
    # Of each subtask 10 messages were sent and 11 received; the 11th, of which no sending is kept, is an orphan.
    assert sum(n for n, _, _ in arrows) == 7 * 11
    assert [(n, channels) for n, channels, kind in arrows if kind == "orphan"] == [(7, 7)]


def test_five_hundred_subtasks_fit(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", subtasks=250, checkpoints=40)
    tall, ended = drawn(run)
    assert "Left out" in ended.err
    assert sum("on the line" in t for t in titles(tall)) == 500
    title = next(tall.iter(SVG + "text"))
    small = next(drawn(SAMPLES / "domino-cycle")[0].iter(SVG + "text"))
    assert float(title.attrib["font-size"]) > float(small.attrib["font-size"])
    folded, _ = drawn(run, "--fold")
    assert size(folded)[1] < size(tall)[1] / 10
    assert {"opa ×250", "opb ×250"} <= {e.text for e in folded.iter(SVG + "title")}


@pytest.mark.parametrize(("width", "pixels"), [("500", 500.0), ("180mm", 680.3), ("12in", 1152.0), ("1500px", 1500.0)])
@pytest.mark.parametrize("more", [(), ("--fold",), ("--all",)])
def test_a_picture_is_as_wide_as_its_page(width: str, pixels: float, more: tuple[str, ...]) -> None:
    root, _ = drawn(REACHABILITY, "--width", width, *more)
    assert size(root)[0] == pixels
    _, _, inner, high = map(float, root.attrib["viewBox"].split())
    assert inner / high == pytest.approx(size(root)[0] / size(root)[1], rel=1e-3)
    for box in root.iter(SVG + "rect"):
        assert float(box.attrib.get("x", 0)) + float(box.attrib["width"]) <= inner + 0.1
    if not more:
        assert inner == pixels  # nothing is made smaller where less can be shown


HOSTILE = ['o"p<script>x</script>', "--&gt; ]]> \x1b[31m", "é😀 名"]


@pytest.mark.parametrize("name", HOSTILE)
def test_folded_names_that_mean_harm_stay_text(tmp_path: Path, name: str) -> None:
    run = run_of(tmp_path / "run", subtasks=3, checkpoints=2, name=name)
    root, ended = drawn(run, "--fold")
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert name.replace("\x1b", "\\x1b") + "a ×3" in "".join(root.itertext())
    assert drawn(run, "--fold")[1].out == ended.out


def test_png_and_pdf_are_the_same_picture(tmp_path: Path) -> None:
    wide, high = size(drawn(SAMPLES / "domino-cycle")[0])
    for form in ("png", "pdf"):
        ended = cklog("graph", SAMPLES / "domino-cycle", "--format", form, "-o", tmp_path / f"picture.{form}")
        assert (ended.code, ended.out) == (0, "")
    png, pdf = (tmp_path / "picture.png").read_bytes(), (tmp_path / "picture.pdf").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == pytest.approx((2 * wide, 2 * high), abs=2)
    assert pdf[:5] == b"%PDF-"
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert box
    assert (float(box[1]), float(box[2])) == pytest.approx((0.75 * wide, 0.75 * high), abs=1)  # points, 72 an inch


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_the_same_bytes_in_are_the_same_bytes_out(form: str) -> None:
    """The converter hashes with another seed each time, as its own bytes of a PDF show."""
    svg = cklog("graph", SAMPLES / "domino-cycle", "--format", "svg").out
    assert cklog("graph", SAMPLES / "domino-cycle", "--format", "svg").out == svg
    if form != "svg":
        assert len({pictures.converted(svg, form) for _ in range(8)}) == 1
    if form == "pdf":
        assert len({vl_convert.svg_to_pdf(svg) for _ in range(8)}) > 1


def test_a_pdf_in_order_is_the_same_document() -> None:
    before = vl_convert.svg_to_pdf(cklog("graph", SAMPLES / "domino-cycle", "--format", "svg").out)
    after = in_order(before)
    streams = re.compile(rb"\nstream\n(.*?)\nendstream\nendobj", re.DOTALL)
    assert sorted(streams.findall(after)) == sorted(streams.findall(before))
    told = streams.sub(b"", after)
    assert len(told) == pytest.approx(len(streams.sub(b"", before)), abs=50)
    begun = int(re.findall(rb"startxref\n(\d+)\n%%EOF", after)[0])
    assert after[begun:].startswith(b"xref\n0 ")
    places = [int(at) for at in re.findall(rb"(\d{10}) 00000 n", after[begun:])]
    assert all(after[at:].startswith(b"%d 0 obj\n" % number) for number, at in enumerate(places, 1))
    assert {int(n) for n in re.findall(rb"(\d+) 0 R", told)} == set(range(1, len(places) + 1))
    assert f"/Size {len(places) + 1}\n".encode() in after[begun:]
    assert in_order(after) == after
    assert in_order(b"%PDF-1.7\nsomething else\n%%EOF") == b"%PDF-1.7\nsomething else\n%%EOF"


@pytest.mark.parametrize("form", ["png", "pdf"])
def test_what_is_not_installed_is_named(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    ended = cklog("graph", SAMPLES / "domino-cycle", "--format", form)
    assert (ended.code, ended.out) == (2, "")
    assert "pip install 'cklog[pictures]'" in ended.err

"""`cklog graph`: the graphs of the papers' figure, what each format says of them, and names that mean harm."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import networkx
import pytest

from cklog.errors import UsageError
from cklog.graphs.exports import graph_formats
from cklog.graphs.graph import CheckpointGraph, graph_of
from cklog.graphs.selection import GraphQuestion
from cklog.history.history import History, history_of
from cklog.history.watermarks import UNBOUNDED
from cklog.lines.entries import rolled_back, useless_checkpoints
from cklog.lines.fixpoint import recovery_line
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Answer
from cklog.zigzag.intervals import useless
from tests.conftest import SAMPLES
from tests.program import cklog

DOMINO, JOIN = SAMPLES / "domino-cycle", SAMPLES / "uncoordinated-join"
HOSTILE = [
    'o"p<script>x</script>',
    "x\ny",
    "back\\",
    "é😀 名",
    "end",
    "1. a;b &amp; [c] {d} |e|",
    "-- ]]> \x1b[31m\x00",
    "a\\nb",
    "a\nb",
]


def graph(history: History, asked: GraphQuestion | None = None) -> CheckpointGraph:
    line = recovery_line(history)
    found = RecoveryLine(
        True,
        "uncoordinated",
        (),
        (),
        (),
        rolled_back(history, line),
        useless_checkpoints(history, useless(history)),
        (),
        False,
    )
    return graph_of(history, line, found, asked or GraphQuestion())


def messages(found: CheckpointGraph) -> set[tuple[str, str, int | None]]:
    return {(e.from_, e.to, e.seq_from) for e in found.edges if e.kind == "message"}


def exported(form: str, found: CheckpointGraph) -> str:
    return graph_formats()[form](Answer("graph", "ok", 0, (), (), found))


def asked(*args: str) -> dict[str, Any]:
    ended = cklog("graph", *args, "--json")
    assert ended.code in (0, 3, 4), ended.err
    result: dict[str, Any] = json.loads(ended.out)["result"]
    return result


def test_figure_5_as_a_checkpoint_graph() -> None:
    result = asked(str(DOMINO))
    told = {(e["from"], e["to"]) for e in result["edges"] if e["kind"] == "message"}
    assert told == {
        ("op1/0=1", "op2/0=2"),
        ("op1/0=2", "op2/0=3"),
        ("op2/0=1", "op3/0=2"),
        ("op2/0=2", "op3/0=2"),
        ("op3/0=1", "op1/0=2"),
        ("op3/0=2", "op1/0=3"),
    }
    flags = {n["id"]: (n["on_line"], n["rolled_past"], n["useless"]) for n in result["nodes"]}
    assert {name for name, told in flags.items() if told[0]} == {"op1/0=1", "op2/0=1", "op3/0=1"}
    assert {name for name, told in flags.items() if told[2]} == {"op1/0=2", "op2/0=2", "op3/0=2"}
    assert sum(told[1] for told in flags.values()) == 5
    assert all(e["orphan"] for e in result["edges"] if e["kind"] == "message")


def test_figure_5_as_a_rollback_dependency_graph() -> None:
    result = asked(str(DOMINO), "--kind", "rollback")
    told = {(e["from"], e["to"]) for e in result["edges"] if e["kind"] == "message"}
    assert told == {
        ("op1/0=1", "op2/0=1"),
        ("op1/0=2", "op2/0=2"),
        ("op2/0=1", "op3/0=1"),
        ("op2/0=2", "op3/0=1"),
        ("op3/0=1", "op1/0=1"),
        ("op3/0=2", "op1/0=2"),
    }


def test_messages_are_counted_where_intervals_meet() -> None:
    found = graph(history_of({"a/0": [5], "b/0": [7, 9]}, {"a/0->b/0": [0, 6]}, {"a/0->b/0": [0, 2, 8]}))
    rows = [(e.from_, e.to, e.seq_from, e.seq_to, e.messages, e.dominated) for e in found.edges if e.kind == "message"]
    assert rows == [
        ("a/0=0", "b/0=7", 0, 2, 2, False),
        ("a/0=0", "b/0=9", 2, 6, 4, True),
        ("a/0=5", "b/0=9", 6, 8, 2, False),
    ]
    assert [(e.orphan, e.in_flight) for e in found.edges[-3:]] == [(False, False), (False, True), (True, False)]


def test_what_nobody_received_is_told() -> None:
    found = graph(history_of({"a/0": [1, 2], "b/0": [1]}, {"a/0->b/0": [0, 3, 9]}, {"a/0->b/0": [0, 1]}))
    rows = [(u.from_, u.seq_from, u.seq_to, u.messages, u.in_flight) for u in found.unreceived]
    assert rows == [("a/0=0", 1, 3, 2, True), ("a/0=1", 3, 9, 6, True)]


def test_a_survivor_has_its_current_state_as_a_node_but_not_as_an_interval() -> None:
    history = history_of(
        {"a/0": [1], "b/0": [1]}, {"a/0->b/0": [0, 3, 5]}, {"a/0->b/0": [0, 1]}, survivors=frozenset({"a/0"})
    )
    assert [n.id for n in graph(history).nodes] == ["a/0=0", "a/0=1", "a/0=current", "b/0=0", "b/0=1"]
    rollback = graph(history, GraphQuestion("rollback"))
    assert [n.id for n in rollback.nodes] == ["a/0=0", "a/0=1", "b/0=0", "b/0=1"]


def test_an_unknown_watermark_leaves_the_count_open() -> None:
    history = history_of({"a/0": [1], "b/0": [1]}, {"a/0->b/0": [0, 3]}, {"a/0->b/0": [0, UNBOUNDED]})
    found = graph(history)
    assert [(e.seq_from, e.seq_to, e.messages) for e in found.edges[-2:]] == [(0, 3, 3), (3, None, None)]
    for form in graph_formats():
        assert exported(form, found)


def test_messages_from_before_checkpoint_0_have_a_head_only_in_the_checkpoint_graph() -> None:
    history = history_of({"a/0": [1], "b/0": [1]}, {"a/0->b/0": [0, 2]}, {"a/0->b/0": [1, 2]})
    none = RecoveryLine(False, "uncoordinated", (), (), (), (), (), (), False)
    assert messages(graph_of(history, None, none, GraphQuestion())) == {("a/0=0", "b/0=0", 0), ("a/0=0", "b/0=1", 1)}
    assert messages(graph_of(history, None, none, GraphQuestion("rollback"))) == {("a/0=0", "b/0=0", 1)}


def test_last_keeps_the_newest_and_says_what_is_left_out() -> None:
    result = asked(str(JOIN), "--last", "2")
    assert {(s["before"], s["checkpoints"] - s["before"] - s["after"]) for s in result["subtasks"]} == {(3, 2), (4, 2)}
    ended = cklog("graph", JOIN, "--last", "2")
    assert "Left out of the subtasks shown are 16 older checkpoints" in ended.out


def test_around_shows_the_intervals_before_and_after_a_checkpoint() -> None:
    result = asked(str(JOIN), "--around", "join/0=3")
    assert [n["id"] for n in result["nodes"] if n["asked"]] == ["join/0=3"]
    touching = {"join/0=2", "join/0=3", "join/0=4"}
    told = [e for e in result["edges"] if e["kind"] == "message"]
    assert told
    assert all(e["from"] in touching or e["to"] in touching for e in told)
    everything = [e for e in asked(str(JOIN))["edges"] if e["kind"] == "message"]
    near = [e for e in everything if e["from"] in ("join/0=2", "join/0=3") or e["to"] in ("join/0=3", "join/0=4")]
    assert told == near
    assert len(asked(str(JOIN), "--around", "join/0=3", "--steps", "2")["edges"]) > len(result["edges"])


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([DOMINO, "--last", "0"], 2, "at least one"),
        ([DOMINO, "--last", "1", "--around", "op1/0=1"], 2, "different parts"),
        ([DOMINO, "--around", "op1/0=1", "--steps", "0"], 2, "at least one step"),
        ([DOMINO, "--around", "op1"], 2, "expected OP/SUB=CKPT"),
        ([DOMINO, "--around", "op1/0=x"], 2, "no checkpoint number"),
        ([DOMINO, "--around", "op9/0=1"], 66, "no subtask op9/0"),
        ([DOMINO, "--around", "op1/0=9"], 66, "no usable checkpoint 9"),
        ([DOMINO, "--kind", "rollback", "--format", "svg"], 2, "space-time diagram"),
        ([DOMINO, "--format", "gif"], 2, "--format gif"),
        ([DOMINO, "--format", "svg", "--all", "--last", "1"], 2, "--all"),
        ([DOMINO, "--format", "dot", "--fold"], 2, "--fold is about pictures"),
        ([DOMINO, "--width", "900"], 2, "--width is about pictures"),
        ([DOMINO, "--format", "svg", "--width", "12"], 2, "pixels are not between"),
        ([DOMINO, "--format", "svg", "--width", "wide"], 2, "no length"),
        ([SAMPLES / "spark-wordcount"], 66, "has no checkpoint graph"),
        ([SAMPLES / "cec-aggregate"], 66, "output queues"),
    ],
)
def test_what_goes_wrong_is_one_line_and_its_exit_code(args: list[str | Path], code: int, said: str) -> None:
    ended = cklog("graph", *args)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err.splitlines()[0]


def test_too_much_for_a_picture_is_refused_with_a_selection_that_fits() -> None:
    labels = list(range(1, 401))
    history = history_of({"a/0": labels, "b/0": labels}, {"a/0->b/0": [0, *labels]}, {"a/0->b/0": [0, *labels]})
    with pytest.raises(UsageError) as refused:
        graph(history, GraphQuestion(form="mermaid"))
    assert "802 checkpoints" in refused.value.message
    last = re.search(r"--last (\d+)", refused.value.hint)
    assert last
    graph(history, GraphQuestion(form="mermaid", last=int(last[1]) // 2))
    with pytest.raises(UsageError, match="717 edges"):
        graph(history, GraphQuestion(form="mermaid", last=240))


def test_no_consistent_line_is_drawn_all_the_same() -> None:
    ended = cklog("graph", JOIN, "--at", "join/0=5", "--format", "svg")
    assert ended.code == 4
    assert "recovery line" not in ended.out
    assert "checkpoint-unreachable" in ended.out


def test_graphml_and_node_link_are_read_back_by_networkx() -> None:
    result = asked(str(JOIN))
    read = networkx.read_graphml(io.BytesIO(cklog("graph", JOIN, "--format", "graphml").out.encode()))
    linked = networkx.node_link_graph(json.loads(cklog("graph", JOIN, "--format", "node-link").out), edges="edges")
    nodes = {n["id"]: {k: v for k, v in n.items() if k != "id" and v is not None} for n in result["nodes"]}
    edges = [
        (e["from"], e["to"], {k: v for k, v in e.items() if k not in ("from", "to") and v is not None})
        for e in result["edges"]
    ]
    for found in (read, linked):
        assert dict(found.nodes(data=True)) == nodes
        told = [(a, b, {k: v for k, v in row.items() if k != "id"}) for a, b, row in found.edges(data=True)]
        assert sorted(told, key=str) == sorted(edges, key=str)


# --- names that mean harm

_DOT = re.compile(
    r"""digraph\ cklog\ \{\n
    (?:\ +(?: (?:node|edge|graph)\ \[ATTRS\]; | rankdir=LR; | labelloc=t; | label=STR;
            | subgraph\ cluster_\d+\ \{ | color=gray; | \} | STR\ \[ATTRS\]; | STR\ ->\ STR\ \[ATTRS\]; )\n)*
    \}\n""".replace("ATTRS", r"[a-z]+=(?:STR|\w+)(?:,\ [a-z]+=(?:STR|\w+))*").replace("STR", r'"(?:[^"\\]|\\.)*"'),
    re.VERBOSE,
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A ring of operators whose names have in them what formats obey."""
    rows = []
    for i, name in enumerate(HOSTILE):
        sent, received = f"{name}/0->{HOSTILE[(i + 1) % len(HOSTILE)]}/0", f"{HOSTILE[i - 1]}/0->{name}/0"
        for number in (1, 2):
            marks = {"sent": {sent: number}, "received": {received: number - 1}}
            rows.append({"operator": name, "subtask": 0, "checkpoint": number, **marks})
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_dot_has_its_grammar_and_every_name_of_its_own(hostile: Path) -> None:
    text = cklog("graph", hostile, "--format", "dot", "-q").out
    assert _DOT.fullmatch(text)
    assert len(set(re.findall(r'^    ("(?:[^"\\]|\\.)*") \[label', text, re.MULTILINE))) == 3 * len(HOSTILE)
    assert _DOT.fullmatch(cklog("graph", JOIN, "--format", "dot").out)


def test_mermaid_says_what_it_would_obey_by_number(hostile: Path) -> None:
    text = cklog("graph", hostile, "--format", "mermaid", "-q").out
    quoted = re.findall(r'[\[|]"(.*?)"[\]|]', text)
    assert len(quoted) == len(HOSTILE) * (1 + 3 + 1)
    left = [re.sub(r"#\d+;", "e", label) for label in quoted]
    assert not [label for label in left if re.search(r"[<>\"`&\\\[\]{}|*_%#;]|^-|\d\.", label)]


@pytest.mark.parametrize("form", ["graphml", "svg"])
def test_xml_formats_hold_hostile_names_as_text(hostile: Path, form: str) -> None:
    text = cklog("graph", hostile, "--format", form, "-q").out
    root = ET.fromstring(text)
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert 'o"p<script>x</script>' in "".join(root.itertext())
    if form == "graphml":
        assert len(networkx.read_graphml(io.BytesIO(text.encode()))) == 3 * len(HOSTILE)


def test_node_link_keeps_names_as_they_are(hostile: Path) -> None:
    data = json.loads(cklog("graph", hostile, "--format", "node-link", "-q").out)
    assert {node["operator"] for node in data["nodes"]} == set(HOSTILE)
    assert len(networkx.node_link_graph(data, edges="edges")) == 3 * len(HOSTILE)


# --- the picture


def test_the_picture_stands_for_itself() -> None:
    text = cklog("graph", JOIN, "--format", "svg").out
    root = ET.fromstring(text)
    tags = {e.tag.rpartition("}")[2] for e in root.iter()}
    assert not tags & {"script", "style", "image", "foreignObject", "use"}
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert text == cklog("graph", JOIN, "--format", "svg").out


def test_the_picture_of_figure_5_shows_what_the_paper_shows() -> None:
    root = ET.fromstring(cklog("graph", DOMINO, "--format", "svg").out)
    titles = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title")]
    arrows = [title for title in titles if "->" in title]
    assert sum("m0" in title for title in arrows) == sum("m1" in title for title in arrows) == 3
    assert sum("on the line" in title for title in titles) == 3
    assert sum(title.endswith("useless") for title in titles) == 3
    assert sum("rolled past" in title for title in titles) == 5
    line = next(e for e in root.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(line.attrib["points"].split()) == 3 + 2


def test_a_run_with_times_has_an_axis_and_one_without_says_so(hostile: Path) -> None:
    assert "2026-01-01 00:00:05Z" in cklog("graph", DOMINO, "--format", "svg").out
    assert "not to scale" in cklog("graph", hostile, "--format", "svg", "-q").out

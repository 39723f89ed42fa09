"""Graphs in the words of the tools that draw or read them: DOT, Mermaid, GraphML, networkx node-link JSON, SVG.

Names come from logs and may hold anything: each format has its own way to say a character that it would obey.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import groupby
from typing import TYPE_CHECKING, Any

from cklog.graphs.graph import CheckpointGraph, Edge, GraphNode
from cklog.graphs.selection import GraphQuestion
from cklog.graphs.space_time.shapes import IN_FLIGHT, LINE, ORPHAN, PAST, USELESS
from cklog.graphs.view import graph_headline, messages_word
from cklog.model.verdict import Answer
from cklog.render.pictures import CONVERTED, converted
from cklog.render.svg import wrapped
from cklog.render.text import visible, visible_json

if TYPE_CHECKING:
    import networkx

_TITLE_COLUMNS = 90


def graph_formats() -> dict[str, Callable[[Answer[CheckpointGraph]], str]]:
    """Return each format of text by name, as a function from an answer of `graph`."""
    return {"dot": _dot, "graphml": _graphml, "node-link": _node_link, "mermaid": _mermaid, "svg": _svg}


def picture_of(answer: Answer[CheckpointGraph], asked: GraphQuestion) -> tuple[str | bytes, tuple[str, ...]]:
    """Draw an answer of `graph` as `asked`, as SVG or converted from it; return it with what it leaves out."""
    from cklog.graphs.space_time.diagram import space_time

    drawing = space_time(answer, asked)
    return converted(drawing.svg, asked.form) if asked.form in CONVERTED else drawing.svg, drawing.notes


def networkx_graph(graph: CheckpointGraph) -> networkx.MultiDiGraph[str]:
    """Return the graph for networkx; what is None in a node or an edge is no attribute there.

    Edge keys differ over the whole graph: GraphML takes them for ids, which other readers hold to be unique.
    """
    import networkx

    found: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(kind=graph.kind, consistent=graph.consistent)
    for node in graph.nodes:
        found.add_node(node.id, **_row_attributes(node, "id"))
    for i, edge in enumerate(graph.edges):
        found.add_edge(edge.from_, edge.to, f"e{i}", **_row_attributes(edge, "from_", "to"))
    return found


def _svg(answer: Answer[CheckpointGraph]) -> str:
    from cklog.graphs.space_time.diagram import space_time

    return space_time(answer).svg


def _node_link(answer: Answer[CheckpointGraph]) -> str:
    """Write what `networkx.node_link_graph(…, edges="edges")` reads; d3 calls it nodes and links."""
    import networkx

    data = networkx.node_link_data(networkx_graph(answer.result), edges="edges")
    data["graph"]["headline"] = graph_headline(answer)
    members = []
    for key, value in data.items():
        members.append(f'"{key}": {_json_rows(value) if isinstance(value, list) else _json(value)}')
    return visible_json("{\n  " + ",\n  ".join(members) + "\n}\n")


def _json_rows(rows: list[Any]) -> str:
    """Write a list as JSON with each of its rows on a line."""
    return "[" + ",".join(f"\n    {_json(row)}" for row in rows) + "\n  ]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _graphml(answer: Answer[CheckpointGraph]) -> str:
    """Write GraphML by networkx; XML has no control characters, so that they are written as in `visible`."""
    import networkx

    plain = networkx_graph(answer.result)
    shown: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(headline=visible(graph_headline(answer)), **plain.graph)
    shown.add_nodes_from((_distinct_id(node), _visible_attributes(row)) for node, row in plain.nodes(data=True))
    for a, b, key, row in plain.edges(data=True, keys=True):
        shown.add_edge(_distinct_id(a), _distinct_id(b), key, **_visible_attributes(row))
    out = io.BytesIO()
    networkx.write_graphml_xml(shown, out, prettyprint=True)
    return out.getvalue().decode() + "\n"


def _dot(answer: Answer[CheckpointGraph]) -> str:
    """Write DOT for Graphviz: one row of nodes per subtask, in time from left to right."""
    graph = answer.result
    title = "\n".join(wrapped(visible(graph_headline(answer)), _TITLE_COLUMNS))
    lines = [
        "digraph cklog {",
        "  rankdir=LR;",
        "  labelloc=t;",
        f"  label={_dot_string(title)};",
        '  graph [fontname="Helvetica"];',
        '  node [shape=box, fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10];',
    ]
    for i, (name, nodes) in enumerate(_by_subtask(graph)):
        lines += [f"  subgraph cluster_{i} {{", f"    label={_dot_string(_dot_label(name))};", "    color=gray;"]
        lines += [f"    {_dot_string(n.id)} [{_dot_attributes(_dot_node(n, graph))}];" for n in nodes]
        lines.append("  }")
    for e in graph.edges:
        lines.append(f"  {_dot_string(e.from_)} -> {_dot_string(e.to)} [{_dot_attributes(_dot_edge(e))}];")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_node(node: GraphNode, graph: CheckpointGraph) -> Iterator[tuple[str, str]]:
    """Yield the attributes of a node."""
    styles = ["dashed" if node.state == "current" else "filled"]
    fill_color = "#e8eaed" if node.rolled_past else "white"
    if node.on_line:
        styles.append("bold")
        fill_color = "#d2f4d9"
    elif node.useless:
        styles.append("diagonals")
    yield "label", _node_label(node, graph)
    yield "style", ",".join(styles)
    if node.state != "current":
        yield "fillcolor", fill_color
    if node.on_line or node.useless:
        yield "color", LINE if node.on_line else USELESS


def _dot_edge(edge: Edge) -> Iterator[tuple[str, str]]:
    """Yield the attributes of an edge."""
    if edge.kind == "local":
        yield "style", "bold"
        yield "arrowhead", "none"
        yield "weight", "10"
        return
    yield "label", _edge_label(edge)
    yield "tooltip", _dot_label(edge.channel or "")
    if edge.orphan or edge.in_flight:
        yield "color", ORPHAN.color if edge.orphan else IN_FLIGHT.color
    if edge.in_flight:
        yield "style", "dashed"


def _dot_attributes(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{key}={_dot_string(value)}" for key, value in pairs)


def _dot_string(text: str) -> str:
    r"""Write a DOT string. Labels obey a backslash, so it is doubled; control characters stay apart from their names.

    >>> print(_dot_string('a"b'), _dot_string("two\nlines"), _dot_string(visible("a\nb")))
    "a\"b" "two\nlines" "a\\nb"
    """
    return '"' + visible(text.replace("\\", "\\\\")).replace('"', '\\"') + '"'


def _dot_label(name: str) -> str:
    """Write a name as a DOT label, which obeys HTML's entities."""
    return visible(name).replace("&", "&amp;")


def _mermaid(answer: Answer[CheckpointGraph]) -> str:
    """Write a Mermaid flowchart, as Markdown of GitHub and wikis shows it."""
    graph = answer.result
    number = {node.id: f"n{i}" for i, node in enumerate(graph.nodes)}
    lines = ["---", f"title: {_json(visible(graph_headline(answer)))}", "---", "flowchart LR"]
    for i, (name, nodes) in enumerate(_by_subtask(graph)):
        lines += [f"  subgraph s{i}[{_mermaid_text(name)}]", "    direction LR"]
        lines += [f"    {number[n.id]}[{_mermaid_text(_node_label(n, graph))}]" for n in nodes]
        lines.append("  end")
    styles: dict[str, list[int]] = {}
    for i, e in enumerate(graph.edges):
        tail, head = number[e.from_], number[e.to]
        arrow = "---" if e.kind == "local" else f"-->|{_mermaid_text(_edge_label(e))}|"
        lines.append(f"  {tail} {arrow} {head}")
        styles.setdefault(_mermaid_link(e), []).append(i)
    lines += [
        f"  linkStyle {','.join(map(str, styles[kind]))} {_MERMAID_LINKS[kind]}"
        for kind in _MERMAID_LINKS
        if kind in styles
    ]
    for kind, style in _MERMAID_CLASSES.items():
        members = [number[n.id] for n in graph.nodes if _mermaid_class(n) == kind]
        lines += [f"  classDef {kind} {style}", f"  class {','.join(members)} {kind}"] if members else []
    return "\n".join(lines) + "\n"


_MERMAID_LINKS = {
    "local": "stroke-width:3px",
    "orphan": f"stroke:{ORPHAN.color},color:{ORPHAN.color}",
    "flight": f"stroke:{IN_FLIGHT.color},color:{IN_FLIGHT.color},stroke-dasharray:5 4",
}

_MERMAID_CLASSES = {
    "line": f"fill:#d2f4d9,stroke:{LINE},stroke-width:3px,color:#1f2328",
    "useless": f"fill:#ffebe9,stroke:{USELESS},stroke-dasharray:4 3,color:#1f2328",
    "past": f"fill:#e8eaed,stroke:{PAST},stroke-dasharray:4 3,color:#1f2328",
}


def _mermaid_link(edge: Edge) -> str:
    """Return the kind of link that an edge is drawn as, "" for a plain one."""
    if edge.kind == "local":
        return "local"
    if edge.orphan:
        return "orphan"
    return "flight" if edge.in_flight else ""


def _mermaid_class(node: GraphNode) -> str:
    """Return the class that a node is drawn in, "" for a plain one."""
    if node.on_line:
        return "line"
    if node.useless:
        return "useless"
    return "past" if node.rolled_past else ""


def _mermaid_text(text: str) -> str:
    """Write a Mermaid text in quotes; what Mermaid, Markdown or HTML could obey is written as an entity.

    >>> _mermaid_text('a"<b>#1'), _mermaid_text("- 1. m_x_")
    ('"a#34;#60;b#62;#35;1"', '"#45; 1#46; m#95;x#95;"')
    """
    shown = visible(text)
    plain = (c.isalnum() or c in _MERMAID_PLAIN or ord(c) > 127 or (c == "-" and i > 0) for i, c in enumerate(shown))
    return '"' + "".join(c if kept else f"#{ord(c)};" for c, kept in zip(shown, plain, strict=True)) + '"'


_MERMAID_PLAIN = frozenset(" /:,=?()")


def _node_label(node: GraphNode, graph: CheckpointGraph) -> str:
    """Write what stands in a node: its number, and what the line and the Z-cycles make of it."""
    name = "current" if node.checkpoint is None else str(node.checkpoint)
    words = [
        *(["initial"] if node.state == "initial" else []),
        *(["line"] if node.on_line else []),
        *(["useless"] if node.useless else []),
    ]
    lead = f"after {name}" if graph.kind == "rollback" else name
    return f"{lead}: {', '.join(words)}" if words else lead


def _edge_label(edge: Edge) -> str:
    assert edge.seq_from is not None
    return messages_word(edge.seq_from, edge.seq_to, edge.messages)


def _by_subtask(graph: CheckpointGraph) -> Iterator[tuple[str, list[GraphNode]]]:
    """Yield each subtask's name and nodes."""
    for name, nodes in groupby(graph.nodes, key=lambda n: f"{n.operator}/{n.subtask}"):
        yield name, list(nodes)


def _row_attributes(row: GraphNode | Edge, *without: str) -> dict[str, Any]:
    """Return the fields of a row that are not None, without some."""
    found = {f.name: getattr(row, f.name) for f in fields(row) if f.name not in without}
    return {name: value for name, value in found.items() if value is not None}


def _visible_attributes(row: dict[str, Any]) -> dict[str, Any]:
    return {name: visible(value) if isinstance(value, str) else value for name, value in row.items()}


def _distinct_id(name: str) -> str:
    """Write a name as XML can hold it; two names never become one."""
    return visible(name.replace("\\", "\\\\"))

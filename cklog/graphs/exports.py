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
from cklog.graphs.space_time.shapes import IN_FLIGHT, LINE, ORPHAN, PAST, USELESS
from cklog.graphs.view import graph_headline, messages_word
from cklog.model.verdict import Answer
from cklog.render.svg import wrapped
from cklog.render.text import visible

if TYPE_CHECKING:
    import networkx

_TITLE_COLUMNS = 90


def graph_formats() -> dict[str, Callable[[Answer[CheckpointGraph]], str]]:
    """Each format by name."""
    return {"dot": _dot, "graphml": _graphml, "node-link": _node_link, "mermaid": _mermaid, "svg": _svg}


def networkx_graph(graph: CheckpointGraph) -> networkx.MultiDiGraph[str]:
    """The graph for networkx: what is None in a node or an edge is not there as an attribute.

    Edge keys differ over the whole graph: GraphML takes them for ids, which other readers hold to be unique.
    """
    import networkx

    found: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(kind=graph.kind, consistent=graph.consistent)
    for node in graph.nodes:
        found.add_node(node.id, **_attributes(node, "id"))
    for i, edge in enumerate(graph.edges):
        found.add_edge(edge.from_, edge.to, f"e{i}", **_attributes(edge, "from_", "to"))
    return found


def _svg(answer: Answer[CheckpointGraph]) -> str:
    from cklog.graphs.space_time.diagram import space_time

    return space_time(answer)


def _node_link(answer: Answer[CheckpointGraph]) -> str:
    """What `networkx.node_link_graph(…, edges="edges")` reads; d3 calls it nodes and links."""
    import networkx

    data = networkx.node_link_data(networkx_graph(answer.result), edges="edges")
    data["graph"]["headline"] = graph_headline(answer)
    shown = [f'"{key}": {_rows(value) if isinstance(value, list) else _json(value)}' for key, value in data.items()]
    return "{\n  " + ",\n  ".join(shown) + "\n}\n"


def _rows(rows: list[Any]) -> str:
    """A list with each of its rows on a line."""
    return "[" + ",".join(f"\n    {_json(row)}" for row in rows) + "\n  ]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _graphml(answer: Answer[CheckpointGraph]) -> str:
    """GraphML by networkx; XML has no control characters, so that they are written as in `visible`."""
    import networkx

    plain = networkx_graph(answer.result)
    told: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(headline=visible(graph_headline(answer)), **plain.graph)
    told.add_nodes_from((_distinct(node), _told(row)) for node, row in plain.nodes(data=True))
    for a, b, key, row in plain.edges(data=True, keys=True):
        told.add_edge(_distinct(a), _distinct(b), key, **_told(row))
    out = io.BytesIO()
    networkx.write_graphml_xml(told, out, prettyprint=True)
    return out.getvalue().decode() + "\n"


def _dot(answer: Answer[CheckpointGraph]) -> str:
    """DOT for Graphviz: one row of nodes per subtask, in time from left to right."""
    graph = answer.result
    title = "\n".join(wrapped(visible(graph_headline(answer)), _TITLE_COLUMNS))
    lines = [
        "digraph cklog {",
        "  rankdir=LR;",
        "  labelloc=t;",
        f"  label={_quoted(title)};",
        '  graph [fontname="Helvetica"];',
        '  node [shape=box, fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10];',
    ]
    for i, (name, nodes) in enumerate(_by_subtask(graph)):
        lines += [f"  subgraph cluster_{i} {{", f"    label={_quoted(_shown(name))};", "    color=gray;"]
        lines += [f"    {_quoted(n.id)} [{_list(_dot_node(n, graph))}];" for n in nodes]
        lines.append("  }")
    for e in graph.edges:
        lines.append(f"  {_quoted(e.from_)} -> {_quoted(e.to)} [{_list(_dot_edge(e))}];")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_node(node: GraphNode, graph: CheckpointGraph) -> Iterator[tuple[str, str]]:
    style = [
        *(["dashed"] if node.state == "current" else ["filled"]),
        *(["bold"] if node.on_line else ["diagonals"] if node.useless else []),
    ]
    yield "label", _label(node, graph)
    yield "style", ",".join(style)
    if node.state != "current":
        yield "fillcolor", "#d2f4d9" if node.on_line else "#e8eaed" if node.rolled_past else "white"
    if node.on_line or node.useless:
        yield "color", LINE if node.on_line else USELESS


def _dot_edge(edge: Edge) -> Iterator[tuple[str, str]]:
    if edge.kind == "local":
        yield "style", "bold"
        yield "arrowhead", "none"
        yield "weight", "10"
        return
    yield "label", _edge_label(edge)
    yield "tooltip", _shown(edge.channel or "")
    if edge.orphan or edge.in_flight:
        yield "color", ORPHAN.color if edge.orphan else IN_FLIGHT.color
    if edge.in_flight:
        yield "style", "dashed"


def _list(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{key}={_quoted(value)}" for key, value in pairs)


def _quoted(text: str) -> str:
    r"""A DOT string. Labels obey a backslash, so that it is doubled; control characters stay apart from their names.

    >>> print(_quoted('a"b'), _quoted("two\nlines"), _quoted(visible("a\nb")))
    "a\"b" "two\nlines" "a\\nb"
    """
    return '"' + visible(text.replace("\\", "\\\\")).replace('"', '\\"') + '"'


def _shown(name: str) -> str:
    """A name as a DOT label, which obeys HTML's entities."""
    return visible(name).replace("&", "&amp;")


def _mermaid(answer: Answer[CheckpointGraph]) -> str:
    """A Mermaid flowchart, as Markdown of GitHub and wikis shows it."""
    graph = answer.result
    number = {node.id: f"n{i}" for i, node in enumerate(graph.nodes)}
    lines = ["---", f"title: {_json(visible(graph_headline(answer)))}", "---", "flowchart LR"]
    for i, (name, nodes) in enumerate(_by_subtask(graph)):
        lines += [f"  subgraph s{i}[{_text(name)}]", "    direction LR"]
        lines += [f"    {number[n.id]}[{_text(_label(n, graph))}]" for n in nodes]
        lines.append("  end")
    styles: dict[str, list[int]] = {}
    for i, e in enumerate(graph.edges):
        tail, head = number[e.from_], number[e.to]
        lines.append(f"  {tail} --- {head}" if e.kind == "local" else f"  {tail} -->|{_text(_edge_label(e))}| {head}")
        kind = "local" if e.kind == "local" else "orphan" if e.orphan else "flight" if e.in_flight else ""
        styles.setdefault(kind, []).append(i)
    lines += [f"  linkStyle {','.join(map(str, styles[kind]))} {_LINKS[kind]}" for kind in _LINKS if kind in styles]
    for kind, style in _CLASSES.items():
        members = [number[n.id] for n in graph.nodes if _class(n) == kind]
        lines += [f"  classDef {kind} {style}", f"  class {','.join(members)} {kind}"] if members else []
    return "\n".join(lines) + "\n"


_LINKS = {
    "local": "stroke-width:3px",
    "orphan": f"stroke:{ORPHAN.color},color:{ORPHAN.color}",
    "flight": f"stroke:{IN_FLIGHT.color},color:{IN_FLIGHT.color},stroke-dasharray:5 4",
}

_CLASSES = {
    "line": f"fill:#d2f4d9,stroke:{LINE},stroke-width:3px,color:#1f2328",
    "useless": f"fill:#ffebe9,stroke:{USELESS},stroke-dasharray:4 3,color:#1f2328",
    "past": f"fill:#e8eaed,stroke:{PAST},stroke-dasharray:4 3,color:#1f2328",
}


def _class(node: GraphNode) -> str:
    return "line" if node.on_line else "useless" if node.useless else "past" if node.rolled_past else ""


def _text(text: str) -> str:
    """A Mermaid text in quotes; what Mermaid, Markdown or HTML could obey is written as an entity.

    >>> _text('a"<b>#1'), _text("- 1. m_x_")
    ('"a#34;#60;b#62;#35;1"', '"#45; 1#46; m#95;x#95;"')
    """
    shown = visible(text)
    plain = (c.isalnum() or c in _PLAIN or ord(c) > 127 or (c == "-" and i > 0) for i, c in enumerate(shown))
    return '"' + "".join(c if kept else f"#{ord(c)};" for c, kept in zip(shown, plain, strict=True)) + '"'


_PLAIN = frozenset(" /:,=?()")


def _label(node: GraphNode, graph: CheckpointGraph) -> str:
    """What is written in a node: its number, and what the line and the Z-cycles make of it."""
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
    for name, nodes in groupby(graph.nodes, key=lambda n: f"{n.operator}/{n.subtask}"):
        yield name, list(nodes)


def _attributes(row: GraphNode | Edge, *without: str) -> dict[str, Any]:
    found = {f.name: getattr(row, f.name) for f in fields(row) if f.name not in without}
    return {name: value for name, value in found.items() if value is not None}


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: visible(value) if isinstance(value, str) else value for name, value in row.items()}


def _distinct(name: str) -> str:
    """A name as XML can hold it; two names never become one."""
    return visible(name.replace("\\", "\\\\"))

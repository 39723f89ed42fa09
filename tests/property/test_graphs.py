"""Message edges against every single message, graphs against their theorems, pictures against what is possible."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import pairwise

import networkx
import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cklog.graphs.exports import graph_formats, picture_of
from cklog.graphs.graph import CheckpointGraph, Edge, graph_of
from cklog.graphs.selection import GraphKind, GraphQuestion
from cklog.graphs.space_time.layout import BOX_GAP, Arrow, Lane, lay_out
from cklog.history.history import History
from cklog.lines.entries import rolled_back, useless_checkpoints
from cklog.lines.fixpoint import recovery_line
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Answer
from cklog.zigzag.intervals import staircases, useless
from cklog.zigzag.message_edges import cut_history, message_edges
from tests.examples import examples
from tests.oracles import lines as oracle

GRAPHS = settings(deadline=None, max_examples=examples(200))
PICTURES = settings(deadline=None, max_examples=examples(60))


@st.composite
def runs(draw: st.DrawFn) -> tuple[oracle.Execution, frozenset[str], History]:
    """An execution, who failed in it, and what is left on disk."""
    execution = draw(oracle.executions())
    failed = draw(oracle.failures(execution))
    return execution, failed, oracle.history(execution, failed)


def graph(history: History, asked: GraphQuestion) -> CheckpointGraph:
    line = recovery_line(history)
    past, cycles = rolled_back(history, line), useless_checkpoints(history, useless(history))
    return graph_of(history, line, RecoveryLine(True, "uncoordinated", (), (), (), past, cycles, (), False), asked)


def fifo(execution: oracle.Execution) -> bool:
    """Whether every channel delivered in the order of sending, without a gap."""
    taken: dict[str, list[int]] = defaultdict(list)
    for event in execution.events:
        if event.kind == "recv":
            taken[event.channel].append(event.seq)
    return all(numbers == list(range(len(numbers))) for numbers in taken.values())


def groups(history: History) -> dict[tuple[str, int, int], list[int]]:
    found = message_edges(history)
    rows = zip(found.channel, found.send, found.receive, found.first, found.end, strict=True)
    return {(history.channels[k], int(a), int(b)): list(range(first, end)) for k, a, b, first, end in rows}


def messages(edges: tuple[Edge, ...]) -> list[Edge]:
    return [edge for edge in edges if edge.kind == "message"]


@GRAPHS
@given(runs())
def test_every_message_is_on_exactly_the_edge_of_its_intervals(
    run: tuple[oracle.Execution, frozenset[str], History],
) -> None:
    execution, failed, history = run
    left = oracle.without_lost_receipts(execution, failed)
    known: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for m in oracle.messages(left):
        known[m.channel, m.send, m.receive].append(m.seq)
    if fifo(left):
        assert groups(history) == {key: sorted(numbers) for key, numbers in known.items()}
    highest: dict[str, int] = defaultdict(int)
    for m in oracle.messages(left):
        highest[m.channel] = max(highest[m.channel], m.seq + 1)
    count: dict[str, int] = defaultdict(int)
    for (channel, _, _), numbers in groups(history).items():
        count[channel] += len(numbers)
    assert count == highest


@GRAPHS
@given(runs())
def test_edges_that_no_other_dominates_are_the_staircases(
    run: tuple[oracle.Execution, frozenset[str], History],
) -> None:
    history = run[2]
    found = message_edges(history)
    pairs = list(zip(found.channel.tolist(), found.send.tolist(), found.receive.tolist(), strict=True))
    free = [
        (k, a, b)
        for k, a, b in pairs
        if not any(k == c and (x, y) != (a, b) and x >= a and y <= b for c, x, y in pairs)
    ]
    assert free == [pair for pair, worse in zip(pairs, found.dominated.tolist(), strict=True) if not worse]
    steps = staircases(history)
    assert free == list(zip(steps.channel.tolist(), steps.send.tolist(), steps.receive.tolist(), strict=True))


@GRAPHS
@given(runs())
def test_the_checkpoint_graph_has_no_cycle(run: tuple[oracle.Execution, frozenset[str], History]) -> None:
    found = graph(run[2], GraphQuestion())
    edges = [(e.from_, e.to) for e in found.edges if e.from_ != e.to]
    assert networkx.is_directed_acyclic_graph(networkx.DiGraph(edges))


@GRAPHS
@given(oracle.executions())
def test_cycles_of_the_rollback_dependency_graph_are_z_cycles(execution: oracle.Execution) -> None:
    history = oracle.history(execution, ())
    found = graph(history, GraphQuestion("rollback"))
    whole = networkx.DiGraph([(e.from_, e.to) for e in found.edges])
    component = {name: i for i, part in enumerate(networkx.strongly_connected_components(whole)) for name in part}
    steps = [(e.from_, e.to) for e in found.edges if e.kind == "local"]
    useless = {tuple(to.rsplit("=", 1)) for a, to in steps if component[a] == component[to]}
    assert useless == {(s, str(x)) for s, x in oracle.useless_by_zigzag(execution)}
    assert {n.id for n in found.nodes if n.useless} == {f"{s}={x}" for s, x in useless}


@GRAPHS
@given(runs())
def test_orphans_and_messages_in_flight_are_those_of_the_line(
    run: tuple[oracle.Execution, frozenset[str], History],
) -> None:
    execution, failed, history = run
    left = oracle.without_lost_receipts(execution, failed)
    if not fifo(left):
        return
    line = oracle.latest_line(execution, failed)
    found = graph(history, GraphQuestion())
    told: dict[str, set[tuple[str | None, int]]] = {"orphan": set(), "flight": set()}
    for e in messages(found.edges):
        assert e.seq_from is not None
        assert e.seq_to is not None
        for seq in range(e.seq_from, e.seq_to):
            told["orphan"] |= {(e.channel, seq)} if e.orphan else set()
            told["flight"] |= {(e.channel, seq)} if e.in_flight else set()
    received = oracle.messages(left)
    assert told["orphan"] == {(m.channel, m.seq) for m in received if m.send >= line[m.sender]}
    kept = [m for m in received if m.send < line[m.sender]]
    assert told["flight"] == {(m.channel, m.seq) for m in kept if m.receive >= line[m.receiver]}


@GRAPHS
@given(runs())
def test_what_no_checkpoint_received_is_what_is_sent_and_not_received(
    run: tuple[oracle.Execution, frozenset[str], History],
) -> None:
    execution, failed, history = run
    left = oracle.without_lost_receipts(execution, failed)
    if not fifo(left):
        return
    interval = dict.fromkeys(execution.subtasks, 0)
    sent: dict[tuple[str, int], tuple[str, int]] = {}
    for event in execution.events:
        if event.kind == "ckpt":
            interval[event.subtask] += 1
        elif event.kind == "send":
            sent[event.channel, event.seq] = (event.subtask, interval[event.subtask])
    known = {key for key, (s, a) in sent.items() if s not in failed or a < execution.checkpoints(s)}
    received = {(m.channel, m.seq) for m in oracle.messages(left)}
    found = graph(history, GraphQuestion()).unreceived
    told = {(u.channel, seq): u for u in found for seq in range(u.seq_from, u.seq_to)}
    assert set(told) == known - received
    assert all(u.from_ == f"{sent[key][0]}={sent[key][1]}" for key, u in told.items())


@GRAPHS
@given(runs(), st.sampled_from(["checkpoint", "rollback"]), st.integers(1, 4))
def test_a_selection_is_part_of_the_whole(
    run: tuple[oracle.Execution, frozenset[str], History], kind: GraphKind, last: int
) -> None:
    history = run[2]
    whole, part = graph(history, GraphQuestion(kind)), graph(history, GraphQuestion(kind, last))
    shown = {n.id for n in part.nodes}
    assert set(part.nodes) <= set(whole.nodes)
    assert set(part.edges) == {e for e in whole.edges if {e.from_, e.to} <= shown}
    assert set(part.unreceived) == {u for u in whole.unreceived if u.from_ in shown}
    for row in part.subtasks:
        assert row.before + row.after + sum(
            n.operator == row.operator and n.subtask == row.subtask for n in part.nodes
        ) == (row.checkpoints)


@GRAPHS
@given(runs(), st.data())
def test_around_a_checkpoint_is_every_message_of_the_intervals_beside_it(
    run: tuple[oracle.Execution, frozenset[str], History], data: st.DataObject
) -> None:
    history = run[2]
    whole = graph(history, GraphQuestion())
    node = data.draw(st.sampled_from([n for n in whole.nodes if n.checkpoint is not None]))
    assert node.checkpoint is not None
    name = f"{node.operator}/{node.subtask}"
    part = graph(history, GraphQuestion(around=(name, node.checkpoint)))
    row = [n.id for n in whole.nodes if (n.operator, n.subtask) == (node.operator, node.subtask)]
    at = row.index(node.id)
    senders, receivers = row[max(at - 1, 0) : at + 1], row[at : at + 2]  # the intervals before and after it
    expected = {e for e in messages(whole.edges) if e.from_ in senders or e.to in receivers}
    assert set(messages(part.edges)) == expected
    ends = {name for e in expected for name in (e.from_, e.to)}
    assert ends | set(senders) | {node.id} <= {n.id for n in part.nodes}
    assert [n.id for n in part.nodes if n.asked] == [node.id]


@GRAPHS
@given(runs())
def test_a_cut_of_everything_changes_nothing(run: tuple[oracle.Execution, frozenset[str], History]) -> None:
    history = run[2]
    part, channels = cut_history(history, np.zeros_like(history.newest), history.newest)
    assert channels.tolist() == list(range(len(history.channels)))
    assert groups(part) == groups(history)


@PICTURES
@given(runs(), st.sampled_from(["checkpoint", "rollback"]))
def test_networkx_reads_back_what_was_written(
    run: tuple[oracle.Execution, frozenset[str], History], kind: GraphKind
) -> None:
    found = graph(run[2], GraphQuestion(kind))
    answer = Answer("graph", "ok", 0, (), (), found)
    read = networkx.read_graphml(io.BytesIO(graph_formats()["graphml"](answer).encode()), force_multigraph=True)
    linked = networkx.node_link_graph(json.loads(graph_formats()["node-link"](answer)), edges="edges")
    for whole in (read, linked):
        assert {n: (row["on_line"], row["useless"], row["state"]) for n, row in whole.nodes(data=True)} == {
            n.id: (n.on_line, n.useless, n.state) for n in found.nodes
        }
        told = [(a, b, row["kind"], row.get("channel"), row.get("seq_from")) for a, b, row in whole.edges(data=True)]
        assert sorted(told, key=str) == sorted(
            ((e.from_, e.to, e.kind, e.channel, e.seq_from) for e in found.edges), key=str
        )


@PICTURES
@given(runs(), st.sampled_from([None, 1, 2]))
def test_every_history_can_be_drawn(run: tuple[oracle.Execution, frozenset[str], History], last: int | None) -> None:
    found = graph(run[2], GraphQuestion(last=last, form="svg"))
    text = graph_formats()["svg"](Answer("graph", "ok", 0, (), (), found))
    root = ET.fromstring(text)
    titles = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("->" in title for title in titles) == len(messages(found.edges)) + len(found.unreceived)
    width = float(root.attrib["width"])
    boxes = root.iter("{http://www.w3.org/2000/svg}rect")
    assert all(0 <= float(e.attrib.get("x", 0)) <= width for e in boxes)


@PICTURES
@given(runs(), st.booleans(), st.sampled_from([None, 400.0, 1_000.0]), st.booleans())
def test_every_history_can_be_folded_to_any_page(
    run: tuple[oracle.Execution, frozenset[str], History], fold: bool, width: float | None, everything: bool
) -> None:
    """A folded picture has every checkpoint and every message once; any picture keeps its boxes inside its page."""
    found = graph(run[2], GraphQuestion())
    asked = GraphQuestion(form="svg", fold=fold, width=width, everything=everything)
    text, notes = picture_of(Answer("graph", "ok", 0, (), (), found), asked)
    assert isinstance(text, str)
    root = ET.fromstring(text)
    assert width is None or float(root.attrib["width"]) == width
    inner = float(root.attrib["viewBox"].split()[2])
    boxes = root.iter("{http://www.w3.org/2000/svg}rect")
    assert all(0 <= float(e.attrib.get("x", 0)) <= inner for e in boxes)
    titles = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title")]
    if fold:
        counts = [int(t.split(": ")[1].split()[0]) for t in titles if "=" in t.partition(":")[0]]
        assert sum(counts) == len(found.nodes)
    if fold and not any(note.startswith("Arrows") for note in notes):
        drawn = [t.split(": ")[1].split()[0].replace(",", "") for t in titles if "->" in t]
        known = [e.messages for e in messages(found.edges)] + [u.messages for u in found.unreceived]
        assert ("?" in drawn) == (None in known)
        if None not in known:
            assert sum(map(int, drawn)) == sum(n for n in known if n is not None)


@st.composite
def pictures(draw: st.DrawFn) -> tuple[list[Lane], list[Arrow]]:
    """Lanes and arrows of an execution, its times right, shifted between subtasks, or unknown.

    Where a channel is not FIFO, a message counts as received with the ones before it, as watermarks tell it.
    """
    execution = draw(oracle.executions())
    skew = {s: draw(st.sampled_from([0, 0, 400, -400])) for s in execution.subtasks}
    timed = draw(st.booleans())
    times: dict[str, list[int | None]] = {s: [None] for s in execution.subtasks}
    for number, event in enumerate(execution.events):
        if event.kind == "ckpt":
            times[event.subtask].append(oracle.EPOCH + 10 * number + skew[event.subtask] if timed else None)
    lane_of = {s: i for i, s in enumerate(execution.subtasks)}
    arrows, highest = [], dict.fromkeys(execution.channels, 0)
    for m in sorted(oracle.messages(execution)):
        highest[m.channel] = head = max(highest[m.channel], m.receive)
        arrows.append(Arrow(m.channel, m.seq, lane_of[m.sender], m.send, lane_of[m.receiver], head))
    return [Lane(tuple(row), pinned_left=True) for row in times.values()], arrows


@GRAPHS
@example(  # the end of an arrow between two boxes, which are nearly as close as they may be without it
    (
        [
            Lane((None, oracle.EPOCH + 420, oracle.EPOCH + 440), pinned_left=True),
            Lane((None,), pinned_left=True),
            Lane((None, oracle.EPOCH), pinned_left=True),
        ],
        [Arrow("b/0->a/0", 0, source=1, tail=0, target=0, head=1)],
    ),
    900.0,
)
@given(pictures(), st.sampled_from([None, 300.0, 900.0, 3_000.0]))
def test_a_layout_agrees_with_everything_known(picture: tuple[list[Lane], list[Arrow]], width: float | None) -> None:
    lanes, arrows = picture
    box = 28.0
    found = lay_out(lanes, arrows, box, width)
    assert width is None or found.width >= width
    for row in found.boxes:
        assert row[0] == 0.0
    ends = {place for a in arrows for place in ((a.source, a.tail), (a.target, a.head))}
    for lane, row in enumerate(found.boxes):
        for k, (a, b) in enumerate(pairwise(row)):
            # where arrows end between two boxes, these and the ends share the room that a narrow picture has
            assert b - a > box if (lane, k) in ends else b - a >= box + BOX_GAP - 1e-6
    for arrow, tail, head in zip(arrows, found.tails, found.heads, strict=True):
        assert arrow.target is not None
        assert head is not None
        assert head > tail
        for lane, after, x in ((arrow.source, arrow.tail, tail), (arrow.target, arrow.head, head)):
            row = found.boxes[lane]
            assert row[after] + box / 2 < x
            assert after + 1 == len(row) or x < row[after + 1] - box / 2
            assert x < found.width
    if found.scale is not None:
        (oldest, left), (newest, right) = found.scale
        for times, row in zip((lane.times for lane in lanes), found.boxes, strict=True):
            for time, x in zip(times, row, strict=True):
                if time is not None:
                    assert abs(left + (time - oldest) * (right - left) / (newest - oldest) - x) < 1e-6

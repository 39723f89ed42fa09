"""What a space-time diagram shows, before any of it has a place: lanes with boxes, and arrows between them.

A lane is a subtask here; `cklog.graphs.space_time.fold` makes one of all subtasks of an operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cklog.graphs.graph import CheckpointGraph, Edge, GraphNode, GraphSubtask, Unreceived
from cklog.graphs.space_time.layout import Arrow, Lane, flow_order
from cklog.graphs.space_time.shapes import ArrowStyle, BoxStyle, arrow_style, box_style
from cklog.graphs.view import line_word, messages_word
from cklog.model.names import parse_channel
from cklog.model.wording import many, utc

MOST_ARROWS = 300
"""More arrows than these are a thicket."""


@dataclass(frozen=True, slots=True)
class SceneBox:
    """A checkpoint, or those of one number that a folded lane stands for; `note` stands under the box, `id`
    is the checkpoint's if it is a single one."""

    style: BoxStyle
    label: str
    tooltip: str
    time: int | None
    note: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class SceneLane:
    """A subtask or an operator: its boxes in order, and where the recovery line crosses it.

    `line` : the first and the last box on the line, None if no box is
    `line_before`, `line_after` : what to call the part of the line that lies left or right of the boxes; "" for none
    `before`, `after` : whether checkpoints are left out at that end
    """

    name: str
    boxes: tuple[SceneBox, ...]
    line: tuple[int, int] | None
    line_before: str
    line_after: str
    before: bool
    after: bool
    failed: bool

    @property
    def placed(self) -> Lane:
        """The boxes as the layout takes them."""
        first, last = self.boxes[0], self.boxes[-1]
        times = tuple(box.time for box in self.boxes)
        return Lane(times, first.style.state == "initial" and first.time is None, last.style.state == "current")


@dataclass(frozen=True, slots=True)
class SceneArrow:
    """Messages as an arrow: where it begins and ends (`placed`), and `toward` which lane if they never arrive.

    `dominated`: another arrow forces every rollback that this one forces.
    """

    placed: Arrow
    toward: int
    style: ArrowStyle
    label: str
    tooltip: str
    dominated: bool
    orphan: bool
    in_flight: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that may be drawn, and what to say of it (`notes`); `legend` are words under the signs."""

    lanes: tuple[SceneLane, ...]
    arrows: tuple[SceneArrow, ...]
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()


def scene_of(graph: CheckpointGraph) -> Scene:
    """Make a scene with a lane for every subtask."""
    subtasks, nodes = in_order(graph)
    place = {node.id: (i, k) for i, row in enumerate(nodes) for k, node in enumerate(row)}
    lane_of = {(s.operator, s.subtask): i for i, s in enumerate(subtasks)}
    lanes = tuple(_subtask_lane(subtask, row) for subtask, row in zip(subtasks, nodes, strict=True))
    messages: list[Edge | Unreceived] = [e for e in graph.edges if e.kind == "message"]
    return Scene(lanes, tuple(_message_arrow(m, place, lane_of) for m in [*messages, *graph.unreceived]))


def in_order(graph: CheckpointGraph) -> tuple[list[GraphSubtask], list[tuple[GraphNode, ...]]]:
    """Return the subtasks and the nodes of each, every operator below those that send to it."""
    nodes: dict[tuple[str, int], list[GraphNode]] = {(s.operator, s.subtask): [] for s in graph.subtasks}
    operator = {}
    for node in graph.nodes:
        nodes[node.operator, node.subtask].append(node)
        operator[node.id] = node.operator
    pairs = {(operator[e.from_], operator[e.to]) for e in graph.edges}
    order = {name: i for i, name in enumerate(flow_order({s.operator for s in graph.subtasks}, pairs))}
    subtasks = sorted(graph.subtasks, key=lambda s: (order[s.operator], s.subtask))
    return subtasks, [tuple(nodes[s.operator, s.subtask]) for s in subtasks]


def choices(arrows: tuple[SceneArrow, ...]) -> Iterator[tuple[list[SceneArrow], str]]:
    """Yield which arrows to draw, with the words for what they are, from all to none, each time fewer."""
    yield list(arrows), ""
    kept = [a for a in arrows if not a.dominated]
    yield kept, "those that others do not dominate"
    across = [a for a in kept if a.orphan or a.in_flight]
    yield across, "orphans and those in flight that others do not dominate"
    forcing: dict[int, SceneArrow] = {}
    for arrow in across:
        if arrow.orphan:
            first = forcing.setdefault(arrow.toward, arrow)
            if arrow.placed.head < first.placed.head:
                forcing[arrow.toward] = arrow
    yield list(forcing.values()), "for each that is rolled back, the orphan that forces it furthest"
    yield [], "there is no room for any"


def box_label(checkpoint: int | None) -> str:
    """Write what stands in a box; the end of a long number tells more than its beginning."""
    if checkpoint is None:
        return "now"
    text = str(checkpoint)
    return text if len(text) <= 7 else f"…{text[-6:]}"


def arrows_note(drawn: int, of: int, which: str) -> str:
    """Say of how many groups of messages arrows are drawn, and `which`."""
    return f"Arrows are drawn for {drawn} of {many(of, 'group')} of messages: {which}"


def _subtask_lane(subtask: GraphSubtask, nodes: tuple[GraphNode, ...]) -> SceneLane:
    at = next((k for k, node in enumerate(nodes) if node.on_line), None)
    return SceneLane(
        name=f"{subtask.operator}/{subtask.subtask}",
        boxes=tuple(SceneBox(box_style(n), box_label(n.checkpoint), _box_tooltip(n), n.time, id=n.id) for n in nodes),
        line=None if at is None else (at, at),
        line_before=line_word(subtask) if subtask.on_line == "before" else "",
        line_after=line_word(subtask) if subtask.on_line == "after" else "",
        before=subtask.before > 0,
        after=subtask.after > 0,
        failed=subtask.failed,
    )


def _message_arrow(
    message: Edge | Unreceived, place: dict[str, tuple[int, int]], lane_of: dict[tuple[str, int], int]
) -> SceneArrow:
    """Return a message; `place` is the lane and the number in it of each node."""
    source, tail = place[message.from_]
    channel, seq = message.channel or "", message.seq_from or 0
    style = arrow_style(message)
    label = messages_word(seq, message.seq_to, message.messages)
    if isinstance(message, Unreceived):
        named = parse_channel(channel)
        assert named is not None
        placed, toward = Arrow(channel, seq, source, tail), lane_of[named.receiver]
    else:
        toward, head = place[message.to]
        placed = Arrow(channel=channel, seq=seq, source=source, tail=tail, target=toward, head=head - 1)
    return SceneArrow(
        placed=placed,
        toward=toward,
        style=style,
        label=label,
        tooltip=f"{channel}: {label}, {style.legend}",
        dominated=isinstance(message, Edge) and message.dominated,
        orphan=isinstance(message, Edge) and message.orphan,
        in_flight=message.in_flight,
    )


def _box_tooltip(node: GraphNode) -> str:
    """Write what is shown where a box is pointed at."""
    words = [*(["on the line"] if node.on_line else []), *(["rolled past"] if node.rolled_past else [])]
    words += ["useless"] if node.useless else []
    when = [utc(node.time)] if node.time is not None else []
    return ", ".join([node.id, *when, *words])

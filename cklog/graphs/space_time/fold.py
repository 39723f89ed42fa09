"""A scene in which one lane stands for all subtasks of an operator: what hundreds of subtasks have in common.

A box is the checkpoints of one number, an arrow all messages between two such boxes of which the line makes the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from cklog.graphs.graph import CheckpointGraph, Edge, GraphNode, GraphSubtask, Unreceived
from cklog.graphs.space_time.layout import Arrow
from cklog.graphs.space_time.scene import Scene, SceneArrow, SceneBox, SceneLane, box_label, in_order
from cklog.graphs.space_time.shapes import ArrowStyle, BoxStyle, arrow_style
from cklog.graphs.view import line_word
from cklog.model.names import parse_channel
from cklog.model.wording import many, utc


def folded_scene(graph: CheckpointGraph) -> Scene:
    """Make a scene with a lane for every operator, which says how many subtasks it stands for."""
    subtasks, nodes = in_order(graph)
    whole = Counter(entry.operator for entry in graph.line)
    lanes: list[SceneLane] = []
    place: dict[str, tuple[int, int]] = {}
    lane_of: dict[str, int] = {}
    rows = zip(subtasks, nodes, strict=True)
    for i, (operator, group) in enumerate(groupby(rows, key=lambda row: row[0].operator)):
        members = list(group)
        columns = _columns([node for _, row in members for node in row])
        place.update((node.id, (i, k)) for k, column in enumerate(columns) for node in column)
        lanes.append(_operator_lane([subtask for subtask, _ in members], columns, whole[operator]))
        lane_of[operator] = i
    notes = (f"Folded: {many(len(lanes), 'lane', 'stand')} for {many(len(subtasks), 'subtask', grouped=True)}",)
    legend = (
        "a box stands for the checkpoints of that number of all subtasks of the operator, and is green, hatched or "
        "crossed out where one of them would be; 3/16: on the line for 3 of 16 subtasks",
    )
    return Scene(tuple(lanes), _merged_arrows(graph, place, lane_of), notes, legend)


def _columns(nodes: Iterable[GraphNode]) -> list[list[GraphNode]]:
    """Group nodes of an operator by their number, the current state last."""
    found: dict[int | None, list[GraphNode]] = {}
    for node in nodes:
        found.setdefault(node.checkpoint, []).append(node)
    return [found[key] for key in sorted(found, key=lambda number: (number is None, number or 0))]


def _operator_lane(subtasks: Sequence[GraphSubtask], columns: Sequence[Sequence[GraphNode]], whole: int) -> SceneLane:
    """Return the lane of an operator, which has `whole` subtasks on the line."""
    count = len(subtasks)
    failed = sum(s.failed for s in subtasks)
    on_line = [k for k, column in enumerate(columns) if any(node.on_line for node in column)]
    aside = {
        side: sorted({line_word(s) for s in subtasks if s.on_line == side}, key=lambda word: (len(word), word))
        for side in ("before", "after")
    }
    of = f"{count:,}" if whole <= count else f"{count:,} of {whole:,}"
    some = f", {failed:,} failed" if 0 < failed < count else ""
    return SceneLane(
        name=f"{subtasks[0].operator} ×{of}{some}",
        boxes=tuple(_column_box(column, time, count) for column, time in zip(columns, _rising(columns), strict=True)),
        line=(on_line[0], on_line[-1]) if on_line else None,
        line_before="–".join(dict.fromkeys((aside["before"] or [""])[:: max(len(aside["before"]) - 1, 1)])),
        line_after="–".join(dict.fromkeys((aside["after"] or [""])[:: max(len(aside["after"]) - 1, 1)])),
        before=any(s.before for s in subtasks),
        after=any(s.after for s in subtasks),
        failed=failed > 0,
    )


def _rising(columns: Sequence[Sequence[GraphNode]]) -> list[int | None]:
    """Return the time of each column, its median; later ones are never earlier, though a slow subtask may be."""
    found: list[int | None] = []
    latest: int | None = None
    for column in columns:
        times = sorted(node.time for node in column if node.time is not None)
        middle = times[len(times) // 2] if times else None
        if middle is not None:
            latest = middle if latest is None else max(middle, latest + 1)
        found.append(None if middle is None else latest)
    return found


def _column_box(column: Sequence[GraphNode], time: int | None, count: int) -> SceneBox:
    """Return the box of all checkpoints of a number, of an operator with `count` subtasks."""
    on_line, past, useless = (
        sum(getattr(node, flag) for node in column) for flag in ("on_line", "rolled_past", "useless")
    )
    style = BoxStyle(
        on_line=on_line > 0,
        rolled_past=past > 0,
        useless=useless > 0,
        state=column[0].state,
        asked=any(node.asked for node in column),
    )
    words = [f"{many(n, 'subtask', grouped=True)} {what}" for n, what in _told(on_line, past, useless) if n]
    times = [node.time for node in column if node.time is not None]
    when = (
        []
        if not times
        else [utc(min(times)) if min(times) == max(times) else f"{utc(min(times))} to {utc(max(times))}"]
    )
    label = box_label(column[0].checkpoint)
    name = f"{column[0].operator}={label}: {many(len(column), 'checkpoint', grouped=True)}"
    note = f"{on_line}/{count}" if 0 < on_line < count else ""
    return SceneBox(style, label, ", ".join([name, *when, *words]), time, note)


def _told(on_line: int, past: int, useless: int) -> tuple[tuple[int, str], ...]:
    return (on_line, "on the line"), (past, "rolled past"), (useless, "useless")


@dataclass(slots=True)
class _Merged:
    """Messages between two boxes: how many (None: not known), on how many channels."""

    style: ArrowStyle
    orphan: bool
    in_flight: bool
    dominated: bool = True
    messages: int | None = 0
    channels: int = 0


def _merged_arrows(
    graph: CheckpointGraph, place: dict[str, tuple[int, int]], lane_of: dict[str, int]
) -> tuple[SceneArrow, ...]:
    """Merge messages of which tail, head and looks are the same."""
    merged: dict[tuple[int, int, int, int | None, str], _Merged] = {}
    rows: list[Edge | Unreceived] = [e for e in graph.edges if e.kind == "message"]
    for row in [*rows, *graph.unreceived]:
        source, tail = place[row.from_]
        head: int | None = None
        if isinstance(row, Edge):
            target, after = place[row.to]
            head = after - 1
        else:
            named = parse_channel(row.channel)
            assert named is not None
            target = lane_of[named.receiver[0]]
        style, orphan = arrow_style(row), isinstance(row, Edge) and row.orphan
        key = (source, tail, target, head, style.name)
        found = merged.setdefault(key, _Merged(style, orphan, row.in_flight))
        found.dominated &= isinstance(row, Edge) and row.dominated
        found.channels += 1
        known = found.messages is not None and row.messages is not None
        found.messages = (found.messages or 0) + (row.messages or 0) if known else None
    operators = list(lane_of)
    return tuple(_merged_arrow(key, merged[key], operators) for key in sorted(merged, key=_place_order))


def _place_order(key: tuple[int, int, int, int | None, str]) -> tuple[int, int, int, int, str]:
    source, tail, target, head, name = key
    return source, tail, target, -2 if head is None else head, name


def _merged_arrow(key: tuple[int, int, int, int | None, str], found: _Merged, operators: list[str]) -> SceneArrow:
    """Return an arrow for merged messages, each on a channel of its own: the order of others says nothing of them."""
    source, tail, target, head, name = key
    own = f"{source}/{tail}->{target}/{head}/{name}"
    lane = None if head is None else target
    label = "?" if found.messages is None else f"{found.messages:,}"
    channels = many(found.channels, "channel", grouped=True)
    return SceneArrow(
        placed=Arrow(own, 0, source, tail, lane, -1 if head is None else head),
        toward=target,
        style=found.style,
        label=label,
        tooltip=f"{operators[source]}->{operators[target]}: {label} messages on {channels}, {found.style.legend}",
        dominated=found.dominated,
        orphan=found.orphan,
        in_flight=found.in_flight,
    )

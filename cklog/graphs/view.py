"""Checkpoint graphs as sentences and rows."""

from __future__ import annotations

from collections import Counter

from cklog.graphs.graph import CheckpointGraph, Edge, GraphSubtask
from cklog.lines import view as line_view
from cklog.model.lines import RecoveryLine
from cklog.model.names import CheckpointId
from cklog.model.verdict import Answer
from cklog.render.view import Section, View, section

_SHOWN_ROWS = 40
_NAMED = 12


def graph_view(answer: Answer[CheckpointGraph]) -> View:
    """The subtasks, then the messages between checkpoints; CSV and JSON lines hold every edge."""
    graph = answer.result
    sections = [_subtasks(graph), _messages(graph), _unreceived(graph)]
    notes = [useless_note(graph), *left_out(graph)]
    shown = tuple(s for s in sections if s.rows)
    return View(headline(answer), shown, tuple(n for n in notes if n), data=_edges(graph))


def headline(answer: Answer[CheckpointGraph]) -> str:
    """What `recovery-line` says of the same line."""
    graph = answer.result
    line = RecoveryLine(
        consistent=graph.consistent,
        protocol=graph.protocol,
        line=graph.line,
        channels=(),
        sources=(),
        rolled_back=graph.rolled_back,
        useless=graph.useless,
        steps=(),
        domino=graph.domino,
    )
    return line_view.headline(line, answer.verdict)


def useless_note(graph: CheckpointGraph) -> str:
    """Which checkpoints are useless, or nothing.

    >>> from cklog.model.names import CheckpointId
    >>> useless = (CheckpointId("a", 0, 2),)
    >>> useless_note(CheckpointGraph("checkpoint", True, "mixed", False, (), (), useless, (), (), (), ()))
    'Useless (on a Z-cycle: in no consistent line, ever): a/0=2'
    """
    if not graph.useless:
        return ""
    more = f" and {len(graph.useless) - _NAMED} more" if len(graph.useless) > _NAMED else ""
    names = ", ".join(map(_name, graph.useless[:_NAMED]))
    return f"Useless (on a Z-cycle: in no consistent line, ever): {names}{more}"


def left_out(graph: CheckpointGraph) -> list[str]:
    """What a selection does not show."""
    before, after = sum(s.before for s in graph.subtasks), sum(s.after for s in graph.subtasks)
    of = len(graph.line) or len(graph.subtasks)
    notes = []
    if len(graph.subtasks) < of:
        notes.append(f"Shown are {len(graph.subtasks)} of {of} subtasks")
    if before or after:
        told = [f"{n} {word}" for n, word in ((before, "older"), (after, "newer")) if n]
        notes.append(f"Left out of the subtasks shown are {' and '.join(told)} checkpoints, and their messages")
    hidden = [s for s in graph.subtasks if s.on_line in ("before", "after")]
    if hidden:
        more = f" and {len(hidden) - _NAMED} more" if len(hidden) > _NAMED else ""
        names = ", ".join(f"{s.operator}/{s.subtask}={line_word(s)}" for s in hidden[:_NAMED])
        notes.append(f"On the line, but not shown: {names}{more}")
    return notes


def line_word(subtask: GraphSubtask) -> str:
    """A subtask's place on the line."""
    if subtask.on_line == "none":
        return "-"
    return "current" if subtask.line is None else str(subtask.line)


def messages_word(seq_from: int, seq_to: int | None, messages: int | None) -> str:
    """Sequence numbers as the papers write messages.

    >>> messages_word(3, 4, 1), messages_word(3, 10, 7), messages_word(3, None, None)
    ('m3', 'm3–m9 (7)', 'm3–?')
    """
    if seq_to is None:
        return f"m{seq_from}–?"
    return f"m{seq_from}" if messages == 1 else f"m{seq_from}–m{seq_to - 1} ({messages})"


def edge_word(edge: Edge) -> str:
    """What the line makes of an edge's messages."""
    return "orphan" if edge.orphan else "in flight" if edge.in_flight else "-"


def _name(checkpoint: CheckpointId) -> str:
    return f"{checkpoint.operator}/{checkpoint.subtask}={checkpoint.checkpoint}"


def _subtasks(graph: CheckpointGraph) -> Section:
    past = Counter((c.operator, c.subtask) for c in graph.rolled_back)
    useless = Counter((c.operator, c.subtask) for c in graph.useless)
    rows = [
        (
            f"{s.operator}/{s.subtask}",
            s.checkpoints,
            s.checkpoints - s.before - s.after,
            line_word(s),
            past[s.operator, s.subtask],
            useless[s.operator, s.subtask],
            "failed" if s.failed else "keeps running",
        )
        for s in graph.subtasks
    ]
    node = "checkpoints" if graph.kind == "checkpoint" else "intervals"
    return Section("Subtasks", ("subtask", node, "shown", "line", "rolled past", "useless", "state"), tuple(rows))


def _messages(graph: CheckpointGraph) -> Section:
    found = [e for e in graph.edges if e.kind == "message"]
    rows = [
        (e.from_, e.to, e.channel, _count(e.messages), e.seq_from, _count(e.seq_to), edge_word(e), _yes(e.dominated))
        for e in sorted(found, key=lambda e: (not e.orphan, not e.in_flight))[:_SHOWN_ROWS]
    ]
    title = "Checkpoint graph" if graph.kind == "checkpoint" else "Rollback-dependency graph"
    columns = ("from", "to", "channel", "messages", "first", "next", "across the line", "dominated")
    rest = len(found) - len(rows)
    note = f"and {rest} edges more; --format csv has all of them" if rest else ""
    title += f": {len(graph.nodes)} nodes, {len(graph.edges)} edges, {len(found)} of them of messages"
    return section(title, columns, rows, note)


def _unreceived(graph: CheckpointGraph) -> Section:
    rows = [
        (u.from_, u.channel, u.messages, u.seq_from, u.seq_to, "in flight" if u.in_flight else "-")
        for u in graph.unreceived[:_SHOWN_ROWS]
    ]
    rest = len(graph.unreceived) - len(rows)
    columns = ("sent after", "channel", "messages", "first", "next", "across the line")
    return section("Sent, and received by no checkpoint", columns, rows, f"and {rest} more" if rest else "")


def _edges(graph: CheckpointGraph) -> Section:
    columns = ("kind", "from", "to", "channel", "messages", "seq_from", "seq_to", "dominated", "orphan", "in_flight")
    rows = tuple(
        (e.kind, e.from_, e.to, e.channel, e.messages, e.seq_from, e.seq_to, e.dominated, e.orphan, e.in_flight)
        for e in graph.edges
    )
    return Section("Edges", columns, rows)


def _count(count: int | None) -> str:
    return "-" if count is None else str(count)


def _yes(value: bool) -> str:
    return "yes" if value else "-"

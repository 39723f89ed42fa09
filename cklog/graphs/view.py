"""Checkpoint graphs and useless checkpoints as sentences and rows."""

from __future__ import annotations

from collections import Counter

from cklog.graphs.graph import CheckpointGraph, Edge, GraphSubtask
from cklog.lines.sentences import checkpoint_name, message_words, path_words
from cklog.lines.view import line_headline
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import LOSSES, Answer
from cklog.model.wording import agreeing, first_few, many, none_of
from cklog.model.zigzag import UselessCheckpoint, ZCycles
from cklog.render.view import Section, View, section

# --- graph

_SHOWN_ROWS = 40
_NAMED = 12


def graph_view(answer: Answer[CheckpointGraph]) -> View:
    """Show the subtasks, then the messages between checkpoints; as data, every edge."""
    graph = answer.result
    sections = [_subtasks_section(graph), _messages_section(graph), _unreceived_section(graph)]
    notes = [useless_note(graph), *left_out(graph)]
    shown = tuple(s for s in sections if s.rows)
    return View(graph_headline(answer), shown, tuple(n for n in notes if n), data=_edges_section(graph))


def graph_headline(answer: Answer[CheckpointGraph]) -> str:
    """Say of a graph's line what `recovery-line` says of it."""
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
    return line_headline(line, answer.verdict)


def useless_note(graph: CheckpointGraph) -> str:
    """Name the useless checkpoints, the first few of them; "" if there is none."""
    if not graph.useless:
        return ""
    names = first_few([checkpoint_name(one) for one in graph.useless], _NAMED)
    return f"Useless (on a Z-cycle: in no consistent line, ever): {names}"


def left_out(graph: CheckpointGraph) -> list[str]:
    """Say what a selection does not show: subtasks, checkpoints, places of the line."""
    before, after = sum(s.before for s in graph.subtasks), sum(s.after for s in graph.subtasks)
    of = len(graph.line) or len(graph.subtasks)
    notes = []
    if len(graph.subtasks) < of:
        notes.append(f"Shown are {len(graph.subtasks)} of {of} subtasks")
    if before or after:
        words = [f"{n} {word}" for n, word in ((before, "older"), (after, "newer")) if n]
        notes.append(f"Left out of the subtasks shown are {' and '.join(words)} checkpoints, and their messages")
    hidden = [s for s in graph.subtasks if s.on_line in ("before", "after")]
    if hidden:
        names = first_few([f"{s.operator}/{s.subtask}={line_word(s)}" for s in hidden], _NAMED)
        notes.append(f"On the line, but not shown: {names}")
    return notes


def line_word(subtask: GraphSubtask) -> str:
    """Name a subtask's checkpoint on the line; "-" if there is no line."""
    if subtask.on_line == "none":
        return "-"
    return "current" if subtask.line is None else str(subtask.line)


def messages_word(seq_from: int, seq_to: int | None, messages: int | None) -> str:
    """Write a run of sequence numbers as the papers write messages.

    >>> messages_word(3, 4, 1), messages_word(3, 10, 7), messages_word(3, None, None)
    ('m3', 'm3–m9 (7)', 'm3–?')
    """
    if seq_to is None:
        return f"m{seq_from}–?"
    return f"m{seq_from}" if messages == 1 else f"m{seq_from}–m{seq_to - 1} ({messages})"


def edge_word(edge: Edge) -> str:
    """Say what the line makes of an edge's messages; "-" if nothing."""
    if edge.orphan:
        return "orphan"
    return "in flight" if edge.in_flight else "-"


def _subtasks_section(graph: CheckpointGraph) -> Section:
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


def _messages_section(graph: CheckpointGraph) -> Section:
    found = [e for e in graph.edges if e.kind == "message"]
    rows = [
        (
            e.from_,
            e.to,
            e.channel,
            _count_or_dash(e.messages),
            e.seq_from,
            _count_or_dash(e.seq_to),
            edge_word(e),
            "yes" if e.dominated else "-",
        )
        for e in sorted(found, key=lambda e: (not e.orphan, not e.in_flight))[:_SHOWN_ROWS]
    ]
    title = "Checkpoint graph" if graph.kind == "checkpoint" else "Rollback-dependency graph"
    columns = ("from", "to", "channel", "messages", "first", "next", "across the line", "dominated")
    rest = len(found) - len(rows)
    note = f"and {many(rest, 'edge')} more; --format csv has all of them" if rest else ""
    title += f": {many(len(graph.nodes), 'node')}, {many(len(graph.edges), 'edge')}, {len(found)} of them of messages"
    return section(title, columns, rows, note)


def _unreceived_section(graph: CheckpointGraph) -> Section:
    rows = [
        (u.from_, u.channel, u.messages, u.seq_from, u.seq_to, "in flight" if u.in_flight else "-")
        for u in graph.unreceived[:_SHOWN_ROWS]
    ]
    rest = len(graph.unreceived) - len(rows)
    columns = ("sent after", "channel", "messages", "first", "next", "across the line")
    return section("Sent, and received by no checkpoint", columns, rows, f"and {rest} more" if rest else "")


def _edges_section(graph: CheckpointGraph) -> Section:
    columns = ("kind", "from", "to", "channel", "messages", "seq_from", "seq_to", "dominated", "orphan", "in_flight")
    rows = tuple(
        (e.kind, e.from_, e.to, e.channel, e.messages, e.seq_from, e.seq_to, e.dominated, e.orphan, e.in_flight)
        for e in graph.edges
    )
    return Section("Edges", columns, rows)


def _count_or_dash(count: int | None) -> str:
    return "-" if count is None else str(count)


# --- z-cycles

_SENTENCES = 10
"""Witnesses written as sentences in a table or Markdown; JSON has all that were asked for."""

_LOST = (
    "Records are lost. What a checkpoint between two others may have held counts as received, so a cycle with an "
    "unknown message (m?) need not be real; what a newest one held is not known, so that a useless checkpoint may be "
    "missed, and one called obsolete may be needed: delete nothing because of it"
)

_UNSEEN = (
    "What {} received after the newest checkpoint is not known (no events/ and no record of kind volatile tell): a "
    "checkpoint that only such messages make useless is not named"
)


def z_cycles_view(answer: Answer[ZCycles]) -> View:
    """Show how many checkpoints are useless, then each with its cycle, then the other kinds by operator."""
    found = answer.result
    names = ("subtask", "checkpoint", "messages", "cycle")
    rows = tuple((f"{u.operator}/{u.subtask}", u.checkpoint, *_witness_cells(u)) for u in found.useless)
    shown = rows[:_SENTENCES] if len(found.useless) > 2 * _SENTENCES else rows
    note = f"and {len(rows) - len(shown)} more: --json lists them, --limit N gives N of them a witness"
    kinds = tuple((kind, count, found.kinds[kind]) for kind, count in found.counts.items())
    operators = tuple(
        (row["operator"], row["checkpoints"], *(row[kind] for kind in found.counts)) for row in found.operators
    )
    sections = [
        Section("Useless checkpoints", names, shown, note if len(shown) < len(rows) else ""),
        Section("By operator", ("operator", "checkpoints", *found.counts), operators),
        Section("What the kinds mean", ("kind", "checkpoints", "meaning"), kinds),
    ]
    notes = [useless_sentence(u) for u in found.useless if u.witness is not None][:_SENTENCES]
    lost = any(finding.id in LOSSES for finding in answer.findings)
    notes += [_LOST] if lost else []
    notes += [_UNSEEN.format(first_few(found.unseen, _NAMED))] if found.unseen and found.cyclic else []
    data = Section("Useless checkpoints", names, rows)
    return View(_z_cycles_headline(found, lost), tuple(s for s in sections if s.rows), tuple(notes), data=data)


_USELESS = ("is useless", "is not useless")
_KNOWN = ("is known to be useless", "is not known to be useless")


def _z_cycles_headline(found: ZCycles, lost: bool) -> str:
    useless, total = found.counts["useless"], found.checkpoints
    if found.asked is not None:
        if found.useless:
            return f"{checkpoint_name(found.asked)} is useless."
        end = " that is left" if lost else ": some consistent line holds it"
        return f"{checkpoint_name(found.asked)} is on no Z-cycle{end}."
    if not useless and lost:
        return f"{none_of(total, 'checkpoint', *_KNOWN)}: records are lost."
    if not found.cyclic:
        return f"{none_of(total, 'checkpoint', *_USELESS)}, nor can one be: the channels form no cycle."
    if not useless:
        return f"{none_of(total, 'checkpoint', *_USELESS)}."
    return f"{useless} of {many(total, 'checkpoint')} {agreeing(useless, 'are')} useless ({useless / total:.1%})."


def _witness_cells(useless: UselessCheckpoint) -> tuple[int | str, str]:
    """Give the length of a checkpoint's cycle and its messages; dashes where no witness was asked for."""
    if useless.witness is None:
        return "-", "-"
    return len(useless.witness), path_words(useless.witness)


def useless_sentence(useless: UselessCheckpoint) -> str:
    """Say why a checkpoint is useless, message by message.

    >>> from cklog.model.zigzag import ZigzagMessage
    >>> there = ZigzagMessage("a/0->b/0", send_interval=1, receive_interval=0, seq=4, received_before=1)
    >>> back = ZigzagMessage("b/0->a/0", send_interval=0, receive_interval=0, seq=2, received_before=1)
    >>> useless_sentence(UselessCheckpoint("a", 0, 1, (there, back)))  # doctest: +NORMALIZE_WHITESPACE
    'a/0=1: a/0 sent m4 after checkpoint 1, b/0 received it before checkpoint 1; b/0 sent m2 after checkpoint 0, a/0
     received it before checkpoint 1. Whatever line holds a/0=1, one of these is an orphan message'
    """
    name = checkpoint_name(useless)
    words = "; ".join(message_words(message) for message in useless.witness or ())
    return f"{name}: {words}. Whatever line holds {name}, one of these is an orphan message"

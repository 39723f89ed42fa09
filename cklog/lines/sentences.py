"""Rollbacks, checkpoints and messages of zigzag paths in plain words."""

from __future__ import annotations

from collections.abc import Iterable

from cklog.model.lines import Rollback
from cklog.model.names import CheckpointId
from cklog.model.zigzag import UselessCheckpoint, ZigzagMessage


def rollback_sentence(step: Rollback) -> str:
    """Say which orphan messages made a subtask fall, and how far.

    >>> from cklog.model.lines import Orphans
    >>> rollback_sentence(Rollback("b", 0, from_=10, to=0, because=Orphans("a/0->b/0", 2, 7)))
    'b/0 falls from 10 to 0: by 10 it had received messages 2 to 6 of a/0->b/0, which a/0 will not have sent'
    >>> rollback_sentence(Rollback("b", 0, from_=10, to=0, because=Orphans("a/0->b/0", 2, 3)))
    'b/0 falls from 10 to 0: by 10 it had received message 2 of a/0->b/0, which a/0 will not have sent'
    >>> rollback_sentence(Rollback("b", 0, from_=10, to=0, because=Orphans("a/0->b/0", 2, None)))
    'b/0 falls from 10 to 0: by 10 it may have received messages from 2 on of a/0->b/0, which a/0 will not have sent'
    """
    sender = step.because.channel.partition("->")[0]
    first, end = step.because.orphans_from, step.because.orphans_to
    before = "its current state" if step.from_ is None else str(step.from_)
    had = "had received"
    messages = f"message {first}" if end == first + 1 else f"messages {first} to {(end or 0) - 1}"
    if end is None:
        had, messages = "may have received", f"messages from {first} on"
    return (
        f"{step.operator}/{step.subtask} falls from {before} to {step.to}: by {before} it {had} "
        f"{messages} of {step.because.channel}, which {sender} will not have sent"
    )


def message_words(message: ZigzagMessage) -> str:
    """Say after which checkpoint one message of a zigzag path was sent, and before which it was received.

    >>> message_words(ZigzagMessage("a/0->b/0", send_interval=1, receive_interval=0, seq=4, received_before=1))
    'a/0 sent m4 after checkpoint 1, b/0 received it before checkpoint 1'
    """
    ends, _, port = message.channel.partition("#")
    sender, _, receiver = ends.partition("->")
    number = "a message" if message.seq is None else f"m{message.seq}"
    before = "its current state" if message.received_before < 0 else f"checkpoint {message.received_before}"
    return (
        f"{sender} sent {number}{f' on #{port}' if port else ''} after checkpoint {message.send_interval}, "
        f"{receiver} received it before {before}"
    )


def path_words(path: Iterable[ZigzagMessage]) -> str:
    """List the messages of a zigzag path by number and channel; "-" if there is none.

    >>> from dataclasses import replace
    >>> lost = ZigzagMessage("b/0->a/0", send_interval=0, receive_interval=0, seq=None, received_before=1)
    >>> path_words([replace(lost, channel="a/0->b/0", seq=4), lost])
    'm4 a/0->b/0, m? b/0->a/0'
    """
    return ", ".join(f"m{'?' if m.seq is None else m.seq} {m.channel}" for m in path) or "-"


def checkpoint_name(checkpoint: CheckpointId | UselessCheckpoint) -> str:
    """Name a checkpoint as options do: OP/SUB=CKPT.

    >>> checkpoint_name(CheckpointId("a", 0, 5))
    'a/0=5'
    """
    return f"{checkpoint.operator}/{checkpoint.subtask}={checkpoint.checkpoint}"

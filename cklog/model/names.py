"""Names of subtasks and channels, parsed."""

from __future__ import annotations

from cklog.model import Channel, Subtask


def parse_channel(name: str) -> Channel | None:
    """`src/0->join/1#port` as a channel, None if the name has another form.

    >>> parse_channel("src/0->join/1")
    Channel(sender=Subtask(operator='src', subtask=0), receiver=Subtask(operator='join', subtask=1), port='')
    >>> parse_channel("src->join") is None
    True
    """
    ends, _, port = name.partition("#")
    sender, arrow, receiver = ends.partition("->")
    pair = parse_subtask(sender), parse_subtask(receiver)
    if not arrow or pair[0] is None or pair[1] is None:
        return None
    return Channel(pair[0], pair[1], port)


def parse_subtask(name: str) -> Subtask | None:
    """`op/3` as a subtask; None if the name has another form."""
    operator, slash, number = name.rpartition("/")
    if not (slash and operator and number.isascii() and number.isdigit() and len(number) < 10):
        return None
    return Subtask(operator, int(number))

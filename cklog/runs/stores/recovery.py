"""What each task with state stores has to do in a recovery: to read and to apply the rest of its changelogs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cklog.inputs.stores import StoreRestore
from cklog.lines.recovery.work import Work, Works, exactly, who_tells
from cklog.model.lines import LineEntry


def store_works(line: Iterable[LineEntry], restores: Sequence[StoreRestore], logged: bool) -> Works:
    """Return what each task applies again of its changelogs; an instance may restore its tasks one after the other.

    `logged` : whether logs were given
    """
    parts = []
    for name in dict.fromkeys(f"{entry.operator}/{entry.subtask}" for entry in line):
        mine = [r for r in restores if r.task == name]
        sizes, counts = [r.bytes for r in mine], [r.records for r in mine]
        parts.append(
            Work(
                name=name,
                bytes=None if None in sizes else sum(size for size in sizes if size is not None),
                logged=None if None in counts else exactly(sum(count for count in counts if count is not None)),
            )
        )
    logs = who_tells("the changelogs", "--kafka", logged)
    why = {
        "bytes": logs,
        "messages": logs,
        "read": "no file of a store holds times; --read-rate says it",
        "replay": "no file of a store holds times; --replay-rate says it",
        "input": "no file of a store holds times; --input-rate says it",
    }
    return Works(parts, why=why, in_turn=True)

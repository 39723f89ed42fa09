"""The rollback-dependency graph of a history: intervals, the messages between them, zigzag paths.

It stands between a `History` and the lines: it says which checkpoints exclude each other, not which line follows.

- `intervals`: the graph's edges that matter, the useless checkpoints on its cycles, what reaches what
- `message_edges`: all pairs of intervals between which messages ran, with their sequence numbers
- `paths`: the shortest zigzag path from one checkpoint to another, or to itself
"""

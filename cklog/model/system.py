"""The system log as a table (design section 3, `system/`), and the events that tell of a token round.

    token-sent         channel, round, seq       the sender put the round's token before message `seq` of the channel
    token-received     channel, round, seq       the receiver took it, having received the messages below `seq`
    checkpoint-begun   operator, subtask, round  the individual checkpoint is being taken
    checkpoint-stored  operator, subtask, round  it is stored; `uri`: there is a copy, `node`: on that node's own disk
    tuples-stored      channel, round, seq, tuples  the sender's checkpoint holds messages [seq, seq + tuples)

Each may have `time` and `bytes`. Other events (boot, query-installed, element-sent, …) are those of
`cklog.impact.system`, and have `query`, `state`, `ts` and `equal`.
"""

from __future__ import annotations

import pyarrow as pa

SYSTEM = pa.schema(
    [
        pa.field("event", pa.string(), nullable=False, metadata={"words": "any"}),
        pa.field("operator", pa.string()),
        pa.field("subtask", pa.int64()),
        pa.field("channel", pa.string()),
        pa.field("round", pa.int64()),
        pa.field("seq", pa.int64()),
        pa.field("tuples", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("node", pa.string()),
        pa.field("uri", pa.string(), metadata={"values": "many"}),
        pa.field("query", pa.string()),
        pa.field("state", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("equal", pa.int64()),
    ]
)
"""A system-log event; `event` is any word, `subtask` is 0 where null."""

ON_CHANNELS = ("token-sent", "token-received", "tuples-stored")
OF_SUBTASKS = ("checkpoint-begun", "checkpoint-stored")

"""The tables of the native run folder as Arrow schemas (docs/run-folder.md)."""

from __future__ import annotations

import pyarrow as pa

_WATERMARKS = pa.map_(pa.string(), pa.int64())

CHECKPOINTS = pa.schema(
    [
        pa.field("operator", pa.string(), nullable=False),
        pa.field("subtask", pa.int64()),
        pa.field("checkpoint", pa.int64(), nullable=False),
        pa.field("time", pa.int64()),
        pa.field("sent", _WATERMARKS),
        pa.field("received", _WATERMARKS),
        pa.field("sources", _WATERMARKS),
        pa.field("kind", pa.string()),
        pa.field("round", pa.int64()),
        pa.field("index", pa.int64()),
        pa.field("duration_ms", pa.float64()),
        pa.field("bytes", pa.int64()),
        pa.field("form", pa.string()),
        pa.field("parent", pa.int64()),
        pa.field("uri", pa.string()),
        pa.field("status", pa.string()),
        pa.field("variables", pa.string(), metadata={"holds": "json", "values": "many"}),
    ]
)
"""A local checkpoint; `subtask` is 0 where null. `kind` local / forced / coordinated / volatile; `form` base / delta;
`status` complete / incomplete; `variables` is JSON text, [{name, form, parent, bytes}]. `index` is the logical clock
of a communication-induced protocol at the checkpoint (BCS's index, HMNR's `lc`)."""

MESSAGES = pa.schema(
    [
        pa.field("channel", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("time", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("protocol_bytes", pa.int64()),
    ]
)
"""A message in a channel's log; of its `bytes`, the checkpointing protocol added `protocol_bytes`."""

EVENTS = pa.schema(
    [
        pa.field("event", pa.string(), nullable=False),
        pa.field("operator", pa.string(), nullable=False),
        pa.field("subtask", pa.int64()),
        pa.field("lsn", pa.int64()),
        pa.field("channel", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("checkpoint", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("bytes", pa.int64()),
    ]
)
"""A raw event in its subtask's local order: `event` send / receive / checkpoint."""

OUTPUTS = pa.schema(
    [
        pa.field("type", pa.string(), nullable=False),
        pa.field("window", pa.string(), metadata={"values": "many"}),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("open_windows", pa.int64()),
        pa.field("state", pa.string(), metadata={"holds": "json"}),
        pa.field("input", pa.int64()),
        pa.field("inputs", _WATERMARKS, metadata={"member": "input"}),
        pa.field("pos", pa.int64()),
        pa.field("bytes", pa.int64()),
    ]
)
"""A record of a persisted output queue, in log order: `type` open / check / result (closes its window) / emit.

`window` names one physical window; `ts` is the timestamp of the input tuple in process, `input` its sequence
number (of several inputs: `inputs`, channel → sequence number; the member is called `input` in both cases);
`open_windows` is N after this record; `state` is JSON text; `pos` is the dense record number."""

STATE = pa.schema(
    [
        pa.field("operator", pa.string(), nullable=False),
        pa.field("subtask", pa.int64()),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
    ]
)
"""How large a subtask's state was at a moment, in ms; `subtask` is 0 where null."""

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
"""A system-log event; `event` is any word, `subtask` is 0 where null. Of a token round tell

    token-sent         channel, round, seq       the sender put the round's token before message `seq` of the channel
    token-received     channel, round, seq       the receiver took it, having received the messages below `seq`
    checkpoint-begun   operator, subtask, round  the individual checkpoint is being taken
    checkpoint-stored  operator, subtask, round  it is stored; `uri`: there is a copy, `node`: on that node's own disk
    tuples-stored      channel, round, seq, tuples  the sender's checkpoint holds messages [seq, seq + tuples)

Each may have `time` and `bytes`. Other events (boot, query-installed, element-sent, …) are those of
`cklog.impact.system`, and have `query`, `state`, `ts` and `equal`.
"""

ON_CHANNELS = ("token-sent", "token-received", "tuples-stored")
OF_SUBTASKS = ("checkpoint-begun", "checkpoint-stored")

TABLES: dict[str, pa.Schema] = {
    "checkpoints": CHECKPOINTS,
    "channels": MESSAGES,
    "events": EVENTS,
    "outputs": OUTPUTS,
    "state": STATE,
    "system": SYSTEM,
}

CHOICES: dict[str, tuple[str, ...]] = {
    "kind": ("local", "forced", "coordinated", "volatile"),
    "form": ("base", "delta"),
    "status": ("complete", "incomplete"),
    "event": ("send", "receive", "checkpoint"),
    "type": ("open", "check", "result", "emit"),
}
"""The words that a column may hold; any other is a record that cannot be understood. Not in a column of `any` words."""

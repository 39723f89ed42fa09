"""Flink's checkpoints and savepoints: what their `_metadata` says, and where the files that it names are now.

Nothing here decides whether a snapshot can be restored: that is `cklog.runs.snapshots`. Formats are read off Flink
1.3 to 2.3; what does not decode becomes damage with its place, what is merely unknown a row `unread`.

- `parser`: a folder of snapshots, listed once, and the places of stored files
- `metadata`: a whole `_metadata` file as rows of the table of snapshots
- `handles`: handles of state in it: which file, or which bytes of the metadata, hold a piece of state
- `rows`: rows of that table in the making
- `splits`: the layouts of single splits and enumerators
- `elements`: lists of operator state, and what their elements may be
- `cdc`: splits that read the log of a database
- `layouts`: what a layout is, and how bytes are tried
- `committables`: what committers of sinks keep: Kafka's transactions, Paimon's identifiers
- `iceberg`, `sink_files`: what those of Iceberg and of the file sink do
- `contents`: where the bytes of a piece of state are, and reading them
- `derived`: what Flink computes and writes down: operator ids, key groups, names of classes
- `state_bytes`: whether the bytes of a state file can be what was written
- `state_heads`: what a stream of state says of itself before its state
- `inlined`: state inside the metadata, held against its handle
- `java`: numbers, strings and objects as Java writes them
- `job_log`: what a job manager's log says of checkpoints
"""

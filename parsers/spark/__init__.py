"""Checkpoint folders of Spark Structured Streaming: logs of batches, sources and sinks, and state stores, as values.

Files are listed, read and verified here. Where a restart goes on, and what is in its way, is judged in
`cklog.runs.batches` from these values.

- `parser`: one checkpoint folder and what lies beside it
- `metadata_log`: folders of one small file a batch: listed, read, decoded
- `file_sinks`: folders that a file sink wrote to
- `state`: the room of state stores
"""

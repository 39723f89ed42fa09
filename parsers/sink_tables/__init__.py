"""Tables that a job writes to: their commits, what streams stamped on them, and what a sink finds when it asks.

- `opening`: which format lies at a URI, and that table read
- `iceberg`, `iceberg_names`, `iceberg_stamps`: metadata files and catalogs, by pyiceberg
- `delta`, `delta_actions`, `delta_checkpoints`, `delta_restores`: the log of actions, its checkpoints, and RESTORE
- `paimon`: snapshots
- `hudi`, `hudi_stamps`: the timeline
- `files`, `ancestry`: what all have in common: files of metadata, and the way back from a head
"""

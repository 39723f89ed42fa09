"""The native run folder: tables of checkpoints, messages, events, states and outputs that a run wrote for cklog.

It finds the files and says how to read them; their formats are read by `jsonl`, `tables` and `kafka`.

- `parser`: the run folder: tables, checksums, splits
- `manifest`: the members of `job.json`, and of which JSON type each is
- `file_formats`: whether the format of a file is known
- `output_queues`: the persisted output queues below `outputs/`, from either end
"""

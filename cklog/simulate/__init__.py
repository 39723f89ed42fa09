"""Runs made by known protocols and workloads, written as run folders: what the analyses say of them can be checked.

Nothing here reads a run; the same arguments write the same bytes.

- `cec`: an operator under continuous eventual checkpointing
- `dataflow`: a dataflow job under a checkpointing protocol
- `odysseus`: a system on one machine that crashes and recovers
- `files`: new folders, and records in parts
- `view`: the answers of `cklog simulate`
"""

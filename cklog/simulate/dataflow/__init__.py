"""A dataflow job under a checkpointing protocol, simulated up to its failure (CheckMate, ICDE 2024).

- `queries`: the pipelines of the published testbed, and what their operators do
- `reachability`: the events of the cyclic query, and what its operators do
- `wire`: how large the testbed's messages are
- `setting`: what a run depends on, its instances and channels
- `protocols`: the rules of each protocol
- `simulation`: the run itself, event by event
- `journal`: the checkpoints of a run as a history, and its figures
- `run`: the run as a folder, and the answer of `cklog simulate nexmark` and `cyclic`
"""

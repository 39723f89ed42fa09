"""Checkpoint records put in order and turned into arrays, the input of every analysis of lines.

Records come from tables (`records`), or are made of raw events (`events`); `watermarks` builds the `History` of either.
No line is searched for here: that is done in `cklog.lines`, on a `History` alone.

- `history`: `History`, the checkpoints and watermarks of a run as arrays
- `records`: checkpoint records sorted, one per checkpoint, over numbered subtasks and channels
- `watermarks`: from records to a `History`: watermarks filled forward, nothing newer than proven
- `pieces`: records as pieces of chains, and which records those can restore
- `variables`: the variables that a record lists, each in base or delta form
- `state_files`: whether the state files that records name are there
- `deliveries`: what a receiver had got by a checkpoint where a channel delivered out of order
- `tokens`: token events of a system log
- `events`: a room of its own: raw events turned into checkpoint records
"""

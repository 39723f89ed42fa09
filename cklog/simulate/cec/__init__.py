"""An operator under continuous eventual checkpointing (Sebepou and Magoutis, DSN 2011), simulated.

- `tuples`: the tuples of its source
- `operator`: the operator with its checks, step by step, and the figures of a run
- `figures`: the paper's experiments run again, its numbers beside theirs
- `view`: the same for people
- `write`: the run as a folder, and the answer of `cklog simulate cec`
"""

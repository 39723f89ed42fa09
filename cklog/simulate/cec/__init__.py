"""An operator under continuous eventual checkpointing (Sebepou and Magoutis, DSN 2011), simulated.

- `tuples`: the tuples of its source
- `operator`: the operator with its checks, step by step, and the figures of a run
- `write`: the run as a folder, and the answer of `cklog simulate cec`
"""

"""Campaigns on live engines: kills at random moments, damages, the answer of the program cklog, and real restarts.

- `spark`: `python -m tests.live.spark`, of the pyspark of the interpreter
- `flink`: `python -m tests.live.flink`, of the version that is named

A campaign runs cklog as a program and imports nothing of it: what is true comes from the engine and from ledgers of
sinks. Its judging is tested next to it, on outcomes that no engine gave.
"""

"""Advice: what other settings of checkpointing would have cost, by what was recorded.

Each room below answers one question from recorded data and never plays out a run; that is `cklog.simulate`.

Rooms:

* `extent`: Q, U, CI and CP, the settings of check records in an output queue
* `delta`: D, how many deltas follow a base checkpoint
* `timing`: when to checkpoint, by the sizes of states over time
"""

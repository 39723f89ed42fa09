"""Checkpointing protocols judged from a history: what they cost, whether they kept their promise, how far they fall.

What is here looks at whole histories; the line of one failure is found in `cklog.lines`.

Public modules:

* `metrics`: the metrics of CheckMate, for one run or for several side by side
* `index_audit`: whether the logged index of a communication-induced protocol rises along zigzag paths
* `failures_over_time`: what a failure of all subtasks at every moment would have cost
* `view`: all three as sections of rows, sentences and a curve
* `choice`: which protocol a job should use, by replaying its run under each
"""

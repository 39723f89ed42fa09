"""Q, U, CI and CP, the settings of check records: what others would have given on an operator's own output queue.

The policies themselves are `cklog.policies.check_records`; what a queue proves about its operator is `cklog.queues`.

Public modules:

* `scan`: the log as events, and its scales
* `grid`: the settings that are tried, and what a recovery costs
* `tracks`: what each policy would have written, and the extent and replay it would have had
* `replay`: one pass over a log that feeds every policy
* `answer`: the answer of `advise extent`
* `view`: that answer for people
"""

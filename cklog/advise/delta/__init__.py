"""D, the number of deltas that follow a base: what the method of US patent 9,471,438 would have set.

The method itself is `cklog.policies.delta_number`. This room follows it along what was recorded and
counts the costs.

Public modules:

* `history`: recorded checkpoints by subtask, with their prices as bases and as deltas
* `hindsight`: the best fixed D, known afterwards
* `costs`: what each schedule costs, and what the method saves
* `answer`: the answer of `advise delta`
* `view`: that answer for people
"""

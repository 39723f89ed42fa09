"""Persisted output queues (CEC): eventual checkpoints, their extents, and their replay.

An operator that logs its output, and in it the footprints of its windows, can be restored from that log alone. This
room reads such a queue and says what it proves. What its writer could have done better is `cklog.advise.extent`; how a
whole run comes back from its queues is `cklog.runs.records.cascade`.

Public modules:

* `log`: records as arrays, and the reader that goes back from the end
* `holes`: where records are missing, and what may be among them
* `judge`: what the end of a queue proves
* `upstream`: which tuples must come again, and where the upstream's queue has them
* `full_scans`: scans of a whole queue on either engine: a census, and a second opinion about open windows
* `over_time`: extent and replay at every record of a queue
* `findings`: what all these find wrong, in sentences
* `analyses`: the answers of `extent`, `eventual-checkpoint` and `extent-over-time`
* `view`: these answers for people
"""

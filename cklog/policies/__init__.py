"""Methods of the papers that decide when to write what: check records in an output queue, deltas after a base.

They are pure functions and values without any log or file, so that the simulators run and the advisors judge the same
method.

Public modules:

* `check_records`: when continuous eventual checkpointing writes check records, and the footprints that they renew
* `load_time`: how long an eventual checkpoint takes to load, as the paper measured it
* `delta_number`: the Delta Checkpoint Number, how many delta checkpoints follow a base
* `induced`: the rules of uncoordinated and communication-induced checkpointing
* `intervals`: Young's and Daly's best interval between checkpoints
"""

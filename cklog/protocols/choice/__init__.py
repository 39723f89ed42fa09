"""Which checkpointing protocol a job should use: its execution replayed under each of them, and what each would cost.

* `execution`: what a run sent and received, in an order that causes allow; from raw events, or estimated
* `placed`: the checkpoints that a protocol takes along an execution, timers' and forced ones
* `coordinated`: rounds with aligned markers along an execution, and the stalls that they make
* `costs`: what checkpoints cost: useless ones, rollback over all failure times, logs kept
* `model`, `answer`, `view`: the advice
"""

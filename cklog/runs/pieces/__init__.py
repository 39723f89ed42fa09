"""A folder of base and delta checkpoints and nothing else.

* `line`: the newest version of each subtask that can be restored
* `runbook`: steps of a runbook: pieces are listed, and read in their order
* `analyses`: what is in it, and what may be deleted
"""

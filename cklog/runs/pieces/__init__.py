"""A folder of base and delta checkpoints and nothing else.

* `line`: the newest version of each subtask that can be restored
* `analyses`: what is in it, and what may be deleted
"""

"""A folder of base and delta checkpoints and nothing else.

* `analyses`: what is in it, and what may be deleted
"""

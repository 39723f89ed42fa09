"""Extent and replay along a whole output queue, in one pass and bounded memory.

Public modules:

* `timeline`: the pass, and its result
* `pieces`: extent and replay at every record of a piece of the log
* `folds`: what stays of all pieces: means, samples, slow footprints, stretches over a target
"""

"""Space-time diagrams as SVG: subtasks as lines, checkpoints as boxes, messages as arrows, in the form of the papers.

They draw what `cklog.graphs.graph` has chosen and analyse nothing.

Public modules:

* `diagram`: the whole picture of a `graph` answer
* `layout`: the place of every box and arrow, to scale where there is room
* `shapes`: boxes, arrows and marks, and what they stand for
"""

"""Space-time diagrams as SVG: subtasks as lines, checkpoints as boxes, messages as arrows, in the form of the papers.

They draw what `cklog.graphs.graph` has chosen and analyse nothing.

Public modules:

* `diagram`: the whole picture of a `graph` answer
* `scene`: what is drawn, lane by lane
* `fold`: the same with one lane for all subtasks of an operator
* `layout`: the place of every box and arrow, to scale where there is room
* `shapes`: boxes, arrows and marks, and what they stand for
"""

"""Graphs of checkpoints to look at: a chosen part of a history as nodes and edges, its Z-cycles, drawings and exports.

The graphs that algorithms search are arrays in `cklog.zigzag`; what is here gives them names and words.

Public modules:

* `graph`: the checkpoint graph and the rollback-dependency graph as rows, with the line through them
* `selection`: the part of a large history that a graph shows
* `z_cycles`: the useless checkpoints with shortest witnesses, and the other kinds counted
* `exports`: DOT, GraphML, node-link JSON, Mermaid and SVG
* `view`: graphs and useless checkpoints as sections of rows
* `space_time`: the space-time diagram that `exports` writes as SVG
"""

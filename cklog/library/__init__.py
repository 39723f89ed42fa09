"""cklog as a library, for notebooks and programs: Python values in, typed results out that become tables and pictures.

As the commands make questions of options, this room makes them of keywords; `cklog.run` answers both. All that is here
is imported from `cklog` itself.

Public modules:

* `opening`: runs opened by their place
* `opened`: a run that questions with keywords are put to
* `advice`: those of its questions that are about rounds, queues and settings
* `documents`: the report of an incident, and a row about every run below some folders
* `asking`: the run behind them, and its answers made into results
* `results`: answers as dict, Arrow table, data frame, networkx graph, SVG and HTML
* `tables`: the rows of a result as typed Arrow tables
* `values`: what a program says of times, checkpoints and subtasks as the parts of questions
"""

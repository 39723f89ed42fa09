"""Kinds of run: for each kind, what its folders can be asked.

`kind` holds the base class, whose methods are the questions, each refused in one sentence; the class of a kind answers
those that make sense of it. What it answers with lies in the rooms below: `cklog.runs` has the analyses of each kind,
`cklog.graphs`, `cklog.rounds`, `cklog.advise` and `cklog.protocols` those of runs with checkpoint records.

* `kind`: the base class `Kind`, and what a façade lends it
* `discovery`: every run that lies below PATH
* `enclosing`: PATH as a part of a run, such as a file of it
* `opening`: the parser of the one that is asked, and from the kind that it declares to the class that answers
* `records`, `queues`, `batches`, `snapshots`, `partitions`, `stores`, `pieces`, `connectors`: one class each
"""

"""What a restart from a line does to the results of the sinks of a distributed run.

Each kind of run finds its own intervals, in `cklog.runs.*.impact`; this room has the values that they fill in, and the
rules that they share.

- `model`: intervals of results and their fates, transactions, guarantees
- `guarantees`: which guarantee the evidence for a sink supports
- `sources`: what of the sources is read again, and whether it is still there
- `line_errors`: the same with the errors and the action of the line
- `tables`: the same of tables, by what these remember
- `view`: the answer as sentences and rows
"""

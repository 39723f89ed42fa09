"""A run given as snapshots of whole jobs (Flink), each a consistent line by itself.

* `verdicts`: which snapshots can be restored, and what keeps the others from it
* `heads`: what each says of itself, and how much state its handles have
* `order`: which numbers what sources have read contradicts
* `contents`: what looking into state files shows
* `lineage`: which job goes on from which
* `generations`: which job is a restart of which by what it holds
* `plan`: what each job restarts from
* `line`: the same as a line
* `proof`: a given line proved
* `state`: what snapshots hold: offsets, transactions, data in flight
* `waiting`: what snapshots have for sinks that is not committed yet, and whether it is there
* `moved`: folders that are not where they were written, and how they are put back together
* `beside`: a line against what is outside of its snapshots: files and tables of sinks, logs of Kafka, of databases
* `findings`: what is wrong, in sentences
* `inspection`: what is here
* `chains`: snapshots as base and delta checkpoints
* `impact`: what a restore does to the results of sinks
* `feeds`: what jobs read of others as of each snapshot
* `retention`: which files nothing needs
* `kept`: which snapshots stay, or would if they were mended
* `runbook`: steps that take a job from a crash to its restore
"""

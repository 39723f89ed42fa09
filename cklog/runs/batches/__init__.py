"""Runs given as micro-batches (Spark Structured Streaming): where a restart goes on, and what is in its way.

A parser hands over logs and state as values (`cklog.inputs.batches`); all that follows from them is judged here. What
was read off Spark by damaging copies and restarting them stands in the modules that use it.

- `plan`: what a restart does, put together of all the others
- `line`: the answers of recovery-line, replay, verify and inspect
- `restart`: what a restart does, in plain sentences
- `judge`: offsets and commits against each other, gaps in them, and what stops a restart
- `facts`: what is wrong with a file, and what follows from it
- `targets`: batches that the query can go back to
- `offsets`: offsets as Spark writes them, and the ranges that a batch reads
- `repartitions`: offline repartition of the state
- `connectors`: logs and files of sources
- `positions`: files in which sources keep positions of their own
- `source_tables`: tables that the query reads as streams, and its offsets in them
- `file_sink`: the log of the file sink
- `done`: batches without a commit that the query's sink shows to be done
- `state_line`: to which batch all state stores can go back
- `recovery`: what a recovery has to read and to process again
- `impact`: what a restart does to the results of the sink
- `sinks`: what a restart presents to the sink: the query's id, and numbers of batches
- `feeds`: what the query reads of other jobs and writes for them, batch by batch
- `retention`: which files of a checkpoint no batch needs
- `runbook`: steps that take a query from a crash to its restart
"""

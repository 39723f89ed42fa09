"""Recovery lines: which checkpoint of every subtask to restart from, why this one, and what is replayed from there.

The algorithms work on a `History` (`cklog.history.history`) and on lines as arrays of indices. Reading the logs of a
run and putting its answer together is not done here but in `cklog.runs`.

Public modules:

* `search`: the line that a question asks for, or why there is none
* `fixpoint`: the latest consistent line, and the earliest one through given checkpoints
* `propagation`: the latest consistent line once more, by rollback propagation as printed
* `rounds`: coordinated rounds, and the last complete one as a line
* `rollback`: how far each subtask falls back, and the orphan messages that force it
* `checkpoint_sets`: the checkpoints that are useless, rolled past, unusable or obsolete
* `replay_ranges`: the messages to replay across a line, what channel logs hold of them, source offsets
* `kafka_logs`: the same ranges held against the partitions of Kafka logs
* `topics`: whether the topics that a line reads are still the same, and which partitions are new
* `unchecked`: the sources, logs and tables that nothing was compared with
* `proof`: a line proved or refuted from watermarks, in plain Python
* `proof_rows`: the records that such a proof looks at
* `verify`: a given line read from a file and checked with `proof`
* `entries`: a line, its rollbacks and zigzag messages as rows of an answer
* `sentences`: rollbacks, checkpoints and zigzag messages in words
* `recovery`: how long a recovery from a line takes, by rates
* `resume_offsets`: where Kafka partitions resume, checked for what Kafka can take
* `exports`: those offsets in the formats of the tools that will use them
* `connect_offsets`: offsets of source connectors as the body of Kafka Connect's offset API
* `view`: answers of recovery-line, replay, verify and inspect as sections of rows
"""

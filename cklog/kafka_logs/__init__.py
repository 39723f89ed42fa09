"""What the partitions of a Kafka folder hold: each is read once, and counted exactly.

How bytes become batches is the parser's matter (`cklog.parsers.kafka`); what a run makes of offsets is in `cklog.lines`
and `cklog.runs`.

- `logs`: a folder of partitions, opened
- `batch_runs`: what a segment holds, as a few rows for any number of batches
- `partition`: one partition: where it begins, ends, and will end after a restart, and its transactions
- `range_counts`: what ranges of offsets hold, exact to the record
- `group_commits`: the committed offsets of consumer groups
- `absent`: partitions that were looked for and are not there
- `deleted`: committed offsets that were deleted, and how a group gets them back
- `identity`: whether a log is the one that an offset was stored of
- `ended`: how the transactions of given producers ended
- `open_transactions`: transactions that hold back readers, or whose end is not known
- `findings`: what is wrong with partitions, commits and ranges
"""

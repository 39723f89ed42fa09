"""Kafka on disk: the data folder of a broker, and state folders of Kafka Streams and Quix Streams.

Bytes become batches, records, and tables here; what a log means for groups and transactions is worked out in
`cklog.kafka_logs`. Readers are named by strings and loaded in Spark tasks, so no module loads more than it needs.

Batches and records:

- `batches`: record batches of format 2 on bytes: header, checksum, payload, records
- `legacy`: messages of formats 0 and 1, before Kafka 0.11
- `payloads`: what they hold, decompressed, and how much of it is read
- `varints`: the numbers of records, one at a time or many at once
- `joined`: payloads of many batches one behind the other
- `decode`: the records of many batches at once, as arrays

Files:

- `segment`: where the batches of a segment begin, and what lies between them
- `log`: a partition's segments together: splits, logs against indexes, where a time begins
- `side_files`: checkpoints of offsets, snapshots of producers, indexes of aborted transactions
- `compaction`: what a starting broker makes of a compaction that was interrupted
- `folder`: which partitions a data folder holds, and what its small files say of them

Tables:

- `headers`: a row per batch, from headers alone
- `groups`: committed offsets of consumer groups; the records of a segment in parts
- `table`: a run folder's table that lies in a partition
- `transactions`: how the transactions of a split ended

Parsers:

- `parser`: a broker's data folder
- `streams`, `quix`: state folders of Kafka Streams, and of Quix Streams
- `state`: offsets that stores keep inside RocksDB, a room of its own
"""

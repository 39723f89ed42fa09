"""The analyses of each kind of run, a room for each, which know nothing of one another.

What a kind can be asked, and which function answers, stands in `cklog.kinds`.

* `records`: tables of records: native folders, CheckMate's dumps, plug-ins
* `batches`: micro-batches: Spark
* `snapshots`: snapshots of whole jobs: Flink
* `partitions`: a broker's partitions: Kafka
* `stores`: state stores and their changelogs: Kafka Streams
* `pieces`: base and delta checkpoints alone: stores by key
* `connectors`: where source connectors resume: Kafka Connect
"""

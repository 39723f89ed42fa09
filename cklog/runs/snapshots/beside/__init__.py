"""What a line of snapshots rests on outside of them: logs of Kafka and of databases, and tables.

* `transactions`: how Kafka transactions ended that a restore commits
* `positions`: whether databases still have what CDC sources resume at
* `shown`: files of a file sink that a later checkpoint has committed
* `pending`: what snapshots have for sinks as rows, sentences and findings
* `sinks`: the line as the tables that the job writes see it
"""

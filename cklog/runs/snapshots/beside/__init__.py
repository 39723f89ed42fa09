"""What a line of snapshots rests on outside of them: transactions in Kafka's logs, and the logs of databases.

* `transactions`: how Kafka transactions ended that a restore commits
* `positions`: whether databases still have what CDC sources resume at
"""

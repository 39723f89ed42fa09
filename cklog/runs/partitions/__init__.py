"""A run given as a broker's partitions (Kafka): where logs end after a restart, where groups go on.

* `line`: the line, and what is replayed
* `inspection`: what is here: partitions, groups, transactions, producers
* `impact`: what the restart does to what groups read
* `runbook`: steps that take a broker and its groups from a crash to their restart
"""

"""A run given as a broker's partitions (Kafka): where logs end after a restart, where groups go on.

* `line`: the line, what is replayed, what is here
* `impact`: what the restart does to what groups read
"""

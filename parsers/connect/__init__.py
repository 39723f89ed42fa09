"""Kafka Connect: the offsets that its source connectors have stored, and what records say of where they come from.

* `entries`: keys and offsets, which are JSON; the newest of each key
* `topics`: the topic of offsets as segments of a broker, and the ends of data topics
* `exports`: the same topic as text, a record a line
* `java_map`: the file of a standalone worker, a serialised map
* `records`: the `source` block of records that Debezium writes
* `parser`: which of these lie below PATH
"""

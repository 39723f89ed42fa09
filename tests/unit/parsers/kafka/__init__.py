"""Kafka: batches and messages of every format, a broker's folder, groups, state folders of Streams."""

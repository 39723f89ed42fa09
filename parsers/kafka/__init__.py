"""Kafka: a broker's data folder, and state folders of Kafka Streams."""

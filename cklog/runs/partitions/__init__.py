"""A run given as a broker's partitions: Kafka."""

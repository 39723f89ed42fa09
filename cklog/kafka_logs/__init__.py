"""What the partitions of a Kafka folder hold: read once, counted exactly."""

"""A run given as state stores rebuilt from changelogs: Kafka Streams."""

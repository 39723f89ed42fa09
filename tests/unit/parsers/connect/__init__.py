"""Kafka Connect: the stores of connectors' offsets, and the source blocks of records."""

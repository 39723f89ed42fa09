"""Kafka Connect: the offsets that its source connectors have stored, and Debezium's positions in them."""

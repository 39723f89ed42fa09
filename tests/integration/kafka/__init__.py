"""Kafka: what a real broker left, other people's decoders, and plans carried out on a live broker."""

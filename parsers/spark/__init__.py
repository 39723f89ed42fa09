"""Checkpoints of Spark Structured Streaming."""

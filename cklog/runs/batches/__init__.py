"""A run given as micro-batches: Spark Structured Streaming."""

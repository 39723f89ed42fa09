"""Spark: the engine, the data sources, real checkpoints of killed queries, and real restarts."""

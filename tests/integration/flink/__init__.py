"""Flink: real checkpoints and savepoints, and what Flink did with each."""

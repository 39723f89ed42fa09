"""Flink checkpoints and savepoints."""

"""Flink: metadata, Java's streams, folders, the job manager's log."""

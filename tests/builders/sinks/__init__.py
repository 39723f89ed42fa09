"""Sinks: queries that write to tables, killed and run again; what sinks keep in checkpoints, by their layouts."""

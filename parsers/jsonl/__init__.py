"""JSON lines, a column at a time."""

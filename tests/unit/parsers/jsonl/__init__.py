"""JSON lines, decoded by column."""
